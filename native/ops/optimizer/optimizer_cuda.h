// Gradient norm and AdamW on CUDA (engine.md 4.11, 5.10). All scalars come from device memory, so that graphs
// replay.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// Sum of squares over all segments' gradients in fixed partials, then norm, scale and finite into result. The
// loss that result holds must be finite too. scratch: grad_norm_scratch_bytes(elements over all segments,
// number of segments).
void launch_grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                      const StepScalars* scalars, float* scratch, size_t scratch_bytes, cudaStream_t stream);
// The same in two parts, for ranks: result->squares, and what follows from it.
void launch_grad_squares(StepResult* result, const std::vector<AdamSegment>& segments, float* scratch,
                         size_t scratch_bytes, cudaStream_t stream);
void launch_finish_norm(StepResult* result, const StepScalars* scalars, cudaStream_t stream);
// to = or += sum; to in type, sum fp32 (Backend::keep_sum).
void launch_keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate, cudaStream_t stream);
size_t grad_norm_scratch_bytes(i64 elements, i64 segments);

// torch's AdamW with g = grad * result->scale; returns without a change where result->finite is 0. In bf16sr
// every bf16 value written (parameter, m, v) is stochastically rounded; in master32 a bf16 parameter is its
// master, rounded.
void launch_adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config,
                  const StepScalars* scalars, const StepResult* result, cudaStream_t stream);

}  // namespace tessera
