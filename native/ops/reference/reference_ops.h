// Plain CUDA kernels of every operation but the products: any sizes, fp32 arithmetic, one thread block a row
// or a column. Slow. They serve models whose head sizes the fast kernels do not, and runs in fp32.
//
// Shapes, roles and contract marks are those of the operation of the same name in ops/backend.h. Real is bf16
// or float. No atomics: sums over rows are taken in a fixed order. scratch: reference_scratch_bytes() bytes.
// The delta rule's core and attention are in gdn/gdn_reference.cu and attention/attention_reference.cu.
#pragma once

#include "ops/cuda_common.cuh"

namespace tessera::reference {

size_t scratch_bytes(const GdnShape& gdn, const AttnShape& attn, i64 T, i64 H);

template <typename Real>
struct RowOps {
  static void embedding_fwd(Real* x, const Real* table, const i32* tok, i64 T, i64 H, cudaStream_t stream);
  static void embedding_bwd(void* d_table, DType grad, const Real* dx, const Batch& b, i64 H,
                            cudaStream_t stream);
  static void rmsnorm_fwd(Real* y, const Real* x, const float* w, i64 rows, i64 H, float eps,
                          cudaStream_t stream);
  static void rmsnorm_bwd(Real* dx, float* dw, const Real* dy, const Real* x, const float* w,
                          const Real* dres, i64 rows, i64 H, float eps, float* scratch, cudaStream_t stream);
  static void gated_norm_fwd(Real* y, const Real* o, const Real* proj, const float* w, i64 T,
                             const GdnShape& s, float eps, cudaStream_t stream);
  static void gated_norm_bwd(Real* d_o, Real* dproj, float* dw, const Real* dy, const Real* o,
                             const Real* proj, const float* w, i64 T, const GdnShape& s, float eps,
                             float* scratch, cudaStream_t stream);
  static void qk_norm_rope_fwd(Real* q, Real* k, const Real* proj, const float* wq, const float* wk,
                               const float* rope, const Batch& b, const AttnShape& s, float eps,
                               cudaStream_t stream);
  static void qk_norm_rope_bwd(Real* dproj, float* dwq, float* dwk, const Real* dq, const Real* dk,
                               const Real* proj, const float* wq, const float* wk, const float* rope,
                               const Batch& b, const AttnShape& s, float eps, float* scratch,
                               cudaStream_t stream);
  static void swiglu_fwd(Real* act, const Real* gu, i64 T, i64 I, cudaStream_t stream);
  static void swiglu_bwd(Real* dgu, Real* act_out, const Real* dact, const Real* gu, i64 T, i64 I,
                         cudaStream_t stream);
  static void gather_rows(Real* dst, const Real* src, const i32* row, i64 rows, i64 H, cudaStream_t stream);
  static void scatter_rows(Real* dst, const Real* src, const i32* row, i64 rows, i64 T, i64 H,
                           cudaStream_t stream);
  static void cross_entropy(Real* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad,
                            cudaStream_t stream);
};

// The delta net's input side.
template <typename Real>
struct PrepBackward {
  Real* dproj;
  float *d_conv_w, *d_a_log, *d_dt_bias;
  const Real *dq, *dk, *dv;
  const float *d_gamma, *d_beta;
  const Real* proj;
  const float *beta, *conv_w, *a_log, *dt_bias;
  float* scratch;
};
template <typename Real>
void gdn_prep_fwd(Real* qkv, const Real* proj, const float* conv_w, const Batch& b, const GdnShape& s,
                  cudaStream_t stream);
template <typename Real>
void gdn_prep_bwd(const PrepBackward<Real>& p, const Batch& b, const GdnShape& s, cudaStream_t stream);

}  // namespace tessera::reference
