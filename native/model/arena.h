// One allocation for everything: offsets are planned once from the tensors' lifetimes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tessera {

enum class MemoryPart { weights, gradients, optimizer, activations, workspace, count };

// Bytes by part; activations are what the plan needs beyond the other parts. context: what the backend takes
// beside the arena. total: all of them.
struct MemoryPlan {
  size_t weights = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0, context = 0, total = 0;
};

class Arena {
 public:
  // A tensor that is alive over the times first..last (both included) of the step's schedule; kForever:
  // always.
  static constexpr int kForever = 1 << 20;
  int add(MemoryPart part, size_t bytes, int first = 0, int last = kForever);
  // Best-fit interval colouring, largest first: tensors that are never alive together share addresses.
  void plan();
  MemoryPlan memory() const;
  size_t size() const { return size_; }
  void bind(void* base) { base_ = static_cast<char*>(base); }
  void* at(int item) const;

 private:
  struct Item {
    MemoryPart part;
    size_t bytes;
    int first, last;
    size_t offset;
  };
  std::vector<Item> items_;
  size_t size_ = 0;
  char* base_ = nullptr;
};

}  // namespace tessera
