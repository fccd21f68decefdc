#include "model/arena.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace tessera {
namespace {

constexpr size_t kAlign = 1024;  // swizzle atoms of tensor memory accelerators

}  // namespace

int Arena::add(MemoryPart part, size_t bytes, int first, int last) {
  items_.push_back({part, (std::max<size_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign, first, last, 0});
  return static_cast<int>(items_.size()) - 1;
}

void Arena::plan() {
  std::vector<size_t> order(items_.size());
  std::iota(order.begin(), order.end(), 0);
  // Items that live for ever come first, in the order of their adding: nothing can share with them.
  const auto rank = [&](size_t i) { return items_[i].last == kForever && items_[i].first == 0; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (rank(a) != rank(b)) return rank(a);
    return !rank(a) && items_[a].bytes > items_[b].bytes;
  });
  size_t forever_end = 0;
  std::vector<Item*> placed;
  for (const size_t i : order) {
    Item& item = items_[i];
    if (rank(i)) {
      item.offset = forever_end;
      forever_end += item.bytes;
      continue;
    }
    std::vector<std::pair<size_t, size_t>> taken;
    for (const Item* other : placed)
      if (other->first <= item.last && item.first <= other->last)
        taken.emplace_back(other->offset, other->offset + other->bytes);
    std::sort(taken.begin(), taken.end());
    size_t cursor = forever_end, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const auto& [begin, end] : taken) {
      if (begin > cursor && begin - cursor >= item.bytes && begin - cursor < best_gap) {
        best = cursor;
        best_gap = begin - cursor;
      }
      cursor = std::max(cursor, end);
    }
    item.offset = best == SIZE_MAX ? cursor : best;
    placed.push_back(&item);
  }
  size_ = forever_end;
  for (const Item* item : placed) size_ = std::max(size_, item->offset + item->bytes);
}

MemoryPlan Arena::memory() const {
  std::array<size_t, static_cast<size_t>(MemoryPart::count)> sum{};
  for (const Item& item : items_) sum[static_cast<size_t>(item.part)] += item.bytes;
  MemoryPlan m;
  m.weights = sum[static_cast<size_t>(MemoryPart::weights)];
  m.gradients = sum[static_cast<size_t>(MemoryPart::gradients)];
  m.optimizer = sum[static_cast<size_t>(MemoryPart::optimizer)];
  m.workspace = sum[static_cast<size_t>(MemoryPart::workspace)];
  m.total = size_;
  m.activations = size_ - m.weights - m.gradients - m.optimizer - m.workspace;
  return m;
}

void* Arena::at(int item) const { return base_ + items_[static_cast<size_t>(item)].offset; }

}  // namespace tessera
