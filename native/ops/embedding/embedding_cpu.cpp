#include "ops/embedding/embedding_cpu.h"

#include <cstring>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {

template <class Real>
void embedding_fwd(int threads, Real* x, const Real* table, const Batch& b, i64 H) {
  parallel_blocks(threads, b.T, 64, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      std::memcpy(x + t * H, table + i64{b.tok[t]} * H, static_cast<size_t>(H) * sizeof(Real));
    }
  });
}

template <class Real>
void embedding_bwd(int threads, Real* d_table, const Real* dx, const Batch& b, i64 H) {
  parallel_blocks(threads, b.num_unique_cap, 16, [&](i64 begin, i64 end, i64) {
    Buffer<Real> sum(H);
    for (i64 u = begin; u < end; ++u) {
      if (b.unique_id[u] < 0) continue;
      sum.zero(H);
      for (i64 i = b.unique_ptr[u]; i < b.unique_ptr[u + 1]; ++i) {
        axpy<Real>(sum, Real(1), dx + i64{b.unique_pos[i]} * H, H);
      }
      axpy<Real>(d_table + i64{b.unique_id[u]} * H, Real(1), sum, H);
    }
  });
}

TESSERA_INSTANTIATE(embedding_fwd);
TESSERA_INSTANTIATE(embedding_bwd);

}  // namespace tessera::TESSERA_ISA
