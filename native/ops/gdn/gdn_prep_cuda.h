// Input side of the gated delta net on CUDA: causal convolution of 4 taps + SiLU + l2 norm of q and k, and
// its gradient together with that of the gates (engine.md 3.5, 3.6, 4.8, 4.9). Key and value heads of 128
// channels, 4 taps.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// qkv [T,CQ] bf16 =
void launch_gdn_prep_fwd(bf16* qkv, const bf16* proj, const float* conv_w, const Batch& b, const GdnShape& s,
                         cudaStream_t stream);

struct GdnPrepBackward {
  bf16* dproj;           // [T, proj_dim]: the qkv, b and a slices are written
  float* d_conv_w;       // [CQ, 4] +=
  float* d_a_log;        // [HV] +=
  float* d_dt_bias;      // [HV] +=
  const bf16* dq;        // [T, HV, 128] per value head, summed here over the heads that share a key head
  const bf16* dk;        // [T, HV, 128]
  const bf16* dv;        // [T, VD]
  const float* d_gamma;  // [NC, HV, 64], of the per-token log decay
  const float* d_beta;   // [NC, HV, 64]
  const bf16* proj;
  const float* beta;  // [NC, HV, 64]
  const float* conv_w;
  const float* a_log;
  const float* dt_bias;
  float* scratch;  // gdn_prep_bwd_scratch_bytes
};
void launch_gdn_prep_bwd(const GdnPrepBackward& p, const Batch& b, const GdnShape& s, cudaStream_t stream);
size_t gdn_prep_bwd_scratch_bytes(i64 T, i64 num_chunk, const GdnShape& s);

}  // namespace tessera
