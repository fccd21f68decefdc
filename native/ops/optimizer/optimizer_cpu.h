// Global gradient norm and AdamW; see README.md.

#include "ops/backend.h"
#include "ops/cpu/adam_rates.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// sum of grad[i]^2 in double, over fixed blocks added in order; NaN and infinity propagate
template <class Real>
double sum_of_squares(int threads, const Real* grad, i64 count);

// One AdamW step over a flat run of parameters: torch.optim.AdamW's formula, with both subtractions in one so
// that 1 - lr * weight_decay is never rounded to fp32.
template <class Real>
void adamw(int threads, Real* param, Real* m, Real* v, const Real* grad, i64 count, const AdamRates& rates);

}  // namespace tessera::TESSERA_ISA
