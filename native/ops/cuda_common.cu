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

// A block sums 32 columns: warp w the rows w, w + 16, ..., then the 16 sums in order. The columns of all sums
// are numbered through, each sum's rounded up to whole blocks.
__global__ void reduce_partials_kernel(PartialSums all) {
  __shared__ float sums[kReduceRows][kReduceCols];
  unsigned block = blockIdx.x;
  PartialSum one = all[0];
#pragma unroll
  for (int i = 1; i < 3; ++i) {
    const unsigned blocks = static_cast<unsigned>((one.cols + kReduceCols - 1) / kReduceCols);
    if (block < blocks) break;
    block -= blocks;
    one = all[i];
  }
  const i64 col = i64{block} * kReduceCols + threadIdx.x;
  float sum = 0.0f;
  if (col < one.cols) {
#pragma unroll 8
    for (i64 row = threadIdx.y; row < one.rows; row += kReduceRows)
      sum += one.partial[row * one.stride + col];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= one.cols) return;
  float total = 0.0f;
#pragma unroll
  for (int r = 0; r < kReduceRows; ++r) total += sums[r][threadIdx.x];
  one.out[col] += total;
}

// One sum of many rows: a block takes 8 columns (a sector), all of a thread's rows are under way at once.
// Row r belongs to r % 64; a warp adds its four, then the 16 warps' sums follow in order.
constexpr int kTallCols = 8, kTallRows = 64, kTallLoads = 8, kTallWarps = kTallCols * kTallRows / 32;

__global__ void __launch_bounds__(kTallCols* kTallRows) reduce_tall_kernel(PartialSum one) {
  __shared__ float sums[kTallWarps][kTallCols];
  const int thread = threadIdx.x, first = thread / kTallCols;
  const i64 col = i64{blockIdx.x} * kTallCols + thread % kTallCols;
  float sum = 0.0f;
  for (i64 row = first; row < one.rows; row += kTallRows * kTallLoads) {
    float v[kTallLoads];
#pragma unroll
    for (int i = 0; i < kTallLoads; ++i) {
      const i64 at = row + i * kTallRows;
      v[i] = at < one.rows && col < one.cols ? one.partial[at * one.stride + col] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kTallLoads; ++i) sum += v[i];
  }
#pragma unroll
  for (int step = 16; step >= kTallCols; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (thread % 32 < kTallCols) sums[thread / 32][thread % 32] = sum;
  __syncthreads();
  if (thread >= kTallCols || col >= one.cols) return;
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kTallWarps; ++warp) total += sums[warp][thread];
  one.out[col] += total;
}

}  // namespace

void launch_reduce_partials(const PartialSums& sums, cudaStream_t stream) {
  unsigned blocks = 0;
  for (const PartialSum& one : sums) blocks += ceil_div(one.cols, kReduceCols);
  reduce_partials_kernel<<<blocks, dim3(kReduceCols, kReduceRows), 0, stream>>>(sums);
  check_launch("reduce_partials");
}

void launch_reduce_partials(float* out, const float* partial, i64 rows, i64 cols, cudaStream_t stream) {
  reduce_tall_kernel<<<ceil_div(cols, kTallCols), kTallCols * kTallRows, 0, stream>>>(
      PartialSum{out, partial, rows, cols, cols});
  check_launch("reduce_partials");
}

}  // namespace tessera
