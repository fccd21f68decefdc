#include <algorithm>

#include "ops/attention/qk_norm_rope_cuda.h"

namespace tessera {
namespace {

constexpr int kHead = 256;  // a warp owns a row of one head, a lane eight adjacent dims
constexpr int kWarps = 8;
constexpr int kRows = 2;              // that a warp loads before it uses the first
constexpr int kBackwardBlocks = 396;  // 3 on each of an H200's 132 multiprocessors

void require_shape(const AttnShape& s) {
  require_size(s.head_dim == kHead, "head_dim", s.head_dim, "256");
  require_size(s.rotary_dim % 16 == 0 && s.rotary_dim <= kHead, "rotary_dim", s.rotary_dim,
               "multiples of 16 up to head_dim");
}

// Rotates the pairs (i, i + R/2) among the first R dims. sign -1 turns back. Every lane of the warp takes
// part.
__device__ __forceinline__ void rotate(float (&v)[8], const float* angles, int rotary, float sign, int lane) {
  const int half_lanes = rotary / 16;
  const bool low = lane < half_lanes, inside = lane < 2 * half_lanes;
  const int partner = low ? lane + half_lanes : inside ? lane - half_lanes : lane;
  float other[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) other[c] = __shfl_sync(0xffffffffu, v[c], partner);
  if (!inside) return;
  float cosine[8], sine[8];
  load8f(cosine, angles + (low ? lane : lane - half_lanes) * 8);
  load8f(sine, angles + rotary / 2 + (low ? lane : lane - half_lanes) * 8);
  const float turn = low ? -sign : sign;
#pragma unroll
  for (int c = 0; c < 8; ++c) v[c] = v[c] * cosine[c] + turn * other[c] * sine[c];
}

__device__ __forceinline__ float inverse_rms(const float (&v)[8], float eps) {
  float square = 0.0f;
#pragma unroll
  for (int c = 0; c < 8; ++c) square += v[c] * v[c];
  return rsqrtf(warp_sum(square) / kHead + eps);
}

struct Heads {
  int queries, keys;
  i64 stride, k_offset;  // of proj
  int rotary;
  float eps;
};

__global__ void __launch_bounds__(kWarps * 32)
    qk_norm_rope_fwd_kernel(bf16* q, bf16* k, const bf16* proj, const float* wq, const float* wk,
                            const float* rope, const i32* pos, i64 T, Heads h) {
  const int lane = threadIdx.x % 32, heads = h.queries + h.keys;
  const i64 first = (i64{blockIdx.x} * kWarps + threadIdx.x / 32) * kRows, rows = T * heads;
  uint4 raw[kRows];
  i64 t[kRows];
  int head[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const i64 row = min(first + i, rows - 1);
    t[i] = row / heads;
    head[i] = static_cast<int>(row % heads);
    const i64 at = head[i] < h.queries ? head[i] * 2 * kHead : h.k_offset + (head[i] - h.queries) * kHead;
    raw[i] = load8_last_raw(proj + t[i] * h.stride + at + lane * 8);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (first + i >= rows) return;
    const bool query = head[i] < h.queries;
    float v[8], scale[8];
    unpack8(v, raw[i]);
    load8f(scale, (query ? wq : wk) + lane * 8);
    const float r = inverse_rms(v, h.eps);
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] *= r * (1.0f + scale[c]);
    rotate(v, rope + i64{pos[t[i]]} * h.rotary, h.rotary, 1.0f, lane);
    bf16* out =
        query ? q + (t[i] * h.queries + head[i]) * kHead : k + (t[i] * h.keys + head[i] - h.queries) * kHead;
    store8(out + lane * 8, v);
  }
}

// The first `query_blocks` blocks take the rows of queries, the others those of keys; partial [block, 256] of
// this block's share of dwq or dwk.
__global__ void __launch_bounds__(kWarps * 32, 3)
    qk_norm_rope_bwd_kernel(bf16* dproj, float* partial, const bf16* dq, const bf16* dk, const bf16* proj,
                            const float* wq, const float* wk, const float* rope, const i32* pos, i64 T,
                            int query_blocks, Heads h) {
  __shared__ float sums[kWarps][kHead];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, block = blockIdx.x;
  const bool query = block < query_blocks;
  const int heads = query ? h.queries : h.keys, head_stride = query ? 2 * kHead : kHead;
  const int blocks = query ? query_blocks : gridDim.x - query_blocks;
  const i64 offset = query ? 0 : h.k_offset, rows = T * heads;
  const bf16* d = query ? dq : dk;
  float scale[8], dw[8] = {};
  load8f(scale, (query ? wq : wk) + lane * 8);
  const i64 step = i64{blocks} * kWarps * kRows;
  for (i64 first = (i64{query ? block : block - query_blocks} * kWarps + warp) * kRows; first < rows;
       first += step) {
    uint4 v_raw[kRows], g_raw[kRows];
    i64 at[kRows], t[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const i64 row = min(first + i, rows - 1);
      t[i] = row / heads;
      at[i] = t[i] * h.stride + offset + row % heads * head_stride + lane * 8;
      v_raw[i] = load8_last_raw(proj + at[i]);
      g_raw[i] = load8_last_raw(d + row * kHead + lane * 8);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first + i >= rows) break;
      float v[8], g[8];
      unpack8(v, v_raw[i]);
      unpack8(g, g_raw[i]);
      rotate(g, rope + i64{pos[t[i]]} * h.rotary, h.rotary, -1.0f, lane);
      const float r = inverse_rms(v, h.eps);
      float dot = 0.0f;
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        v[c] *= r;
        dw[c] += g[c] * v[c];
        g[c] *= 1.0f + scale[c];
        dot += g[c] * v[c];
      }
      const float mean = warp_sum(dot) / kHead;
#pragma unroll
      for (int c = 0; c < 8; ++c) g[c] = r * (g[c] - v[c] * mean);
      store8(dproj + at[i], g);
    }
  }
