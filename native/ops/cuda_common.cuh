// What the CUDA kernels share: 16-byte access to bf16, fixed-order reductions, checks of launches and shapes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <array>
#include <string>

#include "core/error.h"
#include "ops/backend.h"

namespace tessera {

using bf16 = __nv_bfloat16;

void check_cuda(cudaError_t status, const char* what);  // throws EngineError cuda_error naming `what`

// The error, if any, of the launch just made; `op` names the operation in the message.
inline void check_launch(const char* op) { check_cuda(cudaGetLastError(), op); }

// Refuses a size that a kernel does not serve: "linear_value_dim is 16; CUDA kernels serve 128".
inline void require_size(bool ok, const char* what, i64 got, const char* served) {
  if (ok) return;
  throw EngineError("unsupported_size",
                    std::string(what) + " is " + std::to_string(got) + "; the CUDA kernels serve " + served,
                    "Use the cpu device for this model.");
}

inline bool aligned16(const void* p) { return (reinterpret_cast<size_t>(p) & 15) == 0; }
inline unsigned ceil_div(i64 a, i64 b) { return static_cast<unsigned>((a + b - 1) / b); }

// Sums that cross thread blocks: every block leaves a row of partials, then
// out[c] += sum over r of partial[r * cols + c], r ascending in a fixed tree. cols may be any number.
void launch_reduce_partials(float* out, const float* partial, i64 rows, i64 cols, cudaStream_t stream);
// The same for three sums in one launch, each of a slice of the columns of partial [rows, stride].
struct PartialSum {
  float* out;
  const float* partial;
  i64 rows, cols, stride;
};
using PartialSums = std::array<PartialSum, 3>;
void launch_reduce_partials(const PartialSums& sums, cudaStream_t stream);

#ifdef __CUDACC__

// ---- vectors: N bf16 as floats

__device__ __forceinline__ void unpack8(float (&out)[8], uint4 raw) {
  const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = __uint_as_float(words[i] << 16);
    out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

// p: 16-byte aligned.
__device__ __forceinline__ void load8(float (&out)[8], const bf16* p) {
  unpack8(out, *reinterpret_cast<const uint4*>(p));
}
// What nobody reads again soon: its place in the cache is the next to be taken.
__device__ __forceinline__ uint4 load8_last_raw(const bf16* p) {
  return __ldcs(reinterpret_cast<const uint4*>(p));
}

__device__ __forceinline__ unsigned pack2(float lo, float hi) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ void store8(bf16* p, const float (&v)[8]) {
  *reinterpret_cast<uint4*>(p) =
      make_uint4(pack2(v[0], v[1]), pack2(v[2], v[3]), pack2(v[4], v[5]), pack2(v[6], v[7]));
}

// Four bf16; aligned to 8 bytes with kWide, else to 4 (rows of proj when the number of value heads is odd).
template <bool kWide>
__device__ __forceinline__ uint2 load4_raw(const bf16* p) {
  if constexpr (kWide) return *reinterpret_cast<const uint2*>(p);
  const unsigned* words = reinterpret_cast<const unsigned*>(p);
  return make_uint2(words[0], words[1]);
}
template <bool kWide>
__device__ __forceinline__ uint2 load4_last_raw(const bf16* p) {
  if constexpr (kWide) return __ldcs(reinterpret_cast<const uint2*>(p));
  const unsigned* words = reinterpret_cast<const unsigned*>(p);
  return make_uint2(__ldcs(words), __ldcs(words + 1));
}

__device__ __forceinline__ void unpack4(float (&out)[4], uint2 raw) {
  out[0] = __uint_as_float(raw.x << 16);
  out[1] = __uint_as_float(raw.x & 0xffff0000u);
  out[2] = __uint_as_float(raw.y << 16);
  out[3] = __uint_as_float(raw.y & 0xffff0000u);
}

template <bool kWide>
__device__ __forceinline__ void store4(bf16* p, const float (&v)[4]) {
  const uint2 raw = make_uint2(pack2(v[0], v[1]), pack2(v[2], v[3]));
  if constexpr (kWide) {
    *reinterpret_cast<uint2*>(p) = raw;
  } else {
    reinterpret_cast<unsigned*>(p)[0] = raw.x;
    reinterpret_cast<unsigned*>(p)[1] = raw.y;
  }
}

__device__ __forceinline__ void load8f(float (&out)[8], const float* p) {
  const float4 a = reinterpret_cast<const float4*>(p)[0], b = reinterpret_cast<const float4*>(p)[1];
  out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
  out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
}

// ---- reductions

// Sum over kLanes adjacent lanes, the same in each of them.
template <int kLanes = 32>
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}

// Sum over the block, the same in every thread. scratch: 33 floats of shared memory, not reused before the
// next
// __syncthreads().
__device__ __forceinline__ float block_sum(float v, float* scratch) {
  const int thread = threadIdx.x, warp = thread / 32, warps = (blockDim.x + 31) / 32;
  v = warp_sum(v);
  if (thread % 32 == 0) scratch[warp] = v;
  __syncthreads();
  if (warp == 0) {
    const float total = warp_sum(thread < warps ? scratch[thread] : 0.0f);
    if (thread == 0) scratch[32] = total;
  }
  __syncthreads();
  return scratch[32];
}

// ---- functions

// The special-function unit's 2^x and 1/x as they are, without the care for denormals that costs more than
// they do.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float sigmoid(float x) {
  return fast_reciprocal(1.0f + fast_exp2(-1.4426950408889634f * x));
}
__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }
// d silu(x) / dx, given s = sigmoid(x)
__device__ __forceinline__ float silu_slope(float x, float s) { return s * (1.0f + x * (1.0f - s)); }
// log(1 + exp(x)) as transformers computes it: x itself past 20
__device__ __forceinline__ float softplus(float x) { return x > 20.0f ? x : log1pf(__expf(x)); }

#endif
}  // namespace tessera
