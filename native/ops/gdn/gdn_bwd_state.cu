// Backward of the gated delta rule, the serial half: one block per (sequence, value head, half of the value
// columns), chunks in reverse order. dS [128, 64] is the gradient of the state leaving the chunk, zero at the
// sequence's end.
//
//   dU = P^T dO + r (K dS)        dB = A^T dU, A_ij = exp(G_i - G_j) Ar_ij        dX = dV = beta dB
//   dS = exp(G_last) dS + (s e Q)^T dO - (e K)^T dX            (e, r, s, P as in gdn_fwd.cu)
//
// Writes dV, and for gdn_bwd_chunk.cu dB and the dS that leaves each chunk. dB, not dX, is kept because the
// rest of the backward divides by beta otherwise (CUDA.md). dS is fp32 in registers, operands bf16, sums
// fp32; gdn_chain.cuh tells how the work is laid out. 98.5 KB of shared memory, two blocks an SM. All outputs
// are overwritten. Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_chain.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

// out[16 values, 64 tokens j] += left[16 values, 64 tokens i] lower, lower [i, j] a lower triangle of 16 x 16
// blocks.
__device__ __forceinline__ void times_lower(float (&out)[8][4], const Frag (&left)[4],
                                            const Tile<kChunk>& lower) {
#pragma unroll
  for (int kb = 0; kb < 4; ++kb)
#pragma unroll
    for (int nb = 0; nb <= kb; ++nb)
      mma_pair(out[2 * nb], out[2 * nb + 1], left[kb], lower.b(16 * kb, 16 * nb));
}

// x[.., token] *= scale[token]
__device__ __forceinline__ void scale_tokens(float (&x)[8][4], const float* scale, int q4) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 c = *reinterpret_cast<const float2*>(scale + 8 * n + 2 * q4);
    x[n][0] *= c.x;
    x[n][1] *= c.y;
    x[n][2] *= c.x;
    x[n][3] *= c.y;
  }
}

// Writes dB, staged in the tile of values, and dV = beta dB.
__device__ __forceinline__ void store_db(const Chain& chain, int stage, const Gradients& out,
                                         const Chunk& chunk) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const int row = 16 * step + chain.lane / 2, chunk8 = chain.value0() / 8 + chain.lane % 2;
    uint4 v = chain.values(stage).load16(row, chunk8);
    if (row >= chunk.count) continue;
    const size_t at =
        (static_cast<size_t>(chunk.begin) + row) * chain.args.values + chain.column() + 8 * chunk8;
    *reinterpret_cast<uint4*>(out.db + at) = v;
    const float b = chain.beta(stage)[row];
    v.x = scale_bf16(v.x, b, b);
    v.y = scale_bf16(v.y, b, b);
    v.z = scale_bf16(v.z, b, b);
    v.w = scale_bf16(v.w, b, b);
    *reinterpret_cast<uint4*>(out.dv + at) = v;
  }
}

__global__ void __launch_bounds__(kChainThreads, 2)
    gdn_bwd_state_kernel(Args args, Gradients out, const bf16* d_o) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Chain chain(args, shared, blockIdx.x / 2, blockIdx.x % 2);
  const ChunkRange range = args.seq_chunk[blockIdx.y];
  if (range.begin >= range.end) return;
  const bf16* rows = d_o + chain.column();

  Chunk chunk = args.chunk[range.end - 1];
  chain.load(chunk, range.end - 1, 0, rows, args.values);
  chain.load_ar(range.end - 1);
  float ds[16][4] = {};
  for (int index = range.end - 1; index >= range.begin; --index) {
    const int stage = (range.end - 1 - index) & 1;
    const bool more = index > range.begin;
    const Chunk next = more ? args.chunk[index - 1] : chunk;
    chain.forget();
    copy_async_wait<0>();
    __syncthreads();
    chain.make_a<false>(stage);
    if (more) {
      chain.load(next, index - 1, stage ^ 1, rows, args.values);
      chain.load_ar(index - 1);
    }
    chain.make_p(stage);
    chain.store_state(out.ds + args.slot(index, chain.head) * kHead * kHead + chain.half * kHalf, ds);
    __syncthreads();

    chain.forget();
    const int q4 = chain.lane % 4;
    const float carry = fast_exp(chain.g(stage)[kChunk - 1]);
    Frag d_o_frag[4], db_frag[4];
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) d_o_frag[ks] = chain.values(stage).a_trans(chain.value0(), 16 * ks);
    {
      float du[8][4] = {};
#pragma unroll
      for (int ks = 0; ks < kHead / 16; ++ks)
        times_rows(du, to_a_frag(ds[2 * ks], ds[2 * ks + 1]), chain.k(stage), ks);
      scale_tokens(du, chain.r(), q4);
      times_lower(du, d_o_frag, chain.p());
      Frag du_frag[4];
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) du_frag[ks] = to_a_frag(du[2 * ks], du[2 * ks + 1]);
      float db[8][4] = {};
      times_lower(db, du_frag, chain.a());
      chain.stage_rows(stage, db);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) db_frag[ks] = to_a_frag(db[2 * ks], db[2 * ks + 1]);
    }
#pragma unroll
    for (int n = 0; n < 16; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[n][i] *= carry;
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) {
      float e[4], beta[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = 16 * ks + 2 * q4 + i % 2 + i / 2 * 8;
        e[i] = chain.e()[token];
        beta[i] = -e[i] * chain.beta(stage)[token];
        e[i] *= kQueryScale;
      }
      Frag &x = d_o_frag[ks], &y = db_frag[ks];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x.r[i] = scale_bf16(x.r[i], e[i / 2 * 2], e[i / 2 * 2 + 1]);
        y.r[i] = scale_bf16(y.r[i], beta[i / 2 * 2], beta[i / 2 * 2 + 1]);
      }
      add_to_state(ds, x, chain.q(stage), ks);
      add_to_state(ds, y, chain.k(stage), ks);
    }
    store_db(chain, stage, out, chunk);
    chunk = next;
  }
}

}  // namespace

void run_bwd_state(const Args& args, const Gradients& out, const bf16* d_o, int num_seq,
                   cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(gdn_bwd_state_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  Chain::kSharedBytes),
             "gdn_bwd_state");
  gdn_bwd_state_kernel<<<dim3(2 * args.value_heads, num_seq), kChainThreads, Chain::kSharedBytes, stream>>>(
      args, out, d_o);
  check_launch("gdn_bwd_state");
}

}  // namespace tessera::gdn
