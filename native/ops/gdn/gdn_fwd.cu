// Forward of the chunked gated delta rule: one block per (sequence, value head, half of the value columns).
//
// Per chunk of 64 tokens, with the state S [128, 64] entering it (G, beta, Ar from gdn_kkt.cu):
//   X = V - e (K S)            U = M X,  M_ij = exp(G_i - G_j) Ar_ij beta_j
//   P = s exp(G_i - G_j) (Q K^T), lower triangle         O = s e (Q S) + P U
//   S = exp(G_last) S + (r K)^T U                         e_i = exp(G_i), r_i = exp(G_last - G_i), s = 1 /
//   sqrt(128)
//
// S is fp32 in registers, operands bf16, sums fp32; gdn_chain.cuh tells how the work is laid out. 98.5 KB of
// shared memory, two blocks an SM. o and state (the S entering each chunk, optional) are overwritten.
// Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_chain.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

// X^T as A fragments, from y = (K S)^T and the tile of V.
__device__ __forceinline__ void make_x(Frag (&x)[4], const float (&y)[8][4], const Chain& chain, int stage) {
  const int q4 = chain.lane % 4;
#pragma unroll
  for (int ks = 0; ks < 4; ++ks) {
    const Frag v = chain.values(stage).a_trans(chain.value0(), 16 * ks);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const float2 e = *reinterpret_cast<const float2*>(chain.e() + 16 * ks + 8 * part + 2 * q4);
      const float(&t)[4] = y[2 * ks + part];
      const u32 low = v.r[2 * part], high = v.r[2 * part + 1];
      x[ks].r[2 * part] = pack_bf16(low_float(low) - e.x * t[0], high_float(low) - e.y * t[1]);
      x[ks].r[2 * part + 1] = pack_bf16(low_float(high) - e.x * t[2], high_float(high) - e.y * t[3]);
    }
  }
}

// out[16 values, 64 tokens i] += left[16 values, 64 tokens j] lower^T, lower [i, j] a lower triangle of 16 x
// 16 blocks.
__device__ __forceinline__ void times_lower(float (&out)[8][4], const Frag (&left)[4],
                                            const Tile<kChunk>& lower) {
#pragma unroll
  for (int kb = 0; kb < 4; ++kb)
#pragma unroll
    for (int nb = kb; nb < 4; ++nb)
      mma_pair(out[2 * nb], out[2 * nb + 1], left[kb], lower.b_trans(16 * kb, 16 * nb));
}

template <bool kSave>
__global__ void __launch_bounds__(kChainThreads, 2) gdn_fwd_kernel(Args args, bf16* o_out, bf16* state_out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Chain chain(args, shared, blockIdx.x / 2, blockIdx.x % 2);
  const ChunkRange range = args.seq_chunk[blockIdx.y];
  if (range.begin >= range.end) return;
  const bf16* v = args.v_row(0, chain.head) + chain.half * kHalf;

  Chunk chunk = args.chunk[range.begin];
  chain.load(chunk, range.begin, 0, v, args.conv_dim);
  chain.load_ar(range.begin);
  float s[16][4] = {};
  for (int index = range.begin; index < range.end; ++index) {
    const int stage = (index - range.begin) & 1;
    const bool more = index + 1 < range.end;
    const Chunk next = more ? args.chunk[index + 1] : chunk;
    chain.forget();
    copy_async_wait<0>();
    __syncthreads();
    chain.make_a<true>(stage);
    if (more) {
      chain.load(next, index + 1, stage ^ 1, v, args.conv_dim);
      chain.load_ar(index + 1);
    }
    chain.make_p(stage);
    if (kSave)
      chain.store_state(state_out + args.slot(index, chain.head) * kHead * kHead + chain.half * kHalf, s);
    __syncthreads();

    chain.forget();
    const int q4 = chain.lane % 4;
    const float carry = fast_exp(chain.g(stage)[kChunk - 1]);
    float o[8][4] = {};
    Frag u_frag[4];
    {
      float y[8][4] = {};
#pragma unroll
      for (int ks = 0; ks < kHead / 16; ++ks) {
        const Frag left = to_a_frag(s[2 * ks], s[2 * ks + 1]);
        times_rows(y, left, chain.k(stage), ks);
        times_rows(o, left, chain.q(stage), ks);
      }
      Frag x[4];
      make_x(x, y, chain, stage);
      float u[8][4] = {};
      times_lower(u, x, chain.a());
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) u_frag[ks] = to_a_frag(u[2 * ks], u[2 * ks + 1]);
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float2 e = *reinterpret_cast<const float2*>(chain.e() + 8 * n + 2 * q4);
      o[n][0] *= kQueryScale * e.x;
      o[n][1] *= kQueryScale * e.y;
      o[n][2] *= kQueryScale * e.x;
      o[n][3] *= kQueryScale * e.y;
    }
    times_lower(o, u_frag, chain.p());
#pragma unroll
    for (int n = 0; n < 16; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] *= carry;
#pragma unroll
    for (int ks = 0; ks < 4; ++ks)
      add_to_state(s, scale_columns(u_frag[ks], chain.r(), 16 * ks, q4), chain.k(stage), ks);

    chain.stage_rows(stage, o);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int row = 16 * step + chain.lane / 2, chunk8 = chain.value0() / 8 + chain.lane % 2;
      const uint4 out = chain.values(stage).load16(row, chunk8);
      if (row < chunk.count) {
        *reinterpret_cast<uint4*>(o_out + (static_cast<size_t>(chunk.begin) + row) * args.values +
                                  chain.column() + 8 * chunk8) = out;
      }
    }
    chunk = next;
  }
}

}  // namespace

void run_fwd(const Args& args, bf16* o, bf16* state, int num_seq, cudaStream_t stream) {
  const auto kernel = state ? gdn_fwd_kernel<true> : gdn_fwd_kernel<false>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Chain::kSharedBytes),
             "gdn_fwd");
  kernel<<<dim3(2 * args.value_heads, num_seq), kChainThreads, Chain::kSharedBytes, stream>>>(args, o, state);
  check_launch("gdn_fwd");
}

}  // namespace tessera::gdn
