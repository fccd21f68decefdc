// Matrix products of the model; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// y[T,N] = x[T,K] w[N,K]^T (+ residual[T,N], which may be null or y itself)
template <class Real>
void linear_fwd(int threads, Real* y, const Real* x, const Real* w, const Real* residual, i64 T, i64 N,
                i64 K);

// dx[T,K] = dy[T,N] w[N,K]
template <class Real>
void linear_bwd_data(int threads, Real* dx, const Real* dy, const Real* w, i64 T, i64 N, i64 K);

// dw[N,K] (+)= dy[T,N]^T x[T,K]
template <class Real>
void linear_bwd_weight(int threads, Real* dw, const Real* dy, const Real* x, i64 T, i64 N, i64 K,
                       bool accumulate);

}  // namespace tessera::TESSERA_ISA
