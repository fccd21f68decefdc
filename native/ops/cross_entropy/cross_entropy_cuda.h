// Cross-entropy over the vocabulary on CUDA, in place over the logits.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera {

// nll[r] = lse(z[r]) - z[r][label[r]], 0 where label < 0. with_grad: z becomes bf16(softmax - onehot), rows
// of zeros where unsupervised. V: a multiple of 8. z [rows, V] may hold more than 2^31 elements. Up to
// 16,384 logits a block keeps the row in registers; beyond, with `cluster`, a cluster of blocks keeps it in
// shared memory (sm_90): one read, one write. Otherwise a block reads the row twice.
void launch_cross_entropy(bf16* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad,
                          bool cluster, cudaStream_t stream);
bool cross_entropy_cluster_serves(i64 V);

// result->loss_sum += sum of nll, in double and a fixed order
void launch_loss_sum(StepResult* result, const float* nll, i64 rows, cudaStream_t stream);

}  // namespace tessera
