#include "ops/embedding/embedding_cuda.h"

namespace tessera {
namespace {

constexpr int kWarps = 8;

__global__ void embedding_fwd_kernel(bf16* x, const bf16* table, const i32* tok, i64 H) {
  const i64 t = blockIdx.x;
  const uint4* from = reinterpret_cast<const uint4*>(table + tok[t] * H);
  uint4* to = reinterpret_cast<uint4*>(x + t * H);
  for (int i = threadIdx.x; i < H / 8; i += blockDim.x) to[i] = from[i];
}

// A block owns one id and 256 columns: warp w sums those of its positions that are w modulo 8, in order (8
// columns a lane), then the warps in order. By position, not by rank among the id's positions: which of them
// are added to which depends on no other example, so that one whose gradient is zero moves no bit.
template <typename Grad>
__global__ void embedding_bwd_kernel(Grad* d_table, const bf16* dx, const i32* unique_id,
                                     const i32* unique_ptr, const i32* unique_pos, i64 H) {
  const i32 id = unique_id[blockIdx.x];
  if (id < 0) return;
  __shared__ float sums[kWarps][256];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const i64 col = blockIdx.y * 256 + lane * 8;
  const i32 begin = unique_ptr[blockIdx.x], end = unique_ptr[blockIdx.x + 1];
  float acc[8] = {};
  constexpr int kLoads = 4;  // in flight
  for (i32 i = begin; i < end; i += 32) {
    const i32 position = i + lane < end ? unique_pos[i + lane] : -1;
    unsigned mine = __ballot_sync(0xffffffffu, position >= 0 && position % kWarps == warp);
    while (mine) {
      float v[kLoads][8] = {};
#pragma unroll
      for (int n = 0; n < kLoads; ++n) {
        const i64 t = __shfl_sync(0xffffffffu, position, mine ? __ffs(mine) - 1 : 0);
        if (mine && col < H) load8(v[n], dx + t * H + col);
        mine &= mine - 1;
      }
#pragma unroll
      for (int n = 0; n < kLoads; ++n) {
#pragma unroll
        for (int c = 0; c < 8; ++c) acc[c] += v[n][c];
      }
    }
  }
#pragma unroll
  for (int c = 0; c < 8; ++c) sums[warp][lane * 8 + c] = acc[c];
  __syncthreads();
  const i64 mine = blockIdx.y * 256 + threadIdx.x;
  if (mine >= H) return;
  float total = 0.0f;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += sums[w][threadIdx.x];
  Grad* out = d_table + id * H + mine;
  *out = static_cast<Grad>(static_cast<float>(*out) + total);
}

}  // namespace

void launch_embedding_fwd(bf16* x, const bf16* table, const i32* tok, i64 T, i64 H, cudaStream_t stream) {
  require_size(H % 8 == 0, "hidden_size", H, "multiples of 8");
  const int threads = H >= 2048 ? 256 : 128;
  embedding_fwd_kernel<<<static_cast<unsigned>(T), threads, 0, stream>>>(x, table, tok, H);
  check_launch("embedding_fwd");
}

void launch_embedding_bwd(void* d_table, DType grad, const bf16* dx, const Batch& b, i64 H,
                          cudaStream_t stream) {
  require_size(H % 8 == 0, "hidden_size", H, "multiples of 8");
  const dim3 grid(static_cast<unsigned>(b.num_unique_cap), ceil_div(H, 256));
  if (grad == DType::f32) {
    embedding_bwd_kernel<<<grid, kWarps * 32, 0, stream>>>(static_cast<float*>(d_table), dx, b.unique_id,
                                                           b.unique_ptr, b.unique_pos, H);
  } else {
    embedding_bwd_kernel<<<grid, kWarps * 32, 0, stream>>>(static_cast<bf16*>(d_table), dx, b.unique_id,
                                                           b.unique_ptr, b.unique_pos, H);
  }
  check_launch("embedding_bwd");
}

}  // namespace tessera
