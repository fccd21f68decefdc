// Backward of the gated delta rule on Hopper, the parallel half: gdn_bwd_chunk.cu (which has the formulas)
// with warpgroup products, one block per (chunk, value head).
//
// Warpgroup w owns value columns 64w.. while X and U are made, key dims 64w.. of dQ and dK, and columns 32w..
// of the [64, 64] products; a warp owns token rows 16 (warp % 4).. of each. 107 KB of shared memory, two
// blocks an SM, so that one computes while the other loads. Outputs are overwritten; gates of unused chunks
// become zero. Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"
#include "ops/wgmma.cuh"

namespace tessera::gdn {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// Shared memory, in bytes.
constexpr int kK = 0;
constexpr int kU = kK + kTileBytes;                  // V, then X, then U in place; at the end dK
constexpr int kGrad = kU + kTileBytes;               // dO, then Q; at the end dQ
constexpr int kDb = kGrad + kTileBytes;              // dB, then W
constexpr int kS = kDb + kTileBytes;                 // S, then dS
constexpr int kAr = kS + kHead * kHead * 2;          // Ar, then Ps
constexpr int kVectors = kAr + kChunk * kChunk * 2;  // g, beta, then sums by row: [warpgroup][64] of each
constexpr int kBarrier = kVectors + 8 * kChunk * 4 + kWarps * 4;
constexpr int kSharedBytes = kBarrier + 8;
static_assert(2 * (kSharedBytes + 1024) <= 228 * 1024);

#ifdef TESSERA_WGMMA

constexpr int kGroup = 128;

// Sums over the columns of a token's row that one thread has seen.
struct RowSums {
  float beta[2] = {};   // of d_beta
  float decay[2] = {};  // of dG
  float write[2] = {};  // of <(r U) dS^T, K>
};

struct Block {
  const Args& args;
  unsigned char* shared;
  int thread, lane, group;  // group: the warpgroup
  int row;                  // of the thread's accumulators, and row + 8

  __device__ Block(const Args& args, unsigned char* shared)
      : args(args), shared(shared), thread(threadIdx.x) {
    forget();
  }
  // Between phases: addresses are computed anew rather than kept in registers (see opaque()).
  __device__ void forget() {
    thread = opaque(thread);
    lane = thread % 32;
    group = __shfl_sync(0xffffffffu, thread / kGroup, 0);  // the compiler learns that it is uniform
    row = thread % kGroup / 32 * 16 + lane / 4;
  }
  __device__ int head() const { return blockIdx.x; }
  __device__ int chunk_index() const { return blockIdx.y; }
  __device__ u32 at(int offset) const { return opaque(shared_address(shared)) + offset; }
  __device__ u32 panel(int offset) const {
    return at(offset) + group * kHalfTileBytes;
  }  // this group's columns
  __device__ Tile<kHalf> tile(int offset) const { return {panel(offset), lane}; }
  __device__ Tile<kChunk> square(int offset) const { return {at(offset), lane}; }
  __device__ float* vector(int i) const { return reinterpret_cast<float*>(shared + kVectors) + i * kChunk; }
  __device__ const float* g() const { return vector(0); }
  __device__ const float* beta() const { return vector(1); }
  __device__ size_t state_at() const { return args.slot(chunk_index(), head()) * kHead * kHead; }

  __device__ void load_rows(int offset, const bf16* rows, size_t stride, int valid) const {
    load_panels<kChunk, kHead, kThreads>(at(offset), rows, stride, valid, thread);
  }
  // One thread: a state as the chain kernels write it, the bytes of its tile.
  __device__ void load_state(const bf16* states) const {
    bulk_load(at(kS), states + state_at(), kHead * kHead * 2, at(kBarrier));
  }
  // All warps of the warpgroup; before, what this thread wrote to shared memory is for products.
  __device__ void meet_group() const {
    fence_shared_for_wgmma();
    named_barrier(1 + group, kGroup);
  }
  __device__ void meet() const {
    fence_shared_for_wgmma();
    __syncthreads();
  }
};

// Adds sums over this group's columns of each row to the shared ones (which the first call sets), so that
// they hold no registers meanwhile. The same lane owns a row in every call.
template <bool kFirst>
__device__ __forceinline__ void leave(const Block& block, RowSums& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total[3] = {warp_sum<4>(sums.beta[r]), warp_sum<4>(sums.decay[r]),
                            warp_sum<4>(sums.write[r])};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      float* at = block.vector(2 + 2 * i + block.group) + block.row + 8 * r;
      if (block.lane % 4 == 0) *at = kFirst ? total[i] : *at + total[i];
    }
  }
  sums = RowSums{};
}

