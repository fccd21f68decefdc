// Embedding lookup and its gradient on CUDA. H: a multiple of 8.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// x[t] = table[tok[t]], bf16 [T,H]
void launch_embedding_fwd(bf16* x, const bf16* table, const i32* tok, i64 T, i64 H, cudaStream_t stream);

// d_table[id] += sum of dx[t] over the positions t that hold id, grouped by position alone; fp32 sum, one
// rounding. grad: f32 or bf16.
void launch_embedding_bwd(void* d_table, DType grad, const bf16* dx, const Batch& b, i64 H,
                          cudaStream_t stream);

}  // namespace tessera
