// Backward of the gated delta rule, the parallel half: one block per (chunk, value head).
//
// With S entering the chunk, dS leaving it and dB = A^T dU from gdn_bwd_state.cu (e, r, s, M, D as in
// gdn_fwd.cu; k.k the matrix K K^T; row dots are written <.,.>):
//   X  = V - e (K S),  U = M X
//   Z  = -D strict_lower(dB U^T)          gradient of beta K K^T          W = beta Z
//   Ps = s D lower(dO U^T)
//   dQ = s e (dO S^T) + Ps K
//   dK = -e beta (dB S^T) + (r U) dS^T + Ps^T Q + (W + W^T) K
//   d_beta  = <dB, X> + sum_j Z_ij k_i.k_j
//   dG_i    = <dQ, Q> - <dK, K> + 2 (<-e beta dB S^T, K> + sum_j W_ij k_i.k_j)
//   dG_last += sum_i r_i <U dS^T, K>_i + exp(G_last) <dS, S>
//   d_gamma = reverse inclusive sum of dG
// (CUDA.md derives dG; <-e beta dB S^T, K> is computed as -e beta <dB, K S>.)
//
// The value columns go in two halves, each pass fetching what the next needs: 98.5 KB of shared memory, one
// block an SM (two need more than sm_80 has; with their 128 registers a thread this spills). Warp w owns
// token rows 16 (w % 4).. and the column half w / 4 of every product. Outputs are overwritten; gates of
// unused chunks become zero. Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// Shared memory, in bytes.
constexpr int kK = 0;
constexpr int kAr = kK + kTileBytes;  // Ar, then Ps
constexpr int kPs = kAr;
constexpr int kW = kAr + kChunk * kChunk * 2;
constexpr int kU = kW + kChunk * kChunk * 2;  // two halves; V, then X, then U in place
constexpr int kGrad =
    kU + 2 * kHalfTileBytes;  // two halves of {dO, dB}; half 1 then holds dS_1, half 0 then Q
constexpr int kS = kGrad + 4 * kHalfTileBytes;  // S_0, S_1, S_0, dS_0 in turn
constexpr int kVectors = kS + kStateHalfBytes;  // g, beta, then sums by row: [column half][64] of each
constexpr int kSharedBytes = kVectors + 8 * kChunk * 4 + kWarps * 4;
static_assert(kSharedBytes <= 99 * 1024);

// Sums over the columns of a token's row that one thread has seen since the last leave().
struct RowSums {
  float beta[2] = {};   // of d_beta
  float decay[2] = {};  // of dG
  float write[2] = {};  // of <(r U) dS^T, K>
};

struct Block {
  const Args& args;
  unsigned char* shared;
  int thread, lane, row0, side;

  // Not kept in registers, of which there are few.
  __device__ int head() const { return blockIdx.x; }
  __device__ int key_head() const { return blockIdx.x / args.group; }
  __device__ int chunk_index() const { return blockIdx.y; }
  __device__ Chunk chunk() const { return args.chunk[blockIdx.y]; }

  __device__ Tile<kHead> wide(int offset) const { return {shared_address(shared) + offset, lane}; }
  __device__ Tile<kHalf> tile(int offset) const { return {shared_address(shared) + offset, lane}; }
  __device__ Tile<kHalf> u(int half) const { return tile(kU + half * kHalfTileBytes); }
  __device__ Tile<kHalf> d_o(int half) const { return tile(kGrad + 2 * half * kHalfTileBytes); }
  __device__ Tile<kHalf> db(int half) const { return tile(kGrad + (2 * half + 1) * kHalfTileBytes); }
  __device__ float* vector(int i) const { return reinterpret_cast<float*>(shared + kVectors) + i * kChunk; }
  __device__ const float* g() const { return vector(0); }
  __device__ const float* beta() const { return vector(1); }
  __device__ int row() const { return row0 + lane / 4; }
  // Between phases: addresses are computed anew rather than kept in registers (see opaque()).
  __device__ void forget() {
    thread = opaque(thread);
    lane = thread % 32;
    row0 = 16 * (thread / 32 % 4);
    side = thread / 128;
  }

  // A [128, 64] half of a [128, 128] state.
  __device__ void load_state(const Tile<kHalf>& dst, const bf16* states, int half) const {
    load_tile<kHead, kThreads>(dst, states + args.slot(chunk_index(), head()) * kHead * kHead + half * kHalf,
                               kHead, kHead, thread);
  }
  // A [64, 64] half of a head's rows of x [T, VD].
  __device__ void load_values(const Tile<kHalf>& dst, const bf16* x, int half) const {
    load_tile<kChunk, kThreads>(dst, x + chunk().begin * args.values + head() * kHead + half * kHalf,
                                args.values, chunk().count, thread);
  }
  __device__ void load_v(int half) const {
    load_tile<kChunk, kThreads>(u(half), args.v_row(chunk().begin, head()) + half * kHalf, args.conv_dim,
                                chunk().count, thread);
  }
};

