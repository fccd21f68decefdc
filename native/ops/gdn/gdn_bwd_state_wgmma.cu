// Backward of the gated delta rule on Hopper, the serial half: gdn_bwd_state.cu with warpgroup products, one
// block per (sequence, value head); gdn_chain_wgmma.cuh tells how the work is laid out. 195 KB of shared
// memory. Reference: gdn_reference.cu; check: tests/native/cuda.
#include "ops/gdn/gdn_chain_wgmma.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kPrepareRegisters = 104, kChainRegisters = 200;
static_assert(kPrepareRegisters + 2 * kChainRegisters <= 65536 / Pipe::kGroup);

#ifdef TESSERA_WGMMA

// Writes dB, given as left operands, and dV = beta dB; `values` is the tile it is turned in.
__device__ __forceinline__ void store_db(const Walk<true>& walk, const Tile<kHalf>& values, int half,
                                         const float* beta, const Gradients& out, const Chunk& chunk,
                                         const Frag (&db)[4]) {
  uint4 rows[4];
  walk.turn_rows(rows, values, half, db);
  const int row0 = walk.turned_row();
  uint4 scaled[4];
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const float b = beta[16 * part + row0];
    const uint4 v = rows[part];
    scaled[part] = make_uint4(scale_bf16(v.x, b, b), scale_bf16(v.y, b, b), scale_bf16(v.z, b, b),
                              scale_bf16(v.w, b, b));
  }
  const size_t at = (static_cast<size_t>(chunk.begin) + row0) * walk.args.values +
                    static_cast<size_t>(walk.head) * kHead + half * kHalf + 8 * walk.turned_chunk();
  bf16 *db_to = out.db + at, *dv_to = out.dv + at;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const bool valid = 16 * part + row0 < chunk.count;
    store_global16_if(valid, db_to, rows[part]);
    store_global16_if(valid, dv_to, scaled[part]);
    db_to += 16 * walk.args.values;
    dv_to += 16 * walk.args.values;
  }
}

// The columns of left operands times factor * e (* beta).
__device__ __forceinline__ void scale_left(Frag (&out)[4], const Frag (&x)[4], const float* e,
                                           const float* beta, float factor, int q4) {
#pragma unroll
  for (int ks = 0; ks < 4; ++ks) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int token = 16 * ks + 8 * part + 2 * q4;
      float2 c = *reinterpret_cast<const float2*>(e + token);
      c.x *= factor;
      c.y *= factor;
      if (beta) {
        const float2 b = *reinterpret_cast<const float2*>(beta + token);
        c.x *= b.x;
        c.y *= b.y;
      }
      out[ks].r[2 * part] = scale_bf16(x[ks].r[2 * part], c.x, c.y);
      out[ks].r[2 * part + 1] = scale_bf16(x[ks].r[2 * part + 1], c.x, c.y);
    }
  }
}

