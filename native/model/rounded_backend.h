// bf16 as the CPU would have it: another backend in fp32, every activation and every gradient of one rounded
// to bf16 where the CUDA kernels store it. What it differs from fp32 by is what bf16 costs a model, whatever
// the hardware: the yardstick that `verify` holds the CUDA kernels to. Their sums inside an operation are
// fp32 too; roundings inside one (the delta rule's operands) are not repeated here.
#pragma once

#include "model/forwarding_backend.h"

namespace tessera {

class RoundedBackend final : public ForwardingBackend {
 public:
  // The inner backend keeps its activations in fp32, in memory that the host can touch.
  explicit RoundedBackend(Backend& inner) : ForwardingBackend(inner) {}

  std::string name() const override { return inner_.name() + ", rounded to bf16"; }

  void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) override {
    inner_.embedding_fwd(x, table, b, H);
    round(x, b.T * H);
  }
  void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) override {
    inner_.embedding_bwd(d_table, grad, dx, b, H);
  }
  void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) override {
    inner_.rmsnorm_fwd(y, x, w, rows, H, eps);
    round(y, rows * H);
  }
  void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres, i64 rows,
                   i64 H, float eps) override {
    inner_.rmsnorm_bwd(dx, dw, dy, x, w, dres, rows, H, eps);
    round(dx, rows * H);
  }
  void linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) override {
    inner_.linear_fwd(y, x, w, residual, T, N, K);
    round(y, T * N);
  }
  void linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N, i64 K) override {
    inner_.linear_bwd_data(dx, dy, w, T, N, K);
    round(dx, T * K);
  }
  void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                         bool accumulate) override {
    inner_.linear_bwd_weight(dw, grad, dy, x, T, N, K, accumulate);
  }
  void gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                    const GdnShape& s) override {
    inner_.gdn_prep_fwd(qkv, proj, conv_w, b, s);
    round(qkv, b.T * s.conv_dim());
  }
  void gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                   const float* dt_bias, const Batch& b, const GdnShape& s) override {
    inner_.gdn_kkt_fwd(g, beta, ar, qkv, proj, a_log, dt_bias, b, s);
    round(ar, b.num_chunk * s.value_heads * kChunk * kChunk);
  }
  void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Batch& b, const GdnShape& s) override {
    inner_.gdn_fwd(o, state, qkv, g, beta, ar, b, s);
    round(o, b.T * s.values());
    round(state, states(b, s));
  }
  void gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du, Act* scratch_ds,
               const Act* d_o, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Act* state, const Batch& b, const GdnShape& s) override {
    inner_.gdn_bwd(dq, dk, dv, d_gamma, d_beta, scratch_du, scratch_ds, d_o, qkv, g, beta, ar, state, b, s);
    round(dq, b.T * i64{s.value_heads} * s.key_dim);
    round(dk, b.T * i64{s.value_heads} * s.key_dim);
    round(dv, b.T * s.values());
  }
  void gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                    const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta, const Act* proj,
                    const Act* qkv, const float* beta, const float* conv_w, const float* a_log,
                    const float* dt_bias, const Batch& b, const GdnShape& s) override {
    inner_.gdn_prep_bwd(dproj, d_conv_w, d_a_log, d_dt_bias, dq, dk, dv, d_gamma, d_beta, proj, qkv, beta,
                        conv_w, a_log, dt_bias, b, s);
    round_columns(dproj, b.T, s.proj_dim(), 0, s.conv_dim());
    round_columns(dproj, b.T, s.proj_dim(), s.b_offset(), 2 * s.value_heads);
  }
  void gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T, const GdnShape& s,
                      float eps) override {
    inner_.gated_norm_fwd(y, o, proj, w, T, s, eps);
    round(y, T * s.values());
  }
  void gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o, const Act* proj,
                      const float* w, i64 T, const GdnShape& s, float eps) override {
    inner_.gated_norm_bwd(d_o, dproj, dw, dy, o, proj, w, T, s, eps);
    round(d_o, T * s.values());
    round_columns(dproj, T, s.proj_dim(), s.z_offset(), s.values());
  }
  void qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk, const float* rope,
                        const Batch& b, const AttnShape& s, float eps) override {
    inner_.qk_norm_rope_fwd(q, k, proj, wq, wk, rope, b, s, eps);
    round(q, b.T * i64{s.heads} * s.head_dim);
    round(k, b.T * i64{s.kv_heads} * s.head_dim);
  }
  void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override {
    inner_.attention_fwd(y, o, lse, q, k, proj, b, s);
    round(y, b.T * i64{s.heads} * s.head_dim);
    round(o, b.T * i64{s.heads} * s.head_dim);
  }
  void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                     const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                     const Batch& b, const AttnShape& s) override {
    inner_.attention_bwd(dq, dk, dproj, scratch_do, scratch_delta, dy, o, lse, q, k, proj, b, s);
    round(dq, b.T * i64{s.heads} * s.head_dim);
    round(dk, b.T * i64{s.kv_heads} * s.head_dim);
  }
  void qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk, const Act* proj,
                        const float* wq, const float* wk, const float* rope, const Batch& b,
                        const AttnShape& s, float eps) override {
    inner_.qk_norm_rope_bwd(dproj, dwq, dwk, dq, dk, proj, wq, wk, rope, b, s, eps);
    round(dproj, b.T * s.proj_dim());
  }
  void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) override {
    inner_.swiglu_fwd(act, gu, T, I);
    round(act, T * I);
  }
  void swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) override {
    inner_.swiglu_bwd(dgu, act_out, dact, gu, T, I);
    round(dgu, 2 * T * I);
    if (act_out) round(act_out, T * I);
  }
  void gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) override {
    inner_.gather_rows(dst, src, row, rows, H);
  }
  void scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T, i64 H) override {
    inner_.scatter_rows(dst, src, row, rows, T, H);
  }
  void cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) override {
    inner_.cross_entropy(z, nll, label, rows, V, with_grad);
    if (with_grad) round(z, rows * V);
  }
  void loss_sum(StepResult* result, const float* nll, i64 rows) override {
    inner_.loss_sum(result, nll, rows);
  }
  void grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                 const StepScalars* scalars) override {
    inner_.grad_norm(result, segments, scalars);
  }
  void grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) override {
    inner_.grad_squares(result, segments);
  }
  void finish_norm(StepResult* result, const StepScalars* scalars) override {
    inner_.finish_norm(result, scalars);
  }
  void adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config, const StepScalars* scalars,
             const StepResult* result) override {
    inner_.adamw(segments, config, scalars, result);
  }

 private:
  static void round(Act* p, i64 count);  // p may be null
  static void round_columns(Act* p, i64 rows, i64 width, i64 first, i64 count);
  static i64 states(const Batch& b, const GdnShape& s) {
    return i64{b.num_chunk} * s.value_heads * s.key_dim * s.value_dim;
  }
};

}  // namespace tessera
