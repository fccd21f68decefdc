// What the kernels of packed causal attention share.
#pragma once

#include "ops/backend.h"
#include "ops/cuda_common.cuh"
#include "ops/tensor_core.cuh"

namespace tessera::attention {

inline constexpr int kHead = 256;  // D of the portable kernels
inline constexpr float kScale = 1.0f / 16.0f;
inline constexpr float kLog2e = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// Device pointers and sizes of one call; see ops/backend.h for the shapes. Real: bf16, or float in the
// reference kernels.
template <typename Real>
struct BasicArgs {
  const Real* q;     // [T, NH, D]
  const Real* k;     // [T, NKV, D]
  const Real* proj;  // gate and v slices
  const Chunk* chunk;
  const i32* cu;
  const i32* pos;
  const i32* seq_end;
  int tokens, num_seq, num_chunk, heads, kv_heads, group, head_dim;
  size_t proj_dim, v_offset;

  __device__ size_t q_at(int token, int head) const {
    return (static_cast<size_t>(token) * heads + head) * head_dim;
  }
  __device__ size_t k_at(int token, int kv_head) const {
    return (static_cast<size_t>(token) * kv_heads + kv_head) * head_dim;
  }
  __device__ size_t gate_at(int token, int head) const {
    return token * proj_dim + (2 * head + 1) * static_cast<size_t>(head_dim);
  }
  __device__ size_t v_at(int token, int kv_head) const {
    return token * proj_dim + v_offset + kv_head * static_cast<size_t>(head_dim);
  }
  // Of lse and delta, [NH, T].
  __device__ size_t row_at(int token, int head) const { return static_cast<size_t>(head) * tokens + token; }
};
using Args = BasicArgs<bf16>;

__device__ __forceinline__ float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

// Online softmax of the scores s (rows lane / 4 and + 8), which become P; acc is rescaled.
__device__ __forceinline__ void softmax_step(float (&s)[8][4], float (&acc)[32][4], float (&max)[2],
                                             float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float m = max[r];
#pragma unroll
    for (int n = 0; n < 8; ++n) m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
    m = quad_max(m);
    const float rescale = exp2_approx((max[r] - m) * (kScale * kLog2e));
    max[r] = m;
    float part = 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float p = exp2_approx((s[n][2 * r + c] - m) * (kScale * kLog2e));
        s[n][2 * r + c] = p;
        part += p;
      }
    }
    sum[r] = sum[r] * rescale + part;
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      acc[n][2 * r] *= rescale;
      acc[n][2 * r + 1] *= rescale;
    }
  }
}

// Removes the keys after the query from the diagonal block: row is that of s[.][0] in the block.
__device__ __forceinline__ void mask_after(float (&s)[8][4], int row, int q4) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int r = 0; r < 4; ++r)
      if (8 * n + 2 * q4 + r % 2 > row + r / 2 * 8) s[n][r] = -INFINITY;
}

// y = o * sigmoid(gate); o may be null.
template <typename Real>
struct BasicOutputs {
  Real* y;     // [T, NH, D]
  Real* o;     // [T, NH, D]
  float* lse;  // [NH, T]
};
using Outputs = BasicOutputs<bf16>;

// Ends the forward of a warp's 16 queries: normalises, gates, stores. Fragments go through 16 KB of shared
// memory of the warp's own (fp32, 32-byte pieces swizzled by row), so that whole rows are read and written 16
// bytes a lane.
__device__ __forceinline__ void store_output(const Args& args, const Outputs& out, const Chunk& chunk,
                                             int head, int first_row, float* scratch,
                                             const float (&acc)[32][4], const float (&max)[2],
                                             const float (&sum)[2]) {
  const int lane = threadIdx.x % 32, q4 = lane % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = lane / 4 + 8 * r;
    const float total = warp_sum<4>(sum[r]), inverse = 1.0f / total;
    if (q4 == 0 && first_row + row < chunk.count)
      out.lse[args.row_at(chunk.begin + first_row + row, head)] = max[r] * kScale + logf(total);
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      *reinterpret_cast<float2*>(scratch + row * kHead + ((n ^ (row & 7)) * 8) + 2 * q4) =
          make_float2(acc[n][2 * r] * inverse, acc[n][2 * r + 1] * inverse);
    }
  }
  __syncwarp();
  const int rows = min(16, chunk.count - first_row);
  constexpr int kAtOnce = 4;  // rows whose gates are on their way together
#pragma unroll 1
  for (int row0 = 0; row0 < rows; row0 += kAtOnce) {
    float gate[kAtOnce][8];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      load8(gate[i],
            args.proj + args.gate_at(chunk.begin + first_row + min(row0 + i, rows - 1), head) + 8 * lane);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int row = row0 + i, token = chunk.begin + first_row + row;
      if (row >= rows) break;
      float o[8];
      load8f(o, scratch + row * kHead + (lane ^ (row & 7)) * 8);
      if (out.o) store8(out.o + args.q_at(token, head) + 8 * lane, o);
#pragma unroll
      for (int j = 0; j < 8; ++j) o[j] *= sigmoid(gate[i][j]);
      store8(out.y + args.q_at(token, head) + 8 * lane, o);
    }
  }
}

}  // namespace tessera::attention
