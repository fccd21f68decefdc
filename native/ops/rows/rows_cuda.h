// Rows picked out of a matrix and put back (loss-token compaction) on CUDA. H: a multiple of 8.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// dst[i] = src[row[i]], zeros where row[i] is -1
void launch_gather_rows(bf16* dst, const bf16* src, const i32* row, i64 rows, i64 H, cudaStream_t stream);

// dst [T,H] = 0, then dst[row[i]] = src[i]; the rows are distinct
void launch_scatter_rows(bf16* dst, const bf16* src, const i32* row, i64 rows, i64 T, i64 H,
                         cudaStream_t stream);

}  // namespace tessera
