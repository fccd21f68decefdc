// Rows picked out of a matrix and put back: loss-token compaction; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// dst[i] = src[row[i]], zeros where row[i] is -1
template <class Real>
void gather_rows(int threads, Real* dst, const Real* src, const i32* row, i64 rows, i64 H);

// dst[T,H] = 0, then dst[row[i]] = src[i]; the non-negative rows are distinct
template <class Real>
void scatter_rows(int threads, Real* dst, const Real* src, const i32* row, i64 rows, i64 T, i64 H);

}  // namespace tessera::TESSERA_ISA
