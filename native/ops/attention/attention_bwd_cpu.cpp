// Two passes that write disjoint outputs (keys and values, then queries), each recomputing P from lse: no sum
// is shared between threads.
#include "ops/attention/attention_blocks.h"
#include "ops/attention/attention_cpu.h"
#include "ops/cpu/math.h"
#include "ops/linear/gemm_cpu.h"

namespace tessera::TESSERA_ISA {
namespace {

constexpr i64 B = kAttnBlock;

template <class Real>
struct AttentionGrad {
  const Real *q, *k, *proj, *lse, *d_o, *delta;
  const Batch& b;
  const AttnShape& s;

  View<Real> queries(const Real* base, i64 t, i64 h) const {
    return plain(base + (t * s.heads + h) * s.head_dim, i64{s.heads} * s.head_dim);
  }
  View<Real> keys(i64 t, i64 kv) const {
    return plain(k + (t * s.kv_heads + kv) * s.head_dim, i64{s.kv_heads} * s.head_dim);
  }
  View<Real> values(i64 t, i64 kv) const {
    return plain(proj + t * s.proj_dim() + s.v_offset() + kv * s.head_dim, s.proj_dim());
  }

  // P = exp(q k^T / sqrt(D) - lse) and dS = P (dO v^T - delta), both [rows, 64], for query rows at `query` of
  // head h and keys at `key`; zero where the key comes after the query.
  void scores(Real* P, Real* dS, i64 query, i64 rows, i64 key, i64 cols, i64 h) const {
    const i64 D = s.head_dim, kv = h / (s.heads / s.kv_heads);
    const View<Real> k_block = keys(key, kv), v_block = values(key, kv);
    gemm<Real>(rows, cols, D, queries(q, query, h), {k_block.data, 1, k_block.row}, P, B);
    gemm<Real>(rows, cols, D, queries(d_o, query, h), {v_block.data, 1, v_block.row}, dS, B);
    const Real scale = attention_scale<Real>(s);
    for (i64 i = 0; i < rows; ++i) {
      const i64 seen = min_of(cols, query + i - key + 1);
      const Real line = lse[h * b.T + query + i], row_delta = delta[h * b.T + query + i];
      Real* p = P + i * B;
      Real* ds = dS + i * B;
      for (i64 j = 0; j < seen; ++j) {
        p[j] = exp_of(p[j] * scale - line);
        ds[j] = p[j] * (ds[j] - row_delta);
      }
      for (i64 j = seen < 0 ? 0 : seen; j < cols; ++j) p[j] = ds[j] = Real{0};
    }
  }

  // dk and dv of one key block, summed over the group's heads and the query blocks at or after it.
  void key_block(Real* dk, Real* dproj, const AttnBlock& block, i64 kv) const {
    const i64 D = s.head_dim, group = s.heads / s.kv_heads, cols = block.end - block.begin;
    Buffer<Real> P(B * B), dS(B * B), dk_block(B * D), dv_block(B * D);
    dk_block.zero(cols * D);
    dv_block.zero(cols * D);
    for (i64 h = kv * group; h < (kv + 1) * group; ++h) {
      for (i64 query = block.begin; query < block.seq_end; query += B) {
        const i64 rows = min_of(B, block.seq_end - query);
        scores(P, dS, query, rows, block.begin, cols, h);
        gemm<Real>(cols, D, rows, transposed<Real>(P, B), queries(d_o, query, h), dv_block, D, true);
        gemm<Real>(cols, D, rows, transposed<Real>(dS, B), queries(q, query, h), dk_block, D, true);
      }
    }
    const Real scale = attention_scale<Real>(s);
    for (i64 i = 0; i < cols; ++i) {
      const i64 t = block.begin + i;
      Real* dk_row = dk + (t * s.kv_heads + kv) * D;
      Real* dv_row = dproj + t * s.proj_dim() + s.v_offset() + kv * D;
      for (i64 j = 0; j < D; ++j) dk_row[j] = scale * dk_block[i * D + j];
      for (i64 j = 0; j < D; ++j) dv_row[j] = dv_block[i * D + j];
    }
  }

  void query_block(Real* dq, const AttnBlock& block, i64 h) const {
    const i64 D = s.head_dim, kv = h / (s.heads / s.kv_heads), rows = block.end - block.begin;
    Buffer<Real> P(B * B), dS(B * B), dq_block(B * D);
    dq_block.zero(rows * D);
    for (i64 key = block.seq_begin; key < block.end; key += B) {
      const i64 cols = min_of(B, block.end - key);
      scores(P, dS, block.begin, rows, key, cols, h);
      gemm<Real>(rows, D, cols, plain<Real>(dS, B), keys(key, kv), dq_block, D, true);
    }
    for (i64 i = 0; i < rows; ++i) {
      Real* row = dq + ((block.begin + i) * s.heads + h) * D;
      for (i64 j = 0; j < D; ++j) row[j] = attention_scale<Real>(s) * dq_block[i * D + j];
    }
  }
};

// d_o = dy sigmoid(gate), delta = <d_o, o>, the gate slice of dproj
template <class Real>
void gate_bwd(int threads, Real* d_o, Real* delta, Real* dproj, const Real* dy, const Real* o,
              const Real* proj, const Batch& b, const AttnShape& s) {
  const i64 NH = s.heads, D = s.head_dim;
  parallel_blocks(threads, b.T, B, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      for (i64 h = 0; h < NH; ++h) {
        const i64 at = (t * NH + h) * D, gate_at = t * s.proj_dim() + (2 * h + 1) * D;
        for (i64 j = 0; j < D; ++j) {
          const Real open = sigmoid(proj[gate_at + j]);
          d_o[at + j] = dy[at + j] * open;
          dproj[gate_at + j] = d_o[at + j] * o[at + j] * (Real(1) - open);
        }
        delta[h * b.T + t] = dot(d_o + at, o + at, D);
      }
    }
  });
}

}  // namespace

template <class Real>
void attention_bwd(int threads, Real* dq, Real* dk, Real* dproj, Real* scratch_do, Real* scratch_delta,
                   const Real* dy, const Real* o, const Real* lse, const Real* q, const Real* k,
                   const Real* proj, const Batch& b, const AttnShape& s) {
  gate_bwd(threads, scratch_do, scratch_delta, dproj, dy, o, proj, b, s);
  const AttentionGrad<Real> grad{q, k, proj, lse, scratch_do, scratch_delta, b, s};
  const AttnBlocks blocks(b);
  const i64 NH = s.heads, NKV = s.kv_heads;
  parallel_for(threads, blocks.count() * NKV,
               [&](i64 item) { grad.key_block(dk, dproj, blocks[item / NKV], item % NKV); });
  parallel_for(threads, blocks.count() * NH,
               [&](i64 item) { grad.query_block(dq, blocks[item / NH], item % NH); });
}

TESSERA_INSTANTIATE(attention_bwd);

}  // namespace tessera::TESSERA_ISA
