// Gradients of keys and values of packed causal attention, D = 256: one block per (64 keys of a sequence, kv
// head), which runs over the queries of all heads of the group, so that no sum crosses blocks.
//
//   P = exp(S - lse),  dV = P^T dO,  dP = dO V^T,  dS = P (dP - delta),  dK = dS^T q / 16
//
// Everything is computed transposed (keys are the rows): then P^T and dS^T are A fragments without leaving
// the registers. Warps 0-3 (16 keys each) hold K in registers and compute P^T and dV; warps 4-7 hold V and
// compute dP^T, take P^T from their partner through shared memory (bf16) and compute dS^T and dK. Queries
// come in tiles of 32, double-buffered. 74 KB of shared memory, one block an SM. dk and the v slice of dproj
// are overwritten. Reference: attention_reference.cu; check: tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"

namespace tessera::attention {
namespace {

constexpr int kThreads = 256;
constexpr int kKeys = 64;
constexpr int kQueries = 32;
constexpr int kTileBytes = kQueries * kHead * 2;
constexpr int kExchangeBarrier = 1;

// Shared memory, in bytes: two stages of {q, dO, lse, delta}, then two buffers of P^T. K and V pass through
// the stages.
constexpr int kStageBytes = 2 * kTileBytes;
constexpr int kExchange = 2 * kStageBytes;
constexpr int kRows = kExchange + 2 * kKeys * kQueries * 2;
constexpr int kSharedBytes = kRows + 2 * 2 * kQueries * 4;

// The 16 x 32 product rows [16 keys, 256] (fragments) times queries^T.
__device__ __forceinline__ void key_query_product(const Frag (&keys)[16], const Tile<kHead>& queries,
                                                  float (&out)[4][4]) {
#pragma unroll
  for (int n = 0; n < 4; ++n) out[n][0] = out[n][1] = out[n][2] = out[n][3] = 0.0f;
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks) {
    mma_pair(out[0], out[1], keys[ks], queries.b_trans(16 * ks, 0));
    mma_pair(out[2], out[3], keys[ks], queries.b_trans(16 * ks, 16));
  }
}

// acc [16 keys, 256] += x [16 keys, 32 queries] times queries
__device__ __forceinline__ void accumulate(const float (&x)[4][4], const Tile<kHead>& queries,
                                           float (&acc)[32][4]) {
#pragma unroll
  for (int ks = 0; ks < kQueries / 16; ++ks) {
    const Frag a = to_a_frag(x[2 * ks], x[2 * ks + 1]);
#pragma unroll
    for (int n = 0; n < 16; ++n) mma_pair(acc[2 * n], acc[2 * n + 1], a, queries.b(16 * ks, 16 * n));
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    attention_bwd_dkv_kernel(Args args, Gradients out, const float* lse) {
  extern __shared__ __align__(1024) unsigned char shared[];
  int thread = threadIdx.x, lane = thread % 32;
  const int warp = thread / 32, q4 = lane % 4;
  const bool for_values = warp < 4;
  const int key0 = 16 * (warp % 4);
  const int kv_head = blockIdx.x;
  const Chunk chunk = args.chunk[blockIdx.y];
  if (chunk.count == 0) return;
  const u32 base = shared_address(shared);

  Frag keys[16];  // K of warps 0-3, V of warps 4-7
  {
    const Tile<kHead> k(base, lane), v(base + kStageBytes, lane);
    load_tile<kKeys, kThreads>(k, args.k + args.k_at(chunk.begin, kv_head), args.k_at(1, 0), chunk.count,
                               thread);
    load_tile<kKeys, kThreads>(v, args.proj + args.v_at(chunk.begin, kv_head), args.proj_dim, chunk.count,
                               thread);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    const Tile<kHead> mine(base + (for_values ? 0 : kStageBytes), lane);
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) keys[ks] = mine.a(key0, 16 * ks);
    __syncthreads();
  }

  const int tiles_a_head = (args.cu[chunk.seq + 1] - chunk.begin + kQueries - 1) / kQueries;
  const auto load = [&](int tile, int stage) {
    const int head = static_cast<int>(blockIdx.x) * args.group + tile / tiles_a_head;
    const int first = args.chunk[blockIdx.y].begin + tile % tiles_a_head * kQueries,
              valid = args.cu[args.chunk[blockIdx.y].seq + 1] - first;
    const size_t at = args.q_at(first, head);
    const u32 to = base + stage * kStageBytes;
    load_tile<kQueries, kThreads>(Tile<kHead>(to, lane), args.q + at, args.q_at(1, 0), valid, thread);
    load_tile<kQueries, kThreads>(Tile<kHead>(to + kTileBytes, lane), out.d_o + at, args.q_at(1, 0), valid,
                                  thread);
    if (thread < 2 * kQueries) {
      const int row = thread % kQueries;
      const bool ok = row < valid;
      const float* src = thread < kQueries ? lse : out.delta;
      copy_async4(base + kRows + (stage * 2 * kQueries + thread) * 4,
                  src + args.row_at(first + (ok ? row : 0), head), ok);
    }
  };

  float acc[32][4] = {};
  load(0, 0);
  copy_async_commit();
  for (int tile = 0; tile < tiles_a_head * args.group; ++tile) {
    const int stage = tile & 1;
    thread = opaque(thread);
    lane = thread % 32;
    copy_async_wait<0>();
    __syncthreads();
    if (tile + 1 < tiles_a_head * args.group) load(tile + 1, stage ^ 1);
    copy_async_commit();
    const Tile<kHead> q(base + stage * kStageBytes, lane), d_o(base + stage * kStageBytes + kTileBytes, lane);
    const float* rows = reinterpret_cast<const float*>(shared + kRows) + stage * 2 * kQueries;
    uint4* exchange = reinterpret_cast<uint4*>(shared + kExchange + stage * kKeys * kQueries * 2) +
                      (thread / 32 % 4 * 2) * 32 + lane;
    float x[4][4];
    key_query_product(keys, Tile<kHead>(for_values ? q.base : d_o.base, lane), x);
    if (for_values) {
      // Query minus key, of this thread's first element; negative where the key lies after the query.
      const int ahead = tile % tiles_a_head * kQueries + lane % 4 * 2 - (thread / 32 % 4 * 16 + lane / 4);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float2 l = *reinterpret_cast<const float2*>(rows + 8 * n + 2 * q4);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float p = exp2_approx((x[n][r] * kScale - (r % 2 ? l.y : l.x)) * kLog2e);
          x[n][r] = ahead + 8 * n + r % 2 - r / 2 * 8 >= 0 ? p : 0.0f;
        }
      }
      const Frag lo = to_a_frag(x[0], x[1]), hi = to_a_frag(x[2], x[3]);
      exchange[0] = make_uint4(lo.r[0], lo.r[1], lo.r[2], lo.r[3]);
      exchange[32] = make_uint4(hi.r[0], hi.r[1], hi.r[2], hi.r[3]);
      asm volatile("bar.arrive %0, %1;" ::"n"(kExchangeBarrier), "n"(kThreads) : "memory");
      accumulate(x, d_o, acc);
    } else {
      named_barrier(kExchangeBarrier, kThreads);
      const uint4 pairs[2] = {exchange[0], exchange[32]};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u32 p[4] = {pairs[half].x, pairs[half].y, pairs[half].z, pairs[half].w};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const int n = 2 * half + side;
          const float2 delta = *reinterpret_cast<const float2*>(rows + kQueries + 8 * n + 2 * q4);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            x[n][2 * r] = low_float(p[2 * side + r]) * (x[n][2 * r] - delta.x);
            x[n][2 * r + 1] = high_float(p[2 * side + r]) * (x[n][2 * r + 1] - delta.y);
          }
        }
      }
      accumulate(x, q, acc);
    }
  }

  const Chunk mine = args.chunk[blockIdx.y];  // read again: the loop has no registers to spare
  const float scale = for_values ? 1.0f : kScale;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = key0 + lane / 4 + 8 * r, token = mine.begin + row;
    if (row >= mine.count) continue;
    bf16* dst =
        (for_values ? out.dproj + args.v_at(token, kv_head) : out.dk + args.k_at(token, kv_head)) + 2 * q4;
#pragma unroll
    for (int n = 0; n < 32; ++n)
      *reinterpret_cast<u32*>(dst + 8 * n) = pack_bf16(acc[n][2 * r] * scale, acc[n][2 * r + 1] * scale);
  }
}

}  // namespace

void run_bwd_dkv(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(attention_bwd_dkv_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes),
             "attention_bwd_dkv");
  attention_bwd_dkv_kernel<<<dim3(args.kv_heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(args, out,
                                                                                                    lse);
  check_launch("attention_bwd_dkv");
}

}  // namespace tessera::attention