// Sums <x[row, this group's columns], y> for the two rows of a thread; x: a tile of this group's columns.
__device__ __forceinline__ void row_dots(const Block& block, const Tile<kHalf>& x, const float (&y)[8][4],
                                         float (&dot)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    dot[r] = 0.0f;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const u32 v = x.load_pair(block.row + 8 * r, n);
      dot[r] += low_float(v) * y[n][2 * r] + high_float(v) * y[n][2 * r + 1];
    }
  }
}

// X = V - e (K S) in place of V, from y = K S; adds <dB, X> and 2 <-e beta dB, K S>.
__device__ __forceinline__ void make_x(const Block& block, const float (&y)[8][4], RowSums& sums) {
  const Tile<kHalf> x = block.tile(kU), db = block.tile(kDb);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = block.row + 8 * r;
    const float e = fast_exp(block.g()[row]);
    float dot_x = 0.0f, dot_y = 0.0f;
    u32 v[8], d[8];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      v[n] = x.load_pair(row, n);
      d[n] = db.load_pair(row, n);
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float y0 = y[n][2 * r], y1 = y[n][2 * r + 1], x0 = low_float(v[n]) - e * y0,
                  x1 = high_float(v[n]) - e * y1;
      dot_x += low_float(d[n]) * x0 + high_float(d[n]) * x1;
      dot_y += low_float(d[n]) * y0 + high_float(d[n]) * y1;
      v[n] = pack_bf16(x0, x1);
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) x.store_pair(row, n, v[n]);
    sums.beta[r] += dot_x;
    sums.decay[r] -= 2.0f * e * block.beta()[row] * dot_y;
  }
}

// U = M X in place of X, from M's rows as left operands.
__device__ __forceinline__ void make_u(const Block& block, const Frag (&m)[4]) {
  float u[8][4];
  wgmma_fence(u);
  wgmma_begin();
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks)
    wgmma_registers_64<Major::mn>(u, m[ks], mn_major<kChunk>(block.panel(kU), ks), ks > 0);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence(u);
  named_barrier(1 + block.group, kGroup);  // every warp has read X
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    block.tile(kU).store_pair(block.row, n, pack_bf16(u[n][0], u[n][1]));
    block.tile(kU).store_pair(block.row + 8, n, pack_bf16(u[n][2], u[n][3]));
  }
}

