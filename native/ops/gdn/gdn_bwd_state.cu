// Backward of the gated delta rule, the serial half: one block per (sequence, value head, half of the value columns),
// chunks in reverse order. dS [128, 64] is the gradient of the state leaving the chunk, zero at the sequence's end.
//
//   dU = P^T dO + r (K dS)        dB = A^T dU, A_ij = exp(G_i - G_j) Ar_ij        dX = dV = beta dB
//   dS = exp(G_last) dS + (s e Q)^T dO - (e K)^T dX            (e, r, s, P as in gdn_fwd.cu)
//
// Writes dV, and for gdn_bwd_chunk.cu dB and the dS that leaves each chunk. dB, not dX, is kept because the rest of the
// backward divides by beta otherwise (README.md). dS is fp32 in registers (warp w: key dims 16w..16w+15). Warps 0-3
// compute K dS for 16 tokens each, warps 4-7 meanwhile P^T dO, which they hand over in fp32; then warps 0-3 go on with
// dU and dB while warps 4-7 add (s e Q)^T dO. 98 KB of shared memory, two blocks an SM.
// All outputs are overwritten. Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kThreads = 256;
constexpr int kChainBarrier = 1;  // among warps 0-3

// Shared memory, in bytes.
constexpr int kK = 0;  // two tiles
constexpr int kQ = kK + 2 * kTileBytes;
constexpr int kDo = kQ + kTileBytes;
constexpr int kAr = kDo + kHalfTileBytes;
constexpr int kDs = kAr + kChunk * kChunk * 2;
constexpr int kPart = kDs + kStateHalfBytes;  // P^T dO in fp32 for warps 0-3, then dU and dB as bf16 tiles
constexpr int kDu = kPart;
constexpr int kDb = kPart + kHalfTileBytes;
constexpr int kGates = kPart + 2 * kHalfTileBytes;  // two sets of g, beta; then s e and -e beta
constexpr int kSharedBytes = kGates + 6 * kChunk * 4;

struct Block {
  const Args& args;
  const bf16* d_o;
  unsigned char* shared;
  int thread, lane, head, key_head, half;

  __device__ Tile<kHead> k(int slot) const { return {shared_address(shared) + kK + slot * kTileBytes, lane}; }
  __device__ Tile<kHead> q() const { return {shared_address(shared) + kQ, lane}; }
  __device__ Tile<kHalf> tile(int offset) const { return {shared_address(shared) + offset, lane}; }
  __device__ float* gates(int slot) const { return reinterpret_cast<float*>(shared + kGates) + slot * 2 * kChunk; }
  __device__ float* scaled_e() const { return reinterpret_cast<float*>(shared + kGates) + 4 * kChunk; }
  __device__ float* minus_e_beta() const { return scaled_e() + kChunk; }
  // Partial sums in the order of the threads that exchange them: n-th tile of the token block `block16`.
  __device__ float4* part(int block16, int n) const {
    return reinterpret_cast<float4*>(shared + kPart) + (block16 * 8 + n) * 32 + lane;
  }

  __device__ void load_k(const Chunk& chunk, int slot) const {
    load_tile<kChunk, kThreads>(k(slot), args.k_row(chunk.begin, key_head), args.conv_dim, chunk.count, thread);
  }
  __device__ void load_rest(const Chunk& chunk, int chunk_index, int slot) const {
    load_tile<kChunk, kThreads>(q(), args.q_row(chunk.begin, key_head), args.conv_dim, chunk.count, thread);
    load_tile<kChunk, kThreads>(tile(kDo), d_o + chunk.begin * args.values + head * kHead + half * kHalf, args.values,
                                chunk.count, thread);
    const size_t at = args.slot(chunk_index, head);
    load_tile<kChunk, kThreads>(tile(kAr), args.ar + at * kChunk * kChunk, kChunk, kChunk, thread);
    if (thread < 32) {
      const float* src = (thread < 16 ? args.g : args.beta) + at * kChunk + (thread % 16) * 4;
      copy_async16(shared_address(gates(slot)) + thread * 16, src);
    }
  }
};

