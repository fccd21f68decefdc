#include <cstring>

#include "ops/gdn/gdn_chunk_cpu.h"
#include "ops/gdn/gdn_cpu.h"

namespace tessera::TESSERA_ISA {

template <class Real>
void gdn_fwd_chunked(int threads, Real* o, Real* state, const Real* qkv, const Real* g, const Real* beta,
                     const Real* ar, const Batch& b, const GdnShape& s) {
  const i64 HV = s.value_heads, K = s.key_dim, V = s.value_dim, stride = s.conv_dim();
  const Real scale = query_scale<Real>(s);
  parallel_for(threads, i64{b.num_seq} * HV, [&](i64 item) {
    const ChunkRange range = b.seq_chunk[item / HV];
    const i64 h = item % HV;
    if (range.begin == range.end) return;
    ChunkTerms<Real> terms;
    Buffer<Real> S(K * V), Y(kChunk * V), X(kChunk * V), U(kChunk * V), rk(kChunk * K);
    S.zero(K * V);
    for (i64 c = range.begin; c < range.end; ++c) {
      const ChunkView<Real> chunk(qkv, g, beta, b, s, c, h);
      const i64 n = chunk.n;
      if (state != nullptr)
        std::memcpy(state + chunk.slot * K * V, S, static_cast<size_t>(K * V) * sizeof(Real));
      terms.compute(chunk, ar + chunk.slot * kChunk * kChunk, s);
      terms.values(Y, X, U, chunk, S, s);
      Real* out = o + chunk.begin * s.values() + h * V;
      gemm<Real>(n, V, K, plain(chunk.q, stride), plain<Real>(S, V), out, s.values());
      for (i64 i = 0; i < n; ++i) {
        for (i64 j = 0; j < V; ++j) out[i * s.values() + j] *= scale * terms.e[i];
      }
      gemm<Real>(n, V, n, plain<Real>(terms.P, kChunk), plain<Real>(U, V), out, s.values(), true);
      scale_rows<Real>(rk, terms.r, Real(1), chunk.k, stride, n, K);
      for (i64 j = 0; j < K * V; ++j) S[j] *= terms.lambda;
      gemm<Real>(K, V, n, transposed<Real>(rk, K), plain<Real>(U, V), S, V, true);
    }
  });
}

TESSERA_INSTANTIATE(gdn_fwd_chunked);

}  // namespace tessera::TESSERA_ISA
