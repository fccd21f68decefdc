// What the kernels of the gated delta rule share.
#pragma once

#include "ops/backend.h"
#include "ops/cuda_common.cuh"
#include "ops/tensor_core.cuh"

namespace tessera::gdn {

inline constexpr int kHead = 128;                           // K = V, the head size of the portable kernels
inline constexpr int kHalf = kHead / 2;                     // value columns of a tile
inline constexpr float kQueryScale = 0.08838834764831845f;  // 1 / sqrt(128), applied to q
inline constexpr int kTileBytes = kChunk * kHead * 2;       // [64 tokens, 128]
inline constexpr int kHalfTileBytes = kChunk * kHalf * 2;   // [64 tokens, 64]
inline constexpr int kStateHalfBytes = kHead * kHalf * 2;   // [128 key dims, 64]

// Device pointers and sizes of one call; see ops/backend.h for the shapes. Real: bf16, or float in the
// reference kernels.
template <typename Real>
struct BasicArgs {
  const Real* qkv;
  const float* g;
  const float* beta;
  const Real* ar;
  const Chunk* chunk;
  const ChunkRange* seq_chunk;
  const i32* cu;
  int num_chunk;
  // Chunks. Examples of more than `longest_whole` are worked on in segments (gdn_segments.cuh) by the Hopper
  // kernels, those of `segment` chunks; `long_examples`: the run may have some.
  int longest_whole, segment;
  bool long_examples;
  int key_heads, value_heads, group;
  int key_dim, value_dim;  // of the reference kernels; 128 in the portable ones
  size_t conv_dim, values;

  __device__ const Real* q_row(int token, int key_head) const {
    return qkv + token * conv_dim + key_head * key_dim;
  }
  __device__ const Real* k_row(int token, int key_head) const {
    return qkv + token * conv_dim + (key_heads + key_head) * key_dim;
  }
  __device__ const Real* v_row(int token, int value_head) const {
    return qkv + token * conv_dim + 2 * key_heads * key_dim + value_head * value_dim;
  }
  // Index of (chunk, value head): times 64 for gates, 64 * 64 for ar, K * V for states.
  __device__ size_t slot(int chunk_index, int value_head) const {
    return static_cast<size_t>(chunk_index) * value_heads + value_head;
  }
};
using Args = BasicArgs<bf16>;

inline constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ float fast_exp(float x) { return exp2_approx(x * kLog2e); }
// exp(a - b) for a row a at or after b in the chunk; the cap keeps the masked half finite.
__device__ __forceinline__ float decay(float a, float b) { return fast_exp(fminf(a - b, 0.0f)); }
// exp(a - b) where `keep`, else 0; without a branch.
__device__ __forceinline__ float masked_decay(bool keep, float a, float b) {
  return exp2_approx(keep ? (a - b) * kLog2e : -INFINITY);
}

// The rows of A = D * Ar (entry (i, j): exp(G_i - G_j) Ar_ij), times column_scale_j where it is not null, as
// A fragments. `f` holds Ar[i0.., 16ks..] with rows i = row, row + 8 and columns 16ks + 2q + {0, 1, 8, 9}.
__device__ __forceinline__ Frag decayed_rows(Frag f, const float* g, const float* column_scale, int row,
                                             int k0, int q) {
  const float gi[2] = {g[row], g[row + 8]};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int j = k0 + half * 8 + 2 * q;
    const float2 gj = *reinterpret_cast<const float2*>(g + j);
    const float2 scale = *reinterpret_cast<const float2*>(column_scale + j);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      f.r[half * 2 + r] =
          scale_bf16(f.r[half * 2 + r], decay(gi[r], gj.x) * scale.x, decay(gi[r], gj.y) * scale.y);
    }
  }
  return f;
}

// Scales the columns k0 + 2q.. of an A fragment by scale[column].
__device__ __forceinline__ Frag scale_columns(Frag f, const float* scale, int k0, int q) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float2 s = *reinterpret_cast<const float2*>(scale + k0 + half * 8 + 2 * q);
    f.r[half * 2] = scale_bf16(f.r[half * 2], s.x, s.y);
    f.r[half * 2 + 1] = scale_bf16(f.r[half * 2 + 1], s.x, s.y);
  }
  return f;
}

}  // namespace tessera::gdn
