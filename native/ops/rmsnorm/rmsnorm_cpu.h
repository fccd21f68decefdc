// RMS norm with a zero-centred weight; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// y[rows,H] = x rsqrt(mean(x^2) + eps) (1 + w)
template <class Real>
void rmsnorm_fwd(int threads, Real* y, const Real* x, const Real* w, i64 rows, i64 H, Real eps);

// dx = gradient of x (+ dres, which may be null or dx itself); dw += in a fixed order
template <class Real>
void rmsnorm_bwd(int threads, Real* dx, Real* dw, const Real* dy, const Real* x, const Real* w,
                 const Real* dres, i64 rows, i64 H, Real eps);

}  // namespace tessera::TESSERA_ISA
