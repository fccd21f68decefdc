// Loops over work items on several threads. An item writes outputs of its own and the cut into items never
// depends on the number of threads, so neither do results. Sums across items go through partials and
// ordered_sum.
#pragma once

#include <cstdlib>

#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// One compiled copy of the body serves every number of threads: two copies could round differently.
template <class Body>
void parallel_for(int threads, i64 items, const Body& body) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && items > 1)
  for (i64 i = 0; i < items; ++i) body(i);
}

// body(begin, end, item) over [0, count) in pieces of `block`.
template <class Body>
void parallel_blocks(int threads, i64 count, i64 block, const Body& body) {
  parallel_for(threads, (count + block - 1) / block, [&](i64 item) {
    const i64 begin = item * block;
    body(begin, begin + block < count ? begin + block : count, item);
  });
}

// Uninitialised scratch of `count` elements, 64-byte aligned, freed with the scope.
template <class Real>
class Buffer {
 public:
  explicit Buffer(i64 count)
      : data_(static_cast<Real*>(
            std::aligned_alloc(64, (static_cast<size_t>(count) * sizeof(Real) + 64) / 64 * 64))) {
    if (data_ == nullptr) std::abort();
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator Real*() const { return data_; }
  void zero(i64 count) {
    for (i64 i = 0; i < count; ++i) data_[i] = Real{0};
  }

 private:
  Real* data_;
};

// dst[j] += partial[0][j] + partial[1][j] + ..., in that order; partial is [partials, count].
template <class Real>
void ordered_sum(int threads, Real* dst, const Real* partial, i64 partials, i64 count) {
  parallel_blocks(threads, count, 1024, [&](i64 begin, i64 end, i64) {
    Buffer<Real> sum(end - begin);
    sum.zero(end - begin);
    for (i64 p = 0; p < partials; ++p) {
      for (i64 j = begin; j < end; ++j) sum[j - begin] += partial[p * count + j];
    }
    for (i64 j = begin; j < end; ++j) dst[j] += sum[j - begin];
  });
}

}  // namespace tessera::TESSERA_ISA
