#include "ops/gdn/gdn_chunk_cpu.h"
#include "ops/gdn/gdn_cpu.h"

namespace tessera::TESSERA_ISA {
namespace {

constexpr i64 C = kChunk;

// Backward of one sequence and value head, chunk by chunk from the end; the marks (B1) to (B12) are
// README.md's.
template <class Real>
class ChunkBackward {
 public:
  explicit ChunkBackward(const GdnShape& shape)
      : s(shape),
        K(s.key_dim),
        V(s.value_dim),
        dS(K * V),
        Y(C * V),
        X(C * V),
        U(C * V),
        dU(C * V),
        dX(C * V),
        scaled(C * (K > V ? K : V)),
        dKs(C * K),
        dXS(C * K),
        dM(C * C),
        dP(C * C),
        kk(C * C),
        N(C * C),
        W(C * C),
        dG(C) {
    dS.zero(K * V);
  }

  // dq, dk rows [n, K] with stride HV*K; dv, d_o rows [n, Vh] with stride VD; S: the state entering the
  // chunk.
  void chunk(Real* dq, Real* dk, Real* dv, Real* d_gamma, Real* d_beta, const Real* d_o,
             const ChunkView<Real>& c, const Real* ar, const Real* S) {
    terms.compute(c, ar, s);
    terms.values(Y, X, U, c, S, s);
    values_grad(dv, d_o, c);
    mask_grads(d_o, c.n);
    query_grad(dq, d_o, c, S);
    key_grad(dk, c, S);
    inverse_grad(dk, d_beta, c, ar);
    decay_grad(d_gamma, c, S);
    state_grad(d_o, c);
  }

 private:
  // (B1) dU = P^T dO + diag(r) K dS, (B2) dX = M^T dU = dV
  void values_grad(Real* dv, const Real* d_o, const ChunkView<Real>& c) {
    const i64 n = c.n;
    scale_rows<Real>(scaled, terms.r, Real(1), c.k, s.conv_dim(), n, K);
    gemm<Real>(n, V, K, plain<Real>(scaled, K), plain<Real>(dS, V), dU, V);
    gemm<Real>(n, V, n, transposed<Real>(terms.P, C), plain(d_o, s.values()), dU, V, true);
    gemm<Real>(n, V, n, transposed<Real>(terms.M, C), plain<Real>(dU, V), dX, V);
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < V; ++j) dv[i * s.values() + j] = dX[i * V + j];
    }
  }

  // (B3) dM = tril(dU X^T), dP = tril(dO U^T); their part of dG: row minus column sums of M dM + P dP.
  // Then in place s D dP, which (B4) and (B5) need.
  void mask_grads(const Real* d_o, i64 n) {
    const Real scale = query_scale<Real>(s);
    gemm<Real>(n, n, V, plain<Real>(dU, V), transposed<Real>(X, V), dM, C);
    gemm<Real>(n, n, V, plain(d_o, s.values()), transposed<Real>(U, V), dP, C);
    dG.zero(n);
    for (i64 i = 0; i < n; ++i) {
      double row = 0;
      for (i64 j = 0; j < i; ++j) {
        const i64 at = i * C + j;
        const double h = double(terms.M[at]) * double(dM[at]) + double(terms.P[at]) * double(dP[at]);
        row += h;
        dG[j] -= h;
      }
      dG[i] += row;
      for (i64 j = 0; j <= i; ++j) dP[i * C + j] *= scale * terms.decay[i * C + j];
      for (i64 j = i + 1; j < n; ++j) dM[i * C + j] = dP[i * C + j] = Real{0};
    }
  }

  // (B4) dQ = s diag(e) dO S^T + (s D dP) K
  void query_grad(Real* dq, const Real* d_o, const ChunkView<Real>& c, const Real* S) {
    const i64 n = c.n, stride = i64{s.value_heads} * K;
    const Real scale = query_scale<Real>(s);
    gemm<Real>(n, K, V, plain(d_o, s.values()), transposed(S, V), dq, stride);
    for (i64 i = 0; i < n; ++i) {
      Real* row = dq + i * stride;
      for (i64 j = 0; j < K; ++j) row[j] *= scale * terms.e[i];
      dG[i] += double(dot(row, c.q + i * s.conv_dim(), K));
    }
    gemm<Real>(n, K, n, plain<Real>(dP, C), plain(c.k, s.conv_dim()), dq, stride, true);
  }

