// Gradients of queries of packed causal attention on Hopper, D = 256: attention_bwd_dq.cu with warpgroup
// products. A block has a head's queries of two neighbouring chunks of a sequence, counted from its start:
// warpgroups 0 and 1 take 64 each, warpgroup 2 loads keys and values for both, in tiles of 32, three deep. A
// warpgroup has the next tile's first products queued behind dS k, and while one takes its exponentials the
// other's products run. The tile of keys serves twice: its columns are summed over in q k^T, its rows in dS
// k. 224 KB of shared memory. Reference: attention_reference.cu; check: tests/native/cuda.
#include <algorithm>

#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_order.cuh"
#include "ops/wgmma.cuh"

namespace tessera::attention {
namespace {

constexpr int kGroup = 128, kThreads = 3 * kGroup;
constexpr int kQueries = 64;  // of a warpgroup
constexpr int kKeys = 32, kStages = 3;
constexpr int kQueryBytes = kQueries * kHead * 2;
constexpr int kKeyBytes = kKeys * kHead * 2;
enum Barrier { kFull = 1, kEmpty = kFull + kStages, kOwn = kEmpty + kStages };  // by stage; kOwn by warpgroup
constexpr int kLoadRegisters = 104, kProductRegisters = 200;
static_assert(kLoadRegisters + 2 * kProductRegisters <= 65536 / kGroup);

// Shared memory, in bytes: {q, dO} of each warpgroup, stages of {K, V}.
constexpr int kTiles = 4 * kQueryBytes;
constexpr int kSharedBytes = kTiles + kStages * 2 * kKeyBytes;
static_assert(kSharedBytes <= 227 * 1024);

#ifdef TESSERA_WGMMA

// A block's queries, positions begin .. end - 1, and the keys before them.
struct Work {
  const Args& args;
  u32 shared;
  int head, kv_head, start, begin, end, num_tiles;

