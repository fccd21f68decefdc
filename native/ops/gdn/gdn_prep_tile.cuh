// What the convolution's forward and backward kernels share: a head's tile of inputs in shared memory.
#pragma once

#include "ops/gdn/gdn_prep_cuda.h"

namespace tessera::prep {

constexpr int kHead = 128;  // channels of a head; a lane holds four
constexpr int kTaps = 4, kHalo = kTaps - 1;
constexpr int kTile = 64;  // tokens of a block
constexpr int kWarps = 8, kTokensOfWarp = kTile / kWarps;
constexpr float kNormEps = 1e-6f;

inline void require_shape(const GdnShape& s) {
  require_size(s.key_dim == kHead, "linear_key_head_dim", s.key_dim, "128");
  require_size(s.value_dim == kHead, "linear_value_head_dim", s.value_dim, "128");
  require_size(s.conv_taps == kTaps, "linear_conv_kernel_dim", s.conv_taps, "4");
}

// Rows of proj are 8-byte aligned only where the number of value heads is even.
inline bool wide_rows(const GdnShape& s) { return s.proj_dim() % 4 == 0; }

#ifdef __CUDACC__

// A lane's four channels from global to shared memory, behind the block's back; zeros where not `valid`.
template <bool kWide>
__device__ __forceinline__ void copy4_async(uint2* shared, const bf16* global, bool valid) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (kWide) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(global), "r"(valid ? 8 : 0));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(valid ? 4 : 0));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + 4), "l"(global + 2),
                 "r"(valid ? 4 : 0));
  }
}

__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

// Rows of one head, tokens first .. first + rows - 1, to tile[row][lane].
template <bool kWide>
__device__ __forceinline__ void copy_rows_async(uint2 (*tile)[32], const bf16* head, i64 stride, i32 first,
                                                int rows, i32 T) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = warp; i < rows; i += kWarps) {
    const i32 t = first + i;
    const bool valid = t >= 0 && t < T;
    copy4_async<kWide>(&tile[i][lane], head + (valid ? t : 0) * stride + lane * 4, valid);
  }
}

// How many inputs before it each token begin + i reaches, at most 3: its place in its sequence; -1 past the
// last token.
__device__ __forceinline__ void fill_reach(int* reach, const i32* pos, i32 begin, int count, i32 T) {
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    reach[i] = begin + i < T ? min(pos[begin + i], kHalo) : -1;
}

__device__ __forceinline__ void load_taps(float4 (&w)[4], const float* conv_w, int channel) {
#pragma unroll
  for (int c = 0; c < 4; ++c) w[c] = reinterpret_cast<const float4*>(conv_w)[channel + c];
}

// out[c] = sum_j w[c][j] u_{t-3+j}, window[j] = u_{t-3+j}; taps that the token does not reach are left out.
__device__ __forceinline__ void convolve(float (&out)[4], const float (&window)[kTaps][4],
                                         const float4 (&w)[4], int reach) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    float sum = w[c].w * window[3][c];
    if (reach >= 1) sum += w[c].z * window[2][c];
    if (reach >= 2) sum += w[c].y * window[1][c];
    if (reach >= 3) sum += w[c].x * window[0][c];
    out[c] = sum;
  }
}

__device__ __forceinline__ void slide(float (&window)[kTaps][4], uint2 next) {
#pragma unroll
  for (int j = 0; j < kTaps - 1; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) window[j][c] = window[j + 1][c];
  }
  unpack4(window[kTaps - 1], next);
}

#endif
}  // namespace tessera::prep