// Adds sums over this warp's columns of each row to the shared ones (which the first call sets), so that they
// hold no registers meanwhile. The same lane owns a row in every call.
template <bool kFirst>
__device__ __forceinline__ void leave(const Block& block, RowSums& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float total[3] = {sums.beta[r], sums.decay[r], sums.write[r]};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      total[i] = warp_sum<4>(total[i]);
      float* at = block.vector(2 + 2 * i + block.side) + block.row() + 8 * r;
      if (block.lane % 4 == 0) *at = kFirst ? total[i] : *at + total[i];
    }
  }
  sums = RowSums{};
}

// X = V - e (K S) in place of V for this warp's 16 rows and 32 columns; adds <dB, X> and 2 <-e beta dB, K S>.
__device__ __forceinline__ void compute_x(const Block& block, int half, RowSums& sums) {
  const Tile<kHead> k = block.wide(kK);
  const Tile<kHalf> s = block.tile(kS), x = block.u(half), db = block.db(half);
  float y[4][4] = {};
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks) {
    const Frag a = k.a(block.row0, 16 * ks);
    mma_pair(y[0], y[1], a, s.b(16 * ks, 32 * block.side));
    mma_pair(y[2], y[3], a, s.b(16 * ks, 32 * block.side + 16));
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = block.row() + 8 * r;
    const float e = fast_exp(block.g()[row]);
    float dot_x = 0.0f, dot_y = 0.0f;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const u32 v = x.load_pair(row, 4 * block.side + n), d = db.load_pair(row, 4 * block.side + n);
      const float x0 = low_float(v) - e * y[n][2 * r], x1 = high_float(v) - e * y[n][2 * r + 1];
      dot_x += low_float(d) * x0 + high_float(d) * x1;
      dot_y += low_float(d) * y[n][2 * r] + high_float(d) * y[n][2 * r + 1];
      x.store_pair(row, 4 * block.side + n, pack_bf16(x0, x1));
    }
    sums.beta[r] += dot_x;
    // Counted twice in dG and once, with the other sign, in what `write` must not contain.
    sums.decay[r] -= 2.0f * e * block.beta()[row] * dot_y;
    sums.write[r] += e * block.beta()[row] * dot_y;
  }
}

__device__ __forceinline__ void compute_u(const Block& block, int half, const Frag (&m)[4],
                                          float (&u)[4][4]) {
  const Tile<kHalf> x = block.u(half);
#pragma unroll
  for (int n = 0; n < 4; ++n) u[n][0] = u[n][1] = u[n][2] = u[n][3] = 0.0f;
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) {
    if (16 * ks > block.row0) continue;
    mma_pair(u[0], u[1], m[ks], x.b(16 * ks, 32 * block.side));
    mma_pair(u[2], u[3], m[ks], x.b(16 * ks, 32 * block.side + 16));
  }
}

__device__ __forceinline__ void store_u(const Block& block, int half, const float (&u)[4][4]) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    block.u(half).store_pair(block.row(), 4 * block.side + n, pack_bf16(u[n][0], u[n][1]));
    block.u(half).store_pair(block.row() + 8, 4 * block.side + n, pack_bf16(u[n][2], u[n][3]));
  }
}

