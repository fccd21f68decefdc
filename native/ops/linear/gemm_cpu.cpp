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
constexpr i64 kRowBlock = 48;   // rows of a packed at a time, a multiple of kRows
constexpr i64 kColBlock = 256;  // columns of b packed at a time
constexpr i64 kPanel = 1536;    // rows or columns packed at a time by all threads, a multiple of both blocks
constexpr i64 kDeep = 2048;     // contraction packed at a time by all threads, a multiple of kDepth
constexpr i64 kPackFrom = 128;  // columns of c from which packing a, too, pays

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

// dst[j, i] = src[i, j] for a block of 4 x 4, row strides as given
inline void transpose_block(float* dst, i64 dst_row, const float* src, i64 src_row) {
  typedef float Four __attribute__((vector_size(16), aligned(4)));
  const auto at = [&](i64 i) { return *reinterpret_cast<const Four*>(src + i * src_row); };
  const Four low01 = __builtin_shufflevector(at(0), at(1), 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(at(0), at(1), 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(at(2), at(3), 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(at(2), at(3), 2, 6, 3, 7);
  *reinterpret_cast<Four*>(dst) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(dst + dst_row) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(dst + 2 * dst_row) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(dst + 3 * dst_row) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}
inline void transpose_block(double* dst, i64 dst_row, const double* src, i64 src_row) {
  for (i64 i = 0; i < 4; ++i) {
    for (i64 j = 0; j < 4; ++j) dst[j * dst_row + i] = src[i * src_row + j];
  }
}

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
    i64 i = 0;
    for (; depth_stride == 1 && i + 4 <= valid; i += 4) {
      const Real* rows = strip + i * across_stride;
      i64 p = 0;
      for (; p + 4 <= depth; p += 4) transpose_block(dst + p * width + i, width, rows + p, across_stride);
      for (; p < depth; ++p) {
        for (i64 r = 0; r < 4; ++r) dst[p * width + i + r] = rows[r * across_stride + p];
      }
    }
    for (; i < width; ++i) {
      for (i64 p = 0; p < depth; ++p) {
        dst[p * width + i] = i < valid ? strip[i * across_stride + p * depth_stride] : Real{0};
      }
    }
  }
}

// One register tile: c[rows, kCols] (+)= rows of a times a strip of packed b.
template <class Real, i64 rows>
void tile(View<Real> a, const Real* b, i64 depth, Real* c, i64 ldc, bool accumulate) {
  using V = Vec<Real>;
  V sum[rows][2] = {};
  const Real* column = a.data;
  for (i64 p = 0; p < depth; ++p, column += a.col, b += kCols<Real>) {
    const V b0 = *reinterpret_cast<const V*>(b);
    const V b1 = *reinterpret_cast<const V*>(b + kLanes<Real>);
#pragma GCC unroll 6
    for (i64 i = 0; i < rows; ++i) {
      const V ai = column[i * a.row] - V{};
      sum[i][0] = multiply_add(ai, b0, sum[i][0]);
      sum[i][1] = multiply_add(ai, b1, sum[i][1]);
    }
  }
#pragma GCC unroll 6
  for (i64 i = 0; i < rows; ++i) {
    for (i64 half = 0; half < 2; ++half) {
      Real* out = c + i * ldc + half * kLanes<Real>;
      V value = sum[i][half];
      if (accumulate) {
        V before;
        __builtin_memcpy(&before, out, sizeof before);
        value += before;
      }
      __builtin_memcpy(out, &value, sizeof value);
    }
  }
}

// tile with 1 to kRows rows
template <class Real, i64 rows = kRows>
void tile_of(i64 wanted, View<Real> a, const Real* b, i64 depth, Real* c, i64 ldc, bool accumulate) {
  if (wanted == rows) {
    tile<Real, rows>(a, b, depth, c, ldc, accumulate);
  } else if constexpr (rows > 1) {
    tile_of<Real, rows - 1>(wanted, a, b, depth, c, ldc, accumulate);
  }
}

// The tile at c's right edge, where fewer than kCols columns exist.
template <class Real>
void edge_tile(i64 rows, i64 cols, View<Real> a, const Real* b, i64 depth, Real* c, i64 ldc,
               bool accumulate) {
  Real result[kRows * kCols<Real>];
  tile_of<Real>(rows, a, b, depth, result, kCols<Real>, false);
  for (i64 i = 0; i < rows; ++i) {
    for (i64 j = 0; j < cols; ++j) {
      const Real value = result[i * kCols<Real> + j];
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + value : value;
    }
  }
}

// strip_stride: distance between strips of kRows rows of a.
template <class Real>
void block_product(View<Real> a, i64 strip_stride, const Real* packed_b, i64 rows, i64 cols, i64 depth,
                   Real* c, i64 ldc, bool accumulate) {
  for (i64 j = 0; j < cols; j += kCols<Real>) {
    for (i64 i = 0; i < rows; i += kRows) {
      const View<Real> strip{a.data + i / kRows * strip_stride, a.row, a.col};
      Real* out = c + i * ldc + j;
      const i64 height = least(kRows, rows - i), width = cols - j;
      if (width >= kCols<Real>) {
        tile_of<Real>(height, strip, packed_b + j * depth, depth, out, ldc, accumulate);
      } else {
        edge_tile(height, width, strip, packed_b + j * depth, depth, out, ldc, accumulate);
      }
    }
  }
}

i64 blocks_of(i64 n, i64 unit) { return (n + unit - 1) / unit; }
i64 round_up(i64 n, i64 unit) { return blocks_of(n, unit) * unit; }

}  // namespace

