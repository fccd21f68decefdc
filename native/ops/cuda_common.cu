#include "ops/cuda_common.cuh"

namespace tessera {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  const std::string message = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) {
    throw EngineError("out_of_memory", message,
                      "Lower the token budget, choose a recompute policy that saves less, or free the GPU.");
  }
  throw EngineError("cuda_error", message,
                    "See the engine's log; a run can be resumed from its last checkpoint.");
}

namespace {

constexpr int kReduceCols = 32, kReduceRows = 16;

// A block sums 32 columns: warp w the rows w, w + 16, ..., then the 16 sums in order.
__global__ void reduce_partials_kernel(float* out, const float* partial, i64 rows, i64 cols, i64 stride) {
  __shared__ float sums[kReduceRows][kReduceCols];
  const i64 col = i64{blockIdx.x} * kReduceCols + threadIdx.x;
  float sum = 0.0f;
  if (col < cols) {
#pragma unroll 8
    for (i64 row = threadIdx.y; row < rows; row += kReduceRows) sum += partial[row * stride + col];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= cols) return;
  float total = 0.0f;
#pragma unroll
  for (int r = 0; r < kReduceRows; ++r) total += sums[r][threadIdx.x];
  out[col] += total;
}

}  // namespace

void launch_reduce_partials(float* out, const float* partial, i64 rows, i64 cols, i64 stride,
                            cudaStream_t stream) {
  const dim3 threads(kReduceCols, kReduceRows);
  reduce_partials_kernel<<<ceil_div(cols, kReduceCols), threads, 0, stream>>>(out, partial, rows, cols,
                                                                              stride);
  check_launch("reduce_partials");
}

void launch_reduce_partials(float* out, const float* partial, i64 rows, i64 cols, cudaStream_t stream) {
  launch_reduce_partials(out, partial, rows, cols, cols, stream);
}

}  // namespace tessera