// Ps and W for the 16-column blocks of this warp's half up to the diagonal; adds their parts of d_beta and
// dG.
__device__ __forceinline__ void compute_masked(const Block& block, RowSums& sums) {
  const int q = block.lane % 4;
  const Tile<kHead> k = block.wide(kK);
#pragma unroll
  for (int block16 = 0; block16 < 2; ++block16) {
    const int j0 = 32 * block.side + 16 * block16;
    if (j0 > block.row0) continue;
    float dp[2][4] = {}, z[2][4] = {}, kk[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int ks = 0; ks < kHalf / 16; ++ks) {
        const Frag u = block.u(half).b_trans(16 * ks, j0);
        mma_pair(dp[0], dp[1], block.d_o(half).a(block.row0, 16 * ks), u);
        mma_pair(z[0], z[1], block.db(half).a(block.row0, 16 * ks), u);
      }
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int j = j0 + 8 * n + 2 * q;
      const float2 gj = *reinterpret_cast<const float2*>(block.g() + j);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int i = block.row() + 8 * r;
        const float gi = block.g()[i], d0 = masked_decay(i >= j, gi, gj.x),
                    d1 = masked_decay(i > j, gi, gj.y);
        block.tile(kPs).store_pair(
            i, j0 / 8 + n, pack_bf16(kQueryScale * d0 * dp[n][2 * r], kQueryScale * d1 * dp[n][2 * r + 1]));
        z[n][2 * r] *= i == j ? 0.0f : -d0;
        z[n][2 * r + 1] *= i == j + 1 ? 0.0f : -d1;
      }
    }
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks)
      mma_pair(kk[0], kk[1], k.a(block.row0, 16 * ks), k.b_trans(16 * ks, j0));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = block.row() + 8 * r;
      const float beta = block.beta()[i];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float z0 = z[n][2 * r], z1 = z[n][2 * r + 1], k0 = kk[n][2 * r], k1 = kk[n][2 * r + 1];
        sums.beta[r] += z0 * k0 + z1 * k1;
        // With W as rounded: the same products enter <dK, K> and have to cancel.
        const u32 w = pack_bf16(beta * z0, beta * z1);
        sums.decay[r] += 2.0f * (low_float(w) * k0 + high_float(w) * k1);
        block.tile(kW).store_pair(i, j0 / 8 + n, w);
      }
    }
  }
}

// dq += dO S^T, dk += dB S^T for this warp's 16 rows and 64 key dims; s: [128 key dims, 64].
__device__ __forceinline__ void add_state_products(const Block& block, const Tile<kHalf>& s, int half,
                                                   float (&dq)[8][4], float (&dk)[8][4]) {
#pragma unroll
  for (int ks = 0; ks < kHalf / 16; ++ks) {
    const Frag d_o = block.d_o(half).a(block.row0, 16 * ks), db = block.db(half).a(block.row0, 16 * ks);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const Frag b = s.b_trans(16 * ks, 64 * block.side + 16 * n);
      mma_pair(dq[2 * n], dq[2 * n + 1], d_o, b);
      mma_pair(dk[2 * n], dk[2 * n + 1], db, b);
    }
  }
}

// dk += (r U) dS^T
__device__ __forceinline__ void add_write_products(const Block& block, const Tile<kHalf>& ds, int half,
                                                   float (&dk)[8][4]) {
  const float g_last = block.g()[kChunk - 1];
  const float r[2] = {fast_exp(g_last - block.g()[block.row()]),
                      fast_exp(g_last - block.g()[block.row() + 8])};
#pragma unroll
  for (int ks = 0; ks < kHalf / 16; ++ks) {
    Frag a = block.u(half).a(block.row0, 16 * ks);
    a.r[0] = scale_bf16(a.r[0], r[0], r[0]);
    a.r[1] = scale_bf16(a.r[1], r[1], r[1]);
    a.r[2] = scale_bf16(a.r[2], r[0], r[0]);
    a.r[3] = scale_bf16(a.r[3], r[1], r[1]);
#pragma unroll
    for (int n = 0; n < 4; ++n)
      mma_pair(dk[2 * n], dk[2 * n + 1], a, ds.b_trans(16 * ks, 64 * block.side + 16 * n));
  }
}

// sum += x[row, this warp's 64 columns] . y for the two rows of a thread
__device__ __forceinline__ void add_row_dots(const Block& block, const Tile<kHead>& x, const float (&y)[8][4],
                                             float sign, float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float dot = 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const u32 v = x.load_pair(block.row() + 8 * r, 8 * block.side + n);
      dot += low_float(v) * y[n][2 * r] + high_float(v) * y[n][2 * r + 1];
    }
    sum[r] += sign * dot;
  }
}

// This thread's part of <dS, S> over the half that `ds` holds, S read from global memory.
__device__ __forceinline__ float state_dot(const Block& block, const Tile<kHalf>& ds, const bf16* state,
                                           int half) {
  const bf16* s = state + block.args.slot(block.chunk_index(), block.head()) * kHead * kHead + half * kHalf;
  float dot = 0.0f;
#pragma unroll 2  // beside the accumulators there are no registers for more at once
  for (int step = 0; step < kHead * 8 / kThreads; ++step) {
    const int i = step * kThreads + block.thread;
    const uint4 a = ds.load16(i / 8, i % 8);
    const uint4 b = *reinterpret_cast<const uint4*>(s + (i / 8) * kHead + (i % 8) * 8);
    dot += low_float(a.x) * low_float(b.x) + high_float(a.x) * high_float(b.x);
    dot += low_float(a.y) * low_float(b.y) + high_float(a.y) * high_float(b.y);
    dot += low_float(a.z) * low_float(b.z) + high_float(a.z) * high_float(b.z);
    dot += low_float(a.w) * low_float(b.w) + high_float(a.w) * high_float(b.w);
  }
  return dot;
}

