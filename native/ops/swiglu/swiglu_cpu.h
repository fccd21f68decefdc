// The MLP's activation; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// act[T,I] = silu(g) u, gu[T,2I] = g | u
template <class Real>
void swiglu_fwd(int threads, Real* act, const Real* gu, i64 T, i64 I);

// dgu (may be gu) = dg | du; act_out (may be dact) = silu(g) u
template <class Real>
void swiglu_bwd(int threads, Real* dgu, Real* act_out, const Real* dact, const Real* gu, i64 T, i64 I);

}  // namespace tessera::TESSERA_ISA
