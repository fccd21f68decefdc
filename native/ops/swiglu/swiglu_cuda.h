// SwiGLU on CUDA; gu [T, 2I] = gate | up. I: a multiple of 8.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// act [T,I] = bf16(silu(gate) * up)
void launch_swiglu_fwd(bf16* act, const bf16* gu, i64 T, i64 I, cudaStream_t stream);

// dgu =, may alias gu; act_out = silu(gate) * up, may alias dact
void launch_swiglu_bwd(bf16* dgu, bf16* act_out, const bf16* dact, const bf16* gu, i64 T, i64 I,
                       cudaStream_t stream);

}  // namespace tessera
