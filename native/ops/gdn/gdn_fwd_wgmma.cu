// Forward of the chunked gated delta rule on Hopper: gdn_fwd.cu with warpgroup products, one block per
// (sequence, value head); gdn_chain_wgmma.cuh tells how the work is laid out. 195 KB of shared memory.
// Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_chain_wgmma.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kPrepareRegisters = 88, kChainRegisters = 208;
static_assert(kPrepareRegisters + 2 * kChainRegisters <= 65536 / Pipe::kGroup);

#ifdef TESSERA_WGMMA

// X^T = (V - e (K S))^T as left operands, from y = (K S)^T and the tile of V (without kValues V = 0).
template <bool kValues>
__device__ __forceinline__ void make_x(Frag (&x)[4], const float (&y)[8][4], const Tile<kHalf>& values,
                                       const float* e, int value0, int q4) {
#pragma unroll
  for (int ks = 0; ks < 4; ++ks) {
    const Frag v = kValues ? values.a_trans(value0, 16 * ks) : Frag{};
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const float2 c = *reinterpret_cast<const float2*>(e + 16 * ks + 8 * part + 2 * q4);
      const float(&t)[4] = y[2 * ks + part];
      const u32 low = v.r[2 * part], high = v.r[2 * part + 1];
      x[ks].r[2 * part] = pack_bf16(low_float(low) - c.x * t[0], high_float(low) - c.y * t[1]);
      x[ks].r[2 * part + 1] = pack_bf16(low_float(high) - c.x * t[2], high_float(high) - c.y * t[3]);
    }
  }
}

// The chain of 64 value columns.
template <bool kSave, Part kPart>
__device__ __forceinline__ void run_chain(const Walk<false>& walk, const Work& work, int half, bf16* o_out,
                                          bf16* state_out) {
  constexpr bool kOutputs = kPart == Part::whole;
  const int lane = walk.lane, q4 = lane % 4, value0 = 16 * walk.warp;
  const size_t column = static_cast<size_t>(walk.head) * kHead + half * kHalf;
  float s[16][4];
  start_state<kPart>(s, {o_out, walk.args.values, work.from, walk.head}, work.from >= 0,
                     half * kHalf + value0 + lane / 4, q4);
  // The slot's rows are outputs of this block: both warpgroups have read it before either writes.
  if (kOutputs && work.from >= 0) named_barrier(Pipe::kStarted, 2 * Pipe::kGroup);
  Chunk next = walk.length() > 0 ? walk.args.chunk[walk.index(0)] : Chunk{};
  for (int step = 0, stage = 0; step < walk.length(); ++step, stage = stage == 2 ? 0 : stage + 1) {
    const Chunk chunk = next;
    if (step + 1 < walk.length()) next = walk.args.chunk[walk.index(step + 1)];
    walk.meet();
    const u32 base = walk.stage(stage);
    const Tile<kHalf> values = walk.values(stage, half);

    Frag left[8];
    pack_state(left, s);
    const float carry = fast_exp(walk.g(stage)[kChunk - 1]);
#pragma unroll
    for (int n = 0; n < 16; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] *= carry;
    float y[8][4], o[8][4];
    wgmma_fence(y);
    if (kOutputs) wgmma_fence(o);
    wgmma_begin();
    times_rows(y, left, base + Pipe::kK);
    if (kOutputs) times_rows(o, left, base + Pipe::kQ);
    if (kSave && kOutputs) walk.store_state(state_out, step, half, left);
    wgmma_wait<kOutputs ? 1 : 0>();
    wgmma_fence(y);

    Frag u[4];
    {
      Frag x[4];
      make_x<kPart != Part::transition>(x, y, values, walk.e(stage), value0, q4);
      float t[8][4];
      wgmma_fence(t);
      wgmma_begin();
#pragma unroll
      for (int ks = 0; ks < kChunk / 16; ++ks)
        wgmma_registers_64<Major::k>(t, x[ks], k_major<kChunk>(base + Pipe::kA, ks), ks > 0);
      wgmma_commit();
      if constexpr (kOutputs) {
        wgmma_wait<1>();
        wgmma_fence(o);
        scale_tokens(o, walk.e(stage), kQueryScale, q4);
      }
      wgmma_wait<0>();
      wgmma_fence(t);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) u[ks] = to_a_frag(t[2 * ks], t[2 * ks + 1]);
    }
    Frag written[4];
#pragma unroll
    for (int ks = 0; ks < 4; ++ks) written[ks] = scale_columns(u[ks], walk.r(stage), 16 * ks, q4);
    wgmma_fence(s);
    if (kOutputs) wgmma_fence(o);
    wgmma_begin();
    if constexpr (kOutputs) {
#pragma unroll
      for (int ks = 0; ks < kChunk / 16; ++ks)
        wgmma_registers_64<Major::k>(o, u[ks], k_major<kChunk>(base + Pipe::kP, ks), true);
      wgmma_commit();
    }
    add_to_state(s, written, base + Pipe::kK);
    wgmma_commit();
    if constexpr (kOutputs) {
      wgmma_wait<1>();
      wgmma_fence(o);
      uint4 rows[4];
      {
        Frag turned[4];
#pragma unroll
        for (int ks = 0; ks < 4; ++ks) turned[ks] = to_a_frag(o[2 * ks], o[2 * ks + 1]);
        walk.turn_rows(rows, values, half, turned);
      }
      bf16* to = o_out + (static_cast<size_t>(chunk.begin) + walk.turned_row()) * walk.args.values + column +
                 8 * walk.turned_chunk();
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        store_global16_if(16 * part + walk.turned_row() < chunk.count, to, rows[part]);
        to += 16 * walk.args.values;
      }
    }
    wgmma_wait<0>();
    wgmma_fence(s);
  }
  if (kSave && kOutputs && walk.thread == 0) bulk_wait_stores();
  if (work.to >= 0)
    end_state<kPart>(s, {o_out, walk.args.values, work.to, walk.head}, half * kHalf + value0 + lane / 4, q4);
}

