// Gradients of queries of packed causal attention on Hopper, D = 256: attention_bwd_dq.cu with warpgroup
// products. One warpgroup a block (64 queries, one head), keys and values in tiles of 32, two blocks an SM.
// The tile of keys serves twice: its columns are summed over in q k^T, its rows in dS k. 96 KB of shared
// memory. Reference: attention_reference.cu; check: tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"
#include "ops/wgmma.cuh"

namespace tessera::attention {
namespace {

constexpr int kThreads = 128;
constexpr int kQueries = 64;
constexpr int kKeys = 32;
constexpr int kQueryBytes = kQueries * kHead * 2;
constexpr int kKeyBytes = kKeys * kHead * 2;
constexpr int kSharedBytes = 2 * kQueryBytes + 2 * kKeyBytes;

__global__ void __launch_bounds__(kThreads, 2)
    attention_bwd_dq_wgmma_kernel(Args args, Gradients out, const float* lse) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, q4 = lane % 4;
  const int head = blockIdx.x, kv_head = head / args.group;
  const Chunk chunk = args.chunk[args.num_chunk - 1 - blockIdx.y];
  if (chunk.count == 0) return;
  const int start = args.cu[chunk.seq], end = chunk.begin + chunk.count;
  const u32 q = shared_address(shared), d_o = q + kQueryBytes, k = d_o + kQueryBytes, v = k + kKeyBytes;
  const size_t q_stride = args.q_at(1, 0), k_stride = args.k_at(1, 0), at = args.q_at(chunk.begin, head);
  load_panels<kQueries, kHead, kThreads>(q, args.q + at, q_stride, chunk.count, thread);
  load_panels<kQueries, kHead, kThreads>(d_o, out.d_o + at, q_stride, chunk.count, thread);

  const int row0 = 16 * warp + lane / 4;
  float row_lse[2], delta[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const bool ok = row0 + 8 * r < chunk.count;
    row_lse[r] = ok ? lse[args.row_at(chunk.begin + row0 + 8 * r, head)] : 0.0f;
    delta[r] = ok ? out.delta[args.row_at(chunk.begin + row0 + 8 * r, head)] : 0.0f;
  }

  float acc[32][4] = {};
  for (int key = start; key < end; key += kKeys) {
    load_panels<kKeys, kHead, kThreads>(k, args.k + args.k_at(key, kv_head), k_stride, end - key, thread);
    load_panels<kKeys, kHead, kThreads>(v, args.proj + args.v_at(key, kv_head), args.proj_dim, end - key,
                                        thread);
    copy_async_commit();
    copy_async_wait<0>();
    fence_shared_for_wgmma();
    __syncthreads();
    float s[4][4], dp[4][4];
    wgmma_fence(s);
    wgmma_fence(dp);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) {
      wgmma_shared_32(s, k_major<kQueries>(q, ks), k_major<kKeys>(k, ks), ks > 0);
      wgmma_shared_32(dp, k_major<kQueries>(d_o, ks), k_major<kKeys>(v, ks), ks > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence(s);
    wgmma_fence(dp);
    const int ahead = chunk.begin + row0 - key - 2 * q4;  // query minus key, of this thread's first element
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float p = exp2_approx((s[n][r] * kScale - row_lse[r / 2]) * kLog2e);
        s[n][r] = ahead + r / 2 * 8 - 8 * n - r % 2 >= 0 ? p * (dp[n][r] - delta[r / 2]) : 0.0f;
      }
    }
    const Frag ds[2] = {to_a_frag(s[0], s[1]), to_a_frag(s[2], s[3])};
    wgmma_fence(acc);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kKeys / 16; ++ks) wgmma_registers_256(acc, ds[ks], mn_major<kKeys>(k, ks));
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence(acc);
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 8 * r;
    if (row >= chunk.count) continue;
    bf16* dst = out.dq + args.q_at(chunk.begin + row, head) + 2 * q4;
#pragma unroll
    for (int n = 0; n < 32; ++n)
      *reinterpret_cast<u32*>(dst + 8 * n) = pack_bf16(acc[n][2 * r] * kScale, acc[n][2 * r + 1] * kScale);
  }
#else
  __trap();  // this build has no code for sm_90a: attention_cuda_tier() must not have chosen this
#endif
}

}  // namespace

void run_bwd_dq_wgmma(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(attention_bwd_dq_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes),
             "attention_bwd_dq_wgmma");
  attention_bwd_dq_wgmma_kernel<<<dim3(args.heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(
      args, out, lse);
  check_launch("attention_bwd_dq_wgmma");
}

}  // namespace tessera::attention
