// Forward of the chunked gated delta rule: one block per (sequence, value head, half of the value columns).
//
// Per chunk of 64 tokens, with the state S [128, 64] entering it (G, beta, Ar from gdn_kkt.cu):
//   X = V - e (K S)            U = M X,  M_ij = exp(G_i - G_j) Ar_ij beta_j
//   P = s exp(G_i - G_j) (Q K^T), lower triangle         O = s e (Q S) + P U
//   S = exp(G_last) S + (r K)^T U                         e_i = exp(G_i), r_i = exp(G_last - G_i), s = 1 / sqrt(128)
//
// S is fp32 in registers (warp w: key dims 16w..16w+15); operands are bf16, sums fp32. Warps 0-3 compute X and U for 16
// tokens each, warps 4-7 meanwhile Q S and P; then all update S and warps 4-7 finish O. The next chunk's K is fetched
// at the start of a chunk, its Q, V, Ar and gates as soon as they are free. 89.5 KB of shared memory, two blocks an SM.
// o and state (the S entering each chunk, optional) are overwritten. Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kThreads = 256;
constexpr int kChainBarrier = 1;  // among warps 0-3

// Shared memory, in bytes.
constexpr int kK = 0;  // two tiles
constexpr int kQ = kK + 2 * kTileBytes;
constexpr int kX = kQ + kTileBytes;  // V, then X in its place
constexpr int kAr = kX + kHalfTileBytes;
constexpr int kS = kAr + kChunk * kChunk * 2;
constexpr int kU = kS + kStateHalfBytes;
constexpr int kGates = kU + kHalfTileBytes;  // two sets of g, beta; then r
constexpr int kSharedBytes = kGates + 5 * kChunk * 4;

struct Block {
  const Args& args;
  unsigned char* shared;
  int thread, lane, head, key_head, half;

  __device__ Tile<kHead> k(int slot) const { return Tile<kHead>(shared_address(shared) + kK + slot * kTileBytes, lane); }
  __device__ Tile<kHead> q() const { return Tile<kHead>(shared_address(shared) + kQ, lane); }
  __device__ Tile<kHalf> x() const { return Tile<kHalf>(shared_address(shared) + kX, lane); }
  __device__ Tile<kChunk> ar() const { return Tile<kChunk>(shared_address(shared) + kAr, lane); }
  __device__ Tile<kHalf> s() const { return Tile<kHalf>(shared_address(shared) + kS, lane); }
  __device__ Tile<kHalf> u() const { return Tile<kHalf>(shared_address(shared) + kU, lane); }
  __device__ float* gates(int slot) const { return reinterpret_cast<float*>(shared + kGates) + slot * 2 * kChunk; }
  __device__ float* r() const { return reinterpret_cast<float*>(shared + kGates) + 4 * kChunk; }

  __device__ void load_k(const Chunk& chunk, int slot) const {
    load_tile<kChunk, kThreads>(k(slot), args.k_row(chunk.begin, key_head), args.conv_dim, chunk.count, thread);
  }
  __device__ void load_rest(const Chunk& chunk, int chunk_index, int slot) const {
    load_tile<kChunk, kThreads>(q(), args.q_row(chunk.begin, key_head), args.conv_dim, chunk.count, thread);
    load_tile<kChunk, kThreads>(x(), args.v_row(chunk.begin, head) + half * kHalf, args.conv_dim, chunk.count, thread);
    const size_t at = args.slot(chunk_index, head);
    load_tile<kChunk, kThreads>(ar(), args.ar + at * kChunk * kChunk, kChunk, kChunk, thread);
    if (thread < 32) {
      const float* src = (thread < 16 ? args.g : args.beta) + at * kChunk + (thread % 16) * 4;
      copy_async16(shared_address(gates(slot)) + thread * 16, src);
    }
  }
};

