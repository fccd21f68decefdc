// RMS norm of the delta net's output per head, gated by silu(z), on CUDA. Value heads of 128 channels.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// y = bf16(w o rsqrt(mean(o^2) + eps) silu(z)), fp32 inside; z is a slice of proj; w [128] a plain scale
void launch_gated_norm_fwd(bf16* y, const bf16* o, const bf16* proj, const float* w, i64 T, const GdnShape& s,
                           float eps, cudaStream_t stream);

// d_o =, the z slice of dproj =, dw += over positions and heads (engine.md 4.6). d_o may equal dy.
// scratch: gated_norm_bwd_scratch_bytes().
void launch_gated_norm_bwd(bf16* d_o, bf16* dproj, float* dw, const bf16* dy, const bf16* o, const bf16* proj,
                           const float* w, i64 T, const GdnShape& s, float eps, float* scratch,
                           cudaStream_t stream);
size_t gated_norm_bwd_scratch_bytes();

}  // namespace tessera