// Ps, in place of Ar, and W, packed (rows row and row + 8 of each n8 tile), in this group's 32 columns; adds
// their parts of d_beta and dG.
__device__ __forceinline__ void make_masked(const Block& block, u32 (&w)[4][2], RowSums& sums) {
  float dp[4][4], z[4][4], kk[4][4];
  const int rows32 = block.group * 32 * 128;  // of the right operands' rows, in bytes
  wgmma_fence(dp);
  wgmma_fence(z);
  wgmma_fence(kk);
  wgmma_begin();
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks) {
    const u64 u = k_major<kChunk>(block.at(kU) + rows32, ks);
    wgmma_shared_32(dp, k_major<kChunk>(block.at(kGrad), ks), u, ks > 0);
    wgmma_shared_32(z, k_major<kChunk>(block.at(kDb), ks), u, ks > 0);
    wgmma_shared_32(kk, k_major<kChunk>(block.at(kK), ks), k_major<kChunk>(block.at(kK) + rows32, ks),
                    ks > 0);
  }
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence(dp);
  wgmma_fence(z);
  wgmma_fence(kk);
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int j = 32 * block.group + 8 * n + 2 * (block.lane % 4);
    const float2 gj = *reinterpret_cast<const float2*>(block.g() + j);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = block.row + 8 * r;
      const float gi = block.g()[i], beta = block.beta()[i], d0 = masked_decay(i >= j, gi, gj.x),
                  d1 = masked_decay(i > j, gi, gj.y);
      block.square(kAr).store_pair(
          i, 4 * block.group + n,
          pack_bf16(kQueryScale * d0 * dp[n][2 * r], kQueryScale * d1 * dp[n][2 * r + 1]));
      const float z0 = i == j ? 0.0f : -d0 * z[n][2 * r], z1 = i == j + 1 ? 0.0f : -d1 * z[n][2 * r + 1],
                  k0 = kk[n][2 * r], k1 = kk[n][2 * r + 1];
      sums.beta[r] += z0 * k0 + z1 * k1;
      // With W as rounded: the same products enter <dK, K> and have to cancel.
      w[n][r] = pack_bf16(beta * z0, beta * z1);
      sums.decay[r] += 2.0f * (low_float(w[n][r]) * k0 + high_float(w[n][r]) * k1);
    }
  }
}

// out[64 tokens, this group's 64 key dims] (=) rows s^T; rows [64, 128 values], s [128 key dims, 128 values].
__device__ __forceinline__ void state_product(const Block& block, float (&out)[8][4], int rows) {
#pragma unroll
  for (int ks = 0; ks < kHead / 16; ++ks)
    wgmma_shared_64<Major::k, Major::k>(out, k_major<kChunk>(block.at(rows), ks),
                                        k_major<kHead>(block.at(kS) + block.group * 64 * 128, ks), ks > 0);
}

// This thread's part of <dS, S>, dS in shared memory and S, in the same order, from global memory.
__device__ __forceinline__ float state_dot(const Block& block, const bf16* states) {
  constexpr int kBatch = 8;
  const uint4* s = reinterpret_cast<const uint4*>(states + block.state_at()) + block.thread;
  const uint4* ds = reinterpret_cast<const uint4*>(block.shared + kS) + block.thread;
  float dot = 0.0f;
#pragma unroll
  for (int first = 0; first < kHead * kHead / 8 / kThreads; first += kBatch) {
    uint4 part[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) part[i] = __ldg(s + (first + i) * kThreads);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const uint4 a = ds[(first + i) * kThreads], b = part[i];
      dot += low_float(a.x) * low_float(b.x) + high_float(a.x) * high_float(b.x);
      dot += low_float(a.y) * low_float(b.y) + high_float(a.y) * high_float(b.y);
      dot += low_float(a.z) * low_float(b.z) + high_float(a.z) * high_float(b.z);
      dot += low_float(a.w) * low_float(b.w) + high_float(a.w) * high_float(b.w);
    }
  }
  return dot;
}

// Writes a gradient [64 tokens, this group's 64 key dims] through its panel of a tile that nobody reads any
// more.
__device__ __forceinline__ void store_rows(const Block& block, int scratch, bf16* out, const Chunk& chunk,
                                           const float (&x)[8][4]) {
  const Tile<kHalf> tile = block.tile(scratch);
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    tile.store_pair(block.row, n, pack_bf16(x[n][0], x[n][1]));
    tile.store_pair(block.row + 8, n, pack_bf16(x[n][2], x[n][3]));
  }
  __syncwarp();
  const int row0 = block.row - block.lane / 4 + block.lane / 8, chunk8 = block.lane % 8;
  const size_t stride = static_cast<size_t>(block.args.value_heads) * kHead;
  bf16* to = out + (static_cast<size_t>(chunk.begin) + row0) * stride + block.head() * kHead +
             64 * block.group + 8 * chunk8;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int row = row0 + 4 * part;
    store_global16_if(row < chunk.count, to, tile.load16(row, chunk8));
    to += 4 * stride;
  }
}

