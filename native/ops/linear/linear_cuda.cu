#include "ops/linear/linear_cuda.h"
#include "ops/optimizer/stochastic_rounding.h"

namespace tessera {
namespace {

constexpr int kTile = 64, kDepth = 16, kThreads = 256;  // a thread owns 4 x 4 of the tile

template <typename In>
struct Operand {
  const In* p;
  i64 row, k;  // strides of (m or n) and of k
};

template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    matrix_product_kernel(Out* d, const Out* c, i64 ldd, Operand<In> a, Operand<In> b, i64 m, i64 n, i64 k) {
  __shared__ float at[kDepth][kTile + 1], bt[kDepth][kTile + 1];
  const i64 m0 = i64{blockIdx.x} * kTile, n0 = i64{blockIdx.y} * kTile;
  const int tm = threadIdx.x % 16, tn = threadIdx.x / 16;
  float acc[4][4] = {};
  for (i64 k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int row = i / kDepth, depth = i % kDepth;
      const bool inside = k0 + depth < k;
      at[depth][row] =
          inside && m0 + row < m ? static_cast<float>(a.p[(m0 + row) * a.row + (k0 + depth) * a.k]) : 0.0f;
      bt[depth][row] =
          inside && n0 + row < n ? static_cast<float>(b.p[(n0 + row) * b.row + (k0 + depth) * b.k]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < kDepth; ++depth) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] += at[depth][tm + 16 * i] * bt[depth][tn + 16 * j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const i64 row = m0 + tm + 16 * i, col = n0 + tn + 16 * j;
      if (row >= m || col >= n) continue;
      const i64 at_d = col * ldd + row;
      d[at_d] = static_cast<Out>(acc[i][j] + (c ? static_cast<float>(c[at_d]) : 0.0f));
    }
  }
}

__global__ void fill_random_kernel(bf16* p, i64 cols, i64 ld) {
  for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
    const std::uint64_t bits = mix64(blockIdx.x * 0x100000001ull + i + 1);
    p[blockIdx.x * ld + i] =
        __float2bfloat16(static_cast<float>(static_cast<std::int32_t>(bits)) * 4.6566129e-10f);
  }
}

template <typename In, typename Out>
void launch_typed(const MatrixProduct& p, cudaStream_t stream) {
  const Operand<In> a{static_cast<const In*>(p.a), p.transpose_a ? p.lda : 1, p.transpose_a ? 1 : p.lda};
  const Operand<In> b{static_cast<const In*>(p.b), p.transpose_b ? 1 : p.ldb, p.transpose_b ? p.ldb : 1};
  const dim3 grid(ceil_div(p.m, kTile), ceil_div(p.n, kTile));
  matrix_product_kernel<<<grid, kThreads, 0, stream>>>(static_cast<Out*>(p.d), static_cast<const Out*>(p.c),
                                                       p.ldd, a, b, p.m, p.n, p.k);
  check_launch("linear (reference)");
}

}  // namespace

void launch_matrix_product_reference(const MatrixProduct& p, cudaStream_t stream) {
  if (p.ab_type == DType::f32) return launch_typed<float, float>(p, stream);
  if (p.d_type == DType::f32) return launch_typed<bf16, float>(p, stream);
  launch_typed<bf16, bf16>(p, stream);
}

void launch_fill_random(bf16* p, i64 rows, i64 cols, i64 ld, cudaStream_t stream) {
  fill_random_kernel<<<static_cast<unsigned>(rows), 256, 0, stream>>>(p, cols, ld);
  check_launch("fill_random");
}

}  // namespace tessera
