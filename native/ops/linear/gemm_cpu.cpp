#include "ops/linear/gemm_cpu.h"

#include "ops/cpu/parallel.h"

#ifdef __FMA__
#include <immintrin.h>
#endif

namespace tessera::TESSERA_ISA {
namespace {

// Register tile: kRows x 2 vectors of accumulators, as many as the instruction set has registers for.
#ifdef __AVX2__
constexpr i64 kVecBytes = 32;
constexpr i64 kRows = 6;
#else
constexpr i64 kVecBytes = 16;
constexpr i64 kRows = 4;
#endif
constexpr i64 kDepth = 256;     // contraction per packed panel
constexpr i64 kRowBlock = 96;   // rows of a packed at a time, a multiple of kRows
constexpr i64 kColBlock = 256;  // columns of b packed at a time

template <class Real>
struct VecOf {
  typedef Real type __attribute__((vector_size(kVecBytes)));
};
template <class Real>
using Vec = typename VecOf<Real>::type;
template <class Real>
constexpr i64 kLanes = kVecBytes / static_cast<i64>(sizeof(Real));
template <class Real>
constexpr i64 kCols = 2 * kLanes<Real>;

#ifdef __FMA__
inline __m256 multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d multiply_add(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#else
template <class V>
V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#endif

i64 least(i64 a, i64 b) { return a < b ? a : b; }

// Strips of `width` rows (columns) of a block, each strip depth-major and padded with zeros to `width`.
template <class Real, i64 width>
void pack(Real* dst, const Real* src, i64 across_stride, i64 depth_stride, i64 across, i64 depth) {
  for (i64 first = 0; first < across; first += width, dst += width * depth) {
    const i64 valid = least(width, across - first);
    const Real* strip = src + first * across_stride;
    if (across_stride == 1 && valid == width) {
      for (i64 p = 0; p < depth; ++p) {
        for (i64 i = 0; i < width; ++i) dst[p * width + i] = strip[p * depth_stride + i];
      }
      continue;
    }
    for (i64 i = 0; i < width; ++i) {
      if (i < valid) {
        for (i64 p = 0; p < depth; ++p) dst[p * width + i] = strip[i * across_stride + p * depth_stride];
      } else {
        for (i64 p = 0; p < depth; ++p) dst[p * width + i] = Real{0};
      }
    }
  }
}

// One register tile: c[rows, cols] (+)= a strip times b strip.
template <class Real>
void tile(const Real* a, const Real* b, i64 depth, Real* c, i64 ldc, i64 rows, i64 cols, bool accumulate) {
  using V = Vec<Real>;
  V sum[kRows][2] = {};
  for (i64 p = 0; p < depth; ++p, a += kRows, b += kCols<Real>) {
    const V b0 = *reinterpret_cast<const V*>(b);
    const V b1 = *reinterpret_cast<const V*>(b + kLanes<Real>);
#pragma GCC unroll 6
    for (i64 i = 0; i < kRows; ++i) {
      const V ai = a[i] - V{};
      sum[i][0] = multiply_add(ai, b0, sum[i][0]);
      sum[i][1] = multiply_add(ai, b1, sum[i][1]);
    }
  }
  const Real* values = reinterpret_cast<const Real*>(sum);
  for (i64 i = 0; i < rows; ++i) {
    Real* row = c + i * ldc;
    const Real* from = values + i * kCols<Real>;
    if (accumulate) {
      for (i64 j = 0; j < cols; ++j) row[j] += from[j];
    } else {
      for (i64 j = 0; j < cols; ++j) row[j] = from[j];
    }
  }
}

template <class Real>
void block_product(const Real* packed_a, const Real* packed_b, i64 rows, i64 cols, i64 depth, Real* c,
                   i64 ldc, bool accumulate) {
  for (i64 j = 0; j < cols; j += kCols<Real>) {
    for (i64 i = 0; i < rows; i += kRows) {
      tile(packed_a + i * depth, packed_b + j * depth, depth, c + i * ldc + j, ldc, least(kRows, rows - i),
           least(kCols<Real>, cols - j), accumulate);
    }
  }
}

i64 round_up(i64 n, i64 unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

template <class Real>
void gemm(i64 M, i64 N, i64 K, View<Real> a, View<Real> b, Real* c, i64 ldc, bool accumulate) {
  if (K == 0 && !accumulate) {
    for (i64 i = 0; i < M; ++i) {
      for (i64 j = 0; j < N; ++j) c[i * ldc + j] = Real{0};
    }
  }
  const i64 deepest = least(K, kDepth);
  Buffer<Real> packed_a(round_up(least(M, kRowBlock), kRows) * deepest);
  Buffer<Real> packed_b(round_up(least(N, kColBlock), kCols<Real>) * deepest);
  for (i64 j = 0; j < N; j += kColBlock) {
    const i64 cols = least(kColBlock, N - j);
    for (i64 p = 0; p < K; p += kDepth) {
      const i64 depth = least(kDepth, K - p);
      pack<Real, kCols<Real>>(packed_b, b.data + p * b.row + j * b.col, b.col, b.row, cols, depth);
      for (i64 i = 0; i < M; i += kRowBlock) {
        const i64 rows = least(kRowBlock, M - i);
        pack<Real, kRows>(packed_a, a.data + i * a.row + p * a.col, a.row, a.col, rows, depth);
        block_product<Real>(packed_a, packed_b, rows, cols, depth, c + i * ldc + j, ldc, accumulate || p > 0);
      }
    }
  }
}

template <class Real>
void parallel_gemm(int threads, i64 M, i64 N, i64 K, View<Real> a, View<Real> b, Real* c, i64 ldc,
                   bool accumulate) {
  const i64 col_blocks = (N + kColBlock - 1) / kColBlock;
  const i64 row_blocks = (M + kRowBlock - 1) / kRowBlock;
  parallel_for(threads, col_blocks * row_blocks, [&](i64 item) {
    const i64 i = item / col_blocks * kRowBlock;
    const i64 j = item % col_blocks * kColBlock;
    gemm<Real>(least(kRowBlock, M - i), least(kColBlock, N - j), K, {a.data + i * a.row, a.row, a.col},
               {b.data + j * b.col, b.row, b.col}, c + i * ldc + j, ldc, accumulate);
  });
}

TESSERA_INSTANTIATE(gemm);
TESSERA_INSTANTIATE(parallel_gemm);

}  // namespace tessera::TESSERA_ISA
