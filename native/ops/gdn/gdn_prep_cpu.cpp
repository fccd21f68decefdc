#include "ops/gdn/gdn_prep_cpu.h"

#include <cmath>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {
namespace {

constexpr i64 kBlock = 64;  // tokens per work item and per partial sum
constexpr double kNormEps = 1e-6;

// taps[j, c] of conv_w[c, j], so that loops over channels are contiguous
template <class Real>
void transpose_taps(Real* taps, const Real* conv_w, const GdnShape& s) {
  const i64 CQ = s.conv_dim();
  for (i64 c = 0; c < CQ; ++c) {
    for (i64 j = 0; j < s.conv_taps; ++j) taps[j * CQ + c] = conv_w[c * s.conv_taps + j];
  }
}

// p[CQ] = the convolution at token t; taps before the sequence's start read zero
template <class Real>
void convolve(Real* p, const Real* proj, const Real* taps, i64 t, const Batch& b, const GdnShape& s) {
  const i64 CQ = s.conv_dim();
  for (i64 c = 0; c < CQ; ++c) p[c] = Real{0};
  for (i64 j = 0; j < s.conv_taps; ++j) {
    const i64 back = s.conv_taps - 1 - j;
    if (b.pos[t] >= back) {
      const Real* u = proj + (t - back) * s.proj_dim();
      const Real* w = taps + j * CQ;
      for (i64 c = 0; c < CQ; ++c) p[c] += w[c] * u[c];
    }
  }
}

template <class Real>
Real l2_scale(const Real* x, i64 n) {
  return Real(1) / std::sqrt(dot(x, x, n) + Real(kNormEps));
}

// dp[CQ] = gradient of the convolution's output at token t; p, silu: scratch [CQ]
template <class Real>
void conv_output_grad(Real* dp, Real* p, Real* silu, i64 t, const Real* dq, const Real* dk, const Real* dv,
                      const Real* proj, const Real* taps, const Batch& b, const GdnShape& s) {
  const i64 CQ = s.conv_dim(), KD = s.keys(), K = s.key_dim, group = s.group();
  convolve(p, proj, taps, t, b, s);
  for (i64 c = 0; c < CQ; ++c) silu[c] = p[c] * sigmoid(p[c]);
  for (i64 part = 0; part < 2; ++part) {
    const Real* up = (part == 0 ? dq : dk) + t * s.value_heads * K;
    for (i64 h = 0; h < s.key_heads; ++h) {
      Real* d = dp + part * KD + h * K;
      const Real* x = silu + part * KD + h * K;
      for (i64 j = 0; j < K; ++j) d[j] = up[h * group * K + j];
      for (i64 g = 1; g < group; ++g) axpy(d, Real(1), up + (h * group + g) * K, K);
      const Real scale = l2_scale(x, K);
      const Real pull = dot(d, x, K) * scale * scale;
      for (i64 j = 0; j < K; ++j) d[j] = scale * (d[j] - x[j] * pull);
    }
  }
  for (i64 j = 0; j < s.values(); ++j) dp[2 * KD + j] = dv[t * s.values() + j];
  for (i64 c = 0; c < CQ; ++c) {
    const Real open = sigmoid(p[c]);
    dp[c] *= open * (Real(1) + p[c] * (Real(1) - open));
  }
}

// The qkv slice of dproj for tokens [begin, end), and their part of the taps' gradient, part [taps, CQ].
template <class Real>
void conv_bwd_block(Real* dproj, Real* part, i64 begin, i64 end, const Real* dq, const Real* dk,
                    const Real* dv, const Real* proj, const Real* taps, const Batch& b, const GdnShape& s) {
  const i64 CQ = s.conv_dim(), ahead = s.conv_taps - 1;
  const i64 last = end + ahead < b.T ? end + ahead : b.T;  // du of a token needs dp of the next taps - 1
  Buffer<Real> dp((last - begin) * CQ), p(CQ), silu(CQ);
  for (i64 t = begin; t < last; ++t) {
    conv_output_grad<Real>(dp + (t - begin) * CQ, p, silu, t, dq, dk, dv, proj, taps, b, s);
  }
  for (i64 c = 0; c < s.conv_taps * CQ; ++c) part[c] = Real{0};
  for (i64 t = begin; t < end; ++t) {
    Real* du = dproj + t * s.proj_dim();
    for (i64 c = 0; c < CQ; ++c) du[c] = Real{0};
    for (i64 j = 0; j < s.conv_taps; ++j) {
      const i64 shift = ahead - j;
      const Real* w = taps + j * CQ;
      if (t + shift < b.seq_end[t]) {
        const Real* d = dp + (t + shift - begin) * CQ;
        for (i64 c = 0; c < CQ; ++c) du[c] += w[c] * d[c];
      }
      if (b.pos[t] >= shift) {
        const Real* d = dp + (t - begin) * CQ;
        const Real* u = proj + (t - shift) * s.proj_dim();
        for (i64 c = 0; c < CQ; ++c) part[j * CQ + c] += d[c] * u[c];
      }
    }
  }
}

// The b and a slices of dproj for one chunk, and its part of d_a_log | d_dt_bias, part [2, HV].
template <class Real>
void gates_bwd_chunk(Real* dproj, Real* part, i64 c, const Real* d_gamma, const Real* d_beta,
                     const Real* proj, const Real* beta, const Real* a_log, const Real* dt_bias,
                     const Batch& b, const GdnShape& s) {
  const i64 HV = s.value_heads;
  const Chunk chunk = b.chunk[c];
  for (i64 h = 0; h < HV; ++h) {
    const Real rate = -std::exp(a_log[h]);
    const i64 line = (c * HV + h) * kChunk;
    Real sum_a_log = 0, sum_dt = 0;
    for (i64 i = 0; i < chunk.count; ++i) {
      const i64 row = (chunk.begin + i) * s.proj_dim();
      const Real z = proj[row + s.a_offset() + h] + dt_bias[h];
      const Real dg = d_gamma[line + i];
      const Real da = dg * rate * sigmoid(z);
      dproj[row + s.a_offset() + h] = da;
      dproj[row + s.b_offset() + h] = d_beta[line + i] * beta[line + i] * (Real(1) - beta[line + i]);
      sum_a_log += dg * rate * softplus(z);
      sum_dt += da;
    }
    part[h] = sum_a_log;
    part[HV + h] = sum_dt;
  }
}

}  // namespace

