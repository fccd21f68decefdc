// Gradients of keys and values of packed causal attention on Hopper, D = 256: attention_bwd_dkv.cu with
// warpgroup products. Warpgroup 0 computes P^T = exp(K q^T - lse) and dV, warpgroup 1 dP^T = V dO^T, dS^T
// (with P^T handed over in bf16) and dK; each has the next tile's first product queued behind its second, so
// that the matrix units work while the exponentials are taken. Warpgroup 2 loads: queries come in tiles of
// 64, double-buffered. A chunk with many queries after it is halved between two blocks, which add up their
// sums. 209 KB of shared memory, one block an SM. Reference: attention_reference.cu; check:
// tests/native/cuda.
#include <algorithm>

#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_order.cuh"
#include "ops/wgmma.cuh"

namespace tessera::attention {
namespace {

constexpr int kGroup = 128, kThreads = 3 * kGroup;
constexpr int kBlock = 64;  // keys of a block, and queries of a tile
constexpr int kBlockBytes = kBlock * kHead * 2;
// Two of each: by stage, kMeet by warpgroup.
enum Barrier { kFull = 1, kEmpty = kFull + 2, kExchanged = kEmpty + 2, kMeet = kExchanged + 2 };
constexpr int kLoadRegisters = 88, kProductRegisters = 208;
static_assert(kLoadRegisters + 2 * kProductRegisters <= 65536 / kGroup);

// Shared memory, in bytes: K, V, two stages of {q, dO}, two buffers of P^T, two of {lse, delta}.
constexpr int kStages = 2 * kBlockBytes;
constexpr int kExchange = kStages + 4 * kBlockBytes;
constexpr int kExchangeBytes = kBlock * kBlock * 2;
constexpr int kRows = kExchange + 2 * kExchangeBytes;
constexpr int kArrivals = kRows + 2 * 2 * kBlock * 4;  // one a warpgroup
constexpr int kSharedBytes = kArrivals + 2 * 4;

// A chunk of a sequence with more than this many tiles of queries from it on is halved, where the queries'
// gradients of a chunk and kv head, not yet written, hold a half's sums.
[[maybe_unused]] constexpr int kWholeTiles = 24;
constexpr int kSumBytes = kBlock * kHead * 4;  // of dK or dV
__host__ __device__ constexpr bool can_halve(int group) { return group * kBlockBytes >= 2 * kSumBytes; }

// Where the halves of a chunk, kv head and kind of sums meet; zero between launches. Launches that run at the
// same time would need one each.
constexpr int kMostMeetings = 1 << 16;
[[maybe_unused]] __device__ unsigned meetings[kMostMeetings];

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

__device__ __forceinline__ int tiles_from(const Args& args, const Chunk& chunk) {
  return chunk.count == 0 ? 0 : (args.cu[chunk.seq + 1] - chunk.begin + kBlock - 1) / kBlock;
}
__device__ __forceinline__ bool is_halved(const Args& args, int tiles_a_head) {
  return can_halve(args.group) && tiles_a_head > kWholeTiles;
}

// What a block works on: a kv head's keys of one chunk, against the queries of its heads from there on; of
// these tiles all, or the half `part`.
struct Work {
  const Args& args;
  unsigned char* shared;
  Chunk chunk;
  int kv_head, end, tiles_a_head, first_tile, num_tiles;
  bool halved;

