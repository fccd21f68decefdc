#include <algorithm>
#include <type_traits>

#include "ops/rmsnorm/rmsnorm_cuda.h"

namespace tessera {
namespace {

// A row is owned by `team` threads (a warp, or the whole block); each holds up to kVecs vectors of 8 columns,
// strided by the team. Rows of at most 2560 columns take one warp each, so that no barrier stands in their
// way.
constexpr int kWarpRowMax = 2560;
constexpr int kTeams = 8;  // warps, hence rows, of a block of the narrow kernel
// Blocks of the backward kernel, each a row of dw partials: as many as an H200's multiprocessors hold at
// once.
constexpr int kMultiprocessors = 132, kMostResident = 4;

struct Plan {
  bool narrow;
  int team, vecs;
};

Plan plan_rows(i64 H) {
  require_size(H % 8 == 0 && H <= 8192, "hidden_size", H, "multiples of 8 up to 8192");
  if (H <= kWarpRowMax) return {true, 32, H <= 1024 ? 4 : kWarpRowMax / 256};
  const int vectors = static_cast<int>(H / 8), vecs = vectors <= 512 ? 1 : 2;
  return {false, (vectors / vecs + (vectors % vecs != 0) + 31) / 32 * 32, vecs};
}

template <bool kNarrow>
__device__ __forceinline__ float row_sum(float v, float* scratch) {
  if constexpr (kNarrow) return warp_sum(v);
  return block_sum(v, scratch);
}

// Eight columns between the row's sum and its output: as floats, or as they came where a thread has many.
struct Floats {
  float v[8];
};
__device__ __forceinline__ void hold(Floats& to, const bf16* p) { load8(to.v, p); }
__device__ __forceinline__ void hold(uint4& to, const bf16* p) { to = *reinterpret_cast<const uint4*>(p); }
__device__ __forceinline__ Floats floats(const Floats& held) { return held; }
__device__ __forceinline__ Floats floats(const uint4& held) {
  Floats out;
  unpack8(out.v, held);
  return out;
}

template <bool kNarrow, int kVecs>
__global__ void rmsnorm_fwd_kernel(bf16* y, const bf16* x, const float* w, i64 rows, int H, float eps) {
  __shared__ float scratch[33];
  const int team = kNarrow ? 32 : blockDim.x;
  const int lane = kNarrow ? threadIdx.x % 32 : threadIdx.x;
  const i64 row = kNarrow ? i64{blockIdx.x} * kTeams + threadIdx.x / 32 : blockIdx.x;
  if (row >= rows) return;
  std::conditional_t<(kVecs > 4), uint4, Floats> held[kVecs];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const int col = (i * team + lane) * 8;
    if (col < H) hold(held[i], x + row * H + col);
  }
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    if ((i * team + lane) * 8 >= H) continue;
    const Floats x8 = floats(held[i]);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += x8.v[c] * x8.v[c];
  }
  const float r = rsqrtf(row_sum<kNarrow>(sum, scratch) / H + eps);
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const int col = (i * team + lane) * 8;
    if (col >= H) continue;
    float scale[8];
    load8f(scale, w + col);
    Floats out = floats(held[i]);
#pragma unroll
    for (int c = 0; c < 8; ++c) out.v[c] *= r * (1.0f + scale[c]);
    store8(y + row * H + col, out.v);
  }
}

// Sums of two values over the block, the same in every thread; sums: a pair a warp, not reused before another
// barrier.
__device__ __forceinline__ float2 block_sum2(float2 v, float2* sums) {
  v.x = warp_sum(v.x);
  v.y = warp_sum(v.y);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  const int warps = blockDim.x / 32;
  float2 total{0.0f, 0.0f};
  for (int i = 0; i < warps; ++i) {
    total.x += sums[i].x;
    total.y += sums[i].y;
  }
  return total;
}

