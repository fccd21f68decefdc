// Launches of causal, packed, grouped-query attention with an output gate on CUDA.
//
// Shapes, roles and contract marks are those of Backend::attention_fwd and attention_bwd (ops/backend.h).
// Act is bf16; scores, softmax, lse and all sums are fp32. Every launch only enqueues on `stream`, has a grid
// that depends on capacities alone (so that it can be captured), uses no atomics and gives the same bits in
// every run and for an example alone or packed. Pointers must be 16-byte aligned and proj_dim() a multiple
// of 8.
//
// The hopper and portable tiers are compiled for head_dim = 256; `reference` takes any multiple of 8 up to
// 256. Throws EngineError unsupported_head_size (naming what is supported) and cuda_error (naming the
// kernel).
#pragma once

#include <cuda_runtime_api.h>

#include "ops/backend.h"
#include "ops/kernel_tier.h"

namespace tessera {

// Whether `tier` has kernels for the head sizes of `shape`.
bool attention_cuda_supports(const AttnShape& shape, KernelTier tier);

// o may be null: then the output before the gate is not kept.
// The faster of the hopper and portable tiers on a device of this compute capability (90 for 9.0). Never
// reference: who wants the slow kernels names them. A shape that the tier does not serve is refused by the
// launch.
KernelTier attention_cuda_tier(const AttnShape& shape, int compute_capability);

void launch_attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj,
                          const Batch& batch, const AttnShape& shape, KernelTier tier, cudaStream_t stream);

void launch_attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                          const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                          const Batch& batch, const AttnShape& shape, KernelTier tier, cudaStream_t stream);

}  // namespace tessera
