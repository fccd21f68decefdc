// The recurrence token by token: slower than the chunked form, simpler, its reference.
//   S' = e^gamma S, delta = beta (v - S'^T k), S <- S' + k delta^T, o = s S^T q
#include <cstring>

#include "ops/gdn/gdn_chunk_cpu.h"
#include "ops/gdn/gdn_cpu.h"

namespace tessera::TESSERA_ISA {
namespace {

// dst[V] = M^T x, M [K, V]
template <class Real>
void transpose_times(Real* dst, const Real* M, const Real* x, i64 K, i64 V) {
  for (i64 j = 0; j < V; ++j) dst[j] = Real{0};
  for (i64 i = 0; i < K; ++i) axpy(dst, x[i], M + i * V, V);
}

template <class Real>
Real log_decay(const ChunkView<Real>& c, i64 i) {
  return i == 0 ? c.g[0] : c.g[i] - c.g[i - 1];
}

// S [K, V] over token i of the chunk; error[V] = v - S'^T k
template <class Real>
void advance(Real* S, Real* error, const ChunkView<Real>& c, i64 i, const GdnShape& s) {
  const i64 K = s.key_dim, V = s.value_dim;
  const Real* k = c.k + i * s.conv_dim();
  const Real decay = exp_of(log_decay(c, i));
  for (i64 j = 0; j < K * V; ++j) S[j] *= decay;
  transpose_times(error, S, k, K, V);
  for (i64 j = 0; j < V; ++j) error[j] = c.v[i * s.conv_dim() + j] - error[j];
  for (i64 a = 0; a < K; ++a) axpy(S + a * V, k[a] * c.beta[i], error, V);
}

}  // namespace

template <class Real>
void gdn_fwd_recurrent(int threads, Real* o, Real* state, const Real* qkv, const Real* g, const Real* beta,
                       const Batch& b, const GdnShape& s) {
  const i64 HV = s.value_heads, K = s.key_dim, V = s.value_dim;
  parallel_for(threads, i64{b.num_seq} * HV, [&](i64 item) {
    const ChunkRange range = b.seq_chunk[item / HV];
    const i64 h = item % HV;
    Buffer<Real> S(K * V), error(V);
    S.zero(K * V);
    for (i64 c = range.begin; c < range.end; ++c) {
      const ChunkView<Real> chunk(qkv, g, beta, b, s, c, h);
      if (state != nullptr)
        std::memcpy(state + chunk.slot * K * V, S, static_cast<size_t>(K * V) * sizeof(Real));
      for (i64 i = 0; i < chunk.n; ++i) {
        advance<Real>(S, error, chunk, i, s);
        Real* out = o + (chunk.begin + i) * s.values() + h * V;
        transpose_times<Real>(out, S, chunk.q + i * s.conv_dim(), K, V);
        for (i64 j = 0; j < V; ++j) out[j] *= query_scale<Real>(s);
      }
    }
  });
}

template <class Real>
void gdn_bwd_recurrent(int threads, Real* dq, Real* dk, Real* dv, Real* d_gamma, Real* d_beta,
                       const Real* d_o, const Real* qkv, const Real* g, const Real* beta, const Real* state,
                       const Batch& b, const GdnShape& s) {
  const i64 HV = s.value_heads, K = s.key_dim, V = s.value_dim, size = K * V;
  const Real scale = query_scale<Real>(s);
  parallel_for(threads, i64{b.num_seq} * HV, [&](i64 item) {
    const ChunkRange range = b.seq_chunk[item / HV];
    const i64 h = item % HV;
    Buffer<Real> states((kChunk + 1) * size),
        errors(kChunk * V);  // S entering token i; after the chunk at [n]
    Buffer<Real> dS(size), d_delta(V);
    dS.zero(size);
    for (i64 c = range.end; c-- > range.begin;) {
      const ChunkView<Real> chunk(qkv, g, beta, b, s, c, h);
      std::memcpy(states, state + chunk.slot * size, static_cast<size_t>(size) * sizeof(Real));
      for (i64 i = 0; i < chunk.n; ++i) {
        std::memcpy(states + (i + 1) * size, states + i * size, static_cast<size_t>(size) * sizeof(Real));
        advance<Real>(states + (i + 1) * size, errors + i * V, chunk, i, s);
      }
      for (i64 i = chunk.n; i < kChunk; ++i)
        d_gamma[chunk.slot * kChunk + i] = d_beta[chunk.slot * kChunk + i] = 0;
      for (i64 i = chunk.n; i-- > 0;) {
        const i64 t = chunk.begin + i;
        const Real* q = chunk.q + i * s.conv_dim();
        const Real* k = chunk.k + i * s.conv_dim();
        const Real* up = d_o + t * s.values() + h * V;
        const Real* error = errors + i * V;
        const Real* before = states + i * size;
        const Real* after = states + (i + 1) * size;
        Real* dq_row = dq + (t * HV + h) * K;
        Real* dk_row = dk + (t * HV + h) * K;
        Real* dv_row = dv + t * s.values() + h * V;
        const Real decay = exp_of(log_decay(chunk, i)), strength = chunk.beta[i];
        for (i64 a = 0; a < K; ++a) {
          dq_row[a] = scale * dot(after + a * V, up, V);
          axpy<Real>(dS + a * V, scale * q[a], up, V);
        }
        transpose_times<Real>(d_delta, dS, k, K, V);
        d_beta[chunk.slot * kChunk + i] = dot<Real>(d_delta, error, V);
        for (i64 j = 0; j < V; ++j) dv_row[j] = strength * d_delta[j];
        Real d_log = 0;
        for (i64 a = 0; a < K; ++a) {
          Real* row = dS + a * V;
          const Real* old = before + a * V;
          dk_row[a] = strength * dot<Real>(row, error, V) - decay * dot(old, dv_row, V);
          axpy<Real>(row, -k[a], dv_row, V);
          d_log += decay * dot<Real>(row, old, V);
          for (i64 j = 0; j < V; ++j) row[j] *= decay;
        }
        d_gamma[chunk.slot * kChunk + i] = d_log;
      }
    }
  });
}

TESSERA_INSTANTIATE(gdn_fwd_recurrent);
TESSERA_INSTANTIATE(gdn_bwd_recurrent);

}  // namespace tessera::TESSERA_ISA
