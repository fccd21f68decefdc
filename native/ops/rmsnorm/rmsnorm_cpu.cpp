#include "ops/rmsnorm/rmsnorm_cpu.h"

#include <cmath>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {
namespace {
constexpr i64 kBlock = 64;  // rows per work item and per partial sum of dw
}

template <class Real>
void rmsnorm_fwd(int threads, Real* y, const Real* x, const Real* w, i64 rows, i64 H, Real eps) {
  parallel_blocks(threads, rows, kBlock, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      const Real* in = x + t * H;
      Real* out = y + t * H;
      const Real scale = Real(1) / std::sqrt(dot(in, in, H) / Real(H) + eps);
      for (i64 j = 0; j < H; ++j) out[j] = in[j] * scale * (Real(1) + w[j]);
    }
  });
}

template <class Real>
void rmsnorm_bwd(int threads, Real* dx, Real* dw, const Real* dy, const Real* x, const Real* w,
                 const Real* dres, i64 rows, i64 H, Real eps) {
  const i64 items = (rows + kBlock - 1) / kBlock;
  Buffer<Real> partial(items * H);
  parallel_blocks(threads, rows, kBlock, [&](i64 begin, i64 end, i64 item) {
    Real* part = partial + item * H;
    for (i64 j = 0; j < H; ++j) part[j] = Real{0};
    for (i64 t = begin; t < end; ++t) {
      const Real* in = x + t * H;
      const Real* up = dy + t * H;
      const Real* res = dres == nullptr ? nullptr : dres + t * H;
      Real* out = dx + t * H;
      const Real scale = Real(1) / std::sqrt(dot(in, in, H) / Real(H) + eps);
      Real along = 0;  // sum of m * x, m = dy (1 + w)
#pragma omp simd reduction(+ : along)
      for (i64 j = 0; j < H; ++j) along += up[j] * (Real(1) + w[j]) * in[j];
      const Real pull = along * scale * scale / Real(H);
      for (i64 j = 0; j < H; ++j) part[j] += up[j] * in[j] * scale;
      if (res == nullptr) {
        for (i64 j = 0; j < H; ++j) out[j] = scale * (up[j] * (Real(1) + w[j]) - in[j] * pull);
      } else {
        for (i64 j = 0; j < H; ++j) out[j] = scale * (up[j] * (Real(1) + w[j]) - in[j] * pull) + res[j];
      }
    }
  });
  ordered_sum<Real>(threads, dw, partial, items, H);
}

TESSERA_INSTANTIATE(rmsnorm_fwd);
TESSERA_INSTANTIATE(rmsnorm_bwd);

}  // namespace tessera::TESSERA_ISA
