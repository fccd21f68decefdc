// RMSNorm with a zero-centred weight on CUDA. H: a multiple of 8, at most 8192.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// y = bf16(x * rsqrt(mean(x^2) + eps) * (1 + w)), fp32 inside
void launch_rmsnorm_fwd(bf16* y, const bf16* x, const float* w, i64 rows, i64 H, float eps,
                        cudaStream_t stream);

// With xh = x r and m = dy (1 + w): dx = r (m - xh mean(m xh)) + dres; dw += sum over rows of dy xh.
// dres may be null or equal dx. scratch: rmsnorm_bwd_scratch_bytes(H).
void launch_rmsnorm_bwd(bf16* dx, float* dw, const bf16* dy, const bf16* x, const float* w, const bf16* dres,
                        i64 rows, i64 H, float eps, float* scratch, cudaStream_t stream);
size_t rmsnorm_bwd_scratch_bytes(i64 H);

}  // namespace tessera
