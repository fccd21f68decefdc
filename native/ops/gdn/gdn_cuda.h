// Launches of the chunked gated delta rule on CUDA. Formulas: README.md and CUDA.md beside this file.
//
// Shapes, roles and contract marks are those of Backend::gdn_kkt_fwd, gdn_fwd and gdn_bwd (ops/backend.h).
// Act is bf16; sums, gates and the carried state are fp32. Every launch only enqueues on `stream`, has a grid
// that depends on capacities alone (so that it can be captured), uses no atomics and gives the same bits in
// every run and for an example alone or packed. Row strides qkv: conv_dim(), proj: proj_dim(), o, d_o, dv:
// values(). Pointers must be 16-byte aligned and conv_dim(), values() multiples of 8.
//
// The hopper and portable tiers are compiled for K = V = 128; `reference` takes any K, V <= 128.
// Throws EngineError unsupported_head_size (naming what is supported) and cuda_error (naming the kernel).
#pragma once

#include <cuda_runtime_api.h>

#include "ops/backend.h"
#include "ops/kernel_tier.h"

namespace tessera {

// Whether `tier` has kernels for the head sizes of `shape`.
bool gdn_cuda_supports(const GdnShape& shape, KernelTier tier);

// The faster of the hopper and portable tiers on a device of this compute capability (90 for 9.0). Never
// reference: who wants the slow kernels names them. A shape that the tier does not serve is refused by the
// launch.
KernelTier gdn_cuda_tier(const GdnShape& shape, int compute_capability);

void launch_gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                        const float* dt_bias, const Batch& batch, const GdnShape& shape, KernelTier tier,
                        cudaStream_t stream);

// state may be null: then the state entering each chunk is not kept. Its elements' order within a chunk and
// head is the tier's own (gdn_bwd of the same tier reads it).
void launch_gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
                    const Batch& batch, const GdnShape& shape, KernelTier tier, cudaStream_t stream);

// Both scratch buffers are overwritten; their contents mean nothing afterwards.
void launch_gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du,
                    Act* scratch_ds, const Act* d_o, const Act* qkv, const float* g, const float* beta,
                    const Act* ar, const Act* state, const Batch& batch, const GdnShape& shape,
                    KernelTier tier, cudaStream_t stream);

}  // namespace tessera