// A block's three warpgroups at one part of the work.
template <bool kSave, Part kPart>
__device__ __forceinline__ void run_part(Walk<false>& walk, const Work& work, bf16* o_out, bf16* state_out) {
  if (threadIdx.x < Pipe::kGroup) {
    fewer_registers<kPrepareRegisters>();
    walk.prepare<kPart>(walk.args.v_row(0, walk.head), walk.args.conv_dim);
  } else {
    more_registers<kChainRegisters>();
    run_chain<kSave, kPart>(walk, work, threadIdx.x / Pipe::kGroup - 1, o_out, state_out);
  }
}

#endif

template <bool kSave>
__global__ void __launch_bounds__(Pipe::kThreads, 1)
    gdn_fwd_wgmma_kernel(Args args, bf16* o_out, bf16* state_out, int num_seq, bool resumed) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  const Work work = find_work<false>(args, num_seq, resumed);
  if (work.range.begin == work.range.end) return;
  Walk<false> walk(args, shared, work.range);
  if (work.part == Part::whole)
    run_part<kSave, Part::whole>(walk, work, o_out, state_out);
  else if (work.part == Part::local)
    run_part<kSave, Part::local>(walk, work, o_out, state_out);
  else
    run_part<kSave, Part::transition>(walk, work, o_out, state_out);
#else
  __trap();  // this build has no code for sm_90a: gdn_cuda_tier() must not have chosen this
#endif
}

}  // namespace

void run_fwd_wgmma(const Args& args, bf16* o, bf16* state, int num_seq, cudaStream_t stream) {
  const auto kernel = state ? gdn_fwd_wgmma_kernel<true> : gdn_fwd_wgmma_kernel<false>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Pipe::kSharedBytes),
             "gdn_fwd_wgmma");
  const auto launch = [&](int blocks, bool resumed) {
    kernel<<<dim3(args.value_heads, blocks), Pipe::kThreads, Pipe::kSharedBytes, stream>>>(args, o, state,
                                                                                           num_seq, resumed);
    check_launch("gdn_fwd_wgmma");
  };
  if (!args.long_examples) return launch(num_seq, false);
  launch(num_seq + 2 * segment_windows(args), false);
  run_segment_scan(args, o, false, stream);
  launch(segment_windows(args), true);
}

}  // namespace tessera::gdn
