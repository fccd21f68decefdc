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

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Device pointers and sizes of one call; see ops/backend.h for the shapes.
struct Args {
  const bf16* q;     // [T, NH, D]
  const bf16* k;     // [T, NKV, D]
  const bf16* proj;  // gate and v slices
  const Chunk* chunk;
  const i32* cu;
  const i32* pos;
  const i32* seq_end;
  int tokens, num_chunk, heads, kv_heads, group, head_dim;
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

}  // namespace tessera::attention