// P^T (token rows row0.., columns from the diagonal block on) times dO, left in `part`.
__device__ __forceinline__ void compute_ptdo(const Block& block, int slot, int row0) {
  const int q = block.lane % 4, row = row0 + block.lane / 4;
  const float* g = block.gates(slot);
  const Tile<kHead> k = block.k(slot), q_tile = block.q();
  const Tile<kHalf> d_o = block.tile(kDo);
  float out[8][4] = {};
#pragma unroll
  for (int i0 = 0; i0 < kChunk; i0 += 16) {
    if (i0 < row0) continue;
    float p[2][4] = {};
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) mma_pair(p[0], p[1], k.a(row0, 16 * ks), q_tile.b_trans(16 * ks, i0));
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int i = i0 + 8 * n + 2 * q;
      const float2 gi = *reinterpret_cast<const float2*>(g + i);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int j = row + 8 * r;
        p[n][2 * r] = i >= j ? kQueryScale * decay(gi.x, g[j]) * p[n][2 * r] : 0.0f;
        p[n][2 * r + 1] = i + 1 >= j ? kQueryScale * decay(gi.y, g[j]) * p[n][2 * r + 1] : 0.0f;
      }
    }
    const Frag a = to_a_frag(p[0], p[1]);
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_pair(out[2 * n], out[2 * n + 1], a, d_o.b(i0, 16 * n));
  }
#pragma unroll
  for (int n = 0; n < 8; ++n) *block.part(row0 / 16, n) = make_float4(out[n][0], out[n][1], out[n][2], out[n][3]);
}

__device__ __forceinline__ void compute_kds(const Block& block, int slot, int row0, float (&out)[8][4]) {
  const Tile<kHead> k = block.k(slot);
  const Tile<kHalf> ds = block.tile(kDs);
#pragma unroll
  for (int n = 0; n < 8; ++n) out[n][0] = out[n][1] = out[n][2] = out[n][3] = 0.0f;
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks) {
    const Frag a = k.a(row0, 16 * ks);
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_pair(out[2 * n], out[2 * n + 1], a, ds.b(16 * ks, 16 * n));
  }
}

// dU = part + r (K dS) and dB = A^T dU for the tokens row0..row0+15 of warps 0-3, into the tiles at kDu and kDb.
__device__ __forceinline__ void compute_db(const Block& block, int slot, int row0, float (&kds)[8][4]) {
  const int q = block.lane % 4, row = row0 + block.lane / 4;
  const float* g = block.gates(slot);
  const Tile<kHalf> du = block.tile(kDu), db = block.tile(kDb);
  const float g_last = g[kChunk - 1];
  const float r[2] = {__expf(g_last - g[row]), __expf(g_last - g[row + 8])};
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float4 part = *block.part(row0 / 16, n);
    kds[n][0] = fmaf(r[0], kds[n][0], part.x);
    kds[n][1] = fmaf(r[0], kds[n][1], part.y);
    kds[n][2] = fmaf(r[1], kds[n][2], part.z);
    kds[n][3] = fmaf(r[1], kds[n][3], part.w);
  }
  named_barrier(kChainBarrier, kThreads / 2);  // part has been read
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    du.store_pair(row, n, pack_bf16(kds[n][0], kds[n][1]));
    du.store_pair(row + 8, n, pack_bf16(kds[n][2], kds[n][3]));
  }
  named_barrier(kChainBarrier, kThreads / 2);
  float out[8][4] = {};
#pragma unroll
  for (int i0 = 0; i0 < kChunk; i0 += 16) {
    if (i0 < row0) continue;
    // Row j of A^T: exp(G_i - G_j) Ar_ij over the columns i >= j; Ar is zero where i < j.
    Frag a = block.tile(kAr).a_trans(row0, i0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 gi = *reinterpret_cast<const float2*>(g + i0 + 8 * half + 2 * q);
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const float gj = g[row + 8 * side];
        a.r[2 * half + side] = scale_bf16(a.r[2 * half + side], decay(gi.x, gj), decay(gi.y, gj));
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_pair(out[2 * n], out[2 * n + 1], a, du.b(i0, 16 * n));
  }
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    db.store_pair(row, n, pack_bf16(out[n][0], out[n][1]));
    db.store_pair(row + 8, n, pack_bf16(out[n][2], out[n][3]));
  }
}

// ds[key dims key0.., 64] += (scale over tokens x)^T y, x [64 tokens, 128], y [64 tokens, 64]
__device__ __forceinline__ void add_outer(float (&ds)[8][4], const Tile<kHead>& x, const Tile<kHalf>& y,
                                          const float* scale, int key0, int q) {
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) {
    const Frag a = scale_columns(x.a_trans(key0, 16 * ks), scale, 16 * ks, q);
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_pair(ds[2 * n], ds[2 * n + 1], a, y.b(16 * ks, 16 * n));
  }
}

