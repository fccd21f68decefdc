// Forward of packed causal attention, D = 256: one block per (64 queries of a sequence, head).
//
//   S = q k^T / 16, causal; P = softmax(S); O = P V; lse = log sum exp S; y = O sigmoid(gate)
//
// Four warps of 16 queries each; keys and values come in tiles of 64, the next keys while P V runs, the
// values while q k^T runs. Online softmax in fp32 (Dao 2023, FlashAttention-2, algorithm 1); P is rounded to
// bf16 for P V. Query blocks are the chunks of the batch, so that a sequence is cut the same way wherever it
// is packed; the longest blocks of the last sequences start first. 96 KB of shared memory, two blocks an SM.
// Outputs overwrite. Reference: attention_reference.cu; check: tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"

namespace tessera::attention {
namespace {

constexpr int kThreads = 128;
constexpr int kBlock = 64;
constexpr int kBlockBytes = kBlock * kHead * 2;
constexpr int kSharedBytes = 3 * kBlockBytes;

__global__ void __launch_bounds__(kThreads, 2) attention_fwd_kernel(Args args, Outputs out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  int thread = threadIdx.x;
  const int warp = thread / 32;
  const int head = blockIdx.x, kv_head = head / args.group;
  const Chunk chunk = args.chunk[args.num_chunk - 1 - blockIdx.y];
  if (chunk.count == 0) return;
  const int start = args.cu[chunk.seq];
  const u32 base = shared_address(shared);
  const size_t q_stride = args.q_at(1, 0), k_stride = args.k_at(1, 0);

  load_tile<kBlock, kThreads>(Tile<kHead>(base, thread % 32), args.q + args.q_at(chunk.begin, head), q_stride,
                              chunk.count, thread);
  load_tile<kBlock, kThreads>(Tile<kHead>(base + kBlockBytes, thread % 32),
                              args.k + args.k_at(start, kv_head), k_stride, chunk.begin + chunk.count - start,
                              thread);
  copy_async_commit();

  float acc[32][4] = {};
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
  for (int key = start; key <= chunk.begin; key += kBlock) {
    const int valid = chunk.begin + chunk.count - key;
    thread = opaque(thread);
    const int lane = thread % 32, q4 = lane % 4;
    const Tile<kHead> q(base, lane), k(base + kBlockBytes, lane), v(base + 2 * kBlockBytes, lane);
    copy_async_wait<0>();
    __syncthreads();
    load_tile<kBlock, kThreads>(v, args.proj + args.v_at(key, kv_head), args.proj_dim, valid, thread);
    copy_async_commit();

    float s[8][4] = {};
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) {
      const Frag a = q.a(16 * warp, 16 * ks);
#pragma unroll
      for (int n = 0; n < 4; ++n) mma_pair(s[2 * n], s[2 * n + 1], a, k.b_trans(16 * ks, 16 * n));
    }
    __syncthreads();
    if (key < chunk.begin) {
      load_tile<kBlock, kThreads>(k, args.k + args.k_at(key + kBlock, kv_head), k_stride, valid - kBlock,
                                  thread);
    } else {
      mask_after(s, 16 * warp + lane / 4, q4);
    }
    copy_async_commit();
    softmax_step(s, acc, max, sum);
    copy_async_wait<1>();
    __syncthreads();
#pragma unroll
    for (int ks = 0; ks < kBlock / 16; ++ks) {
      const Frag p = to_a_frag(s[2 * ks], s[2 * ks + 1]);
#pragma unroll
      for (int n = 0; n < 16; ++n) mma_pair(acc[2 * n], acc[2 * n + 1], p, v.b(16 * ks, 16 * n));
    }
  }

  // All warps are past their last reads of the queries and keys.
  store_output(args, out, chunk, head, 16 * warp, reinterpret_cast<float*>(shared) + warp * 16 * kHead, acc,
               max, sum);
}

}  // namespace

void run_fwd(const Args& args, const Outputs& out, cudaStream_t stream) {
  check_cuda(
      cudaFuncSetAttribute(attention_fwd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
      "attention_fwd");
  attention_fwd_kernel<<<dim3(args.heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(args, out);
  check_launch("attention_fwd");
}

}  // namespace tessera::attention
