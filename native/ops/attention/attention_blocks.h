// The cut of a packed stream into attention blocks: at most 64 positions, starting over with every sequence,
// so that a token's result does not depend on where its sequence stands.
#pragma once

#include <cmath>

#include "ops/backend.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {

inline constexpr i64 kAttnBlock = 64;

struct AttnBlock {
  i64 begin, end;          // positions of the block
  i64 seq_begin, seq_end;  // of its sequence
};

class AttnBlocks {
 public:
  explicit AttnBlocks(const Batch& b) : blocks_(b.T / kAttnBlock + b.num_seq + 1) {
    for (i64 n = 0; n < b.num_seq; ++n) {
      for (i64 begin = b.cu[n]; begin < b.cu[n + 1]; begin += kAttnBlock) {
        const i64 end = begin + kAttnBlock;
        blocks_[count_++] = {begin, end < b.cu[n + 1] ? end : b.cu[n + 1], b.cu[n], b.cu[n + 1]};
      }
    }
  }
  i64 count() const { return count_; }
  const AttnBlock& operator[](i64 i) const { return blocks_[i]; }

 private:
  i64 count_ = 0;
  Buffer<AttnBlock> blocks_;
};

template <class Real>
Real attention_scale(const AttnShape& s) {
  return Real(1) / std::sqrt(Real(s.head_dim));
}

inline i64 min_of(i64 a, i64 b) { return a < b ? a : b; }

}  // namespace tessera::TESSERA_ISA
