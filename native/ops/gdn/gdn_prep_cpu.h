// Short convolution, SiLU and L2 norm before the gated delta rule, and the gates' gradients; see README.md.

#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// qkv[T,CQ] = l2norm(silu(conv(proj.qkv))) for q and k heads, silu(conv) for v heads
template <class Real>
void gdn_prep_fwd(int threads, Real* qkv, const Real* proj, const Real* conv_w, const Batch& b,
                  const GdnShape& s);

// The qkv, b and a slices of dproj =; d_conv_w [CQ,taps], d_a_log [HV], d_dt_bias [HV] +=.
// dq, dk [T,HV,K] per value head; dv [T,VD]; d_gamma, d_beta, beta [NC,HV,64].
template <class Real>
void gdn_prep_bwd(int threads, Real* dproj, Real* d_conv_w, Real* d_a_log, Real* d_dt_bias, const Real* dq,
                  const Real* dk, const Real* dv, const Real* d_gamma, const Real* d_beta, const Real* proj,
                  const Real* beta, const Real* conv_w, const Real* a_log, const Real* dt_bias,
                  const Batch& b, const GdnShape& s);

}  // namespace tessera::TESSERA_ISA
