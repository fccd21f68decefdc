// The CUDA backend by its reference kernels: the same memory, graphs, products and profiler, every other
// operation by the plain kernels of this folder. Real: bf16 (models of any head size) or float (any run in
// fp32, the yardstick of `verify`). Both are listed as slow: a run with them needs acceptSlow.
#pragma once

#include "ops/cuda_backend.h"

namespace tessera {

template <typename Real>
class CudaReferenceBackend final : public CudaBackend {
 public:
  // reason: why these kernels serve, for the listing.
  CudaReferenceBackend(const CudaOptions& options, std::string reason);

  DType act_dtype() const override { return sizeof(Real) == 4 ? DType::f32 : DType::bf16; }
  DType weight_dtype() const override { return act_dtype(); }
  std::vector<KernelInfo> kernels(const GdnShape& gdn, const AttnShape& attn) const override;
  size_t workspace_bytes(const GdnShape& gdn, const AttnShape& attn, i64 T, i64 H, i64 I,
                         i64 V) const override;

  void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) override;
  void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) override;
  void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) override;
  void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres, i64 rows,
                   i64 H, float eps) override;
  void gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                    const GdnShape& s) override;
  void gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                   const float* dt_bias, const Batch& b, const GdnShape& s) override;
  void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Batch& b, const GdnShape& s) override;
  void gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du, Act* scratch_ds,
               const Act* d_o, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Act* state, const Batch& b, const GdnShape& s) override;
  void gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                    const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta, const Act* proj,
                    const Act* qkv, const float* beta, const float* conv_w, const float* a_log,
                    const float* dt_bias, const Batch& b, const GdnShape& s) override;
  void gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T, const GdnShape& s,
                      float eps) override;
  void gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o, const Act* proj,
                      const float* w, i64 T, const GdnShape& s, float eps) override;
  void qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk, const float* rope,
                        const Batch& b, const AttnShape& s, float eps) override;
  void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override;
  void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                     const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                     const Batch& b, const AttnShape& s) override;
  void qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk, const Act* proj,
                        const float* wq, const float* wk, const float* rope, const Batch& b,
                        const AttnShape& s, float eps) override;
  void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) override;
  void swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) override;
  void gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) override;
  void scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T, i64 H) override;
  void cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) override;

 private:
  std::string reason_;
};

}  // namespace tessera