// The chain of 64 value columns.
template <Part kPart>
__device__ __forceinline__ void run_chain(const Walk<true>& walk, const Work& work, int half,
                                          const Gradients& out) {
  constexpr bool kOutputs = kPart == Part::whole, kQueries = kPart != Part::transition;
  const int q4 = walk.lane % 4, value0 = 16 * walk.warp, value = half * kHalf + value0 + walk.lane / 4;
  float ds[16][4];
  start_state<kPart>(ds, {out.dq, walk.args.values, work.from, walk.head}, work.from >= 0, value, q4);
  Chunk next = walk.length() > 0 ? walk.args.chunk[walk.index(0)] : Chunk{};
  for (int step = 0, stage = 0; step < walk.length(); ++step, stage = stage == 2 ? 0 : stage + 1) {
    const Chunk chunk = next;
    if (step + 1 < walk.length()) next = walk.args.chunk[walk.index(step + 1)];
    walk.meet();
    const u32 base = walk.stage(stage);
    const Tile<kHalf> values = walk.values(stage, half);

    Frag left[8];
    pack_state(left, ds);
    const float carry = fast_exp(walk.g(stage)[kChunk - 1]);
#pragma unroll
    for (int n = 0; n < 16; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[n][i] *= carry;
    float du[8][4];
    wgmma_fence(du);
    wgmma_begin();
    times_rows(du, left, base + Pipe::kK);
    if (kOutputs) walk.store_state(out.ds, step, half, left);
    Frag d_o[4], scaled[4];
    if constexpr (kQueries) {
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) d_o[ks] = values.a_trans(value0, 16 * ks);
      scale_left(scaled, d_o, walk.e(stage), nullptr, kQueryScale, q4);
    }
    wgmma_wait<0>();
    wgmma_fence(du);
    scale_tokens(du, walk.r(stage), 1.0f, q4);
    if constexpr (kQueries) {
      wgmma_fence(du);
      wgmma_fence(ds);
      wgmma_begin();
#pragma unroll
      for (int ks = 0; ks < kChunk / 16; ++ks)
        wgmma_registers_64<Major::mn>(du, d_o[ks], mn_major<kChunk>(base + Pipe::kP, ks), true);
      wgmma_commit();
      add_to_state(ds, scaled, base + Pipe::kQ);
      wgmma_commit();
      wgmma_wait<1>();
      wgmma_fence(du);
    }

    Frag db_left[4];
    {
      Frag du_left[4];
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) du_left[ks] = to_a_frag(du[2 * ks], du[2 * ks + 1]);
      float db[8][4];
      wgmma_fence(db);
      wgmma_begin();
#pragma unroll
      for (int ks = 0; ks < kChunk / 16; ++ks)
        wgmma_registers_64<Major::mn>(db, du_left[ks], mn_major<kChunk>(base + Pipe::kA, ks), ks > 0);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_fence(db);
      wgmma_fence(ds);
#pragma unroll
      for (int ks = 0; ks < 4; ++ks) db_left[ks] = to_a_frag(db[2 * ks], db[2 * ks + 1]);
      scale_left(scaled, db_left, walk.e(stage), walk.beta(stage), -1.0f, q4);
      wgmma_fence(ds);
      wgmma_begin();
      add_to_state(ds, scaled, base + Pipe::kK);
      wgmma_commit();
    }
    if (kOutputs) store_db(walk, values, half, walk.beta(stage), out, chunk, db_left);
    wgmma_wait<0>();
    wgmma_fence(ds);
  }
  if (kOutputs && walk.thread == 0) bulk_wait_stores();
  if (work.to >= 0) end_state<kPart>(ds, {out.dq, walk.args.values, work.to, walk.head}, value, q4);
}

// A block's three warpgroups at one part of the work.
template <Part kPart>
__device__ __forceinline__ void run_part(Walk<true>& walk, const Work& work, const Gradients& out,
                                         const bf16* d_o) {
  if (threadIdx.x < Pipe::kGroup) {
    fewer_registers<kPrepareRegisters>();
    walk.prepare<kPart>(d_o + static_cast<size_t>(walk.head) * kHead, walk.args.values);
  } else {
    more_registers<kChainRegisters>();
    run_chain<kPart>(walk, work, threadIdx.x / Pipe::kGroup - 1, out);
  }
}

#endif

__global__ void __launch_bounds__(Pipe::kThreads, 1)
    gdn_bwd_state_wgmma_kernel(Args args, Gradients out, const bf16* d_o, int num_seq, bool resumed) {
#ifdef TESSERA_WGMMA
  extern __shared__ __align__(1024) unsigned char shared[];
  const Work work = find_work<true>(args, num_seq, resumed);
  if (work.range.begin == work.range.end) return;
  Walk<true> walk(args, shared, work.range);
  if (work.part == Part::whole)
    run_part<Part::whole>(walk, work, out, d_o);
  else if (work.part == Part::local)
    run_part<Part::local>(walk, work, out, d_o);
  else
    run_part<Part::transition>(walk, work, out, d_o);
#else
  __trap();  // this build has no code for sm_90a: gdn_cuda_tier() must not have chosen this
#endif
}

}  // namespace

void run_bwd_state_wgmma(const Args& args, const Gradients& out, const bf16* d_o, int num_seq,
                         cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(gdn_bwd_state_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  Pipe::kSharedBytes),
             "gdn_bwd_state_wgmma");
  const auto launch = [&](int blocks, bool resumed) {
    gdn_bwd_state_wgmma_kernel<<<dim3(args.value_heads, blocks), Pipe::kThreads, Pipe::kSharedBytes,
                                 stream>>>(args, out, d_o, num_seq, resumed);
    check_launch("gdn_bwd_state_wgmma");
  };
  if (!args.long_examples) return launch(num_seq, false);
  launch(num_seq + 2 * segment_windows(args), false);
  run_segment_scan(args, out.dq, true, stream);
  launch(segment_windows(args), true);
}

}  // namespace tessera::gdn