  __device__ Work(const Args& args, unsigned char* shared, const Chunk& chunk, int part)
      : args(args), shared(shared), chunk(chunk), kv_head(blockIdx.x) {
    end = chunk.count == 0 ? 0 : args.cu[chunk.seq + 1];
    tiles_a_head = tiles_from(args, chunk);
    halved = is_halved(args, tiles_a_head);
    const int tiles = tiles_a_head * args.group, half = tiles / 2;
    first_tile = part * half;
    num_tiles = !halved ? tiles : part == 0 ? half : tiles - half;
  }
  // Of a tile of this block.
  __device__ int head(int tile) const { return kv_head * args.group + (first_tile + tile) / tiles_a_head; }
  __device__ int first_query(int tile) const {  // counted from the chunk's begin
    return (first_tile + tile) % tiles_a_head * kBlock;
  }
  __device__ u32 at(int offset) const { return shared_address(shared) + offset; }
  __device__ u32 queries(int stage) const { return at(kStages + stage * 2 * kBlockBytes); }
  __device__ u32 gradients(int stage) const { return queries(stage) + kBlockBytes; }
  __device__ const float* rows(int stage) const {  // lse, then delta
    return reinterpret_cast<const float*>(shared + kRows) + stage * 2 * kBlock;
  }
};

// Warpgroup 2: the queries of tile after tile, their gradients, lse and delta.
__device__ __forceinline__ void load_tiles(const Work& work, const Gradients& out, const float* lse,
                                           int thread) {
  if (work.num_tiles == 0) return;
  const Args& args = work.args;
  const auto load = [&](int tile) {
    if (tile < work.num_tiles) {
      const int at_thread = opaque(thread), stage = tile & 1;
      const int head = work.head(tile);
      const int first = work.chunk.begin + work.first_query(tile), valid = work.end - first;
      const size_t at = args.q_at(first, head);
      load_panels<kBlock, kHead, kGroup>(work.queries(stage), args.q + at, args.q_at(1, 0), valid, at_thread);
      load_panels<kBlock, kHead, kGroup>(work.gradients(stage), out.d_o + at, args.q_at(1, 0), valid,
                                         at_thread);
      const int row = at_thread % kBlock;
      const bool ok = row < valid;
      const float* src = at_thread < kBlock ? lse : out.delta;
      copy_async4(work.at(kRows) + (stage * 2 * kBlock + at_thread) * 4,
                  src + args.row_at(first + (ok ? row : 0), head), ok);
    }
    copy_async_commit();
  };
  load_panels<kBlock, kHead, kGroup>(work.at(0), args.k + args.k_at(work.chunk.begin, work.kv_head),
                                     args.k_at(1, 0), work.chunk.count, thread);
  load_panels<kBlock, kHead, kGroup>(work.at(kBlockBytes),
                                     args.proj + args.v_at(work.chunk.begin, work.kv_head), args.proj_dim,
                                     work.chunk.count, thread);
  load(0);
  load(1);
  copy_async_wait<1>();
  fence_shared_for_wgmma();
  named_arrive(kFull, kThreads);
  for (int tile = 1; tile < work.num_tiles; ++tile) {
    copy_async_wait<0>();
    fence_shared_for_wgmma();
    named_arrive(kFull + (tile & 1), kThreads);
    if (tile + 1 < work.num_tiles) {
      named_barrier(kEmpty + ((tile + 1) & 1), kThreads);
      load(tile + 1);
    }
  }
}

// Warpgroups 0 (dV) and 1 (dK): acc [64 keys, 256].
template <bool kForValues>
__device__ __forceinline__ void accumulate(const Work& work, int warp, int lane, float (&acc)[32][4]) {
  const int q4 = lane % 4, key = 16 * warp + lane / 4;
  float x[8][4];
  const auto first_product = [&](int stage) {
    const u32 mine = opaque(work.at(kForValues ? 0 : kBlockBytes)),
              theirs = opaque(kForValues ? work.queries(stage) : work.gradients(stage));
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks)
      wgmma_shared_64(x, k_major<kBlock>(mine, ks), k_major<kBlock>(theirs, ks), ks > 0);
    wgmma_commit();
  };
  const auto second_product = [&](int tile) {
    const int stage = tile & 1;
    uint4* exchange =
        reinterpret_cast<uint4*>(work.shared + kExchange + stage * kExchangeBytes) + warp * 4 * 32 + lane;
    Frag left[4];
    if (kForValues) {
      make_probabilities(x, work.rows(stage), work.first_query(tile) + 2 * q4 - key, q4);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) {
        left[ks] = to_a_frag(x[2 * ks], x[2 * ks + 1]);
        exchange[32 * ks] = make_uint4(left[ks].r[0], left[ks].r[1], left[ks].r[2], left[ks].r[3]);
      }
      named_arrive(kExchanged + stage, 2 * kGroup);
    } else {
      named_barrier(kExchanged + stage, 2 * kGroup);
      make_score_gradients(x, exchange, work.rows(stage) + kBlock, q4);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) left[ks] = to_a_frag(x[2 * ks], x[2 * ks + 1]);
    }
    const u32 right = kForValues ? work.gradients(stage) : work.queries(stage);
    wgmma_fence(acc);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kBlock / 16; ++ks) wgmma_registers_256(acc, left[ks], mn_major<kBlock>(right, ks));
    wgmma_commit();
  };
  if (work.num_tiles == 0) return;
  named_barrier_anywhere(kFull, kThreads);
  first_product(0);
  wgmma_wait<0>();
  wgmma_fence(x);
  for (int tile = 0; tile + 1 < work.num_tiles; ++tile) {
    const int stage = tile & 1;
    second_product(tile);
    named_barrier_anywhere(kFull + (stage ^ 1), kThreads);
    first_product(stage ^ 1);
    wgmma_wait<1>();
    wgmma_fence(acc);
    if (tile + 2 < work.num_tiles) named_arrive(kEmpty + stage, kThreads);
    wgmma_wait<0>();
    wgmma_fence(x);
  }
  second_product(work.num_tiles - 1);
  wgmma_wait<0>();
  wgmma_fence(acc);
}

