// Forward of packed causal attention, D = 256: one block per (64 queries of a sequence, head).
//
//   S = q k^T / 16, causal; P = softmax(S); O = P V; lse = log sum exp S; y = O sigmoid(gate)
//
// Four warps of 16 queries each; keys and values come in tiles of 64, the next keys while P V runs, the values while
// q k^T runs. Online softmax in fp32 (Dao 2023, FlashAttention-2, algorithm 1); P is rounded to bf16 for P V. Query
// blocks are the chunks of the batch, so that a sequence is cut the same way wherever it is packed; the longest blocks of
// the last sequences start first. 96 KB of shared memory, two blocks an SM. Outputs overwrite.
// Reference: attention_reference.cu; check: tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"

namespace tessera::attention {
namespace {

constexpr int kThreads = 128;
constexpr int kBlock = 64;
constexpr int kBlockBytes = kBlock * kHead * 2;
constexpr int kSharedBytes = 3 * kBlockBytes;

__device__ __forceinline__ float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

// Online softmax of the scores s (rows lane / 4 and + 8), which become P; acc is rescaled.
__device__ __forceinline__ void softmax_step(float (&s)[8][4], float (&acc)[32][4], float (&max)[2], float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float m = max[r];
#pragma unroll
    for (int n = 0; n < 8; ++n) m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
    m = quad_max(m);
    const float rescale = exp2_approx((max[r] - m) * (kScale * kLog2e));
    max[r] = m;
    float part = 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float p = exp2_approx((s[n][2 * r + c] - m) * (kScale * kLog2e));
        s[n][2 * r + c] = p;
        part += p;
      }
    }
    sum[r] = sum[r] * rescale + part;
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      acc[n][2 * r] *= rescale;
      acc[n][2 * r + 1] *= rescale;
    }
  }
}

__global__ void __launch_bounds__(kThreads, 2) attention_fwd_kernel(Args args, Outputs out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, q4 = lane % 4;
  const int head = blockIdx.x, kv_head = head / args.group;
  const Chunk chunk = args.chunk[args.num_chunk - 1 - blockIdx.y];
  if (chunk.count == 0) return;
  const int start = args.cu[chunk.seq];
  const Tile<kHead> q(shared_address(shared), lane), k(shared_address(shared) + kBlockBytes, lane),
      v(shared_address(shared) + 2 * kBlockBytes, lane);
  const size_t q_stride = args.q_at(1, 0), k_stride = args.k_at(1, 0);

  load_tile<kBlock, kThreads>(q, args.q + args.q_at(chunk.begin, head), q_stride, chunk.count, thread);
  load_tile<kBlock, kThreads>(k, args.k + args.k_at(start, kv_head), k_stride, chunk.begin + chunk.count - start,
                              thread);
  copy_async_commit();

  float acc[32][4] = {};
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
  for (int key = start; key <= chunk.begin; key += kBlock) {
    const int valid = chunk.begin + chunk.count - key;
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
      load_tile<kBlock, kThreads>(k, args.k + args.k_at(key + kBlock, kv_head), k_stride, valid - kBlock, thread);
    } else {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          if (8 * n + 2 * q4 + r % 2 > 16 * warp + lane / 4 + r / 2 * 8) s[n][r] = -INFINITY;
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

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = 16 * warp + lane / 4 + 8 * r, token = chunk.begin + row;
    const float total = warp_sum<4>(sum[r]), inverse = 1.0f / total;
    if (row >= chunk.count) continue;
    if (q4 == 0) out.lse[args.row_at(token, head)] = max[r] * kScale + logf(total);
    const size_t at = args.q_at(token, head) + 2 * q4;
    const bf16* gate = args.proj + args.gate_at(token, head) + 2 * q4;
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      const float o0 = acc[n][2 * r] * inverse, o1 = acc[n][2 * r + 1] * inverse;
      const u32 z = *reinterpret_cast<const u32*>(gate + 8 * n);
      *reinterpret_cast<u32*>(out.y + at + 8 * n) =
          pack_bf16(o0 * sigmoid(low_float(z)), o1 * sigmoid(high_float(z)));
      if (out.o) *reinterpret_cast<u32*>(out.o + at + 8 * n) = pack_bf16(o0, o1);
    }
  }
}

}  // namespace

void run_fwd(const Args& args, const Outputs& out, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(attention_fwd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
             "attention_fwd");
  attention_fwd_kernel<<<dim3(args.heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(args, out);
  check_launch("attention_fwd");
}

}  // namespace tessera::attention
