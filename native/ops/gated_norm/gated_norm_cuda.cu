#include "ops/gated_norm/gated_norm_cuda.h"

namespace tessera {
namespace {

constexpr int kHead = 128;  // a warp owns a row of one head, a lane four of its channels
constexpr int kWarps = 8;
constexpr int kRows = 4;  // rows that a warp loads before it uses the first
constexpr int kBackwardBlocks =
    528;  // rows of dw partials: 4 blocks on each of an H200's 132 multiprocessors

template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
    gated_norm_fwd_kernel(bf16* y, const bf16* o, const bf16* proj, const float* w, i64 rows, int heads,
                          i64 stride, i64 z_offset, float eps) {
  const int lane = threadIdx.x % 32;
  const i64 first = (i64{blockIdx.x} * kWarps + threadIdx.x / 32) * kRows;
  const float4 scale4 = reinterpret_cast<const float4*>(w)[lane];
  const float scale[4] = {scale4.x, scale4.y, scale4.z, scale4.w};
  uint2 o_raw[kRows], z_raw[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const i64 row = min(first + i, rows - 1);
    o_raw[i] = load4_last_raw<true>(o + row * kHead + lane * 4);
    z_raw[i] = load4_last_raw<kWide>(proj + row / heads * stride + z_offset + row % heads * kHead + lane * 4);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (first + i >= rows) return;
    float v[4], z[4];
    unpack4(v, o_raw[i]);
    unpack4(z, z_raw[i]);
    const float r = rsqrtf(warp_sum(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]) / kHead + eps);
#pragma unroll
    for (int c = 0; c < 4; ++c) v[c] *= r * scale[c] * silu(z[c]);
    store4<true>(y + (first + i) * kHead + lane * 4, v);
  }
}

template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
    gated_norm_bwd_kernel(bf16* d_o, bf16* dproj, float* partial, const bf16* dy, const bf16* o,
                          const bf16* proj, const float* w, i64 rows, int heads, i64 stride, i64 z_offset,
                          float eps) {
  __shared__ float sums[kWarps][kHead];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float4 scale4 = reinterpret_cast<const float4*>(w)[lane];
  const float scale[4] = {scale4.x, scale4.y, scale4.z, scale4.w};
  float dw[4] = {};
  const i64 step = i64{gridDim.x} * kWarps * kRows;
  for (i64 first = (i64{blockIdx.x} * kWarps + warp) * kRows; first < rows; first += step) {
    uint2 o_raw[kRows], z_raw[kRows], g_raw[kRows];
    i64 z_at[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const i64 row = min(first + i, rows - 1);
      z_at[i] = row / heads * stride + z_offset + row % heads * kHead + lane * 4;
      o_raw[i] = load4_last_raw<true>(o + row * kHead + lane * 4);
      g_raw[i] = load4_last_raw<true>(dy + row * kHead + lane * 4);
      z_raw[i] = load4_last_raw<kWide>(proj + z_at[i]);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first + i >= rows) break;
      float v[4], z[4], g[4], dz[4], m[4];
      unpack4(v, o_raw[i]);
      unpack4(z, z_raw[i]);
      unpack4(g, g_raw[i]);
      const float r = rsqrtf(warp_sum(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]) / kHead + eps);
      float dot = 0.0f;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float gate = sigmoid(z[c]), normed = v[c] * r;
        const float n = g[c] * z[c] * gate;
        dz[c] = g[c] * scale[c] * normed * silu_slope(z[c], gate);
        dw[c] += n * normed;
        m[c] = n * scale[c];
        v[c] = normed;
        dot += m[c] * normed;
      }
      const float mean = warp_sum(dot) / kHead;
#pragma unroll
      for (int c = 0; c < 4; ++c) m[c] = r * (m[c] - v[c] * mean);
      store4<true>(d_o + (first + i) * kHead + lane * 4, m);
      store4<kWide>(dproj + z_at[i], dz);
    }
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) sums[warp][lane * 4 + c] = dw[c];
  __syncthreads();
  if (threadIdx.x >= kHead) return;
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) total += sums[i][threadIdx.x];
  partial[i64{blockIdx.x} * kHead + threadIdx.x] = total;
}

}  // namespace

void launch_gated_norm_fwd(bf16* y, const bf16* o, const bf16* proj, const float* w, i64 T, const GdnShape& s,
                           float eps, cudaStream_t stream) {
  require_size(s.value_dim == kHead, "linear_value_head_dim", s.value_dim, "128");
  const i64 rows = T * s.value_heads;
  const auto kernel = s.proj_dim() % 4 == 0 ? gated_norm_fwd_kernel<true> : gated_norm_fwd_kernel<false>;
  kernel<<<ceil_div(rows, kWarps * kRows), kWarps * 32, 0, stream>>>(y, o, proj, w, rows, s.value_heads,
                                                                     s.proj_dim(), s.z_offset(), eps);
  check_launch("gated_norm_fwd");
}

size_t gated_norm_bwd_scratch_bytes() { return size_t{kBackwardBlocks} * kHead * sizeof(float); }

void launch_gated_norm_bwd(bf16* d_o, bf16* dproj, float* dw, const bf16* dy, const bf16* o, const bf16* proj,
                           const float* w, i64 T, const GdnShape& s, float eps, float* scratch,
                           cudaStream_t stream) {
  require_size(s.value_dim == kHead, "linear_value_head_dim", s.value_dim, "128");
  const auto kernel = s.proj_dim() % 4 == 0 ? gated_norm_bwd_kernel<true> : gated_norm_bwd_kernel<false>;
  kernel<<<kBackwardBlocks, kWarps * 32, 0, stream>>>(d_o, dproj, scratch, dy, o, proj, w, T * s.value_heads,
                                                      s.value_heads, s.proj_dim(), s.z_offset(), eps);
  check_launch("gated_norm_bwd");
  launch_reduce_partials(dw, scratch, kBackwardBlocks, kHead, stream);
}

}  // namespace tessera