#pragma unroll
  for (int c = 0; c < 8; ++c) sums[warp][lane * 8 + c] = dw[c];
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) total += sums[i][threadIdx.x];
  partial[i64{blockIdx.x} * kHead + threadIdx.x] = total;
}

Heads heads_of(const AttnShape& s, float eps) {
  return {s.heads, s.kv_heads, s.proj_dim(), s.k_offset(), s.rotary_dim, eps};
}

}  // namespace

void launch_qk_norm_rope_fwd(bf16* q, bf16* k, const bf16* proj, const float* wq, const float* wk,
                             const float* rope, const Batch& b, const AttnShape& s, float eps,
                             cudaStream_t stream) {
  require_shape(s);
  const i64 rows = i64{b.T} * (s.heads + s.kv_heads);
  qk_norm_rope_fwd_kernel<<<ceil_div(rows, kRows * kWarps), kWarps * 32, 0, stream>>>(
      q, k, proj, wq, wk, rope, b.pos, b.T, heads_of(s, eps));
  check_launch("qk_norm_rope_fwd");
}

size_t qk_norm_rope_bwd_scratch_bytes() { return size_t{kBackwardBlocks} * kHead * sizeof(float); }

void launch_qk_norm_rope_bwd(bf16* dproj, float* dwq, float* dwk, const bf16* dq, const bf16* dk,
                             const bf16* proj, const float* wq, const float* wk, const float* rope,
                             const Batch& b, const AttnShape& s, float eps, float* scratch,
                             cudaStream_t stream) {
  require_shape(s);
  const Heads h = heads_of(s, eps);
  static_assert(kWarps * 32 == kHead, "a thread per column sums the warps");
  const int queries = std::min(kBackwardBlocks * h.queries / (h.queries + h.keys), kBackwardBlocks - 1);
  const int keys = kBackwardBlocks - queries;
  qk_norm_rope_bwd_kernel<<<kBackwardBlocks, kWarps * 32, 0, stream>>>(dproj, scratch, dq, dk, proj, wq, wk,
                                                                       rope, b.pos, b.T, queries, h);
  check_launch("qk_norm_rope_bwd");
  launch_reduce_partials(dwq, scratch, queries, kHead, stream);
  launch_reduce_partials(dwk, scratch + i64{queries} * kHead, keys, kHead, stream);
}

}  // namespace tessera
