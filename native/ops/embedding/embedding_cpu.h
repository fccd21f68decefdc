// Token embedding; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// x[T,H] = table[tok]
template <class Real>
void embedding_fwd(int threads, Real* x, const Real* table, const Batch& b, i64 H);

// d_table[id] += dx of the positions that hold id, in increasing position
template <class Real>
void embedding_bwd(int threads, Real* d_table, const Real* dx, const Batch& b, i64 H);

}  // namespace tessera::TESSERA_ISA
