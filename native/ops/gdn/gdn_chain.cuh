// What the two serial kernels of the gated delta rule share (gdn_fwd.cu, gdn_bwd_state.cu).
//
// A block of four warps owns 64 value columns of a head and walks the chunks of a sequence; a warp owns 16 of
// the columns and keeps its part of the state transposed, [16 values, 128 key dims] fp32, as accumulator
// tiles. Every product of the chain is computed transposed, values being the rows: its left operand is then
// packed from accumulators and never leaves the registers, its right operand (K, Q, P, A) is a tile that all
// warps read. So a chunk needs two barriers: one before its tiles are used (and P and A are made from them),
// one after P and A are made.
#pragma once

#include "ops/gdn/gdn_device.cuh"

namespace tessera::gdn {

inline constexpr int kChainThreads = 128;

struct Chain {
  // Shared memory, in bytes: two stages of K, Q, rows [64 tokens, 64 values] and gates; then A, P and token
  // vectors.
  static constexpr int kK = 0;
  static constexpr int kQ = kK + 2 * kTileBytes;
  static constexpr int kValues = kQ + 2 * kTileBytes;
  static constexpr int kA = kValues + 2 * kHalfTileBytes;
  static constexpr int kP = kA + kChunk * kChunk * 2;
  static constexpr int kGates = kP + kChunk * kChunk * 2;
  static constexpr int kVectors = kGates + 2 * 2 * kChunk * 4;
  static constexpr int kSharedBytes = kVectors + 2 * kChunk * 4;
  static_assert(kSharedBytes <= 99 * 1024);

  const Args& args;
  unsigned char* shared;
  int thread, lane, head, key_head, half;
  uint4 ar[4];  // this thread's part of the next chunk's Ar, on its way from global memory

  __device__ Chain(const Args& args, unsigned char* shared, int head, int half)
      : args(args),
        shared(shared),
        thread(threadIdx.x),
        lane(thread % 32),
        head(head),
        key_head(head / args.group),
        half(half) {}

  // Between phases: addresses are computed anew rather than kept in registers (see opaque()).
  __device__ void forget() {
    thread = opaque(thread);
    lane = thread % 32;
  }
  __device__ Tile<kHead> k(int stage) const {
    return {shared_address(shared) + kK + stage * kTileBytes, lane};
  }
  __device__ Tile<kHead> q(int stage) const {
    return {shared_address(shared) + kQ + stage * kTileBytes, lane};
  }
  __device__ Tile<kHalf> values(int stage) const {
    return {shared_address(shared) + kValues + stage * kHalfTileBytes, lane};
  }
  __device__ Tile<kChunk> a() const { return {shared_address(shared) + kA, lane}; }
  __device__ Tile<kChunk> p() const { return {shared_address(shared) + kP, lane}; }
  __device__ float* g(int stage) const {
    return reinterpret_cast<float*>(shared + kGates) + stage * 2 * kChunk;
  }
  __device__ float* beta(int stage) const { return g(stage) + kChunk; }
  __device__ float* e() const { return reinterpret_cast<float*>(shared + kVectors); }  // exp(G_i)
  __device__ float* r() const { return e() + kChunk; }                                 // exp(G_last - G_i)
  __device__ int value0() const { return thread / 32 * 16; }  // of this warp, in the half
  __device__ size_t column() const { return static_cast<size_t>(head) * kHead + half * kHalf; }

  // Starts the copies of a chunk's tiles; rows: [T, ..] with `stride`, at this block's columns.
  __device__ void load(const Chunk& chunk, int chunk_index, int stage, const bf16* rows, size_t stride) {
    load_tile<kChunk, kChainThreads>(k(stage), args.k_row(chunk.begin, key_head), args.conv_dim, chunk.count,
                                     thread);
    load_tile<kChunk, kChainThreads>(q(stage), args.q_row(chunk.begin, key_head), args.conv_dim, chunk.count,
                                     thread);
    load_tile<kChunk, kChainThreads>(values(stage), rows + chunk.begin * stride, stride, chunk.count, thread);
    const size_t slot = args.slot(chunk_index, head);
    if (thread < 32) {
      const float* src = (thread < 16 ? args.g : args.beta) + slot * kChunk + (thread % 16) * 4;
      copy_async16(shared_address(g(stage)) + thread * 16, src);
    }
    copy_async_commit();
  }
  // Part `step` is row 16 step + thread / 8, columns 8 (thread % 8)..
  __device__ void load_ar(int chunk_index) {
    const uint4* src =
        reinterpret_cast<const uint4*>(args.ar + args.slot(chunk_index, head) * kChunk * kChunk) + thread;
#pragma unroll
    for (int step = 0; step < 4; ++step) ar[step] = __ldg(src + step * kChainThreads);
  }