  // (B5) dK = diag(r) U dS^T - diag(e) dX S^T + (s D dP)^T Q
  void key_grad(Real* dk, const ChunkView<Real>& c, const Real* S) {
    const i64 n = c.n, stride = i64{s.value_heads} * K;
    gemm<Real>(n, K, V, plain<Real>(U, V), transposed<Real>(dS, V), dKs, K);
    gemm<Real>(n, K, V, plain<Real>(dX, V), transposed(S, V), dXS, K);
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < K; ++j) dKs[i * K + j] *= terms.r[i];
      for (i64 j = 0; j < K; ++j) dk[i * stride + j] = dKs[i * K + j] - terms.e[i] * dXS[i * K + j];
    }
    gemm<Real>(n, K, n, transposed<Real>(dP, C), plain(c.q, s.conv_dim()), dk, stride, true);
  }

  // (B6a) dbeta_j = sum_i D Ar dM; (B7) N = -strict_lower(Ar^T dAr Ar^T), dAr = D dM beta_j;
  // (B6b) dbeta_i += sum_j N kk; (B8) dK += (W + W^T) K, W = diag(beta) N
  void inverse_grad(Real* dk, Real* d_beta, const ChunkView<Real>& c, const Real* ar) {
    const i64 n = c.n, stride = i64{s.value_heads} * K;
    for (i64 j = 0; j < C; ++j) d_beta[j] = Real{0};
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < n; ++j) {
        const i64 at = i * C + j;
        const Real masked = terms.decay[at] * dM[at];
        d_beta[j] += masked * ar[at];
        dM[at] = masked * c.beta[j];
      }
    }
    gemm<Real>(n, n, n, transposed(ar, C), plain<Real>(dM, C), W, C);
    gemm<Real>(n, n, n, plain<Real>(W, C), transposed(ar, C), N, C);
    gemm<Real>(n, n, K, plain(c.k, s.conv_dim()), transposed(c.k, s.conv_dim()), kk, C);
    for (i64 i = 0; i < n; ++i) {
      Real sum = 0;
      for (i64 j = 0; j < i; ++j) {
        const i64 at = i * C + j;
        sum -= N[at] * kk[at];
        W[i * C + j] = W[j * C + i] = -c.beta[i] * N[at];
      }
      W[i * C + i] = Real{0};
      d_beta[i] += sum;
    }
    gemm<Real>(n, K, n, plain<Real>(W, C), plain(c.k, s.conv_dim()), dk, stride, true);
  }

  // The rest of (B9) and (B10), then (B11): d_gamma_i = sum of dG_j over j >= i.
  void decay_grad(Real* d_gamma, const ChunkView<Real>& c, const Real* S) {
    const i64 n = c.n;
    double last = double(terms.lambda) * double(dot<Real>(dS, S, K * V));
    for (i64 i = 0; i < n; ++i) {
      const double written = dot<Real>(dKs + i * K, c.k + i * s.conv_dim(), K);
      last += written;
      dG[i] -= written + double(terms.e[i]) * double(dot<Real>(dX + i * V, Y + i * V, V));
    }
    for (i64 i = n; i < C; ++i) d_gamma[i] = Real{0};
    double sum = last;
    for (i64 i = n; i-- > 0;) {
      sum += dG[i];
      d_gamma[i] = Real(sum);
    }
  }

  // (B12) dS <- lambda dS + (s diag(e) Q)^T dO - (diag(e) K)^T dX
  void state_grad(const Real* d_o, const ChunkView<Real>& c) {
    for (i64 j = 0; j < K * V; ++j) dS[j] *= terms.lambda;
    scale_rows<Real>(scaled, terms.e, query_scale<Real>(s), c.q, s.conv_dim(), c.n, K);
    gemm<Real>(K, V, c.n, transposed<Real>(scaled, K), plain(d_o, s.values()), dS, V, true);
    scale_rows<Real>(scaled, terms.e, Real(-1), c.k, s.conv_dim(), c.n, K);
    gemm<Real>(K, V, c.n, transposed<Real>(scaled, K), plain<Real>(dX, V), dS, V, true);
  }

  const GdnShape& s;
  const i64 K, V;
  ChunkTerms<Real> terms;
  Buffer<Real> dS;                       // [K, Vh] gradient of the state leaving the chunk
  Buffer<Real> Y, X, U, dU, dX, scaled;  // [n, Vh]; scaled [n, K]
  Buffer<Real> dKs, dXS;                 // [n, K]
  Buffer<Real> dM, dP, kk, N, W;         // [n, 64]
  // [n] gradient of the cumulated log decay. In fp64: (B11) takes away again most of what its sums hold.
  Buffer<double> dG;
};

}  // namespace

template <class Real>
void gdn_bwd_chunked(int threads, Real* dq, Real* dk, Real* dv, Real* d_gamma, Real* d_beta, const Real* d_o,
                     const Real* qkv, const Real* g, const Real* beta, const Real* ar, const Real* state,
                     const Batch& b, const GdnShape& s) {
  const i64 HV = s.value_heads, K = s.key_dim, V = s.value_dim;
  parallel_for(threads, i64{b.num_seq} * HV, [&](i64 item) {
    const ChunkRange range = b.seq_chunk[item / HV];
    const i64 h = item % HV;
    if (range.begin == range.end) return;
    ChunkBackward<Real> backward(s);
    for (i64 c = range.end; c-- > range.begin;) {
      const ChunkView<Real> chunk(qkv, g, beta, b, s, c, h);
      const i64 keys = chunk.begin * HV * K + h * K, values = chunk.begin * s.values() + h * V;
      backward.chunk(dq + keys, dk + keys, dv + values, d_gamma + chunk.slot * kChunk,
                     d_beta + chunk.slot * kChunk, d_o + values, chunk, ar + chunk.slot * kChunk * kChunk,
                     state + chunk.slot * K * V);
    }
  });
}

TESSERA_INSTANTIATE(gdn_bwd_chunked);

}  // namespace tessera::TESSERA_ISA
