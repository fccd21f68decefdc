// What forward and backward of the chunked form share: one chunk of one value head.
#pragma once

#include <cmath>

#include "ops/backend.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"
#include "ops/linear/gemm_cpu.h"

namespace tessera::TESSERA_ISA {

// Where one chunk of value head h stands in the packed arrays; row strides are CQ for q, k, v and VD for o.
template <class Real>
struct ChunkView {
  ChunkView(const Real* qkv, const Real* g_all, const Real* beta_all, const Batch& b, const GdnShape& s,
            i64 c, i64 h)
      : begin(b.chunk[c].begin), n(b.chunk[c].count), slot(c * s.value_heads + h) {
    const i64 K = s.key_dim, key_head = h / s.group();
    const Real* row = qkv + begin * s.conv_dim();
    q = row + key_head * K;
    k = row + s.keys() + key_head * K;
    v = row + 2 * s.keys() + h * s.value_dim;
    g = g_all + slot * kChunk;
    beta = beta_all + slot * kChunk;
  }
  i64 begin, n, slot;
  const Real *q, *k, *v, *g, *beta;
};

template <class Real>
Real query_scale(const GdnShape& s) {
  return Real(1) / std::sqrt(Real(s.key_dim));
}

// The terms of engine-wide notation (README.md): e, r, lambda, D, M, P of one chunk. Matrices are [n, 64].
template <class Real>
class ChunkTerms {
 public:
  ChunkTerms() : e(kChunk), r(kChunk), decay(kSize), M(kSize), P(kSize) {}

  void compute(const ChunkView<Real>& c, const Real* ar, const GdnShape& s) {
    const i64 n = c.n, stride = s.conv_dim();
    const Real scale = query_scale<Real>(s);
    const Real last = c.g[n - 1];
    lambda = exp_of(last);
    for (i64 i = 0; i < n; ++i) e[i] = exp_of(c.g[i]);
    for (i64 i = 0; i < n; ++i) r[i] = exp_of(last - c.g[i]);
    gemm<Real>(n, n, s.key_dim, plain(c.q, stride), transposed(c.k, stride), P, kChunk);
    for (i64 i = 0; i < n; ++i) {
      Real* d = decay + i * kChunk;
      Real* m = M + i * kChunk;
      Real* p = P + i * kChunk;
      const Real* a = ar + i * kChunk;
      for (i64 j = 0; j <= i; ++j) d[j] = exp_of(c.g[i] - c.g[j]);
      for (i64 j = 0; j <= i; ++j) m[j] = d[j] * a[j] * c.beta[j];
      for (i64 j = 0; j <= i; ++j) p[j] *= scale * d[j];
      for (i64 j = i + 1; j < n; ++j) d[j] = m[j] = p[j] = Real{0};
    }
  }

  // Y = K S, X = V - e Y, U = M X; each [n, Vh]
  void values(Real* Y, Real* X, Real* U, const ChunkView<Real>& c, const Real* S, const GdnShape& s) const {
    const i64 n = c.n, V = s.value_dim, stride = s.conv_dim();
    gemm<Real>(n, V, s.key_dim, plain(c.k, stride), plain(S, V), Y, V);
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < V; ++j) X[i * V + j] = c.v[i * stride + j] - e[i] * Y[i * V + j];
    }
    gemm<Real>(n, V, n, plain<Real>(M, kChunk), plain<Real>(X, V), U, V);
  }

  Real lambda = 0;
  Buffer<Real> e, r, decay, M, P;

 private:
  static constexpr i64 kSize = i64{kChunk} * kChunk;
};

// dst[n, width] (dense) = diag(factor) src
template <class Real>
void scale_rows(Real* dst, const Real* factor, Real common, const Real* src, i64 stride, i64 n, i64 width) {
  for (i64 i = 0; i < n; ++i) {
    const Real f = common * factor[i];
    for (i64 j = 0; j < width; ++j) dst[i * width + j] = f * src[i * stride + j];
  }
}

}  // namespace tessera::TESSERA_ISA
