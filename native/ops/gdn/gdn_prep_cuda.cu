#include "ops/gdn/gdn_prep_tile.cuh"

namespace tessera {
namespace {

using namespace prep;

// A block takes one head and a tile of tokens, whose inputs and 3 before them it first brings to shared
// memory; a warp then takes eight consecutive tokens.
template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
    gdn_prep_fwd_kernel(bf16* qkv, const bf16* proj, const float* conv_w, const i32* pos, i32 T,
                        int normed_heads, i64 row, i64 conv_dim) {
  __shared__ uint2 u[kTile + kHalo][32];
  __shared__ int reach[kTile];
  const int head = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const i32 begin = blockIdx.y * kTile;
  copy_rows_async<kWide>(u, proj + head * kHead, row, begin - kHalo, kTile + kHalo, T);
  fill_reach(reach, pos, begin, kTile, T);
  float4 w[4];
  load_taps(w, conv_w, head * kHead + lane * 4);
  wait_for_copies();

  const int first = warp * kTokensOfWarp;
  float window[kTaps][4] = {};
#pragma unroll
  for (int j = 0; j < kHalo; ++j) slide(window, u[first + j][lane]);
#pragma unroll
  for (int i = 0; i < kTokensOfWarp; ++i) {
    if (reach[first + i] < 0) return;
    slide(window, u[first + i + kHalo][lane]);
    float v[4];
    convolve(v, window, w, reach[first + i]);
    float square = 0.0f;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      v[c] = silu(v[c]);
      square += v[c] * v[c];
    }
    if (head < normed_heads) {
      const float rho = rsqrtf(warp_sum(square) + kNormEps);
#pragma unroll
      for (int c = 0; c < 4; ++c) v[c] *= rho;
    }
    store4<true>(qkv + (begin + first + i) * conv_dim + head * kHead + lane * 4, v);
  }
}

}  // namespace

void launch_gdn_prep_fwd(bf16* qkv, const bf16* proj, const float* conv_w, const Batch& b, const GdnShape& s,
                         cudaStream_t stream) {
  require_shape(s);
  const dim3 grid(2 * s.key_heads + s.value_heads, ceil_div(b.T, kTile));
  const auto kernel = wide_rows(s) ? gdn_prep_fwd_kernel<true> : gdn_prep_fwd_kernel<false>;
  kernel<<<grid, kWarps * 32, 0, stream>>>(qkv, proj, conv_w, b.pos, b.T, 2 * s.key_heads, s.proj_dim(),
                                           s.conv_dim());
  check_launch("gdn_prep_fwd");
}

}  // namespace tessera