  __device__ Work(const Args& args, unsigned char* shared, const Chunk& chunk)
      : args(args), shared(shared_address(shared)), head(blockIdx.x), kv_head(head / args.group) {
    start = args.cu[chunk.seq];
    begin = chunk.begin;
    end = min(begin + 2 * kQueries, args.cu[chunk.seq + 1]);
    num_tiles = (end - start + kKeys - 1) / kKeys;
  }
  __device__ u32 queries(int group) const { return shared + group * 2 * kQueryBytes; }
  __device__ u32 keys(int stage) const { return shared + kTiles + stage * 2 * kKeyBytes; }
};

__device__ __forceinline__ int next_stage(int stage) { return stage == kStages - 1 ? 0 : stage + 1; }

// Warpgroup 2: the queries, then tile after tile, two ahead of the one that is announced.
__device__ __forceinline__ void load_tiles(const Work& work, const bf16* d_o, int thread) {
  const Args& args = work.args;
  const auto load = [&](int tile) {
    if (tile < work.num_tiles) {
      const int at_thread = opaque(thread), stage = tile % kStages, key = work.start + tile * kKeys;
      load_panels<kKeys, kHead, kGroup>(work.keys(stage), args.k + args.k_at(key, work.kv_head),
                                        args.k_at(1, 0), work.end - key, at_thread);
      load_panels<kKeys, kHead, kGroup>(work.keys(stage) + kKeyBytes,
                                        args.proj + args.v_at(key, work.kv_head), args.proj_dim,
                                        work.end - key, at_thread);
    }
    copy_async_commit();
  };
#pragma unroll 1
  for (int group = 0; group < 2; ++group) {
    const int first = work.begin + group * kQueries;
    const size_t at = args.q_at(first, work.head);
    load_panels<kQueries, kHead, kGroup>(work.queries(group), args.q + at, args.q_at(1, 0), work.end - first,
                                         thread);
    load_panels<kQueries, kHead, kGroup>(work.queries(group) + kQueryBytes, d_o + at, args.q_at(1, 0),
                                         work.end - first, thread);
  }
  load(0);
  load(1);
  for (int tile = 0, stage = 0; tile < work.num_tiles; ++tile, stage = next_stage(stage)) {
    copy_async_wait<1>();
    fence_shared_for_wgmma();
    named_arrive(kFull + stage, kThreads);
    // The tile after next goes where the one before was.
    if (tile > 0 && tile + 2 < work.num_tiles)
      named_barrier(kEmpty + (stage == 0 ? kStages - 1 : stage - 1), kThreads);
    load(tile + 2);
  }
}

// Writes acc / 16 to rows of dq, through the tile of queries that nobody reads any more.
__device__ __forceinline__ void store_queries(const Work& work, bf16* dq, int group, int warp, int lane,
                                              const float (&acc)[32][4]) {
  named_barrier(kOwn + group, kGroup);
  const int first = work.begin + group * kQueries, row0 = 16 * warp + lane / 4;
#pragma unroll
  for (int panel = 0; panel < kHead / 64; ++panel) {
    const Tile<64> tile(work.queries(group) + panel * kQueries * 128, lane);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        tile.store_pair(
            row0 + 8 * r, n,
            pack_bf16(acc[8 * panel + n][2 * r] * kScale, acc[8 * panel + n][2 * r + 1] * kScale));
  }
  __syncwarp();
  const Tile<64> tile(work.queries(group) + lane / 8 * kQueries * 128, lane);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int row = 16 * warp + i;
    if (first + row < work.end)
      store_global16(dq + work.args.q_at(first + row, work.head) + 8 * lane, tile.load16(row, lane % 8));
  }
}

// Warpgroups 0 and 1.
__device__ __forceinline__ void accumulate(const Work& work, const Gradients& out, const float* lse,
                                           int group, int warp, int lane) {
  const Args& args = work.args;
  const int q4 = lane % 4, row0 = 16 * warp + lane / 4, first = work.begin + group * kQueries;
  // Tiles that these queries attend to; of the others only the barriers are kept.
  const int own = first < work.end ? (min(first + kQueries, work.end) - work.start + kKeys - 1) / kKeys : 0;
  const auto leave = [&](int tile, int stage) {
    if (tile + kStages < work.num_tiles) named_arrive(kEmpty + stage, kThreads);
  };
  if (own > 0) {
    float row_lse[2], delta[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool ok = first + row0 + 8 * r < work.end;
      const size_t at = args.row_at(ok ? first + row0 + 8 * r : first, work.head);
      row_lse[r] = ok ? lse[at] : 0.0f;
      delta[r] = ok ? out.delta[at] : 0.0f;
    }
    float acc[32][4] = {}, s[4][4], dp[4][4];
    const auto first_products = [&](int stage) {
      const u32 queries = opaque(work.queries(group)), keys = opaque(work.keys(stage));
      wgmma_fence(s);
      wgmma_fence(dp);
      wgmma_begin();
#pragma unroll
      for (int ks = 0; ks < kHead / 16; ++ks)
        wgmma_shared_32(s, k_major<kQueries>(queries, ks), k_major<kKeys>(keys, ks), ks > 0);
#pragma unroll
      for (int ks = 0; ks < kHead / 16; ++ks)
        wgmma_shared_32(dp, k_major<kQueries>(queries + kQueryBytes, ks),
                        k_major<kKeys>(keys + kKeyBytes, ks), ks > 0);
      wgmma_commit();
    };
    const auto second_product = [&](int tile, int stage) {
      wgmma_fence(s);
      wgmma_fence(dp);
      // Query minus key, of this thread's first element.
      const int ahead = first + row0 - (work.start + tile * kKeys) - 2 * q4;
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
      for (int ks = 0; ks < kKeys / 16; ++ks)
        wgmma_registers_256(acc, ds[ks], mn_major<kKeys>(work.keys(stage), ks));
      wgmma_commit();
    };
    named_barrier_anywhere(kFull, kThreads);
    first_products(0);
    wgmma_wait<0>();
    int stage = 0;
    for (int tile = 0; tile + 1 < own; ++tile) {
      second_product(tile, stage);
      const int next = next_stage(stage);
      named_barrier_anywhere(kFull + next, kThreads);
      first_products(next);
      wgmma_wait<1>();
      wgmma_fence(acc);
      leave(tile, stage);
      wgmma_wait<0>();
      stage = next;
    }
    second_product(own - 1, stage);
    wgmma_wait<0>();
    wgmma_fence(acc);
    leave(own - 1, stage);
    // The first queries' keys end up to two tiles before the second's, which do not wait for what follows.
    for (int tile = own; tile < work.num_tiles; ++tile) named_arrive(kFull + tile % kStages, kThreads);
    store_queries(work, out.dq, group, warp, lane, acc);
  } else {
    for (int tile = 0; tile < work.num_tiles; ++tile) {
      named_barrier_anywhere(kFull + tile % kStages, kThreads);
      leave(tile, tile % kStages);
    }
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    attention_bwd_dq_wgmma_kernel(Args args, Gradients out, const float* lse) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  // A pair of chunks counts as its first one, with the keys up to it as its work.
  const auto work_of = [&](const Chunk& chunk, int = 0) {
    const int before = (chunk.begin - args.cu[chunk.seq]) / kQueries;
    return before % 2 == 0 ? before + 1 : 0;
  };
  const Chunk chunk = args.chunk[part_of_rank<1>(args, blockIdx.y, reinterpret_cast<int*>(shared), work_of)];
  if (chunk.count == 0 || work_of(chunk) == 0) return;
  const Work work(args, shared, chunk);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = __shfl_sync(0xffffffffu, warp / 4, 0);
  if (group == 2) {
    fewer_registers<kLoadRegisters>();
    load_tiles(work, out.d_o, threadIdx.x % kGroup);
  } else {
    more_registers<kProductRegisters>();
    accumulate(work, out, lse, group, warp % 4, lane);
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
  // Of a sequence's chunks one of each two begins a pair, and the last may be alone; ranked, pairs come
  // first.
  const bool ranked = args.num_chunk <= kMostRanked;
  const int pairs =
      ranked ? std::min(args.num_chunk, (args.num_chunk + args.num_seq + 1) / 2) : args.num_chunk;
  attention_bwd_dq_wgmma_kernel<<<dim3(args.heads, pairs), kThreads, kSharedBytes, stream>>>(args, out, lse);
  check_launch("attention_bwd_dq_wgmma");
}

}  // namespace tessera::attention
