#include "ops/gated_norm/gated_norm_cpu.h"

#include <cmath>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {
namespace {
constexpr i64 kBlock = 64;  // tokens per work item and per partial sum of dw
}

template <class Real>
void gated_norm_fwd(int threads, Real* y, const Real* o, const Real* proj, const Real* w, i64 T,
                    const GdnShape& s, Real eps) {
  const i64 V = s.value_dim;
  parallel_blocks(threads, T, kBlock, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      for (i64 h = 0; h < s.value_heads; ++h) {
        const Real* in = o + t * s.values() + h * V;
        const Real* z = proj + t * s.proj_dim() + s.z_offset() + h * V;
        Real* out = y + t * s.values() + h * V;
        const Real scale = Real(1) / std::sqrt(dot(in, in, V) / Real(V) + eps);
        for (i64 j = 0; j < V; ++j) out[j] = w[j] * in[j] * scale * z[j] * sigmoid(z[j]);
      }
    }
  });
}

template <class Real>
void gated_norm_bwd(int threads, Real* d_o, Real* dproj, Real* dw, const Real* dy, const Real* o,
                    const Real* proj, const Real* w, i64 T, const GdnShape& s, Real eps) {
  const i64 V = s.value_dim;
  const i64 items = (T + kBlock - 1) / kBlock;
  Buffer<Real> partial(items * V);
  parallel_blocks(threads, T, kBlock, [&](i64 begin, i64 end, i64 item) {
    Real* part = partial + item * V;
    for (i64 j = 0; j < V; ++j) part[j] = Real{0};
    Buffer<Real> m(V);
    for (i64 t = begin; t < end; ++t) {
      for (i64 h = 0; h < s.value_heads; ++h) {
        const Real* in = o + t * s.values() + h * V;
        const Real* up = dy + t * s.values() + h * V;
        const Real* z = proj + t * s.proj_dim() + s.z_offset() + h * V;
        Real* out = d_o + t * s.values() + h * V;
        Real* dz = dproj + t * s.proj_dim() + s.z_offset() + h * V;
        const Real scale = Real(1) / std::sqrt(dot(in, in, V) / Real(V) + eps);
        for (i64 j = 0; j < V; ++j) {
          const Real open = sigmoid(z[j]);
          const Real normed = in[j] * scale;
          const Real n = up[j] * z[j] * open;
          dz[j] = up[j] * w[j] * normed * open * (Real(1) + z[j] * (Real(1) - open));
          part[j] += n * normed;
          m[j] = n * w[j];
        }
        const Real pull = dot<Real>(m, in, V) * scale * scale / Real(V);
        for (i64 j = 0; j < V; ++j) out[j] = scale * (m[j] - in[j] * pull);
      }
    }
  });
  ordered_sum<Real>(threads, dw, partial, items, V);
}

TESSERA_INSTANTIATE(gated_norm_fwd);
TESSERA_INSTANTIATE(gated_norm_bwd);

}  // namespace tessera::TESSERA_ISA
