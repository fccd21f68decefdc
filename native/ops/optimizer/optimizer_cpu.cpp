#include "ops/optimizer/optimizer_cpu.h"

#include <cmath>

#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {
namespace {
constexpr i64 kBlock = 16384;  // elements per work item and per partial sum
}

template <class Real>
double sum_of_squares(int threads, const Real* grad, i64 count) {
  const i64 items = (count + kBlock - 1) / kBlock;
  Buffer<double> partial(items);
  parallel_blocks(threads, count, kBlock, [&](i64 begin, i64 end, i64 item) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (i64 i = begin; i < end; ++i) sum += double(grad[i]) * double(grad[i]);
    partial[item] = sum;
  });
  double total = 0;
  for (i64 item = 0; item < items; ++item) total += partial[item];
  return total;
}

template <class Real>
void adamw(int threads, Real* param, Real* m, Real* v, const Real* grad, i64 count, const AdamRates& rates) {
  const Real shrink = Real(rates.shrink), scale = Real(rates.grad_scale);
  const Real keep1 = Real(rates.beta1), take1 = Real(1 - rates.beta1);
  const Real keep2 = Real(rates.beta2), take2 = Real(1 - rates.beta2);
  const Real step = Real(rates.step_size), root_bias2 = Real(rates.root_bias2), eps = Real(rates.eps);
  parallel_blocks(threads, count, kBlock, [&](i64 begin, i64 end, i64) {
#pragma omp simd
    for (i64 i = begin; i < end; ++i) {
      const Real g = grad[i] * scale;
      const Real mean = keep1 * m[i] + take1 * g;
      const Real square = keep2 * v[i] + take2 * g * g;
      m[i] = mean;
      v[i] = square;
      param[i] -= shrink * param[i] + step * (mean / (std::sqrt(square) / root_bias2 + eps));
    }
  });
}

TESSERA_INSTANTIATE(sum_of_squares);
TESSERA_INSTANTIATE(adamw);

}  // namespace tessera::TESSERA_ISA
