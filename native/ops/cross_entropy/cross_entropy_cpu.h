// Softmax cross-entropy over logits, in place; see README.md.
#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// nll[rows] = lse - z[label], 0 where the label is negative; with_grad: z[rows,V] becomes softmax - onehot,
// zeros there
template <class Real>
void cross_entropy(int threads, Real* z, Real* nll, const i32* label, i64 rows, i64 V, bool with_grad);

}  // namespace tessera::TESSERA_ISA
