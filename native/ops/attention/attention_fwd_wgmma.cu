// Forward of packed causal attention on Hopper, D = 256: attention_fwd.cu with warpgroup products. One
// warpgroup a block (64 queries, one head), keys and values in tiles of 64, two blocks an SM, each computing
// while the other takes its softmax. 96 KB of shared memory. Reference: attention_reference.cu; check:
// tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"
#include "ops/wgmma.cuh"

namespace tessera::attention {
namespace {

constexpr int kThreads = 128;
constexpr int kBlock = 64;
constexpr int kBlockBytes = kBlock * kHead * 2;
constexpr int kSharedBytes = 3 * kBlockBytes;

__global__ void __launch_bounds__(kThreads, 2) attention_fwd_wgmma_kernel(Args args, Outputs out) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, q4 = lane % 4;
  const int head = blockIdx.x, kv_head = head / args.group;
  const Chunk chunk = args.chunk[args.num_chunk - 1 - blockIdx.y];
  if (chunk.count == 0) return;
  const int start = args.cu[chunk.seq];
  const u32 q = shared_address(shared), k = q + kBlockBytes, v = k + kBlockBytes;
  const size_t k_stride = args.k_at(1, 0);

  load_panels<kBlock, kHead, kThreads>(q, args.q + args.q_at(chunk.begin, head), args.q_at(1, 0), chunk.count,
                                       thread);
  load_panels<kBlock, kHead, kThreads>(k, args.k + args.k_at(start, kv_head), k_stride,
                                       chunk.begin + chunk.count - start, thread);
  copy_async_commit();

  float acc[32][4] = {};
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
  for (int key = start; key <= chunk.begin; key += kBlock) {
    const int valid = chunk.begin + chunk.count - key;
    copy_async_wait<0>();
    fence_shared_for_wgmma();
    __syncthreads();
    load_panels<kBlock, kHead, kThreads>(v, args.proj + args.v_at(key, kv_head), args.proj_dim, valid,
                                         thread);
    copy_async_commit();

    float s[8][4];
    wgmma_fence(s);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks)
      wgmma_shared_64(s, k_major<kBlock>(q, ks), k_major<kBlock>(k, ks), ks > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence(s);
    __syncthreads();
    if (key < chunk.begin) {
      load_panels<kBlock, kHead, kThreads>(k, args.k + args.k_at(key + kBlock, kv_head), k_stride,
                                           valid - kBlock, thread);
    } else {
      mask_after(s, 16 * warp + lane / 4, q4);
    }
    copy_async_commit();
    softmax_step(s, acc, max, sum);
    Frag p[4];
#pragma unroll
    for (int ks = 0; ks < kBlock / 16; ++ks) p[ks] = to_a_frag(s[2 * ks], s[2 * ks + 1]);
    copy_async_wait<1>();
    fence_shared_for_wgmma();
    __syncthreads();
    wgmma_fence(acc);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kBlock / 16; ++ks) wgmma_registers_256(acc, p[ks], mn_major<kBlock>(v, ks));
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence(acc);
  }
  // All warps are past their last reads of the queries and keys.
  store_output(args, out, chunk, head, 16 * warp, reinterpret_cast<float*>(shared) + warp * 16 * kHead, acc,
               max, sum);
#else
  __trap();  // this build has no code for sm_90a: attention_cuda_tier() must not have chosen this
#endif
}

}  // namespace

void run_fwd_wgmma(const Args& args, const Outputs& out, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(attention_fwd_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes),
             "attention_fwd_wgmma");
  attention_fwd_wgmma_kernel<<<dim3(args.heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(args, out);
  check_launch("attention_fwd_wgmma");
}

}  // namespace tessera::attention
