// The kernels behind attention_cuda.h, a file each; attention_cuda.cu checks arguments and picks.
#pragma once

#include "ops/attention/attention_device.cuh"

namespace tessera::attention {

// What every kernel of a call reads.
template <typename Real>
BasicArgs<Real> make_args(const Act* q, const Act* k, const Act* proj, const Batch& batch,
                          const AttnShape& shape) {
  BasicArgs<Real> args{};
  args.q = static_cast<const Real*>(q);
  args.k = static_cast<const Real*>(k);
  args.proj = static_cast<const Real*>(proj);
  args.chunk = batch.chunk;
  args.cu = batch.cu;
  args.pos = batch.pos;
  args.seq_end = batch.seq_end;
  args.tokens = batch.T;
  args.num_seq = batch.num_seq;
  args.num_chunk = batch.num_chunk;
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.group = shape.heads / shape.kv_heads;
  args.head_dim = shape.head_dim;
  args.proj_dim = static_cast<size_t>(shape.proj_dim());
  args.v_offset = static_cast<size_t>(shape.v_offset());
  return args;
}

template <typename Real>
struct BasicGradients {
  Real* dq;      // [T, NH, D]
  Real* dk;      // [T, NKV, D]
  Real* dproj;   // gate and v slices
  Real* d_o;     // [T, NH, D] scratch: dy * sigmoid(gate)
  float* delta;  // [NH, T] scratch: <d_o, o>
};
using Gradients = BasicGradients<bf16>;

// Portable tier, D = 256.
void run_fwd(const Args& args, const Outputs& out, cudaStream_t stream);
void run_bwd_dkv(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);
void run_bwd_dq(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);

// Hopper tier (sm_90a), D = 256.
void run_fwd_wgmma(const Args& args, const Outputs& out, cudaStream_t stream);
void run_bwd_dkv_wgmma(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);
void run_bwd_dq_wgmma(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);

// Any D that is a multiple of 8: d_o, delta and the gate's gradient, for the portable and hopper tiers.
void run_bwd_gate(const Args& args, const Gradients& out, const bf16* dy, const bf16* o, cudaStream_t stream);

// Reference tier, any D up to 256; Real: bf16 or float. Backward includes the gate's part.
template <typename Real>
void run_fwd_ref(const BasicArgs<Real>& args, const BasicOutputs<Real>& out, cudaStream_t stream);
template <typename Real>
void run_bwd_ref(const BasicArgs<Real>& args, const BasicGradients<Real>& out, const float* lse,
                 const Real* dy, const Real* o, cudaStream_t stream);

}  // namespace tessera::attention
