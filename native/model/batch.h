// Packed micro-batches: from sequences of tokens to the arrays of ops/backend.h's Batch.
#pragma once

#include <span>
#include <vector>

#include "ops/backend.h"

namespace tessera {

// One sequence of a bin. Label i is the target of position i, kIgnoreLabel where there is none.
struct Sequence {
  std::span<const i32> ids;
  std::span<const i32> labels;  // as long as ids
  i64 computed = 0;             // positions really computed, >= ids.size(): the rest is unsupervised padding
};

struct BatchShape {
  i32 T, num_seq, num_chunk, num_loss, num_unique;
  auto operator<=>(const BatchShape&) const = default;
};

// Capacities of a run and where each array stands in the one blob that a micro-batch is uploaded as.
struct BatchLayout {
  i64 tokens = 0, sequences = 0;
  i64 longest = 0;  // positions of the run's longest sequence; 0: not known
  i64 chunks() const { return tokens / kChunk + sequences; }
  size_t bytes() const;
  Batch view(void* blob, const BatchShape& shape, bool compacted) const;
};

struct BatchRules {
  bool fixed_shapes =
      false;               // fill up to the capacities, the tail with unsupervised sequences of at most 4096
  bool compaction = true;  // the head computes supervised rows only
  i64 vocab = 0;           // ids outside are refused
};
inline constexpr i64 kTailSequence = 4096;
inline constexpr i64 kLossRowStep = 512;  // compacted row counts are rounded up to it under fixed shapes

// Writes the arrays into a host blob of layout.bytes(); empty sequences are left out.
// Throws EngineError batch_too_large | invalid_token, naming the sequence.
BatchShape fill_batch(const BatchLayout& layout, const BatchRules& rules, std::span<const Sequence> sequences,
                      void* blob);

// Rows of the head for so many targets, where a micro-batch holds at most `capacity` positions.
i64 loss_rows_of(i64 targets, i64 capacity, bool fixed_shapes);

// Sequences that a bin of `used` tokens in `count` sequences occupies once the tail is filled.
i64 sequences_with_tail(i64 count, i64 used, i64 capacity);

}  // namespace tessera
