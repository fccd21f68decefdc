// The gated delta rule, chunked and token by token; see README.md for the formulas and shapes.
// Slots of unused chunks are neither read nor written.

#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// g, beta [NC,HV,64]: cumulated log decay within the chunk, and the write strength; padded rows g = g_last,
// beta 0.
template <class Real>
void gdn_gates_fwd(int threads, Real* g, Real* beta, const Real* proj, const Real* a_log, const Real* dt_bias,
                   const Batch& b, const GdnShape& s);

// ar [NC,HV,64,64] = (I + strict_lower(beta k k^T))^-1
template <class Real>
void gdn_kkt_fwd(int threads, Real* ar, const Real* qkv, const Real* beta, const Batch& b, const GdnShape& s);

// o[T,VD] =; state [NC,HV,K,Vh] (may be null) = the state entering each chunk
template <class Real>
void gdn_fwd_chunked(int threads, Real* o, Real* state, const Real* qkv, const Real* g, const Real* beta,
                     const Real* ar, const Batch& b, const GdnShape& s);
template <class Real>
void gdn_fwd_recurrent(int threads, Real* o, Real* state, const Real* qkv, const Real* g, const Real* beta,
                       const Batch& b, const GdnShape& s);

// dq, dk [T,HV,K] per value head, dv [T,VD], d_gamma, d_beta [NC,HV,64]; all =
template <class Real>
void gdn_bwd_chunked(int threads, Real* dq, Real* dk, Real* dv, Real* d_gamma, Real* d_beta, const Real* d_o,
                     const Real* qkv, const Real* g, const Real* beta, const Real* ar, const Real* state,
                     const Batch& b, const GdnShape& s);
template <class Real>
void gdn_bwd_recurrent(int threads, Real* dq, Real* dk, Real* dv, Real* d_gamma, Real* d_beta,
                       const Real* d_o, const Real* qkv, const Real* g, const Real* beta, const Real* state,
                       const Batch& b, const GdnShape& s);

}  // namespace tessera::TESSERA_ISA