// X = V - e (K S) in place of V, then U = M X, for the 16 tokens from `row0`; U goes to shared memory.
__device__ __forceinline__ void compute_u(const Block& block, int slot, int row0) {
  const int q = block.lane % 4, row = row0 + block.lane / 4;
  const float* g = block.gates(slot);
  const Tile<kHead> k = block.k(slot);
  const Tile<kHalf> s = block.s(), x = block.x();
  {
    float y[8][4] = {};
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) {
      const Frag a = k.a(row0, 16 * ks);
#pragma unroll
      for (int n = 0; n < 4; ++n) mma_pair(y[2 * n], y[2 * n + 1], a, s.b(16 * ks, 16 * n));
    }
    const float e[2] = {__expf(g[row]), __expf(g[row + 8])};
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const u32 v = x.load_pair(row + 8 * r, n);
        x.store_pair(row + 8 * r, n,
                     pack_bf16(low_float(v) - e[r] * y[n][2 * r], high_float(v) - e[r] * y[n][2 * r + 1]));
      }
    }
  }
  named_barrier(kChainBarrier, kThreads / 2);
  float u[8][4] = {};
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) {
    if (16 * ks > row0) break;
    const Frag m = decayed_rows(block.ar().a(row0, 16 * ks), g, g + kChunk, row, 16 * ks, q);
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_pair(u[2 * n], u[2 * n + 1], m, x.b(16 * ks, 16 * n));
  }
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    block.u().store_pair(row, n, pack_bf16(u[n][0], u[n][1]));
    block.u().store_pair(row + 8, n, pack_bf16(u[n][2], u[n][3]));
  }
}

// P for the 16 tokens from `row0`, as A fragments, 32 columns at a time; those past the diagonal block stay zero.
__device__ __forceinline__ void compute_p(const Block& block, int slot, int row0, Frag (&p_frag)[4]) {
  const int q = block.lane % 4, row = row0 + block.lane / 4;
  const float* g = block.gates(slot);
  const Tile<kHead> k = block.k(slot), q_tile = block.q();
#pragma unroll
  for (int j0 = 0; j0 < kChunk; j0 += 32) {
    float p[4][4] = {};
    if (j0 <= row0) {
#pragma unroll
      for (int ks = 0; ks < kHead / 16; ++ks) {
        const Frag a = q_tile.a(row0, 16 * ks);
        mma_pair(p[0], p[1], a, k.b_trans(16 * ks, j0));
        mma_pair(p[2], p[3], a, k.b_trans(16 * ks, j0 + 16));
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = j0 + 8 * n + 2 * q;
      const float2 gj = *reinterpret_cast<const float2*>(g + j);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int i = row + 8 * r;
        p[n][2 * r] = i >= j ? kQueryScale * decay(g[i], gj.x) * p[n][2 * r] : 0.0f;
        p[n][2 * r + 1] = i >= j + 1 ? kQueryScale * decay(g[i], gj.y) * p[n][2 * r + 1] : 0.0f;
      }
    }
    p_frag[j0 / 16] = to_a_frag(p[0], p[1]);
    p_frag[j0 / 16 + 1] = to_a_frag(p[2], p[3]);
  }
}

// o = s e (Q S) for the 16 tokens from `row0`.
__device__ __forceinline__ void compute_qs(const Block& block, int slot, int row0, float (&o)[8][4]) {
  const float* g = block.gates(slot) + row0 + block.lane / 4;
  const Tile<kHead> q_tile = block.q();
  const Tile<kHalf> s = block.s();
#pragma unroll
  for (int n = 0; n < 8; ++n) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.0f;
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks) {
    const Frag a = q_tile.a(row0, 16 * ks);
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_pair(o[2 * n], o[2 * n + 1], a, s.b(16 * ks, 16 * n));
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float scale = kQueryScale * __expf(g[8 * r]);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      o[n][2 * r] *= scale;
      o[n][2 * r + 1] *= scale;
    }
  }
}

