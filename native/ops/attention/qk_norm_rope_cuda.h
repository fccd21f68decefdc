// Per-head RMS norm (zero-centred weight) and rotary position of queries and keys on CUDA. Heads of 256,
// rotary_dim a multiple of 16.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// q [T,NH,256], k [T,NKV,256] = rope(norm(slices of proj)); rope f32 [max_pos, R]: cos [R/2] | sin [R/2]
void launch_qk_norm_rope_fwd(bf16* q, bf16* k, const bf16* proj, const float* wq, const float* wk,
                             const float* rope, const Batch& b, const AttnShape& s, float eps,
                             cudaStream_t stream);

// The q and k slices of dproj =; dwq, dwk [256] +=. scratch: qk_norm_rope_bwd_scratch_bytes().
void launch_qk_norm_rope_bwd(bf16* dproj, float* dwq, float* dwk, const bf16* dq, const bf16* dk,
                             const bf16* proj, const float* wq, const float* wk, const float* rope,
                             const Batch& b, const AttnShape& s, float eps, float* scratch,
                             cudaStream_t stream);
size_t qk_norm_rope_bwd_scratch_bytes();

}  // namespace tessera
