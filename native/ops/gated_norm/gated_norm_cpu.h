// RMS norm of each value head times a SiLU gate; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// y[T,VD] = w o rsqrt(mean(o^2) + eps) silu(z) per head; z is a slice of proj
template <class Real>
void gated_norm_fwd(int threads, Real* y, const Real* o, const Real* proj, const Real* w, i64 T,
                    const GdnShape& s, Real eps);

// d_o =, the z slice of dproj =, dw[Vh] +=
template <class Real>
void gated_norm_bwd(int threads, Real* d_o, Real* dproj, Real* dw, const Real* dy, const Real* o,
                    const Real* proj, const Real* w, i64 T, const GdnShape& s, Real eps);

}  // namespace tessera::TESSERA_ISA
