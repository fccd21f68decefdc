// What the two serial kernels of the gated delta rule share on Hopper (gdn_fwd_wgmma.cu,
// gdn_bwd_state_wgmma.cu).
//
// A block of three warpgroups owns a head and walks the chunks of a sequence, or of a segment of a long one
// (gdn_segments.cuh). Warpgroup 0 prepares: it loads
// tiles up to two chunks ahead and makes P and A from them. Warpgroups 1 and 2 run the chain for 64 value
// columns each, transposed as in gdn_chain.cuh: a warp keeps [16 values, 128 key dims] of the state as
// accumulators, left operands come from registers, right ones are tiles in shared memory. So a chunk's serial
// path holds only what needs the state. The two sides meet once a chunk, both waiting.
#pragma once

#include "ops/gdn/gdn_segments.cuh"
#include "ops/wgmma.cuh"

namespace tessera::gdn {

struct Pipe {
  static constexpr int kThreads = 384, kGroup = 128, kStages = 3;
  // Shared memory, in bytes. A stage: K, Q, rows of values [64 tokens, 128], A and P [64, 64].
  static constexpr int kK = 0;
  static constexpr int kQ = kK + kTileBytes;
  static constexpr int kValues = kQ + kTileBytes;
  static constexpr int kA = kValues + kTileBytes;
  static constexpr int kP = kA + kChunk * kChunk * 2;
  static constexpr int kStageBytes = kP + kChunk * kChunk * 2;
  // Of each stage G, beta, e = exp(G_i) and r = exp(G_last - G_i).
  static constexpr int kVectors = kStages * kStageBytes;
  static constexpr int kVectorBytes = 4 * kChunk * 4;
  // Of each half of the values, the state on its way out.
  static constexpr int kImages = kVectors + kStages * kVectorBytes;
  static constexpr int kSharedBytes = kImages + 2 * kStateHalfBytes;
  static_assert(kSharedBytes <= 227 * 1024);

  enum Barrier { kMeeting = 1, kPrepared = kMeeting + 2, kImage, kTurn = kImage + 2, kStarted = kTurn + 2 };
};

#ifdef TESSERA_WGMMA

// One block's walk. kReverse: from the last chunk to the first.
template <bool kReverse>
struct Walk {
  const Args& args;
  unsigned char* shared;
  int head, thread, lane, warp;  // of the warpgroup
  ChunkRange range;

  __device__ Walk(const Args& args, unsigned char* shared, const ChunkRange& range)
      : args(args),
        shared(shared),
        head(blockIdx.x),
        thread(threadIdx.x % Pipe::kGroup),
        lane(threadIdx.x % 32),
        warp(thread / 32),
        range(range) {}

  __device__ int length() const { return range.end - range.begin; }
  __device__ int index(int step) const { return kReverse ? range.end - 1 - step : range.begin + step; }
  __device__ u32 stage(int s) const { return shared_address(shared) + s * Pipe::kStageBytes; }
  __device__ float* g(int s) const {
    return reinterpret_cast<float*>(shared + Pipe::kVectors + s * Pipe::kVectorBytes);
  }
  __device__ float* beta(int s) const { return g(s) + kChunk; }
  __device__ float* e(int s) const { return g(s) + 2 * kChunk; }
  __device__ float* r(int s) const { return g(s) + 3 * kChunk; }
  __device__ Tile<kChunk> a(int s) const { return {stage(s) + Pipe::kA, lane}; }
  __device__ Tile<kChunk> p(int s) const { return {stage(s) + Pipe::kP, lane}; }
  __device__ Tile<kHalf> values(int s, int half) const {
    return {stage(s) + Pipe::kValues + half * kHalfTileBytes, lane};
  }

  // Warpgroup 0: everything a chunk needs but the state. rows: [T, ..] with `stride`, at this head's columns.
  template <Part kPart>
  __device__ void prepare(const bf16* rows, size_t stride) {
    // A state on its own way through a segment needs neither queries nor, from the identity, values.
    constexpr bool kQueries = kReverse ? kPart != Part::transition : kPart == Part::whole;
    constexpr bool kValues = kPart != Part::transition;
    load<kQueries, kValues>(0, rows, stride);
    load<kQueries, kValues>(1, rows, stride);
    for (int step = 0, s = 0; step < length(); ++step, s = s == Pipe::kStages - 1 ? 0 : s + 1) {
      copy_async_wait<1>();
      fence_shared_for_wgmma();
      named_barrier(Pipe::kPrepared, Pipe::kGroup);
      if constexpr (kQueries) {
        float scores[8][4];
        wgmma_fence(scores);
        wgmma_begin();
#pragma unroll
        for (int ks = 0; ks < kHead / 16; ++ks)
          wgmma_shared_64(scores, k_major<kChunk>(stage(s) + Pipe::kQ, ks),
                          k_major<kChunk>(stage(s) + Pipe::kK, ks), ks > 0);
        wgmma_commit();
        make_a(s);
        wgmma_wait<0>();
        wgmma_fence(scores);
        make_p(s, scores);
      } else {
        make_a(s);
      }
      fence_shared_for_wgmma();
      // Whoever comes for this chunk has left the one before, whose stage is that of the chunk after next.
      meet();
      load<kQueries, kValues>(step + 2, rows, stride);
    }
  }

