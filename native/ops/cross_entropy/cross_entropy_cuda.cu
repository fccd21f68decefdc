#include <cooperative_groups.h>

#include "ops/cross_entropy/cross_entropy_cuda.h"
#include "ops/tensor_core.cuh"

namespace tessera {
namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 1024;
constexpr int kCluster = 8;  // blocks that share a row
constexpr int kClusterThreads = 512;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
constexpr int kClusterBlocks = 3;  // on a multiprocessor, 64 KB of shared memory each
#else
constexpr int kClusterBlocks = 1;
#endif
constexpr int kRowThreads = 256, kRowVocabulary = 16384;  // a block for a row of so few logits
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

// The block's maximum, the same in every thread; slot: one float a warp.
template <int kBlockThreads>
__device__ __forceinline__ float block_max(float v, float* slot) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) slot[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_max(slot[threadIdx.x % (kBlockThreads / 32)]);
}

// A row that a block of few threads keeps in registers, kRowHeld vectors of 8 logits a thread: one read, one
// write, and many rows at once on a multiprocessor.
template <int kRowHeld>
__global__ void __launch_bounds__(kRowThreads)
    cross_entropy_row_kernel(bf16* z, float* nll, const i32* labels, i64 V, bool with_grad) {
  constexpr int kRowWarps = kRowThreads / 32;
  __shared__ float maxima[kRowWarps], sums[kRowWarps];
  bf16* row = z + i64{blockIdx.x} * V;
  const i32 label = labels[blockIdx.x];
  const int vectors = static_cast<int>(V / 8), first = threadIdx.x;
  if (label < 0) {
    if (threadIdx.x == 0) nll[blockIdx.x] = 0.0f;
    if (with_grad) zero_row(row, first, kRowThreads, vectors);
    return;
  }
  const float label_logit = __bfloat162float(row[label]);  // before a barrier, after which it is overwritten
  float v[kRowHeld][8], max = -INFINITY;
#pragma unroll
  for (int k = 0; k < kRowHeld; ++k) {
    if (first + k * kRowThreads < vectors) {
      load8(v[k], row + i64{first + k * kRowThreads} * 8);
    } else {
#pragma unroll
      for (int c = 0; c < 8; ++c) v[k][c] = -INFINITY;
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) max = fmaxf(max, v[k][c]);
  }
  max = block_max<kRowThreads>(max, maxima);
  const float shift = max == -INFINITY ? 0.0f : -max * kLog2e;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kRowHeld; ++k)
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += v[k][c] = fast_exp2(fmaf(v[k][c], kLog2e, shift));
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kRowWarps; ++warp) sum += sums[warp];
  if (threadIdx.x == 0) nll[blockIdx.x] = max + logf(sum) - label_logit;
  if (!with_grad) return;
  const float to_probability = 1.0f / sum;
#pragma unroll
  for (int k = 0; k < kRowHeld; ++k) {
    const int i = first + k * kRowThreads;
    if (i >= vectors) continue;
#pragma unroll
    for (int c = 0; c < 8; ++c) v[k][c] = v[k][c] * to_probability - (label == 8 * i + c ? 1.0f : 0.0f);
    store8(row + i64{i} * 8, v[k]);
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// A NaN among the logits passes over the maximum but not over the sum. The exponent's argument is one fused
// multiply-add: z log2(e) - reference log2(e). An exponential is taken once, for the sum, and kept in bf16 in
// its logit's place in shared memory for the gradient, which is rounded to bf16 once more. A thread reads
// there only what it wrote itself.
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kClusterThreads, kClusterBlocks)
    cross_entropy_cluster_kernel(bf16* z, float* nll, const i32* labels, i64 V, bool with_grad) {
  constexpr int kBlockWarps = kClusterThreads / 32;
  extern __shared__ uint4 held[];
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
  const int count = (vectors - first + kStep - 1) / kStep;  // of this thread's vectors; none where negative
  uint4 *mine = held + threadIdx.x, *theirs = reinterpret_cast<uint4*>(row) + first;
#pragma unroll 4
  for (int k = 0; k < count; ++k)
    copy_async16(shared_address(mine + k * kClusterThreads), theirs + k * kStep);
  copy_async_commit();
  copy_async_wait<0>();
  __nv_bfloat162 most = __float2bfloat162_rn(-INFINITY);
#pragma unroll 4
  for (int k = 0; k < count; ++k) {
    const uint4 vector = mine[k * kClusterThreads];
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&vector);
#pragma unroll
    for (int i = 0; i < 4; ++i) most = __hmax2(most, pairs[i]);
  }
  const float max = block_max<kClusterThreads>(fmaxf(__low2float(most), __high2float(most)), maxima);
  // A block of a small vocabulary may hold nothing.
  const float shift = max == -INFINITY ? 0.0f : -max * kLog2e;
  float sum = 0.0f;
#pragma unroll 2
  for (int k = 0; k < count; ++k) {
    bf16* at = reinterpret_cast<bf16*>(mine + k * kClusterThreads);
    float v[8];
    load8(v, at);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      v[c] = fast_exp2(fmaf(v[c], kLog2e, shift));
      sum += v[c];
    }
    store8(at, v);
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
  // Each warp takes the blocks' partials at once, one a lane; all follow lane 0's order.
  Partial total = *cluster.map_shared_rank(&shared_total, threadIdx.x % kCluster);
#pragma unroll
  for (int step = 1; step < kCluster; step *= 2) {
    total = merge(total, {__shfl_xor_sync(0xffffffffu, total.max, step),
                          __shfl_xor_sync(0xffffffffu, total.sum, step)});
  }
  const float lse = __shfl_sync(0xffffffffu, total.max + logf(total.sum), 0);
  const float label_logit = __bfloat162float(row[label]);
  if (first == 0) nll[r] = lse - label_logit;
  cluster.sync();  // before a block leaves or writes: its total and the label's logit have been read
  if (!with_grad) return;
  const float to_probability = fast_exp2(fmaf(-lse, kLog2e, -shift));
#pragma unroll 2
  for (int k = 0; k < count; ++k) {
    float v[8];
    load8(v, reinterpret_cast<const bf16*>(mine + k * kClusterThreads));
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] *= to_probability;
    store8(reinterpret_cast<bf16*>(theirs + k * kStep), v);
  }
  // From the logit itself: near 1 a rounded probability would lose the difference.
  if (label / 8 % kStep == first)
    row[label] = __float2bfloat16(fast_exp2((label_logit - lse) * kLog2e) - 1.0f);
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
  if (V <= kRowVocabulary) {
    constexpr int kMost = kRowVocabulary / 8 / kRowThreads;
    const auto kernel =
        V <= kRowVocabulary / 4 ? cross_entropy_row_kernel<kMost / 4> : cross_entropy_row_kernel<kMost>;
    kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, stream>>>(z, nll, label, V, with_grad);
  } else if (cluster) {
    require_size(cross_entropy_cluster_serves(V), "vocab_size", V, "at most 262144 in the cluster kernel");
    const size_t shared =
        size_t{ceil_div(V / 8, kCluster * kClusterThreads)} * kClusterThreads * sizeof(uint4);
    check_cuda(cudaFuncSetAttribute(cross_entropy_cluster_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared)),
               "cross_entropy");
    cross_entropy_cluster_kernel<<<static_cast<unsigned>(rows * kCluster), kClusterThreads, shared, stream>>>(
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