template <class Real>
void gdn_prep_fwd(int threads, Real* qkv, const Real* proj, const Real* conv_w, const Batch& b,
                  const GdnShape& s) {
  const i64 CQ = s.conv_dim(), K = s.key_dim;
  Buffer<Real> taps(s.conv_taps * CQ);
  transpose_taps<Real>(taps, conv_w, s);
  parallel_blocks(threads, b.T, kBlock, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      Real* out = qkv + t * CQ;
      convolve<Real>(out, proj, taps, t, b, s);
      for (i64 c = 0; c < CQ; ++c) out[c] *= sigmoid(out[c]);
      for (i64 h = 0; h < 2 * s.key_heads; ++h) {
        Real* head = out + h * K;
        const Real scale = l2_scale(head, K);
        for (i64 j = 0; j < K; ++j) head[j] *= scale;
      }
    }
  });
}

template <class Real>
void gdn_prep_bwd(int threads, Real* dproj, Real* d_conv_w, Real* d_a_log, Real* d_dt_bias, const Real* dq,
                  const Real* dk, const Real* dv, const Real* d_gamma, const Real* d_beta, const Real* proj,
                  const Real* beta, const Real* conv_w, const Real* a_log, const Real* dt_bias,
                  const Batch& b, const GdnShape& s) {
  const i64 CQ = s.conv_dim(), HV = s.value_heads, sizes = s.conv_taps * CQ;
  const i64 items = (b.T + kBlock - 1) / kBlock;
  Buffer<Real> taps(sizes), partial(items * sizes), d_taps(sizes);
  transpose_taps<Real>(taps, conv_w, s);
  parallel_blocks(threads, b.T, kBlock, [&](i64 begin, i64 end, i64 item) {
    conv_bwd_block<Real>(dproj, partial + item * sizes, begin, end, dq, dk, dv, proj, taps, b, s);
  });
  d_taps.zero(sizes);
  ordered_sum<Real>(threads, d_taps, partial, items, sizes);
  for (i64 c = 0; c < CQ; ++c) {
    for (i64 j = 0; j < s.conv_taps; ++j) d_conv_w[c * s.conv_taps + j] += d_taps[j * CQ + c];
  }

  Buffer<Real> gates(i64{b.num_chunk} * 2 * HV), sums(2 * HV);
  parallel_for(threads, b.num_chunk, [&](i64 c) {
    gates_bwd_chunk<Real>(dproj, gates + c * 2 * HV, c, d_gamma, d_beta, proj, beta, a_log, dt_bias, b, s);
  });
  sums.zero(2 * HV);
  ordered_sum<Real>(threads, sums, gates, b.num_chunk, 2 * HV);
  axpy<Real>(d_a_log, Real(1), sums, HV);
  axpy<Real>(d_dt_bias, Real(1), sums + HV, HV);
}

TESSERA_INSTANTIATE(gdn_prep_fwd);
TESSERA_INSTANTIATE(gdn_prep_bwd);

}  // namespace tessera::TESSERA_ISA