  // A = D o Ar, with its columns times beta where kScaled, into a(); also the token vectors.
  template <bool kScaled>
  __device__ void make_a(int stage) const {
    const float* gates = g(stage);
    if (thread < kChunk) {
      e()[thread] = fast_exp(gates[thread]);
      r()[thread] = fast_exp(gates[kChunk - 1] - gates[thread]);
    }
    const int chunk8 = thread % 8;
    const float4 g_low = *reinterpret_cast<const float4*>(gates + 8 * chunk8);
    const float4 g_high = *reinterpret_cast<const float4*>(gates + 8 * chunk8 + 4);
    float4 b_low = make_float4(1, 1, 1, 1), b_high = b_low;
    if (kScaled) {
      b_low = *reinterpret_cast<const float4*>(beta(stage) + 8 * chunk8);
      b_high = *reinterpret_cast<const float4*>(beta(stage) + 8 * chunk8 + 4);
    }
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int row = 16 * step + thread / 8;
      uint4 v = ar[step];
      if (8 * chunk8 <= row) {
        const float gi = gates[row];
        v.x = scale_bf16(v.x, decay(gi, g_low.x) * b_low.x, decay(gi, g_low.y) * b_low.y);
        v.y = scale_bf16(v.y, decay(gi, g_low.z) * b_low.z, decay(gi, g_low.w) * b_low.w);
        v.z = scale_bf16(v.z, decay(gi, g_high.x) * b_high.x, decay(gi, g_high.y) * b_high.y);
        v.w = scale_bf16(v.w, decay(gi, g_high.z) * b_high.z, decay(gi, g_high.w) * b_high.w);
      }
      asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(a().at(row, chunk8)), "r"(v.x), "r"(v.y),
                   "r"(v.z), "r"(v.w)
                   : "memory");
    }
  }

  // P = s D o (Q K^T): the ten 16 x 16 blocks of the lower triangle, two or three a warp, side by side so
  // that their products overlap. Warp w takes blocks (w, 0..2) as far as they exist, warp 0 also (3, 3).
  __device__ void make_p(int stage) const {
    const int warp = thread / 32, q4 = lane % 4;
    const bool third = warp >= 2;
    const int i0[2] = {16 * warp, warp == 0 ? 48 : 16 * warp};  // of blocks 0 and 2, of block 1
    const int j0[3] = {0, warp == 0 ? 48 : 16, 32};
    const Tile<kHead> k_tile = k(stage), q_tile = q(stage);
    float c[3][2][4] = {};
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) {
      const Frag a = q_tile.a(i0[0], 16 * ks);
      mma_pair(c[0][0], c[0][1], a, k_tile.b_trans(16 * ks, j0[0]));
      mma_pair(c[1][0], c[1][1], q_tile.a(i0[1], 16 * ks), k_tile.b_trans(16 * ks, j0[1]));
      if (third) mma_pair(c[2][0], c[2][1], a, k_tile.b_trans(16 * ks, j0[2]));
    }
#pragma unroll
    for (int block = 0; block < 3; ++block) {
      if (block < 2 || third) mask_block(stage, i0[block % 2], j0[block], q4, c[block]);
    }
  }
  // P of one block from its products, to shared memory.
  __device__ void mask_block(int stage, int i0, int j0, int q4, const float (&c)[2][4]) const {
    const float* gates = g(stage);
    const int row = i0 + lane / 4;
    const float gi[2] = {gates[row], gates[row + 8]};
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int j = j0 + 8 * n + 2 * q4;
      const float2 gj = *reinterpret_cast<const float2*>(gates + j);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int i = row + 8 * side;
        const float p0 = kQueryScale * masked_decay(i >= j, gi[side], gj.x) * c[n][2 * side];
        const float p1 = kQueryScale * masked_decay(i > j, gi[side], gj.y) * c[n][2 * side + 1];
        p().store_pair(i, j0 / 8 + n, pack_bf16(p0, p1));
      }
    }
  }

  // Writes a state [128 key dims, 64 values] half, given as this warp's packed transposed tiles: packed[n][0]
  // holds values 0-7 and packed[n][1] values 8-15 of key dims 8n..8n+7. dst: the half's corner, kHead
  // elements a row.
  __device__ void store_state(bf16* dst, const float (&s)[16][4]) const {
    const bool odd = lane & 1;
    bf16* at = dst + (lane / 4) * kHead + value0() + (odd ? 8 : 0) + lane % 4 / 2 * 4;
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      const u32 low = transpose8x8(pack_bf16(s[n][0], s[n][1])),
                high = transpose8x8(pack_bf16(s[n][2], s[n][3]));
      // Neighbours swap, so that each stores four adjacent values.
      const u32 other = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
      *reinterpret_cast<uint2*>(at + n * 8 * kHead) = odd ? make_uint2(other, high) : make_uint2(low, other);
    }
  }

  // Puts x (transposed tiles: rows values, columns tokens) into this warp's columns of values(stage), tokens
  // being rows. The warp reads those columns only before, so that no barrier is needed.
  __device__ void stage_rows(int stage, const float (&x)[8][4]) const {
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const u32 pair = transpose8x8(pack_bf16(x[n][2 * side], x[n][2 * side + 1]));
        values(stage).store_pair(8 * n + lane / 4, value0() / 8 + side, pair);
      }
    }
    __syncwarp();
  }
};

// out[16 values, 64 tokens] = left[16, 128] times x^T; left from packed state tiles, x [64 tokens, 128 key
// dims].
__device__ __forceinline__ void times_rows(float (&out)[8][4], const Frag& left, const Tile<kHead>& x,
                                           int ks) {
#pragma unroll
  for (int n = 0; n < 4; ++n) mma_pair(out[2 * n], out[2 * n + 1], left, x.b_trans(16 * ks, 16 * n));
}

// state[16 values, 128 key dims] += left[16 values, 16 tokens] x, the tokens being rows 16ks.. of x.
__device__ __forceinline__ void add_to_state(float (&state)[16][4], const Frag& left, const Tile<kHead>& x,
                                             int ks) {
#pragma unroll
  for (int n = 0; n < 8; ++n) mma_pair(state[2 * n], state[2 * n + 1], left, x.b(16 * ks, 16 * n));
}

}  // namespace tessera::gdn
