// The kernels behind gdn_cuda.h, a file each; gdn_cuda.cu checks arguments and picks.
#pragma once

#include "ops/gdn/gdn_device.cuh"

namespace tessera::gdn {

// How examples are divided, in chunks: a law of the model's heads, so that an example's bits are its own.
// Where the heads of one example of 8,192 tokens leave most multiprocessors idle it pays early, with many
// heads never (native/bench/gdn_attention.md).
struct SegmentRule {
  int longest_whole, segment;
};
inline constexpr int kNeverLong = 1 << 24;
constexpr SegmentRule segment_rule(int value_heads) {
  if (value_heads <= 16) return {48, 16};
  if (value_heads <= 32) return {96, 24};
  return {kNeverLong, 16};
}

// What every kernel of a call reads; `ar` may be null where there is none.
template <typename Real>
BasicArgs<Real> make_args(const Act* qkv, const float* g, const float* beta, const Act* ar,
                          const Batch& batch, const GdnShape& shape) {
  BasicArgs<Real> args{};
  args.qkv = static_cast<const Real*>(qkv);
  args.g = g;
  args.beta = beta;
  args.ar = static_cast<const Real*>(ar);
  args.chunk = batch.chunk;
  args.seq_chunk = batch.seq_chunk;
  args.cu = batch.cu;
  args.num_chunk = batch.num_chunk;
  const SegmentRule rule = segment_rule(shape.value_heads);
  const i64 longest = batch.longest > 0 ? batch.longest : batch.T;
  args.long_examples = longest > i64{kChunk} * rule.longest_whole;
  args.longest_whole = args.long_examples ? rule.longest_whole : kNeverLong;
  args.segment = rule.segment;
  args.key_heads = shape.key_heads;
  args.value_heads = shape.value_heads;
  args.group = shape.group();
  args.key_dim = shape.key_dim;
  args.value_dim = shape.value_dim;
  args.conv_dim = static_cast<size_t>(shape.conv_dim());
  args.values = static_cast<size_t>(shape.values());
  return args;
}

template <typename Real>
struct BasicGradients {
  Real* dq;        // [T, HV, K]
  Real* dk;        // [T, HV, K]
  Real* dv;        // [T, VD]
  float* d_gamma;  // [NC, HV, 64]
  float* d_beta;   // [NC, HV, 64]
  Real* db;        // [T, VD] scratch: A^T dU
  Real* ds;        // [NC, HV, K, V] scratch: gradient of the state leaving each chunk
};
using Gradients = BasicGradients<bf16>;

// Portable tier, K = V = 128.
void run_kkt_fwd(const Args& args, float* g, float* beta, bf16* ar, const bf16* proj, const float* a_log,
                 const float* dt_bias, const GdnShape& shape, int num_chunk, cudaStream_t stream);
void run_fwd(const Args& args, bf16* o, bf16* state, int num_seq, cudaStream_t stream);
void run_bwd_state(const Args& args, const Gradients& out, const bf16* d_o, int num_seq, cudaStream_t stream);
void run_bwd_chunk(const Args& args, const Gradients& out, const bf16* d_o, const bf16* state, int num_chunk,
                   cudaStream_t stream);

// Hopper tier (sm_90a), K = V = 128.
void run_fwd_wgmma(const Args& args, bf16* o, bf16* state, int num_seq, cudaStream_t stream);
// Leaves states at segments' edges in rows of out.dq, which run_bwd_chunk_wgmma then overwrites.
void run_bwd_state_wgmma(const Args& args, const Gradients& out, const bf16* d_o, int num_seq,
                         cudaStream_t stream);
void run_bwd_chunk_wgmma(const Args& args, const Gradients& out, const bf16* d_o, const bf16* state,
                         int num_chunk, cudaStream_t stream);

// The states at the edges of long examples' segments, from what the first launch of either of the above left
// in `rows` (gdn_segments.cuh).
void run_segment_scan(const Args& args, bf16* rows, bool reverse, cudaStream_t stream);
inline int segment_windows(const Args& args) { return (args.num_chunk + args.segment - 1) / args.segment; }

// Reference tier, any K and V up to 128; Real: bf16 or float.
template <typename Real>
void run_kkt_fwd_ref(const BasicArgs<Real>& args, float* g, float* beta, Real* ar, const Real* proj,
                     const float* a_log, const float* dt_bias, const GdnShape& shape, int num_chunk,
                     cudaStream_t stream);
template <typename Real>
void run_fwd_ref(const BasicArgs<Real>& args, Real* o, Real* state, int num_seq, cudaStream_t stream);
template <typename Real>
void run_bwd_ref(const BasicArgs<Real>& args, const BasicGradients<Real>& out, const Real* d_o,
                 const Real* state, int num_seq, cudaStream_t stream);

}  // namespace tessera::gdn
