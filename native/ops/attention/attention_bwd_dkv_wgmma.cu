// Gradients of keys and values of packed causal attention on Hopper, D = 256: attention_bwd_dkv.cu with
// warpgroup products. Warpgroup 0 computes P^T = exp(K q^T - lse) and dV, warpgroup 1 dP^T = V dO^T, dS^T
// (with P^T handed over in bf16) and dK. Queries come in tiles of 64, double-buffered: 209 KB of shared
// memory, one block an SM. Reference: attention_reference.cu; check: tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"
#include "ops/wgmma.cuh"

namespace tessera::attention {
namespace {

constexpr int kThreads = 256;
constexpr int kBlock = 64;  // keys of a block, and queries of a tile
constexpr int kBlockBytes = kBlock * kHead * 2;
constexpr int kExchangeBarrier = 1;

// Shared memory, in bytes: K, V, two stages of {q, dO}, two buffers of P^T, two of {lse, delta}.
constexpr int kStages = 2 * kBlockBytes;
constexpr int kExchange = kStages + 4 * kBlockBytes;
constexpr int kExchangeBytes = kBlock * kBlock * 2;
constexpr int kRows = kExchange + 2 * kExchangeBytes;
constexpr int kSharedBytes = kRows + 2 * 2 * kBlock * 4;

#ifdef TESSERA_WGMMA

// P^T from scores x (rows keys, columns queries). ahead: query minus key of x[0][0].
__device__ __forceinline__ void make_probabilities(float (&x)[8][4], const float* row_lse, int ahead,
                                                   int q4) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 l = *reinterpret_cast<const float2*>(row_lse + 8 * n + 2 * q4);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const float p = exp2_approx((x[n][r] * kScale - (r % 2 ? l.y : l.x)) * kLog2e);
      x[n][r] = ahead + 8 * n + r % 2 - r / 2 * 8 >= 0 ? p : 0.0f;
    }
  }
}

// dS^T = P^T (dP^T - delta) in place of dP^T.
__device__ __forceinline__ void make_score_gradients(float (&x)[8][4], const uint4* exchange,
                                                     const float* delta, int q4) {
#pragma unroll
  for (int ks = 0; ks < 4; ++ks) {
    const uint4 pairs = exchange[32 * ks];
    const u32 p[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int n = 2 * ks + side;
      const float2 d = *reinterpret_cast<const float2*>(delta + 8 * n + 2 * q4);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        x[n][2 * r] = low_float(p[2 * side + r]) * (x[n][2 * r] - d.x);
        x[n][2 * r + 1] = high_float(p[2 * side + r]) * (x[n][2 * r + 1] - d.y);
      }
    }
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    attention_bwd_dkv_wgmma_kernel(Args args, Gradients out, const float* lse) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, q4 = lane % 4;
  const bool for_values = warp < 4;
  const int key0 = 16 * (warp % 4);
  const int kv_head = blockIdx.x;
  const Chunk chunk = args.chunk[blockIdx.y];
  if (chunk.count == 0) return;
  const int end = args.cu[chunk.seq + 1];
  const u32 base = shared_address(shared);
  load_panels<kBlock, kHead, kThreads>(base, args.k + args.k_at(chunk.begin, kv_head), args.k_at(1, 0),
                                       chunk.count, thread);
  load_panels<kBlock, kHead, kThreads>(base + kBlockBytes, args.proj + args.v_at(chunk.begin, kv_head),
                                       args.proj_dim, chunk.count, thread);

  const int tiles_a_head = (end - chunk.begin + kBlock - 1) / kBlock;
  const int num_tiles = tiles_a_head * args.group;
  const auto load = [&](int tile, int stage) {
    const int head = kv_head * args.group + tile / tiles_a_head;
    const int first = chunk.begin + tile % tiles_a_head * kBlock, valid = end - first;
    const size_t at = args.q_at(first, head);
    const u32 to = base + kStages + stage * 2 * kBlockBytes;
    load_panels<kBlock, kHead, kThreads>(to, args.q + at, args.q_at(1, 0), valid, thread);
    load_panels<kBlock, kHead, kThreads>(to + kBlockBytes, out.d_o + at, args.q_at(1, 0), valid, thread);
    if (thread < 2 * kBlock) {
      const int row = thread % kBlock;
      const bool ok = row < valid;
      const float* src = thread < kBlock ? lse : out.delta;
      copy_async4(base + kRows + (stage * 2 * kBlock + thread) * 4,
                  src + args.row_at(first + (ok ? row : 0), head), ok);
    }
    copy_async_commit();
  };

  float acc[32][4] = {};
  load(0, 0);
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int stage = tile & 1;
    copy_async_wait<0>();
    fence_shared_for_wgmma();
    __syncthreads();
    if (tile + 1 < num_tiles) load(tile + 1, stage ^ 1);
    const u32 q = base + kStages + stage * 2 * kBlockBytes, d_o = q + kBlockBytes;
    const float* rows = reinterpret_cast<const float*>(shared + kRows) + stage * 2 * kBlock;
    uint4* exchange =
        reinterpret_cast<uint4*>(shared + kExchange + stage * kExchangeBytes) + (warp % 4) * 4 * 32 + lane;
    const u32 mine = for_values ? base : base + kBlockBytes, theirs = for_values ? q : d_o;
    float x[8][4];
    wgmma_fence(x);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks)
      wgmma_shared_64(x, k_major<kBlock>(mine, ks), k_major<kBlock>(theirs, ks), ks > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence(x);
    Frag left[4];
    if (for_values) {
      make_probabilities(x, rows, tile % tiles_a_head * kBlock + 2 * q4 - (key0 + lane / 4), q4);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) {
        left[ks] = to_a_frag(x[2 * ks], x[2 * ks + 1]);
        exchange[32 * ks] = make_uint4(left[ks].r[0], left[ks].r[1], left[ks].r[2], left[ks].r[3]);
      }
      asm volatile("bar.arrive %0, %1;" ::"n"(kExchangeBarrier), "n"(kThreads) : "memory");
    } else {
      named_barrier(kExchangeBarrier, kThreads);
      make_score_gradients(x, exchange, rows + kBlock, q4);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) left[ks] = to_a_frag(x[2 * ks], x[2 * ks + 1]);
    }
    const u32 right = for_values ? d_o : q;
    wgmma_fence(acc);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kBlock / 16; ++ks) wgmma_registers_256(acc, left[ks], mn_major<kBlock>(right, ks));
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence(acc);
  }

  const float scale = for_values ? 1.0f : kScale;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = key0 + lane / 4 + 8 * r, token = chunk.begin + row;
    if (row >= chunk.count) continue;
    bf16* dst =
        (for_values ? out.dproj + args.v_at(token, kv_head) : out.dk + args.k_at(token, kv_head)) + 2 * q4;
#pragma unroll
    for (int n = 0; n < 32; ++n)
      *reinterpret_cast<u32*>(dst + 8 * n) = pack_bf16(acc[n][2 * r] * scale, acc[n][2 * r + 1] * scale);
  }
#else
  __trap();  // this build has no code for sm_90a: attention_cuda_tier() must not have chosen this
#endif
}

}  // namespace

void run_bwd_dkv_wgmma(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(attention_bwd_dkv_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes),
             "attention_bwd_dkv_wgmma");
  attention_bwd_dkv_wgmma_kernel<<<dim3(args.kv_heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(
      args, out, lse);
  check_launch("attention_bwd_dkv_wgmma");
}

}  // namespace tessera::attention
