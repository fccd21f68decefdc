#include "ops/attention/attention_blocks.h"
#include "ops/attention/attention_cpu.h"
#include "ops/cpu/math.h"
#include "ops/linear/gemm_cpu.h"

namespace tessera::TESSERA_ISA {
namespace {

constexpr i64 B = kAttnBlock;

// Scratch of one query block: online softmax over key blocks.
template <class Real>
struct QueryBlock {
  explicit QueryBlock(i64 D) : scores(B * B), out(B * D), high(B), sum(B) {}
  Buffer<Real> scores, out, high, sum;
};

// Folds the scores [rows, cols] of a key block into the running maximum and sum, leaving exp(score -
// maximum). visible: keys that row 0 sees; each later row sees one more.
template <class Real>
void fold_scores(QueryBlock<Real>& x, i64 rows, i64 cols, i64 visible, Real scale, i64 D) {
  for (i64 i = 0; i < rows; ++i) {
    Real* row = x.scores + i * B;
    const i64 seen = min_of(cols, visible + i);
    Real high = x.high[i];
#pragma omp simd reduction(max : high)
    for (i64 j = 0; j < seen; ++j) {
      row[j] *= scale;
      high = row[j] > high ? row[j] : high;
    }
    const Real shrink = exp_of(x.high[i] - high);
    Real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (i64 j = 0; j < seen; ++j) {
      row[j] = exp_of(row[j] - high);
      sum += row[j];
    }
    for (i64 j = seen; j < cols; ++j) row[j] = Real{0};
    x.sum[i] = x.sum[i] * shrink + sum;
    x.high[i] = high;
    for (i64 j = 0; j < D; ++j) x.out[i * D + j] *= shrink;
  }
}

}  // namespace

template <class Real>
void attention_fwd(int threads, Real* y, Real* o, Real* lse, const Real* q, const Real* k, const Real* proj,
                   const Batch& b, const AttnShape& s) {
  const i64 NH = s.heads, NKV = s.kv_heads, D = s.head_dim;
  const AttnBlocks blocks(b);
  parallel_for(threads, blocks.count() * NH, [&](i64 item) {
    const AttnBlock& block = blocks[item / NH];
    const i64 h = item % NH, kv = h / (NH / NKV), rows = block.end - block.begin;
    QueryBlock<Real> x(D);
    x.out.zero(rows * D);
    x.sum.zero(rows);
    for (i64 i = 0; i < rows; ++i) x.high[i] = Real(-1e30);
    for (i64 first = block.seq_begin; first < block.end; first += B) {
      const i64 cols = min_of(B, block.end - first);
      gemm<Real>(rows, cols, D, plain(q + (block.begin * NH + h) * D, NH * D),
                 transposed(k + (first * NKV + kv) * D, NKV * D), x.scores, B);
      fold_scores(x, rows, cols, block.begin - first + 1, attention_scale<Real>(s), D);
      gemm<Real>(rows, D, cols, plain<Real>(x.scores, B),
                 plain(proj + first * s.proj_dim() + s.v_offset() + kv * D, s.proj_dim()), x.out, D, true);
    }
    for (i64 i = 0; i < rows; ++i) {
      const i64 t = block.begin + i;
      const Real* gate = proj + t * s.proj_dim() + (2 * h + 1) * D;
      const Real inverse = Real(1) / x.sum[i];
      lse[h * b.T + t] = x.high[i] + std::log(x.sum[i]);
      for (i64 j = 0; j < D; ++j) x.out[i * D + j] *= inverse;
      for (i64 j = 0; j < D; ++j) y[(t * NH + h) * D + j] = x.out[i * D + j] * sigmoid(gate[j]);
      for (i64 j = 0; o != nullptr && j < D; ++j) o[(t * NH + h) * D + j] = x.out[i * D + j];
    }
  });
}

TESSERA_INSTANTIATE(attention_fwd);

}  // namespace tessera::TESSERA_ISA
