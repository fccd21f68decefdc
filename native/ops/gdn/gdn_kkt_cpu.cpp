#include <cmath>

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"
#include "ops/gdn/gdn_cpu.h"
#include "ops/linear/gemm_cpu.h"

namespace tessera::TESSERA_ISA {
namespace {

// ar = (I + strict_lower(diag(beta) kk))^-1 by forward substitution, row by row; rows from n on are those of
// I.
template <class Real>
void unit_lower_inverse(Real* ar, const Real* kk, const Real* beta, i64 n) {
  for (i64 i = 0; i < kChunk; ++i) {
    Real* row = ar + i * kChunk;
    for (i64 j = 0; j < kChunk; ++j) row[j] = Real(i == j);
    for (i64 j = 0; i < n && j < i; ++j) axpy(row, -beta[i] * kk[i * kChunk + j], ar + j * kChunk, j + 1);
  }
}

}  // namespace

template <class Real>
void gdn_gates_fwd(int threads, Real* g, Real* beta, const Real* proj, const Real* a_log, const Real* dt_bias,
                   const Batch& b, const GdnShape& s) {
  const i64 HV = s.value_heads;
  parallel_for(threads, b.num_chunk, [&](i64 c) {
    const Chunk chunk = b.chunk[c];
    for (i64 h = 0; chunk.count > 0 && h < HV; ++h) {
      const i64 line = (c * HV + h) * kChunk;
      const Real rate = -std::exp(a_log[h]);
      Real sum = 0;
      for (i64 i = 0; i < chunk.count; ++i) {
        const Real* row = proj + (chunk.begin + i) * s.proj_dim();
        sum += rate * softplus(row[s.a_offset() + h] + dt_bias[h]);
        g[line + i] = sum;
        beta[line + i] = sigmoid(row[s.b_offset() + h]);
      }
      for (i64 i = chunk.count; i < kChunk; ++i) {
        g[line + i] = sum;
        beta[line + i] = Real{0};
      }
    }
  });
}

template <class Real>
void gdn_kkt_fwd(int threads, Real* ar, const Real* qkv, const Real* beta, const Batch& b,
                 const GdnShape& s) {
  const i64 HK = s.key_heads, K = s.key_dim, CQ = s.conv_dim();
  parallel_for(threads, i64{b.num_chunk} * HK, [&](i64 item) {
    const i64 c = item / HK, hk = item % HK;
    const Chunk chunk = b.chunk[c];
    if (chunk.count == 0) return;
    Buffer<Real> kk(i64{kChunk} * kChunk);
    const Real* k = qkv + chunk.begin * CQ + s.keys() + hk * K;
    gemm<Real>(chunk.count, chunk.count, K, plain(k, CQ), transposed(k, CQ), kk, kChunk);
    for (i64 h = hk * s.group(); h < (hk + 1) * s.group(); ++h) {
      const i64 slot = c * s.value_heads + h;
      unit_lower_inverse<Real>(ar + slot * kChunk * kChunk, kk, beta + slot * kChunk, chunk.count);
    }
  });
}

TESSERA_INSTANTIATE(gdn_gates_fwd);
TESSERA_INSTANTIATE(gdn_kkt_fwd);

}  // namespace tessera::TESSERA_ISA