// Brings the row sums of the two warpgroups and <dS, S> together: one warp finishes the gates.
__device__ __forceinline__ void finish_gates(const Block& block, const Gradients& out, int count,
                                             float state_part) {
  state_part = warp_sum(state_part);
  if (block.lane == 0) block.vector(8)[block.thread / 32] = state_part;
  __syncthreads();
  if (block.thread >= 32) return;
  const int lane = block.lane;
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
    if (lane + 32 * part == count - 1) dg[part] += at_last;
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

// Multiplies rows row and row + 8 of x.
__device__ __forceinline__ void scale_rows(float (&x)[8][4], float first, float second) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    x[n][0] *= first;
    x[n][1] *= first;
    x[n][2] *= second;
    x[n][3] *= second;
  }
}

// Loads what the chunk needs first: two groups of copies, the second for what comes after X.
__device__ __forceinline__ void load_first(const Block& block, const Chunk& chunk, const Gradients& out,
                                           const bf16* d_o, const bf16* state) {
  const Args& args = block.args;
  const size_t slot = args.slot(block.chunk_index(), block.head());
  const size_t values_at = static_cast<size_t>(chunk.begin) * args.values + block.head() * kHead;
  block.load_rows(kK, args.k_row(chunk.begin, block.head() / args.group), args.conv_dim, chunk.count);
  if (block.thread == 0) {
    bulk_barrier_init(block.at(kBarrier));
    block.load_state(state);
  }
  if (block.thread < 32) {
    const float* src = (block.thread < 16 ? args.g : args.beta) + slot * kChunk + (block.thread % 16) * 4;
    copy_async16(shared_address(block.vector(0)) + block.thread * 16, src);
  }
  copy_async_commit();
  block.load_rows(kU, args.v_row(chunk.begin, block.head()), args.conv_dim, chunk.count);
  block.load_rows(kDb, out.db + values_at, args.values, chunk.count);
  load_tile<kChunk, kThreads>(block.square(kAr), args.ar + slot * kChunk * kChunk, kChunk, kChunk,
                              block.thread);
  copy_async_commit();
  block.load_rows(kGrad, d_o + values_at, args.values, chunk.count);
  copy_async_commit();
}

#endif

__global__ void __launch_bounds__(kThreads, 2)
    gdn_bwd_chunk_wgmma_kernel(Args args, Gradients out, const bf16* d_o, const bf16* state) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  Block block(args, shared);
  const Chunk chunk = args.chunk[blockIdx.y];
  if (chunk.count == 0) {
    if (block.thread < kChunk) {
      const size_t at = args.slot(block.chunk_index(), block.head()) * kChunk + block.thread;
      out.d_gamma[at] = 0.0f;
      out.d_beta[at] = 0.0f;
    }
    return;
  }
  load_first(block, chunk, out, d_o, state);

  RowSums sums;
  copy_async_wait<2>();
  block.meet();
  bulk_wait_load(block.at(kBarrier), 0);
  {
    float y[8][4];
    wgmma_fence(y);
    wgmma_begin();
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks)
      wgmma_shared_64<Major::k, Major::mn>(y, k_major<kChunk>(block.at(kK), ks),
                                           mn_major<kHead>(block.at(kS) + block.group * (kHead * 128), ks),
                                           ks > 0);
    wgmma_commit();
    copy_async_wait<1>();
    block.meet();
    wgmma_wait<0>();
    wgmma_fence(y);
    block.forget();
    make_x(block, y, sums);
  }
  block.forget();
  {
    Frag m[4];
    const int row0 = block.row - block.lane / 4;
#pragma unroll
    for (int ks = 0; ks < 4; ++ks)
      m[ks] = decayed_rows(block.square(kAr).a(row0, 16 * ks), block.g(), block.beta(), block.row, 16 * ks,
                           block.lane % 4);
    block.meet_group();  // X is complete
    block.forget();
    make_u(block, m);
  }
  copy_async_wait<0>();
  block.meet();
  block.forget();
  u32 w[4][2];
  make_masked(block, w, sums);
  leave<true>(block, sums);
  __syncwarp();
  block.forget();
  float dq[8][4], dk[8][4];
  wgmma_fence(dq);
  wgmma_fence(dk);
  wgmma_begin();
  state_product(block, dq, kGrad);
  state_product(block, dk, kDb);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence(dq);
  wgmma_fence(dk);
  __syncthreads();  // dO, dB and S have been read
  block.forget();
  block.load_rows(kGrad, args.q_row(chunk.begin, block.head() / args.group), args.conv_dim, chunk.count);
  copy_async_commit();
  if (block.thread == 0) block.load_state(out.ds);
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      block.square(kDb).store_pair(block.row + 8 * r, 4 * block.group + n, w[n][r]);
    }
  }
  {
    const float e0 = fast_exp(block.g()[block.row]), e1 = fast_exp(block.g()[block.row + 8]);
    scale_rows(dq, kQueryScale * e0, kQueryScale * e1);
    scale_rows(dk, -e0 * block.beta()[block.row], -e1 * block.beta()[block.row + 8]);
  }
  copy_async_wait<0>();
  block.meet();
  block.forget();
  wgmma_fence(dq);
  wgmma_fence(dk);
  wgmma_begin();