template <class Real>
void gemm(i64 M, i64 N, i64 K, View<Real> a, View<Real> b, Real* c, i64 ldc, bool accumulate) {
  if (K == 0 && !accumulate) {
    for (i64 i = 0; i < M; ++i) {
      for (i64 j = 0; j < N; ++j) c[i * ldc + j] = Real{0};
    }
  }
  const i64 deepest = least(K, kDepth);
  const bool packs_a = N > kPackFrom;
  Buffer<Real> packed_a(packs_a ? round_up(least(M, kRowBlock), kRows) * deepest : 0);
  Buffer<Real> packed_b(round_up(least(N, kColBlock), kCols<Real>) * deepest);
  for (i64 j = 0; j < N; j += kColBlock) {
    const i64 cols = least(kColBlock, N - j);
    for (i64 p = 0; p < K; p += kDepth) {
      const i64 depth = least(kDepth, K - p);
      pack<Real, kCols<Real>>(packed_b, b.data + p * b.row + j * b.col, b.col, b.row, cols, depth);
      for (i64 i = 0; i < M; i += kRowBlock) {
        const i64 rows = least(kRowBlock, M - i);
        View<Real> block{a.data + i * a.row + p * a.col, a.row, a.col};
        if (packs_a) {
          pack<Real, kRows>(packed_a, block.data, a.row, a.col, rows, depth);
          block = {packed_a, 1, kRows};
        }
        block_product<Real>(block, kRows * (packs_a ? depth : a.row), packed_b, rows, cols, depth,
                            c + i * ldc + j, ldc, accumulate || p > 0);
      }
    }
  }
}

// Panels of both factors are packed once, by all threads, and then shared. A panel holds up to kDeep terms of
// the contraction as blocks of kDepth, each block [strips, depth, width].
template <class Real>
void parallel_gemm(int threads, i64 M, i64 N, i64 K, View<Real> a, View<Real> b, Real* c, i64 ldc,
                   bool accumulate) {
  if (K == 0) return gemm(M, N, K, a, b, c, ldc, accumulate);
  const i64 deepest = least(K, kDeep);
  Buffer<Real> packed_a(round_up(least(M, kPanel), kRows) * deepest);
  Buffer<Real> packed_b(round_up(least(N, kPanel), kCols<Real>) * deepest);
  for (i64 top = 0; top < M; top += kPanel) {
    for (i64 left = 0; left < N; left += kPanel) {
      const i64 rows = least(kPanel, M - top), cols = least(kPanel, N - left);
      const i64 a_rows = round_up(rows, kRows), b_cols = round_up(cols, kCols<Real>);
      const i64 row_blocks = blocks_of(rows, kRowBlock), col_blocks = blocks_of(cols, kColBlock);
      for (i64 deep = 0; deep < K; deep += kDeep) {
        const i64 terms = least(kDeep, K - deep);
        parallel_for(threads, row_blocks + col_blocks, [&](i64 item) {
          for (i64 p = 0; p < terms; p += kDepth) {
            const i64 depth = least(kDepth, terms - p);
            if (item < row_blocks) {
              const i64 i = item * kRowBlock;
              pack<Real, kRows>(packed_a + p * a_rows + i * depth,
                                a.data + (top + i) * a.row + (deep + p) * a.col, a.row, a.col,
                                least(kRowBlock, rows - i), depth);
            } else {
              const i64 j = (item - row_blocks) * kColBlock;
              pack<Real, kCols<Real>>(packed_b + p * b_cols + j * depth,
                                      b.data + (deep + p) * b.row + (left + j) * b.col, b.col, b.row,
                                      least(kColBlock, cols - j), depth);
            }
          }
        });
        parallel_for(threads, row_blocks * col_blocks, [&](i64 item) {
          const i64 i = item / col_blocks * kRowBlock, j = item % col_blocks * kColBlock;
          for (i64 p = 0; p < terms; p += kDepth) {
            const i64 depth = least(kDepth, terms - p);
            block_product<Real>({packed_a + p * a_rows + i * depth, 1, kRows}, kRows * depth,
                                packed_b + p * b_cols + j * depth, least(kRowBlock, rows - i),
                                least(kColBlock, cols - j), depth, c + (top + i) * ldc + left + j, ldc,
                                accumulate || deep + p > 0);
          }
        });
      }
    }
  }
}

TESSERA_INSTANTIATE(gemm);
TESSERA_INSTANTIATE(parallel_gemm);

}  // namespace tessera::TESSERA_ISA
