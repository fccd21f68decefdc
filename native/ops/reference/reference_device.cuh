// What the reference kernels share.
#pragma once

#include <algorithm>

#include "ops/reference/reference_ops.h"

namespace tessera::reference {

inline constexpr int kThreads = 128;
inline constexpr int kParts = 64;  // row ranges of a sum over rows

// The shapes of ops/backend.h with their sums callable on the device.
struct Gdn : GdnShape {
  Gdn(const GdnShape& s) : GdnShape(s) {}
  __device__ int group() const { return value_heads / key_heads; }
  __device__ i64 keys() const { return i64{key_heads} * key_dim; }
  __device__ i64 values() const { return i64{value_heads} * value_dim; }
  __device__ i64 conv_dim() const { return 2 * keys() + values(); }
  __device__ i64 z_offset() const { return conv_dim(); }
  __device__ i64 b_offset() const { return conv_dim() + values(); }
  __device__ i64 a_offset() const { return b_offset() + value_heads; }
  __device__ i64 proj_dim() const { return a_offset() + value_heads; }
};
struct Attn : AttnShape {
  Attn(const AttnShape& s) : AttnShape(s) {}
  __device__ i64 k_offset() const { return 2 * i64{heads} * head_dim; }
  __device__ i64 proj_dim() const { return k_offset() + 2 * i64{kv_heads} * head_dim; }
};

__device__ inline i64 global_thread() { return i64{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline i64 all_threads() { return i64{gridDim.x} * blockDim.x; }

// Without the approximations of the fast kernels.
__device__ inline float exact_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ inline float exact_silu(float x) { return x * exact_sigmoid(x); }
__device__ inline float exact_silu_slope(float x) {
  const float s = exact_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}
__device__ inline float exact_softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

template <typename Real>
__device__ float inverse_rms(const Real* x, i64 n, float eps, float* scratch) {
  float sum = 0.0f;
  for (i64 i = threadIdx.x; i < n; i += kThreads) {
    const float v = static_cast<float>(x[i]);
    sum += v * v;
  }
  return 1.0f / sqrtf(block_sum(sum, scratch) / static_cast<float>(n) + eps);
}

// A block sums 128 columns over one range of the rows, in double: what remains of a gradient that nearly
// cancels over the tokens should be the model's, not the sum's.
template <typename Term>
__global__ void sum_columns_kernel(float* partial, i64 rows, i64 cols, Term term) {
  const i64 col = i64{blockIdx.x} * kThreads + threadIdx.x;
  if (col >= cols) return;
  const i64 share = (rows + kParts - 1) / kParts, begin = blockIdx.y * share;
  double sum = 0.0;
  for (i64 row = begin; row < min(rows, begin + share); ++row) sum += term(row, col);
  partial[blockIdx.y * cols + col] = static_cast<float>(sum);
}

// out[cols] += sum over rows of term(row, col), in a fixed order. partial: kParts * cols floats.
template <typename Term>
void sum_columns(float* out, i64 rows, i64 cols, float* partial, Term term, cudaStream_t stream) {
  sum_columns_kernel<<<dim3(ceil_div(cols, kThreads), kParts), kThreads, 0, stream>>>(partial, rows, cols,
                                                                                      term);
  launch_reduce_partials(out, partial, kParts, cols, stream);
}

}  // namespace tessera::reference
