#include "model/unit_slots.h"

#include <algorithm>

#include "core/dtype.h"

namespace tessera {

UnitSlots::UnitSlots(const Layout& layout, DType type, MemoryPart part, Arena* arena)
    : layout_(layout), type_(type) {
  std::array<size_t, 3> largest{};
  for (size_t u = 0; u < layout.units.size(); ++u) largest[index(u)] = std::max(largest[index(u)], bytes(u));
  for (size_t s = 0; s < items_.size(); ++s) items_[s] = arena->add(part, largest[s]);
}

void UnitSlots::bind(const Arena& arena) {
  for (size_t s = 0; s < items_.size(); ++s) slots_[s].data = arena.at(items_[s]);
}

size_t UnitSlots::index(size_t unit) const { return is_table(unit) ? kTables : (unit - 1) % 2; }

size_t UnitSlots::bytes(size_t unit) const {
  return static_cast<size_t>(layout_.units[unit].count) * dtype_bytes(type_);
}

void* UnitSlots::at(i64 offset) const {
  const auto after = std::upper_bound(layout_.units.begin(), layout_.units.end(), offset,
                                      [](i64 o, const Unit& u) { return o < u.begin; });
  const auto unit = static_cast<size_t>(after - layout_.units.begin()) - 1;
  return static_cast<char*>(slots_[index(unit)].data) +
         static_cast<size_t>(offset - layout_.units[unit].begin) * dtype_bytes(type_);
}

std::vector<UnitSlots::Gap> UnitSlots::gaps(size_t unit) const {
  std::vector<Gap> list;
  const auto [begin, count] = layout_.units[unit];
  i64 filled = begin;
  const auto add = [&](i64 until) {
    if (until > filled)
      list.push_back({at(filled), static_cast<size_t>(until - filled) * dtype_bytes(type_)});
  };
  for (const TensorEntry& t : layout_.tensors) {
    if (t.bucket != Bucket::big || t.offset < begin || t.offset >= begin + count) continue;
    add(t.offset);
    filled = t.offset + t.count;
  }
  add(begin + count);
  return list;
}

void UnitSlots::forget() {
  for (Slot& slot : slots_) slot.unit = -1;
}

}  // namespace tessera