__device__ __forceinline__ void store_rows(const Block& block, bf16* out, const float (&x)[8][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = block.row() + 8 * r;
    if (i >= block.chunk().count) continue;
    bf16* dst =
        out +
        ((static_cast<size_t>(block.chunk().begin) + i) * block.args.value_heads + block.head()) * kHead +
        64 * block.side + 2 * (block.lane % 4);
#pragma unroll
    for (int n = 0; n < 8; ++n)
      *reinterpret_cast<u32*>(dst + 8 * n) = pack_bf16(x[n][2 * r], x[n][2 * r + 1]);
  }
}

// Brings the row sums of the two column halves and <dS, S> together: one warp finishes the gates.
__device__ __forceinline__ void finish_gates(const Block& block, const Gradients& out, float state_part) {
  state_part = warp_sum(state_part);
  if (block.lane == 0) block.vector(8)[block.thread / 32] = state_part;
  __syncthreads();
  if (block.thread >= 32) return;
  const int lane = block.lane, last = block.chunk().count - 1;
  float dg[2], write = 0.0f;
  const size_t at = block.args.slot(block.chunk_index(), block.head()) * kChunk + lane;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const int i = lane + 32 * part;
    out.d_beta[at + 32 * part] = block.vector(2)[i] + block.vector(3)[i];
    dg[part] = block.vector(4)[i] + block.vector(5)[i];
    write += block.vector(6)[i] + block.vector(7)[i];
  }
  write = warp_sum(write);
  const float states = warp_sum<kWarps>(lane < kWarps ? block.vector(8)[lane] : 0.0f);
  const float at_last = write + fast_exp(block.g()[kChunk - 1]) * __shfl_sync(0xffffffffu, states, 0);
#pragma unroll
  for (int part = 0; part < 2; ++part)
    if (lane + 32 * part == last) dg[part] += at_last;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float low = __shfl_down_sync(0xffffffffu, dg[0], step);
    const float high = __shfl_down_sync(0xffffffffu, dg[1], step);
    if (lane + step < 32) {
      dg[0] += low;
      dg[1] += high;
    }
  }
  dg[0] += __shfl_sync(0xffffffffu, dg[1], 0);
  out.d_gamma[at] = dg[0];
  out.d_gamma[at + 32] = dg[1];
}