template <bool kSave>
__global__ void __launch_bounds__(kThreads, 2) gdn_fwd_kernel(Args args, bf16* o_out, bf16* state_out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  int thread = threadIdx.x, lane = thread % 32;
  const int half = blockIdx.x % 2, head = blockIdx.x / 2;
  Block block{args, shared, thread, lane, head, head / args.group, half};
  const ChunkRange range = args.seq_chunk[blockIdx.y];
  if (range.begin >= range.end) return;

  Chunk chunk = args.chunk[range.begin];
  block.load_k(chunk, 0);
  block.load_rest(chunk, range.begin, 0);
  copy_async_commit();

  float s[8][4] = {};
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    block.s().store_pair(thread / 32 * 16 + lane / 4, n, 0);
    block.s().store_pair(thread / 32 * 16 + lane / 4 + 8, n, 0);
  }

  for (int index = range.begin; index < range.end; ++index) {
    const int slot = (index - range.begin) & 1;
    block.thread = thread = opaque(thread);
    block.lane = lane = opaque(lane);
    const int warp = thread / 32, g = lane / 4, q = lane % 4;
    const int key0 = 16 * warp;        // this warp's rows of the state
    const int out0 = 16 * (7 - warp);  // rows of O of warps 4-7: long ones beside the short ones of warps 0-3
    const bool more = index + 1 < range.end;
    const Chunk next = more ? args.chunk[index + 1] : chunk;
    copy_async_wait<0>();
    __syncthreads();
    if (more) block.load_k(next, slot ^ 1);
    copy_async_commit();
    const float* gates = block.gates(slot);
    const float g_last = gates[kChunk - 1];  // rows of padding repeat the last one
    if (thread < kChunk) block.r()[thread] = __expf(g_last - gates[thread]);
    if (kSave) {
      bf16* dst = state_out + args.slot(index, head) * kHead * kHead + half * kHalf;
#pragma unroll
      for (int i = thread; i < kHead * 8; i += kThreads) {
        *reinterpret_cast<uint4*>(dst + (i / 8) * kHead + (i % 8) * 8) = block.s().load16(i / 8, i % 8);
      }
    }
    float o[8][4];
    Frag p[4];
    if (warp < 4) {
      compute_u(block, slot, 16 * warp);
    } else {
      compute_p(block, slot, out0, p);
      block.lane = opaque(block.lane);
      compute_qs(block, slot, out0, o);
    }
    __syncthreads();
    block.thread = thread = opaque(thread);
    block.lane = lane = thread % 32;
    const Tile<kHalf> u = block.u();
    if (more) block.load_rest(next, index + 1, slot ^ 1);
    copy_async_commit();

    const float carry = __expf(g_last);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int r = 0; r < 4; ++r) s[n][r] *= carry;
#pragma unroll
    for (int ks = 0; ks < kChunk / 16; ++ks) {
      const Frag a = scale_columns(block.k(slot).a_trans(key0, 16 * ks), block.r(), 16 * ks, q);
#pragma unroll
      for (int n = 0; n < 4; ++n) mma_pair(s[2 * n], s[2 * n + 1], a, u.b(16 * ks, 16 * n));
    }
    if (more) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        block.s().store_pair(key0 + g, n, pack_bf16(s[n][0], s[n][1]));
        block.s().store_pair(key0 + g + 8, n, pack_bf16(s[n][2], s[n][3]));
      }
    }
    if (warp >= 4) {
#pragma unroll
      for (int ks = 0; ks < kChunk / 16; ++ks) {
        if (16 * ks > out0) break;
#pragma unroll
        for (int n = 0; n < 4; ++n) mma_pair(o[2 * n], o[2 * n + 1], p[ks], u.b(16 * ks, 16 * n));
      }
      bf16* dst = o_out + (static_cast<size_t>(chunk.begin) + out0 + g) * args.values + head * kHead + half * kHalf;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (out0 + g + 8 * r >= chunk.count) continue;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          *reinterpret_cast<u32*>(dst + 8 * r * args.values + 8 * n + 2 * q) =
              pack_bf16(o[n][2 * r], o[n][2 * r + 1]);
        }
      }
    }
    chunk = next;
  }
}

}  // namespace

void run_fwd(const Args& args, bf16* o, bf16* state, int num_seq, cudaStream_t stream) {
  const auto kernel = state ? gdn_fwd_kernel<true> : gdn_fwd_kernel<false>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes), "gdn_fwd");
  kernel<<<dim3(2 * args.value_heads, num_seq), kThreads, kSharedBytes, stream>>>(args, o, state);
  check_launch("gdn_fwd");
}

}  // namespace tessera::gdn
