#include "ops/rmsnorm/rmsnorm_cuda.h"

namespace tessera {
namespace {

// A row is owned by `team` threads (a warp, or the whole block); each holds up to kVecs vectors of 8 columns, strided by
// the team. Rows of at most 1024 columns take one warp each, so that no barrier stands in their way.
constexpr int kWarpRowMax = 1024;
constexpr int kTeams = 8;         // warps, hence rows in flight, of a block of the narrow kernel
constexpr int kBackwardBlocks = 528;  // rows of dw partials: 4 blocks on each of an H200's 132 multiprocessors

struct Plan {
  bool narrow;
  int team, vecs;
};

Plan plan_rows(i64 H) {
  require_size(H % 8 == 0 && H <= 8192, "hidden_size", H, "multiples of 8 up to 8192");
  if (H <= kWarpRowMax) return {true, 32, 4};
  const int vectors = static_cast<int>(H / 8), vecs = vectors <= 512 ? 1 : 2;
  return {false, (vectors / vecs + (vectors % vecs != 0) + 31) / 32 * 32, vecs};
}

template <bool kNarrow>
__device__ __forceinline__ float row_sum(float v, float* scratch) {
  if constexpr (kNarrow) return warp_sum(v);
  return block_sum(v, scratch);
}

template <bool kNarrow, int kVecs>
__global__ void rmsnorm_fwd_kernel(bf16* y, const bf16* x, const float* w, i64 rows, int H, float eps) {
  __shared__ float scratch[33];
  const int team = kNarrow ? 32 : blockDim.x;
  const int lane = kNarrow ? threadIdx.x % 32 : threadIdx.x;
  const i64 row = kNarrow ? i64{blockIdx.x} * kTeams + threadIdx.x / 32 : blockIdx.x;
  if (row >= rows) return;
  float v[kVecs][8];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const int col = (i * team + lane) * 8;
    if (col < H) load8(v[i], x + row * H + col);
  }
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    if ((i * team + lane) * 8 >= H) continue;
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += v[i][c] * v[i][c];
  }
  const float r = rsqrtf(row_sum<kNarrow>(sum, scratch) / H + eps);
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const int col = (i * team + lane) * 8;
    if (col >= H) continue;
    float scale[8];
    load8f(scale, w + col);
#pragma unroll
    for (int c = 0; c < 8; ++c) v[i][c] *= r * (1.0f + scale[c]);
    store8(y + row * H + col, v[i]);
  }
}

template <bool kNarrow, int kVecs>
__global__ void __launch_bounds__(kNarrow ? kTeams * 32 : 512)
    rmsnorm_bwd_kernel(bf16* dx, float* partial, const bf16* dy, const bf16* x, const float* w, const bf16* dres,
                       i64 rows, int H, float eps) {
  extern __shared__ float dw_teams[];  // narrow: [kTeams - 1][H]
  __shared__ float scratch[2][33];
  const int team = kNarrow ? 32 : blockDim.x;
  const int lane = kNarrow ? threadIdx.x % 32 : threadIdx.x;
  const int member = kNarrow ? threadIdx.x / 32 : 0;
  const i64 stride = kNarrow ? i64{gridDim.x} * kTeams : gridDim.x;
  float dw[kVecs][8] = {};
  for (i64 row = kNarrow ? i64{blockIdx.x} * kTeams + member : blockIdx.x; row < rows; row += stride) {
    float v[kVecs][8], g[kVecs][8];
    float square = 0.0f, dot = 0.0f;
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      const int col = (i * team + lane) * 8;
      if (col >= H) continue;
      load8(v[i], x + row * H + col);
      load8(g[i], dy + row * H + col);
    }
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      const int col = (i * team + lane) * 8;
      if (col >= H) continue;
      float scale[8];
      load8f(scale, w + col);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        square += v[i][c] * v[i][c];
        dot += v[i][c] * g[i][c] * (1.0f + scale[c]);
      }
    }
    square = row_sum<kNarrow>(square, scratch[0]);
    dot = row_sum<kNarrow>(dot, scratch[1]);
    const float r = rsqrtf(square / H + eps);
    const float mean = dot * r / H;  // mean(m xh)
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      const int col = (i * team + lane) * 8;
      if (col >= H) continue;
      float scale[8], out[8];
      load8f(scale, w + col);
      if (dres) {
        load8(out, dres + row * H + col);
      } else {
#pragma unroll
        for (int c = 0; c < 8; ++c) out[c] = 0.0f;
      }
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        const float xh = v[i][c] * r;
        dw[i][c] += g[i][c] * xh;
        out[c] += r * (g[i][c] * (1.0f + scale[c]) - xh * mean);
      }
      store8(dx + row * H + col, out);
    }
  }
  if constexpr (kNarrow) {
    if (member > 0) {
#pragma unroll
      for (int i = 0; i < kVecs; ++i) {
        const int col = (i * team + lane) * 8;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          if (col < H) dw_teams[(member - 1) * H + col + c] = dw[i][c];
        }
      }
    }
    __syncthreads();
    if (member > 0) return;
  }
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const int col = (i * team + lane) * 8;
    if (col >= H) continue;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      float sum = dw[i][c];
      if constexpr (kNarrow) {
#pragma unroll
        for (int m = 0; m < kTeams - 1; ++m) sum += dw_teams[m * H + col + c];
      }
      partial[i64{blockIdx.x} * H + col + c] = sum;
    }
  }
}

}  // namespace

void launch_rmsnorm_fwd(bf16* y, const bf16* x, const float* w, i64 rows, i64 H, float eps, cudaStream_t stream) {
  const Plan plan = plan_rows(H);
  const int h = static_cast<int>(H);
  if (plan.narrow) {
    rmsnorm_fwd_kernel<true, 4><<<ceil_div(rows, kTeams), kTeams * 32, 0, stream>>>(y, x, w, rows, h, eps);
  } else if (plan.vecs == 1) {
    rmsnorm_fwd_kernel<false, 1><<<static_cast<unsigned>(rows), plan.team, 0, stream>>>(y, x, w, rows, h, eps);
  } else {
    rmsnorm_fwd_kernel<false, 2><<<static_cast<unsigned>(rows), plan.team, 0, stream>>>(y, x, w, rows, h, eps);
  }
  check_launch("rmsnorm_fwd");
}

size_t rmsnorm_bwd_scratch_bytes(i64 H) { return size_t{kBackwardBlocks} * H * sizeof(float); }

void launch_rmsnorm_bwd(bf16* dx, float* dw, const bf16* dy, const bf16* x, const float* w, const bf16* dres, i64 rows,
                        i64 H, float eps, float* scratch, cudaStream_t stream) {
  const Plan plan = plan_rows(H);
  const int h = static_cast<int>(H);
  if (plan.narrow) {
    const size_t shared = (kTeams - 1) * H * sizeof(float);
    rmsnorm_bwd_kernel<true, 4>
        <<<kBackwardBlocks, kTeams * 32, shared, stream>>>(dx, scratch, dy, x, w, dres, rows, h, eps);
  } else if (plan.vecs == 1) {
    rmsnorm_bwd_kernel<false, 1><<<kBackwardBlocks, plan.team, 0, stream>>>(dx, scratch, dy, x, w, dres, rows, h, eps);
  } else {
    rmsnorm_bwd_kernel<false, 2><<<kBackwardBlocks, plan.team, 0, stream>>>(dx, scratch, dy, x, w, dres, rows, h, eps);
  }
  check_launch("rmsnorm_bwd");
  launch_reduce_partials(dw, scratch, kBackwardBlocks, H, stream);
}

}  // namespace tessera
