// The kernels behind attention_cuda.h, a file each; attention_cuda.cu checks arguments and picks.
#pragma once

#include "ops/attention/attention_device.cuh"

namespace tessera::attention {

struct Gradients {
  bf16* dq;      // [T, NH, D]
  bf16* dk;      // [T, NKV, D]
  bf16* dproj;   // gate and v slices
  bf16* d_o;     // [T, NH, D] scratch: dy * sigmoid(gate)
  float* delta;  // [NH, T] scratch: <d_o, o>
};

// Portable tier, D = 256.
void run_fwd(const Args& args, const Outputs& out, cudaStream_t stream);
void run_bwd_dkv(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);
void run_bwd_dq(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);

// Hopper tier (sm_90a), D = 256.
void run_fwd_wgmma(const Args& args, const Outputs& out, cudaStream_t stream);
void run_bwd_dkv_wgmma(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);
void run_bwd_dq_wgmma(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);

// Any D that is a multiple of 8: d_o, delta and the gate's gradient, for both tiers.
void run_bwd_gate(const Args& args, const Gradients& out, const bf16* dy, const bf16* o, cudaStream_t stream);

// Reference tier, D a multiple of 8 up to 256.
void run_fwd_ref(const Args& args, const Outputs& out, cudaStream_t stream);
void run_bwd_ref(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream);

}  // namespace tessera::attention