#pragma unroll
  for (int ks = 0; ks < kChunk / 16; ++ks) {
    const u64 k = mn_major<kChunk>(block.panel(kK), ks);
    wgmma_shared_64<Major::k, Major::mn>(dq, k_major<kChunk>(block.at(kAr), ks), k, true);
    wgmma_shared_64<Major::mn, Major::mn>(dk, mn_major<kChunk>(block.at(kAr), ks),
                                          mn_major<kChunk>(block.panel(kGrad), ks), true);
    wgmma_shared_64<Major::k, Major::mn>(dk, k_major<kChunk>(block.at(kDb), ks), k, true);
    wgmma_shared_64<Major::mn, Major::mn>(dk, mn_major<kChunk>(block.at(kDb), ks), k, true);
  }
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence(dq);
  wgmma_fence(dk);
  block.forget();
  float dot[2];
  row_dots(block, block.tile(kGrad), dq, dot);
  sums.decay[0] += dot[0];
  sums.decay[1] += dot[1];
  leave<false>(block, sums);
  block.meet();  // Q has been read
  block.forget();
  store_rows(block, kGrad, out.dq, chunk, dq);
  block.forget();
  bulk_wait_load(block.at(kBarrier), 1);  // dS
  float written[8][4];
  wgmma_fence(written);
  wgmma_begin();
  state_product(block, written, kU);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence(written);
  block.forget();
  const float g_last = block.g()[kChunk - 1];
  scale_rows(written, fast_exp(g_last - block.g()[block.row]), fast_exp(g_last - block.g()[block.row + 8]));
  row_dots(block, block.tile(kK), written, sums.write);
  block.forget();
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) dk[n][i] += written[n][i];
  row_dots(block, block.tile(kK), dk, dot);
  sums.decay[0] -= dot[0];
  sums.decay[1] -= dot[1];
  store_rows(block, kDb, out.dk, chunk, dk);
  block.forget();
  leave<false>(block, sums);
  finish_gates(block, out, chunk.count, state_dot(block, state));
#else
  __trap();  // this build has no code for sm_90a: gdn_cuda_tier() must not have chosen this
#endif
}

}  // namespace

void run_bwd_chunk_wgmma(const Args& args, const Gradients& out, const bf16* d_o, const bf16* state,
                         int num_chunk, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(gdn_bwd_chunk_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes),
             "gdn_bwd_chunk_wgmma");
  gdn_bwd_chunk_wgmma_kernel<<<dim3(args.value_heads, num_chunk), kThreads, kSharedBytes, stream>>>(
      args, out, d_o, state);
  check_launch("gdn_bwd_chunk_wgmma");
}

}  // namespace tessera::gdn
