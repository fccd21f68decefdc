#include "ops/cross_entropy/cross_entropy_cpu.h"

#include <cmath>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {

template <class Real>
void cross_entropy(int threads, Real* z, Real* nll, const i32* label, i64 rows, i64 V, bool with_grad) {
  parallel_blocks(threads, rows, 8, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      Real* row = z + t * V;
      if (label[t] < 0) {
        nll[t] = Real{0};
        for (i64 v = 0; with_grad && v < V; ++v) row[v] = Real{0};
        continue;
      }
      Real highest = row[0];
#pragma omp simd reduction(max : highest)
      for (i64 v = 0; v < V; ++v) highest = row[v] > highest ? row[v] : highest;
      const Real target = row[label[t]];
      Real sum = 0;
      if (with_grad) {
#pragma omp simd reduction(+ : sum)
        for (i64 v = 0; v < V; ++v) {
          row[v] = exp_of(row[v] - highest);
          sum += row[v];
        }
        const Real inverse = Real(1) / sum;
        for (i64 v = 0; v < V; ++v) row[v] *= inverse;
        row[label[t]] -= Real{1};
      } else {
#pragma omp simd reduction(+ : sum)
        for (i64 v = 0; v < V; ++v) sum += exp_of(row[v] - highest);
      }
      nll[t] = highest + std::log(sum) - target;
    }
  });
}

TESSERA_INSTANTIATE(cross_entropy);

}  // namespace tessera::TESSERA_ISA