// Copies the dB tile to global memory and dV = beta dB beside it.
__device__ __forceinline__ void store_db(const Block& block, const Gradients& out, const Chunk& chunk,
                                         const float* beta) {
#pragma unroll
  for (int step = 0; step < kChunk * 8 / kThreads; ++step) {
    const int i = step * kThreads + block.thread, row = i / 8;
    if (row >= chunk.count) continue;
    uint4 v = block.tile(kDb).load16(row, i % 8);
    const size_t at = (static_cast<size_t>(chunk.begin) + row) * block.args.values + block.head * kHead +
                      block.half * kHalf + (i % 8) * 8;
    *reinterpret_cast<uint4*>(out.db + at) = v;
    const float b = beta[row];
    v.x = scale_bf16(v.x, b, b);
    v.y = scale_bf16(v.y, b, b);
    v.z = scale_bf16(v.z, b, b);
    v.w = scale_bf16(v.w, b, b);
    *reinterpret_cast<uint4*>(out.dv + at) = v;
  }
}

__global__ void __launch_bounds__(kThreads, 2) gdn_bwd_state_kernel(Args args, Gradients out, const bf16* d_o) {
  extern __shared__ __align__(1024) unsigned char shared[];
  int thread = threadIdx.x;
  const int head = blockIdx.x / 2;
  Block block{args, d_o, shared, thread, thread % 32, head, head / args.group, static_cast<int>(blockIdx.x % 2)};
  const ChunkRange range = args.seq_chunk[blockIdx.y];
  if (range.begin >= range.end) return;

  Chunk chunk = args.chunk[range.end - 1];
  block.load_k(chunk, 0);
  block.load_rest(chunk, range.end - 1, 0);
  copy_async_commit();

  float ds[8][4] = {};
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    block.tile(kDs).store_pair(thread / 32 * 16 + block.lane / 4, n, 0);
    block.tile(kDs).store_pair(thread / 32 * 16 + block.lane / 4 + 8, n, 0);
  }

  for (int index = range.end - 1; index >= range.begin; --index) {
    const int slot = (range.end - 1 - index) & 1;
    block.thread = thread = opaque(thread);
    block.lane = thread % 32;
    const int warp = thread / 32, q = block.lane % 4;
    const int key0 = 16 * warp;
    const bool more = index > range.begin;
    const Chunk next = more ? args.chunk[index - 1] : chunk;
    copy_async_wait<0>();
    __syncthreads();
    if (more) block.load_k(next, slot ^ 1);
    copy_async_commit();
    const float* gates = block.gates(slot);
    if (thread < kChunk) {
      const float e = __expf(gates[thread]);
      block.scaled_e()[thread] = kQueryScale * e;
      block.minus_e_beta()[thread] = -e * gates[kChunk + thread];
    }
    {
      bf16* dst = out.ds + args.slot(index, head) * kHead * kHead + block.half * kHalf;
#pragma unroll
      for (int step = 0; step < kHead * 8 / kThreads; ++step) {
        const int i = step * kThreads + thread;
        *reinterpret_cast<uint4*>(dst + (i / 8) * kHead + (i % 8) * 8) = block.tile(kDs).load16(i / 8, i % 8);
      }
    }
    float kds[8][4];
    if (warp < 4) {
      compute_kds(block, slot, 16 * warp, kds);
    } else {
      compute_ptdo(block, slot, 16 * (7 - warp));
    }
    __syncthreads();
    if (warp < 4) compute_db(block, slot, 16 * warp, kds);
    block.lane = opaque(block.lane);
    const float carry = __expf(gates[kChunk - 1]);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int r = 0; r < 4; ++r) ds[n][r] *= carry;
    add_outer(ds, block.q(), block.tile(kDo), block.scaled_e(), key0, q);
    __syncthreads();
    block.thread = thread = opaque(thread);
    block.lane = thread % 32;
    if (more) block.load_rest(next, index - 1, slot ^ 1);
    copy_async_commit();
    store_db(block, out, chunk, gates + kChunk);
    add_outer(ds, block.k(slot), block.tile(kDb), block.minus_e_beta(), key0, q);
    if (more) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        block.tile(kDs).store_pair(key0 + block.lane / 4, n, pack_bf16(ds[n][0], ds[n][1]));
        block.tile(kDs).store_pair(key0 + block.lane / 4 + 8, n, pack_bf16(ds[n][2], ds[n][3]));
      }
    }
    chunk = next;
  }
}

}  // namespace

void run_bwd_state(const Args& args, const Gradients& out, const bf16* d_o, int num_seq, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(gdn_bwd_state_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
             "gdn_bwd_state");
  gdn_bwd_state_kernel<<<dim3(2 * args.value_heads, num_seq), kThreads, kSharedBytes, stream>>>(args, out, d_o);
  check_launch("gdn_bwd_state");
}

}  // namespace tessera::gdn
