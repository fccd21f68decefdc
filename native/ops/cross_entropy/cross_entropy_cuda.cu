#include <cooperative_groups.h>

#include "ops/cross_entropy/cross_entropy_cuda.h"

namespace tessera {
namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 1024;
constexpr int kCluster = 8;  // blocks that share a row
constexpr int kClusterThreads = 512;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
constexpr int kClusterBlocks =
    2;  // blocks on a multiprocessor: 64 registers a thread, which only sm_90 manages
#else
constexpr int kClusterBlocks = 1;
#endif
constexpr int kHeld = 8;  // vectors of 8 logits that a thread of the cluster kernel keeps: V <= 262,144
constexpr float kLog2e = 1.4426950408889634f;

// A maximum and the sum of exp(z - maximum) beside it.
struct Partial {
  float max, sum;
};

__device__ __forceinline__ Partial merge(Partial a, Partial b) {
  const float max = fmaxf(a.max, b.max);
  if (max == -INFINITY) return {max, 0.0f};
  return {max, a.sum * exp2f((a.max - max) * kLog2e) + b.sum * exp2f((b.max - max) * kLog2e)};
}

// The same in every thread. scratch: 33 of them, free again after the next barrier.
__device__ __forceinline__ Partial block_merge(Partial mine, Partial* scratch) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    mine = merge(
        mine, {__shfl_xor_sync(0xffffffffu, mine.max, step), __shfl_xor_sync(0xffffffffu, mine.sum, step)});
  }
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = scratch[threadIdx.x];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      mine = merge(
          mine, {__shfl_xor_sync(0xffffffffu, mine.max, step), __shfl_xor_sync(0xffffffffu, mine.sum, step)});
    }
    if (threadIdx.x == 0) scratch[32] = mine;
  }
  __syncthreads();
  return scratch[32];
}

__device__ __forceinline__ Partial of_vector(const float (&v)[8]) {
  float max = v[0];
#pragma unroll
  for (int c = 1; c < 8; ++c) max = fmaxf(max, v[c]);
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < 8; ++c) sum += exp2f((v[c] - max) * kLog2e);
  return {max, sum};
}

__device__ __forceinline__ void to_gradient(float (&v)[8], float lse, i64 col, i32 label) {
#pragma unroll
  for (int c = 0; c < 8; ++c) v[c] = exp2f((v[c] - lse) * kLog2e) - (col + c == label ? 1.0f : 0.0f);
}

__device__ __forceinline__ void zero_row(bf16* row, i64 first, i64 step, i64 vectors) {
  for (i64 i = first; i < vectors; i += step) reinterpret_cast<uint4*>(row)[i] = uint4{0, 0, 0, 0};
}

