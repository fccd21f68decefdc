#include "ops/attention/qk_norm_rope_cpu.h"

#include <cmath>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {
namespace {

constexpr i64 kBlock = 64;  // tokens per work item and per partial sum

// y = rope(x rsqrt(mean x^2 + eps) (1 + w)) for one head
template <class Real>
void head_fwd(Real* y, const Real* x, const Real* w, const Real* angles, const AttnShape& s, Real eps) {
  const i64 D = s.head_dim, half = s.rotary_dim / 2;
  const Real scale = Real(1) / std::sqrt(dot(x, x, D) / Real(D) + eps);
  for (i64 j = 0; j < D; ++j) y[j] = x[j] * scale * (Real(1) + w[j]);
  for (i64 j = 0; j < half; ++j) {
    const Real first = y[j], second = y[half + j], cosine = angles[j], sine = angles[half + j];
    y[j] = first * cosine - second * sine;
    y[half + j] = second * cosine + first * sine;
  }
}

// dx of head_fwd from dy; dw [D] +=; turned: scratch [D]
template <class Real>
void head_bwd(Real* dx, Real* dw, Real* turned, const Real* dy, const Real* x, const Real* w,
              const Real* angles, const AttnShape& s, Real eps) {
  const i64 D = s.head_dim, half = s.rotary_dim / 2;
  for (i64 j = 2 * half; j < D; ++j) turned[j] = dy[j];
  for (i64 j = 0; j < half; ++j) {
    const Real first = dy[j], second = dy[half + j], cosine = angles[j], sine = angles[half + j];
    turned[j] = first * cosine + second * sine;
    turned[half + j] = second * cosine - first * sine;
  }
  const Real scale = Real(1) / std::sqrt(dot(x, x, D) / Real(D) + eps);
  for (i64 j = 0; j < D; ++j) dw[j] += turned[j] * x[j] * scale;
  for (i64 j = 0; j < D; ++j) turned[j] *= Real(1) + w[j];
  const Real pull = dot(turned, x, D) * scale * scale / Real(D);
  for (i64 j = 0; j < D; ++j) dx[j] = scale * (turned[j] - x[j] * pull);
}

}  // namespace

template <class Real>
void qk_norm_rope_fwd(int threads, Real* q, Real* k, const Real* proj, const Real* wq, const Real* wk,
                      const Real* rope, const Batch& b, const AttnShape& s, Real eps) {
  const i64 D = s.head_dim;
  parallel_blocks(threads, b.T, kBlock, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      const Real* row = proj + t * s.proj_dim();
      const Real* angles = rope + i64{b.pos[t]} * s.rotary_dim;
      for (i64 h = 0; h < s.heads; ++h)
        head_fwd(q + (t * s.heads + h) * D, row + 2 * h * D, wq, angles, s, eps);
      for (i64 h = 0; h < s.kv_heads; ++h) {
        head_fwd(k + (t * s.kv_heads + h) * D, row + s.k_offset() + h * D, wk, angles, s, eps);
      }
    }
  });
}

template <class Real>
void qk_norm_rope_bwd(int threads, Real* dproj, Real* dwq, Real* dwk, const Real* dq, const Real* dk,
                      const Real* proj, const Real* wq, const Real* wk, const Real* rope, const Batch& b,
                      const AttnShape& s, Real eps) {
  const i64 D = s.head_dim, items = (b.T + kBlock - 1) / kBlock;
  Buffer<Real> partial_q(items * D), partial_k(items * D);
  partial_q.zero(items * D);
  partial_k.zero(items * D);
  parallel_blocks(threads, b.T, kBlock, [&](i64 begin, i64 end, i64 item) {
    Buffer<Real> turned(D);
    for (i64 t = begin; t < end; ++t) {
      const i64 row = t * s.proj_dim();
      const Real* angles = rope + i64{b.pos[t]} * s.rotary_dim;
      for (i64 h = 0; h < s.heads; ++h) {
        const i64 at = row + 2 * h * D;
        head_bwd<Real>(dproj + at, partial_q + item * D, turned, dq + (t * s.heads + h) * D, proj + at, wq,
                       angles, s, eps);
      }
      for (i64 h = 0; h < s.kv_heads; ++h) {
        const i64 at = row + s.k_offset() + h * D;
        head_bwd<Real>(dproj + at, partial_k + item * D, turned, dk + (t * s.kv_heads + h) * D, proj + at, wk,
                       angles, s, eps);
      }
    }
  });
  ordered_sum<Real>(threads, dwq, partial_q, items, D);
  ordered_sum<Real>(threads, dwk, partial_k, items, D);
}

TESSERA_INSTANTIATE(qk_norm_rope_fwd);
TESSERA_INSTANTIATE(qk_norm_rope_bwd);

}  // namespace tessera::TESSERA_ISA
