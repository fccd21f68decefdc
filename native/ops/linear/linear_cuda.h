// The plain matrix product that serves where cuBLASLt is absent.
#pragma once

#include "ops/cuda_common.cuh"
#include "ops/linear/cublaslt.h"

namespace tessera {

// The same product as CublasLt::multiply, any sizes and alignments. fp32 sums in ascending k; far below the
// tensor cores' rate (tier reference).
void launch_matrix_product_reference(const MatrixProduct& product, cudaStream_t stream);

// rows x cols bf16 with stride ld: uniform in (-1, 1) by a counter, for timing products on values that are
// not zero.
void launch_fill_random(bf16* p, i64 rows, i64 cols, i64 ld, cudaStream_t stream);

}  // namespace tessera