__global__ void __launch_bounds__(kThreads, 1)
    gdn_bwd_chunk_kernel(Args args, Gradients out, const bf16* d_o, const bf16* state) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = threadIdx.x, warp = thread / 32, head = blockIdx.x, chunk_index = blockIdx.y;
  Block block{args, shared, thread, thread % 32, 16 * (warp % 4), warp / 4};
  if (block.chunk().count == 0) {
    if (thread < kChunk) {
      const size_t at = args.slot(chunk_index, head) * kChunk + thread;
      out.d_gamma[at] = 0.0f;
      out.d_beta[at] = 0.0f;
    }
    return;
  }
  constexpr int kOtherS = kGrad + 2 * kHalfTileBytes;
  const size_t slot = args.slot(chunk_index, head);

  load_tile<kChunk, kThreads>(block.wide(kK), args.k_row(block.chunk().begin, block.key_head()),
                              args.conv_dim, block.chunk().count, thread);
  block.load_state(block.tile(kS), state, 0);
  block.load_v(0);
  load_tile<kChunk, kThreads>(block.tile(kAr), args.ar + slot * kChunk * kChunk, kChunk, kChunk, thread);
  block.load_values(block.db(0), out.db, 0);
  if (thread < 32) {
    const float* src = (thread < 16 ? args.g : args.beta) + slot * kChunk + (thread % 16) * 4;
    copy_async16(shared_address(block.vector(0)) + thread * 16, src);
  }
  copy_async_commit();
  block.load_v(1);
  block.load_values(block.db(1), out.db, 1);
  block.load_values(block.d_o(0), d_o, 0);
  block.load_values(block.d_o(1), d_o, 1);
  copy_async_commit();

  RowSums sums;
  {
    copy_async_wait<1>();
    __syncthreads();
    Frag m[4];
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) {
      m[ks] = decayed_rows(block.tile(kAr).a(block.row0, 16 * ks), block.g(), block.beta(), block.row(),
                           16 * ks, block.lane % 4);
    }
    compute_x(block, 0, sums);
    __syncthreads();
    block.load_state(block.tile(kS), state, 1);
    copy_async_commit();
    float u[4][4];
    compute_u(block, 0, m, u);
    copy_async_wait<0>();
    __syncthreads();
    store_u(block, 0, u);
    compute_x(block, 1, sums);
    leave<true>(block, sums);
    __syncthreads();
    compute_u(block, 1, m, u);
    __syncthreads();
    store_u(block, 1, u);
  }
  // What the products need is always on its way while the step before runs.
  float dq[8][4] = {}, dk[8][4] = {};
  add_state_products(block, block.tile(kS), 1, dq, dk);
  __syncthreads();
  block.load_state(block.tile(kS), state, 0);
  copy_async_commit();
  block.forget();
  compute_masked(block, sums);
  leave<false>(block, sums);
  copy_async_wait<0>();
  __syncthreads();
  block.forget();
  block.load_state(block.tile(kOtherS), out.ds, 1);
  copy_async_commit();
  add_state_products(block, block.tile(kS), 0, dq, dk);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float g = block.g()[block.row() + 8 * r], e = fast_exp(g),
                minus_e_beta = -e * block.beta()[block.row() + 8 * r];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      dq[n][2 * r] *= kQueryScale * e;
      dq[n][2 * r + 1] *= kQueryScale * e;
      dk[n][2 * r] *= minus_e_beta;
      dk[n][2 * r + 1] *= minus_e_beta;
    }
  }
  copy_async_wait<0>();
  __syncthreads();
  block.forget();
  block.load_state(block.tile(kS), out.ds, 0);
  load_tile<kChunk, kThreads>(block.wide(kGrad), args.q_row(block.chunk().begin, block.key_head()),
                              args.conv_dim, block.chunk().count, block.thread);
  copy_async_commit();
  block.forget();
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) {
    if (16 * ks > block.row0) continue;
    const Frag a = block.tile(kPs).a(block.row0, 16 * ks);
#pragma unroll
    for (int n = 0; n < 4; ++n)
      mma_pair(dq[2 * n], dq[2 * n + 1], a, block.wide(kK).b(16 * ks, 64 * block.side + 16 * n));
  }
  add_write_products(block, block.tile(kOtherS), 1, dk);
  float state_part = state_dot(block, block.tile(kOtherS), state, 1);
  copy_async_wait<0>();
  __syncthreads();
  block.forget();
  add_row_dots(block, block.wide(kGrad), dq, 1.0f, sums.decay);
  store_rows(block, out.dq, dq);
  block.forget();
  add_write_products(block, block.tile(kS), 0, dk);
  state_part += state_dot(block, block.tile(kS), state, 0);
  add_row_dots(block, block.wide(kK), dk, 1.0f, sums.write);
  block.forget();
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) {
    const bool below = 16 * ks <= block.row0, above = 16 * ks >= block.row0;
    Frag w_rows, w_columns, p_columns;
    if (below) w_rows = block.tile(kW).a(block.row0, 16 * ks);
    if (above) {
      w_columns = block.tile(kW).a_trans(block.row0, 16 * ks);
      p_columns = block.tile(kPs).a_trans(block.row0, 16 * ks);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const Frag b = block.wide(kK).b(16 * ks, 64 * block.side + 16 * n);
      if (below) mma_pair(dk[2 * n], dk[2 * n + 1], w_rows, b);
      if (above) {
        mma_pair(dk[2 * n], dk[2 * n + 1], w_columns, b);
        mma_pair(dk[2 * n], dk[2 * n + 1], p_columns, block.wide(kGrad).b(16 * ks, 64 * block.side + 16 * n));
      }
    }
  }
  add_row_dots(block, block.wide(kK), dk, -1.0f, sums.decay);
  store_rows(block, out.dk, dk);
  leave<false>(block, sums);
  finish_gates(block, out, state_part);
}

}  // namespace

void run_bwd_chunk(const Args& args, const Gradients& out, const bf16* d_o, const bf16* state, int num_chunk,
                   cudaStream_t stream) {
  check_cuda(
      cudaFuncSetAttribute(gdn_bwd_chunk_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
      "gdn_bwd_chunk");
  gdn_bwd_chunk_kernel<<<dim3(args.value_heads, num_chunk), kThreads, kSharedBytes, stream>>>(args, out, d_o,
                                                                                              state);
  check_launch("gdn_bwd_chunk");
}

}  // namespace tessera::gdn