  // The two sides, once a chunk. Warpgroups 1 and 2: before its tiles are used, and after their last use of
  // the chunk before. That warpgroup 0 waits too costs nothing, and compute-sanitizer follows no bar.arrive;
  // nor does it know of a warp that it is through a barrier before that warp runs again. Whoever is through
  // the second has seen everybody through the first.
  __device__ void meet() const {
    named_barrier_anywhere(Pipe::kMeeting, Pipe::kThreads);
    named_barrier_anywhere(Pipe::kMeeting + 1, Pipe::kThreads);
  }

  // Starts writing the state that enters (leaves, in reverse) a step's chunk, given as this warp's left
  // operands: [2 halves of the values][128 key dims][64 values] as in the tiles of gdn_bwd_chunk_wgmma.cu.
  __device__ void store_state(bf16* states, int step, int half, const Frag (&s)[8]) const {
    const u32 image = shared_address(shared) + Pipe::kImages + half * kStateHalfBytes;
    if (thread == 0) bulk_wait_stores();
    named_barrier(Pipe::kImage + half, Pipe::kGroup);
    const u32 at = transposed_at(image, 16 * warp, lane);
#pragma unroll
    for (int ks = 0; ks < 8; ++ks) store_transposed(at + 2048 * ks, s[ks]);
    fence_shared_for_wgmma();
    named_barrier(Pipe::kImage + half, Pipe::kGroup);
    if (thread == 0) {
      bulk_store(states + args.slot(index(step), head) * kHead * kHead + half * kHead * kHalf, image,
                 kStateHalfBytes);
    }
  }

  // Puts x (as left operands: rows values, columns tokens) into this warp's columns of `tile`, that of a half
  // of the values, tokens being rows, and takes whole rows back, 16 bytes a lane: row 16 part + turned_row(),
  // chunk turned_chunk(). With eight lanes to a row a warp's store to global memory touches 4 lines; with its
  // own columns alone it would touch 16, and the next chunk waited for that.
  __device__ void turn_rows(uint4 (&rows)[4], const Tile<kHalf>& tile, int half, const Frag (&x)[4]) const {
    __syncwarp();
    const u32 at = transposed_at(tile.base, 16 * warp, lane);
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) store_transposed(at + 2048 * ks, x[ks]);
    named_barrier(Pipe::kTurn + half, Pipe::kGroup);
#pragma unroll
    for (int part = 0; part < 4; ++part) rows[part] = tile.load16(16 * part + turned_row(), turned_chunk());
  }
  __device__ int turned_row() const { return thread / 8; }
  __device__ int turned_chunk() const { return thread % 8; }

 private:
  // Starts the copies of a step's tiles; commits even where there is nothing left to load.
  template <bool kQueries, bool kValues>
  __device__ void load(int step, const bf16* rows, size_t stride) {
    thread = opaque(thread);  // addresses are computed anew rather than kept in registers
    if (step < length()) {
      const int at = index(step), key_head = head / args.group, s = step % Pipe::kStages;
      const Chunk chunk = args.chunk[at];
      const u32 to = stage(s);
      load_panels<kChunk, kHead, Pipe::kGroup>(to + Pipe::kK, args.k_row(chunk.begin, key_head),
                                               args.conv_dim, chunk.count, thread);
      if (kQueries)
        load_panels<kChunk, kHead, Pipe::kGroup>(to + Pipe::kQ, args.q_row(chunk.begin, key_head),
                                                 args.conv_dim, chunk.count, thread);
      if (kValues)
        load_panels<kChunk, kHead, Pipe::kGroup>(to + Pipe::kValues, rows + chunk.begin * stride, stride,
                                                 chunk.count, thread);
      const size_t slot = args.slot(at, head);
      load_tile<kChunk, Pipe::kGroup>(a(s), args.ar + slot * kChunk * kChunk, kChunk, kChunk, thread);
      if (thread < 32) {
        const float* src = (thread < 16 ? args.g : args.beta) + slot * kChunk + (thread % 16) * 4;
        copy_async16(shared_address(g(s)) + thread * 16, src);
      }
    }
    copy_async_commit();
  }

