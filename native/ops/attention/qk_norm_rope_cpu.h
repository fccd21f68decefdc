// Zero-centred RMS norm of query and key heads, then rotary positions; see README.md.

#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// q[T,NH,D], k[T,NKV,D] = rope(norm(.)); rope [max_pos,R] = cos [R/2] | sin [R/2]; wq, wk [D]
template <class Real>
void qk_norm_rope_fwd(int threads, Real* q, Real* k, const Real* proj, const Real* wq, const Real* wk,
                      const Real* rope, const Batch& b, const AttnShape& s, Real eps);

// The q and k slices of dproj =; dwq, dwk [D] +=
template <class Real>
void qk_norm_rope_bwd(int threads, Real* dproj, Real* dwq, Real* dwk, const Real* dq, const Real* dk,
                      const Real* proj, const Real* wq, const Real* wk, const Real* rope, const Batch& b,
                      const AttnShape& s, Real eps);

}  // namespace tessera::TESSERA_ISA
