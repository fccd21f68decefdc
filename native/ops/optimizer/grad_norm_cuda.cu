#include "ops/optimizer/optimizer_cuda.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr i64 kBlockElements = 32768;  // a block's share: one partial each
constexpr int kSegmentsPerLaunch = 64;

struct Runs {
  const void* grad[kSegmentsPerLaunch];
  i64 count[kSegmentsPerLaunch];
  unsigned first_block[kSegmentsPerLaunch + 1];  // blocks before this segment
  unsigned is_f32[kSegmentsPerLaunch];
  int segments;
};

template <typename T>
__device__ float sum_of_squares(const T* grad, i64 count) {
  float sum = 0.0f;
  const i64 vectors = (reinterpret_cast<size_t>(grad) & 15) == 0 ? count / 8 : 0;
#pragma unroll 4
  for (i64 i = threadIdx.x; i < vectors; i += kThreads) {
    float v[8];
    if constexpr (sizeof(T) == 4)
      load8f(v, grad + i * 8);
    else
      load8(v, grad + i * 8);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += v[c] * v[c];
  }
  for (i64 i = vectors * 8 + threadIdx.x; i < count; i += kThreads) {
    const float v = static_cast<float>(grad[i]);
    sum += v * v;
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads)
    grad_square_kernel(float* partial, const __grid_constant__ Runs runs) {
  __shared__ float scratch[33];
  int s = 0;
  while (s + 1 < runs.segments && blockIdx.x >= runs.first_block[s + 1]) ++s;
  const i64 begin = i64{blockIdx.x - runs.first_block[s]} * kBlockElements;
  const i64 count = min(kBlockElements, runs.count[s] - begin);
  float sum = runs.is_f32[s] ? sum_of_squares(static_cast<const float*>(runs.grad[s]) + begin, count)
                             : sum_of_squares(static_cast<const bf16*>(runs.grad[s]) + begin, count);
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// In thread 0.
__device__ void finish_norm(StepResult* result, double squares, const StepScalars* scalars) {
  const float norm = scalars->inv_tokens * static_cast<float>(sqrt(squares));
  const float share = scalars->clip > 0.0f ? fminf(1.0f, scalars->clip / (norm + 1e-6f)) : 1.0f;
  result->grad_norm = norm;
  result->scale = scalars->inv_tokens * share;
  if (!isfinite(squares) || !isfinite(norm) || !isfinite(result->loss_sum)) result->refused = 1;
  result->finite = result->refused == 0;
}

__global__ void finish_norm_kernel(StepResult* result, const StepScalars* scalars) {
  finish_norm(result, result->squares, scalars);
}

// scalars null: the sum alone.
__global__ void __launch_bounds__(1024)
    norm_finish_kernel(StepResult* result, const float* partial, i64 count, const StepScalars* scalars) {
  __shared__ double sums[1024];
  double sum = 0.0;
#pragma unroll 8
  for (i64 i = threadIdx.x; i < count; i += 1024) sum += partial[i];
  sums[threadIdx.x] = sum;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  result->squares = sums[0];
  if (scalars) finish_norm(result, sums[0], scalars);
}

}  // namespace

size_t grad_norm_scratch_bytes(i64 elements, i64 segments) {
  return (elements / kBlockElements + segments) * sizeof(float);
}

void launch_grad_squares(StepResult* result, const std::vector<AdamSegment>& segments, float* scratch,
                         size_t scratch_bytes, cudaStream_t stream) {
  launch_grad_norm(result, segments, nullptr, scratch, scratch_bytes, stream);
}

void launch_finish_norm(StepResult* result, const StepScalars* scalars, cudaStream_t stream) {
  finish_norm_kernel<<<1, 1, 0, stream>>>(result, scalars);
  check_launch("finish_norm");
}

void launch_grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                      const StepScalars* scalars, float* scratch, size_t scratch_bytes, cudaStream_t stream) {
  i64 blocks = 0;
  for (size_t first = 0; first < segments.size(); first += kSegmentsPerLaunch) {
    Runs runs{};
    for (size_t i = first; i < segments.size() && runs.segments < kSegmentsPerLaunch; ++i) {
      const AdamSegment& segment = segments[i];
      const int at = runs.segments++;
      runs.grad[at] = segment.grad;
      runs.count[at] = segment.count;
      runs.is_f32[at] = segment.grad_dtype == DType::f32;
      runs.first_block[at + 1] = runs.first_block[at] + ceil_div(segment.count, kBlockElements);
    }
    const unsigned here = runs.first_block[runs.segments];
    if (here == 0) continue;
    if ((blocks + here) * sizeof(float) > scratch_bytes) {
      throw EngineError("internal", "grad_norm: the workspace is too small for its partial sums");
    }
    grad_square_kernel<<<here, kThreads, 0, stream>>>(scratch + blocks, runs);
    check_launch("grad_norm");
    blocks += here;
  }
  norm_finish_kernel<<<1, 1024, 0, stream>>>(result, scratch, blocks, scalars);
  check_launch("grad_norm (finish)");
}

}  // namespace tessera