  // A = D o Ar in place of Ar, forward with its columns times beta; also the token vectors.
  __device__ void make_a(int s) const {
    constexpr bool kScaled = !kReverse;
    const float* gates = g(s);
    if (thread < kChunk) {
      e(s)[thread] = fast_exp(gates[thread]);
      r(s)[thread] = fast_exp(gates[kChunk - 1] - gates[thread]);
    }
    const int chunk8 = thread % 8;
    const float4 g_low = *reinterpret_cast<const float4*>(gates + 8 * chunk8);
    const float4 g_high = *reinterpret_cast<const float4*>(gates + 8 * chunk8 + 4);
    float4 b_low = make_float4(1, 1, 1, 1), b_high = b_low;
    if (kScaled) {
      b_low = *reinterpret_cast<const float4*>(beta(s) + 8 * chunk8);
      b_high = *reinterpret_cast<const float4*>(beta(s) + 8 * chunk8 + 4);
    }
    uint4 rows[4];
    float gi[4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      rows[part] = a(s).load16(16 * part + thread / 8, chunk8);
      gi[part] = gates[16 * part + thread / 8];
    }
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      uint4& v = rows[part];
      const float g = gi[part];
      v.x = scale_bf16(v.x, decay(g, g_low.x) * b_low.x, decay(g, g_low.y) * b_low.y);
      v.y = scale_bf16(v.y, decay(g, g_low.z) * b_low.z, decay(g, g_low.w) * b_low.w);
      v.z = scale_bf16(v.z, decay(g, g_high.x) * b_high.x, decay(g, g_high.y) * b_high.y);
      v.w = scale_bf16(v.w, decay(g, g_high.z) * b_high.z, decay(g, g_high.w) * b_high.w);
    }
#pragma unroll
    for (int part = 0; part < 4; ++part) a(s).store16(16 * part + thread / 8, chunk8, rows[part]);
  }

  // P = s D o (Q K^T) from this warp's 16 rows of the products.
  __device__ void make_p(int s, const float (&scores)[8][4]) const {
    const float* gates = g(s);
    const int row = 16 * warp + lane / 4;
    const float gi[2] = {gates[row], gates[row + 8]};
    u32 packed[8][2];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int j = 8 * n + lane % 4 * 2;
      const float2 gj = *reinterpret_cast<const float2*>(gates + j);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int i = row + 8 * side;
        const float p0 = kQueryScale * masked_decay(i >= j, gi[side], gj.x) * scores[n][2 * side];
        const float p1 = kQueryScale * masked_decay(i > j, gi[side], gj.y) * scores[n][2 * side + 1];
        packed[n][side] = pack_bf16(p0, p1);
      }
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      p(s).store_pair(row, n, packed[n][0]);
      p(s).store_pair(row + 8, n, packed[n][1]);
    }
  }
};

// The state (its gradient, in reverse) that a part of the work starts from, as a warp's rows of it: that in
// `slots` where `resumed`, zero, or the identity.
template <Part kPart>
__device__ __forceinline__ void start_state(float (&s)[16][4], const Slots& slots, bool resumed, int value,
                                            int q4) {
#pragma unroll
  for (int n = 0; n < 16; ++n) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int row = value + 8 * side, key_dim = 8 * n + 2 * q4;
      float2 x = make_float2(0.0f, 0.0f);
      if (kPart == Part::transition) x = make_float2(row == key_dim, row == key_dim + 1);
      if (kPart == Part::whole && resumed)
        x = *reinterpret_cast<const float2*>(slots.at(kEdge, row, key_dim));
      s[n][2 * side] = x.x;
      s[n][2 * side + 1] = x.y;
    }
  }
}

// Leaves what a part ends with in its slot.
template <Part kPart>
__device__ __forceinline__ void end_state(const float (&s)[16][4], const Slots& slots, int value, int q4) {
  constexpr Slot kSlot = kPart == Part::whole ? kEdge : kPart == Part::local ? kLocal : kTransition;
#pragma unroll
  for (int n = 0; n < 16; ++n)
#pragma unroll
    for (int side = 0; side < 2; ++side)
      *reinterpret_cast<float2*>(slots.at(kSlot, value + 8 * side, 8 * n + 2 * q4)) =
          make_float2(s[n][2 * side], s[n][2 * side + 1]);
}

// A warp's [16 values, 128 key dims] as left operands of products over the key dims.
__device__ __forceinline__ void pack_state(Frag (&left)[8], const float (&s)[16][4]) {
#pragma unroll
  for (int ks = 0; ks < 8; ++ks) left[ks] = to_a_frag(s[2 * ks], s[2 * ks + 1]);
}

// Issues out[values, 64 tokens] = left x^T, x [64 tokens, 128 key dims] as panels.
__device__ __forceinline__ void times_rows(float (&out)[8][4], const Frag (&left)[8], u32 x) {
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks)
    wgmma_registers_64<Major::k>(out, left[ks], k_major<kChunk>(x, ks), ks > 0);
  wgmma_commit();
}

// Issues state[values, 128 key dims] += left[values, 64 tokens] x.
__device__ __forceinline__ void add_to_state(float (&state)[16][4], const Frag (&left)[4], u32 x) {
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) wgmma_registers_128(state, left[ks], mn_major<kChunk>(x, ks));
}

// x[.., token] *= factor * scale[token]
__device__ __forceinline__ void scale_tokens(float (&x)[8][4], const float* scale, float factor, int q4) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 c = *reinterpret_cast<const float2*>(scale + 8 * n + 2 * q4);
    x[n][0] *= factor * c.x;
    x[n][1] *= factor * c.y;
    x[n][2] *= factor * c.x;
    x[n][3] *= factor * c.y;
  }
}

#endif
}  // namespace tessera::gdn
