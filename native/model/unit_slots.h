// Where whole units stand for a while when what a rank keeps of them is a share: two slots that the layers
// take in turn, and one for embedding and head.
#pragma once

#include <array>
#include <vector>

#include "model/arena.h"
#include "model/layout.h"
#include "ops/backend.h"

namespace tessera {

class UnitSlots {
 public:
  struct Slot {
    void* data = nullptr;
    i64 unit = -1;    // what stands there; -1: nothing of use
    i64 ticket = -1;  // of the communication that was last to fill or read it
  };

  UnitSlots(const Layout& layout, DType type, MemoryPart part, Arena* arena);
  void bind(const Arena& arena);

  DType type() const { return type_; }
  Slot& of(size_t unit) { return slots_[index(unit)]; }
  void* at(i64 offset) const;  // of an element of the big bucket, while its unit stands in its slot
  size_t bytes(size_t unit) const;
  // What no tensor fills between the matrices of a unit, and nobody writes therefore: of models whose hidden
  // size is no multiple of kUnitAlign.
  struct Gap {
    void* at;
    size_t bytes;
  };
  std::vector<Gap> gaps(size_t unit) const;
  void forget();  // what stands in them is out of date

 private:
  static constexpr size_t kTables = 2;
  size_t index(size_t unit) const;
  bool is_table(size_t unit) const { return unit == 0 || unit > layout_.layers.size(); }

  const Layout& layout_;
  DType type_;
  std::array<int, 3> items_;
  std::array<Slot, 3> slots_;
};

}  // namespace tessera
