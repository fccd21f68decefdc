#include "ops/rows/rows_cuda.h"

namespace tessera {
namespace {

__global__ void gather_rows_kernel(bf16* dst, const bf16* src, const i32* row, i64 H) {
  const i64 from = row[blockIdx.x];
  const uint4* in = reinterpret_cast<const uint4*>(src + from * H);
  uint4* out = reinterpret_cast<uint4*>(dst + i64{blockIdx.x} * H);
  for (int i = threadIdx.x; i < H / 8; i += blockDim.x) out[i] = from < 0 ? uint4{0, 0, 0, 0} : in[i];
}

__global__ void scatter_rows_kernel(bf16* dst, const bf16* src, const i32* row, i64 H) {
  const i64 to = row[blockIdx.x];
  if (to < 0) return;
  const uint4* in = reinterpret_cast<const uint4*>(src + i64{blockIdx.x} * H);
  uint4* out = reinterpret_cast<uint4*>(dst + to * H);
  for (int i = threadIdx.x; i < H / 8; i += blockDim.x) out[i] = in[i];
}

}  // namespace

void launch_gather_rows(bf16* dst, const bf16* src, const i32* row, i64 rows, i64 H, cudaStream_t stream) {
  require_size(H % 8 == 0, "hidden_size", H, "multiples of 8");
  gather_rows_kernel<<<static_cast<unsigned>(rows), 128, 0, stream>>>(dst, src, row, H);
  check_launch("gather_rows");
}

void launch_scatter_rows(bf16* dst, const bf16* src, const i32* row, i64 rows, i64 T, i64 H,
                         cudaStream_t stream) {
  require_size(H % 8 == 0, "hidden_size", H, "multiples of 8");
  check_cuda(cudaMemsetAsync(dst, 0, T * H * sizeof(bf16), stream), "scatter_rows");
  scatter_rows_kernel<<<static_cast<unsigned>(rows), 128, 0, stream>>>(dst, src, row, H);
  check_launch("scatter_rows");
}

}  // namespace tessera
