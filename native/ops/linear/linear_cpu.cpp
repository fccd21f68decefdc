#include "ops/linear/linear_cpu.h"

#include <cstring>

#include "ops/cpu/parallel.h"
#include "ops/linear/gemm_cpu.h"

namespace tessera::TESSERA_ISA {

template <class Real>
void linear_fwd(int threads, Real* y, const Real* x, const Real* w, const Real* residual, i64 T, i64 N,
                i64 K) {
  if (residual != nullptr && residual != y) {
    parallel_blocks(threads, T, 64, [&](i64 begin, i64 end, i64) {
      std::memcpy(y + begin * N, residual + begin * N, static_cast<size_t>((end - begin) * N) * sizeof(Real));
    });
  }
  parallel_gemm<Real>(threads, T, N, K, plain(x, K), transposed(w, K), y, N, residual != nullptr);
}

template <class Real>
void linear_bwd_data(int threads, Real* dx, const Real* dy, const Real* w, i64 T, i64 N, i64 K) {
  parallel_gemm<Real>(threads, T, K, N, plain(dy, N), plain(w, K), dx, K, false);
}

template <class Real>
void linear_bwd_weight(int threads, Real* dw, const Real* dy, const Real* x, i64 T, i64 N, i64 K,
                       bool accumulate) {
  parallel_gemm<Real>(threads, N, K, T, transposed(dy, N), plain(x, K), dw, K, accumulate);
}

TESSERA_INSTANTIATE(linear_fwd);
TESSERA_INSTANTIATE(linear_bwd_data);
TESSERA_INSTANTIATE(linear_bwd_weight);

}  // namespace tessera::TESSERA_ISA