// A block walks over rows b, b + grid, ...; a thread owns fixed columns, keeps their dw in registers and has
// the next row's values in flight while it works on this one's. At most 96 registers, so that two blocks of
// 320 threads (H = 5,120) find room.
template <int kVecs, bool kResidual>
__global__ void __launch_bounds__(kVecs == 1 ? 512 : 640)
    rmsnorm_bwd_kernel(bf16* dx, float* partial, const bf16* dy, const bf16* x, const float* w,
                       const bf16* dres, i64 rows, int H, float eps) {
  __shared__ float2 sums[2][16];
  const int threads = blockDim.x;
  float dw[kVecs][8] = {};
  uint4 x_next[kVecs], g_next[kVecs], d_next[kVecs];
  const auto fetch = [&](i64 row) {
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      const int col = (i * threads + threadIdx.x) * 8;
      if (col >= H || row >= rows) continue;
      x_next[i] = load8_last_raw(x + row * H + col);
      g_next[i] = load8_last_raw(dy + row * H + col);
      if constexpr (kResidual) d_next[i] = *reinterpret_cast<const uint4*>(dres + row * H + col);
    }
  };
  fetch(blockIdx.x);
  int turn = 0;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    uint4 x_raw[kVecs], g_raw[kVecs], d_raw[kVecs];
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      x_raw[i] = x_next[i];
      g_raw[i] = g_next[i];
      d_raw[i] = d_next[i];
    }
    fetch(row + gridDim.x);
    float2 sum{0.0f, 0.0f};  // of x^2 and of x m
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      const int col = (i * threads + threadIdx.x) * 8;
      if (col >= H) continue;
      float v[8], g[8], scale[8];
      unpack8(v, x_raw[i]);
      unpack8(g, g_raw[i]);
      load8f(scale, w + col);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        sum.x += v[c] * v[c];
        sum.y += v[c] * g[c] * (1.0f + scale[c]);
      }
    }
    sum = block_sum2(sum, sums[turn]);
    const float r = rsqrtf(sum.x / H + eps);
    const float mean = sum.y * r / H;  // mean(m xh)
#pragma unroll
    for (int i = 0; i < kVecs; ++i) {
      const int col = (i * threads + threadIdx.x) * 8;
      if (col >= H) continue;
      float v[8], g[8], scale[8], out[8] = {};
      unpack8(v, x_raw[i]);
      unpack8(g, g_raw[i]);
      load8f(scale, w + col);
      if constexpr (kResidual) unpack8(out, d_raw[i]);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        const float xh = v[c] * r;
        dw[i][c] += g[c] * xh;
        out[c] += r * (g[c] * (1.0f + scale[c]) - xh * mean);
      }
      store8(dx + row * H + col, out);
    }
  }
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    const int col = (i * threads + threadIdx.x) * 8;
    if (col >= H) continue;
    float4* out = reinterpret_cast<float4*>(partial + i64{blockIdx.x} * H + col);
    out[0] = make_float4(dw[i][0], dw[i][1], dw[i][2], dw[i][3]);
    out[1] = make_float4(dw[i][4], dw[i][5], dw[i][6], dw[i][7]);
  }
}

}  // namespace

void launch_rmsnorm_fwd(bf16* y, const bf16* x, const float* w, i64 rows, i64 H, float eps,
                        cudaStream_t stream) {
  const Plan plan = plan_rows(H);
  const int h = static_cast<int>(H);
  if (plan.narrow) {
    const auto kernel =
        plan.vecs == 4 ? rmsnorm_fwd_kernel<true, 4> : rmsnorm_fwd_kernel<true, kWarpRowMax / 256>;
    kernel<<<ceil_div(rows, kTeams), kTeams * 32, 0, stream>>>(y, x, w, rows, h, eps);
  } else if (plan.vecs == 1) {
    rmsnorm_fwd_kernel<false, 1>
        <<<static_cast<unsigned>(rows), plan.team, 0, stream>>>(y, x, w, rows, h, eps);
  } else {
    rmsnorm_fwd_kernel<false, 2>
        <<<static_cast<unsigned>(rows), plan.team, 0, stream>>>(y, x, w, rows, h, eps);
  }
  check_launch("rmsnorm_fwd");
}

size_t rmsnorm_bwd_scratch_bytes(i64 H) {
  return size_t{kMultiprocessors * kMostResident} * H * sizeof(float);
}

void launch_rmsnorm_bwd(bf16* dx, float* dw, const bf16* dy, const bf16* x, const float* w, const bf16* dres,
                        i64 rows, i64 H, float eps, float* scratch, cudaStream_t stream) {
  plan_rows(H);
  const int vecs = H <= 4096 ? 1 : 2;
  const int threads = static_cast<int>(ceil_div(H, 8 * vecs * 32)) * 32;
  const auto kernel = vecs == 1 ? (dres ? rmsnorm_bwd_kernel<1, true> : rmsnorm_bwd_kernel<1, false>)
                                : (dres ? rmsnorm_bwd_kernel<2, true> : rmsnorm_bwd_kernel<2, false>);
  int resident = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0), "rmsnorm_bwd");
  const int blocks = kMultiprocessors * std::clamp(resident, 1, kMostResident);
  kernel<<<blocks, threads, 0, stream>>>(dx, scratch, dy, x, w, dres, rows, static_cast<int>(H), eps);
  check_launch("rmsnorm_bwd");
  launch_reduce_partials(dw, scratch, blocks, H, stream);
}

}  // namespace tessera