// Brings the two halves' sums together: the one that ends first leaves its own in the chunk's rows of dq, the
// other adds them to its own. The bits do not depend on which comes first. Returns whether this one has all.
template <bool kForValues>
__device__ __forceinline__ bool meet(const Work& work, bf16* dq, int thread, float (&acc)[32][4]) {
  constexpr int kKind = kForValues ? 0 : 1;
  constexpr unsigned kLeft = 0x100;
  const Args& args = work.args;
  unsigned* meeting = meetings + (work.chunk.begin / kBlock * args.kv_heads + work.kv_head) * 2 + kKind;
  unsigned* arrival = reinterpret_cast<unsigned*>(work.shared + kArrivals) + kKind;
  float4* sums = reinterpret_cast<float4*>(dq + args.q_at(work.chunk.begin, 0)) +
                 (work.kv_head * args.group * kBlockBytes + kKind * kSumBytes) / 16 + thread;
  if (thread == 0) *arrival = atomicAdd(meeting, 1);
  named_barrier(kMeet + kKind, kGroup);
  if (*arrival == 0) {
#pragma unroll
    for (int n = 0; n < 32; ++n)
      __stcg(sums + n * kGroup, make_float4(acc[n][0], acc[n][1], acc[n][2], acc[n][3]));
    __threadfence();
    named_barrier(kMeet + kKind, kGroup);
    if (thread == 0) atomicAdd(meeting, kLeft);
    return false;
  }
  if (thread == 0) {
    while (atomicAdd(meeting, 0) < kLeft) __nanosleep(100);
    *meeting = 0;
    __threadfence();
  }
  named_barrier(kMeet + kKind, kGroup);
#pragma unroll
  for (int n = 0; n < 32; ++n) {
    const float4 other = __ldcg(sums + n * kGroup);
    acc[n][0] += other.x;
    acc[n][1] += other.y;
    acc[n][2] += other.z;
    acc[n][3] += other.w;
  }
  return true;
}

// Writes acc * scale to rows of `dst`, `stride` elements apart.
__device__ __forceinline__ void store_keys(bf16* dst, size_t stride, int key, int count, int q4, float scale,
                                           const float (&acc)[32][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (key + 8 * r >= count) continue;
    bf16* row = dst + (key + 8 * r) * stride + 2 * q4;
#pragma unroll
    for (int n = 0; n < 32; ++n)
      *reinterpret_cast<u32*>(row + 8 * n) = pack_bf16(acc[n][2 * r] * scale, acc[n][2 * r + 1] * scale);
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    attention_bwd_dkv_wgmma_kernel(Args args, Gradients out, const float* lse) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = __shfl_sync(0xffffffffu, warp / 4, 0);
  // By the queries from the chunk on.
  const auto work_of = [&](const Chunk& chunk, int part) {
    const int tiles = tiles_from(args, chunk);
    return is_halved(args, tiles) ? tiles : part == 0 ? 2 * tiles : 0;
  };
  const int found = part_of_rank<2>(args, blockIdx.y, reinterpret_cast<int*>(shared), work_of);
  const int part = found / args.num_chunk;
  const Work work(args, shared, args.chunk[found % args.num_chunk], part);
  if (part == 1 && !work.halved) return;
  if (group == 2) {
    fewer_registers<kLoadRegisters>();
    load_tiles(work, out, lse, threadIdx.x % kGroup);
  } else {
    more_registers<kProductRegisters>();
    const int key = 16 * (warp % 4) + lane / 4;
    float acc[32][4] = {};
    if (group == 0) {
      accumulate<true>(work, warp % 4, lane, acc);
      if (work.halved && !meet<true>(work, out.dq, threadIdx.x % kGroup, acc)) return;
      store_keys(out.dproj + args.v_at(work.chunk.begin, work.kv_head), args.proj_dim, key, work.chunk.count,
                 lane % 4, 1.0f, acc);
    } else {
      accumulate<false>(work, warp % 4, lane, acc);
      if (work.halved && !meet<false>(work, out.dq, threadIdx.x % kGroup, acc)) return;
      store_keys(out.dk + args.k_at(work.chunk.begin, work.kv_head), args.k_at(1, 0), key, work.chunk.count,
                 lane % 4, kScale, acc);
    }
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
  require_size((args.tokens / kBlock + 1) * args.kv_heads * 2 <= kMostMeetings, "tokens x kv heads",
               i64{args.tokens} * args.kv_heads, "at most 2^21 in attention_bwd_dkv_wgmma");
  // Ranked, what has no work comes last; a halved chunk is a whole one.
  const int halved = can_halve(args.group) ? args.tokens / kBlock : 0;
  const int blocks =
      args.num_chunk <= kMostRanked ? args.num_chunk + std::min(args.num_chunk, halved) : 2 * args.num_chunk;
  attention_bwd_dkv_wgmma_kernel<<<dim3(args.kv_heads, blocks), kThreads, kSharedBytes, stream>>>(args, out,
                                                                                                  lse);
  check_launch("attention_bwd_dkv_wgmma");
}

}  // namespace tessera::attention
