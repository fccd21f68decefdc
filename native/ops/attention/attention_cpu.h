// Gated causal attention over packed sequences with grouped keys; see README.md.

#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// y[T,NH,D] = o sigmoid(gate), o = softmax(q k^T / sqrt(D)) v within each sequence (o may be null); lse
// [NH,T]. Memory beyond the outputs: a few blocks of 64 rows per thread.
template <class Real>
void attention_fwd(int threads, Real* y, Real* o, Real* lse, const Real* q, const Real* k, const Real* proj,
                   const Batch& b, const AttnShape& s);

// dq, dk =; the gate and v slices of dproj =. scratch_do [T,NH,D], scratch_delta [NH,T].
template <class Real>
void attention_bwd(int threads, Real* dq, Real* dk, Real* dproj, Real* scratch_do, Real* scratch_delta,
                   const Real* dy, const Real* o, const Real* lse, const Real* q, const Real* k,
                   const Real* proj, const Batch& b, const AttnShape& s);

}  // namespace tessera::TESSERA_ISA