__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(bf16* z, float* nll, const i32* labels, i64 V, bool with_grad) {
  __shared__ Partial scratch[33];
  bf16* row = z + i64{blockIdx.x} * V;
  const i32 label = labels[blockIdx.x];
  const i64 vectors = V / 8;
  if (label < 0) {
    if (threadIdx.x == 0) nll[blockIdx.x] = 0.0f;
    if (with_grad) zero_row(row, threadIdx.x, kThreads, vectors);
    return;
  }
  Partial mine{-INFINITY, 0.0f};
#pragma unroll 4
  for (i64 i = threadIdx.x; i < vectors; i += kThreads) {
    float v[8];
    load8(v, row + i * 8);
    mine = merge(mine, of_vector(v));
  }
  const Partial total = block_merge(mine, scratch);
  const float lse = total.max + logf(total.sum);
  if (threadIdx.x == 0) nll[blockIdx.x] = lse - __bfloat162float(row[label]);
  if (!with_grad) return;
  __syncthreads();  // the label's logit is read before its place is written
#pragma unroll 4
  for (i64 i = threadIdx.x; i < vectors; i += kThreads) {
    float v[8];
    load8(v, row + i * 8);
    to_gradient(v, lse, i * 8, label);
    store8(row + i * 8, v);
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// The block's maximum, the same in every thread; slot: one float a warp.
__device__ __forceinline__ float block_max(float v, float* slot) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) slot[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_max(slot[threadIdx.x % (kClusterThreads / 32)]);
}

// A NaN among the logits passes over the maximum but not over the sum. The exponent's argument is one fused
// multiply-add: z log2(e) - reference log2(e).
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kClusterThreads, kClusterBlocks)
    cross_entropy_cluster_kernel(bf16* z, float* nll, const i32* labels, i64 V, bool with_grad) {
  constexpr int kBlockWarps = kClusterThreads / 32;
  __shared__ float maxima[kBlockWarps], sums[kBlockWarps];
  __shared__ Partial shared_total;
  const cg::cluster_group cluster = cg::this_cluster();
  const i64 r = blockIdx.x / kCluster;
  bf16* row = z + r * V;
  const i32 label = labels[r];
  const int vectors = static_cast<int>(V / 8), first = cluster.block_rank() * kClusterThreads + threadIdx.x;
  constexpr int kStep = kCluster * kClusterThreads;
  if (label < 0) {
    if (first == 0) nll[r] = 0.0f;
    if (with_grad) zero_row(row, first, kStep, vectors);
    return;
  }
  uint4 held[kHeld];
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    constexpr unsigned kLowest = 0xff80ff80u;  // two times -infinity
    held[k] = first + k * kStep < vectors ? reinterpret_cast<const uint4*>(row)[first + k * kStep]
                                          : uint4{kLowest, kLowest, kLowest, kLowest};
  }
  __nv_bfloat162 most = __float2bfloat162_rn(-INFINITY);
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&held[k]);
#pragma unroll
    for (int i = 0; i < 4; ++i) most = __hmax2(most, pairs[i]);
  }
  const float max = block_max(fmaxf(__low2float(most), __high2float(most)), maxima);
  // A block of a small vocabulary may hold nothing.
  const float shift = max == -INFINITY ? 0.0f : -max * kLog2e;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    float v[8];
    load8(v, reinterpret_cast<const bf16*>(&held[k]));
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += fast_exp2(fmaf(v[c], kLog2e, shift));
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kBlockWarps; ++i) sum += sums[i];
    shared_total = {max, sum};
  }
  cluster.sync();
  Partial total = *cluster.map_shared_rank(&shared_total, 0);
#pragma unroll 1
  for (int other = 1; other < kCluster; ++other)
    total = merge(total, *cluster.map_shared_rank(&shared_total, other));
  const float lse = total.max + logf(total.sum);
  if (first == 0) nll[r] = lse - __bfloat162float(row[label]);
  cluster.sync();  // before a block leaves or writes: its total and the label's logit have been read
  if (!with_grad) return;
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int i = first + k * kStep;
    if (i >= vectors) continue;
    float v[8];
    load8(v, reinterpret_cast<const bf16*>(&held[k]));
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] = fast_exp2(fmaf(v[c], kLog2e, -lse * kLog2e));
    if (label / 8 == i) {
#pragma unroll
      for (int c = 0; c < 8; ++c) v[c] -= label % 8 == c ? 1.0f : 0.0f;
    }
    store8(row + i64{i} * 8, v);
  }
}
#else
__global__ void cross_entropy_cluster_kernel(bf16*, float*, const i32*, i64, bool) {}
#endif

__global__ void __launch_bounds__(kThreads) loss_sum_kernel(StepResult* result, const float* nll, i64 rows) {
  __shared__ double sums[kThreads];
  double sum = 0.0;
  for (i64 i = threadIdx.x; i < rows; i += kThreads) sum += nll[i];
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) result->loss_sum += sums[0];
}

}  // namespace

bool cross_entropy_cluster_serves(i64 V) {
  return V % 8 == 0 && V / 8 <= i64{kCluster} * kClusterThreads * kHeld;
}

void launch_cross_entropy(bf16* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad,
                          bool cluster, cudaStream_t stream) {
  require_size(V % 8 == 0, "vocab_size", V, "multiples of 8");
  if (cluster) {
    require_size(cross_entropy_cluster_serves(V), "vocab_size", V, "at most 262144 in the cluster kernel");
    cross_entropy_cluster_kernel<<<static_cast<unsigned>(rows * kCluster), kClusterThreads, 0, stream>>>(
        z, nll, label, V, with_grad);
  } else {
    cross_entropy_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(z, nll, label, V, with_grad);
  }
  check_launch("cross_entropy");
}

void launch_loss_sum(StepResult* result, const float* nll, i64 rows, cudaStream_t stream) {
  loss_sum_kernel<<<1, kThreads, 0, stream>>>(result, nll, rows);
  check_launch("loss_sum");
}

}  // namespace tessera
