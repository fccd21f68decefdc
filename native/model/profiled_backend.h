// A backend that forwards every call and, while enabled, measures the host's time in each by operation and
// phase. On cpu a call computes, so this is the operation's time; on cuda it is the time to enqueue it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "core/json_fwd.h"
#include "ops/backend.h"

namespace tessera {

class ProfiledBackend : public Backend {
 public:
  explicit ProfiledBackend(Backend& inner) : inner_(inner) {}

  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }
  // [{operation, phase, calls, averageUs, totalMs}], the longest first; empties the record.
  Json take_report();

  std::string name() const override { return inner_.name(); }
  DType act_dtype() const override { return inner_.act_dtype(); }
  DType weight_dtype() const override { return inner_.weight_dtype(); }
  bool fixed_shapes() const override { return inner_.fixed_shapes(); }
  std::vector<KernelInfo> kernels(const GdnShape& g, const AttnShape& a) const override {
    return inner_.kernels(g, a);
  }
  void* allocate(size_t bytes) override { return inner_.allocate(bytes); }
  void release(void* p) override { inner_.release(p); }
  void* allocate_host(size_t bytes) override { return inner_.allocate_host(bytes); }
  void release_host(void* p) override { inner_.release_host(p); }
  size_t workspace_bytes(const GdnShape& g, const AttnShape& a, i64 T, i64 H, i64 I, i64 V) const override {
    return inner_.workspace_bytes(g, a, T, H, I, V);
  }
  void set_workspace(void* p, size_t bytes) override { inner_.set_workspace(p, bytes); }
  int capture(const std::function<void()>& enqueue) override { return inner_.capture(enqueue); }
  i64 mark() override { return inner_.mark(); }
  std::vector<OpTime> op_times() override { return inner_.op_times(); }
  i64 submissions() const override { return inner_.submissions(); }
  i64 kernels(int graph) const override { return inner_.kernels(graph); }
  size_t context_bytes() const override { return inner_.context_bytes(); }
  size_t memory_used() const override { return inner_.memory_used(); }
  void scope(const char* phase, int layer) override {
    phase_ = phase;
    inner_.scope(phase, layer);
  }

#define TESSERA_FORWARD(method, ...) timed(#method, [&] { inner_.method(__VA_ARGS__); })
  void zero(void* p, size_t n) override { TESSERA_FORWARD(zero, p, n); }
  void copy_in(void* d, const void* s, size_t n) override { TESSERA_FORWARD(copy_in, d, s, n); }
  void copy_out(void* d, const void* s, size_t n) override { TESSERA_FORWARD(copy_out, d, s, n); }
  void copy(void* d, const void* s, size_t n) override { TESSERA_FORWARD(copy, d, s, n); }
  void synchronize() override { TESSERA_FORWARD(synchronize); }
  void upload(void* d, const void* s, size_t n) override { TESSERA_FORWARD(upload, d, s, n); }
  void download(void* d, const void* s, size_t n) override { TESSERA_FORWARD(download, d, s, n); }
  void wait(i64 m) override { TESSERA_FORWARD(wait, m); }
  void launch(int graph) override { TESSERA_FORWARD(launch, graph); }

  void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) override {
    TESSERA_FORWARD(embedding_fwd, x, table, b, H);
  }
  void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) override {
    TESSERA_FORWARD(embedding_bwd, d_table, grad, dx, b, H);
  }
  void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) override {
    TESSERA_FORWARD(rmsnorm_fwd, y, x, w, rows, H, eps);
  }
  void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres, i64 rows,
                   i64 H, float eps) override {
    TESSERA_FORWARD(rmsnorm_bwd, dx, dw, dy, x, w, dres, rows, H, eps);
  }
  void linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) override {
    TESSERA_FORWARD(linear_fwd, y, x, w, residual, T, N, K);
  }
  void linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N, i64 K) override {
    TESSERA_FORWARD(linear_bwd_data, dx, dy, w, T, N, K);
  }
  void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                         bool accumulate) override {
    TESSERA_FORWARD(linear_bwd_weight, dw, grad, dy, x, T, N, K, accumulate);
  }
  void gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                    const GdnShape& s) override {
    TESSERA_FORWARD(gdn_prep_fwd, qkv, proj, conv_w, b, s);
  }
  void gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                   const float* dt_bias, const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_kkt_fwd, g, beta, ar, qkv, proj, a_log, dt_bias, b, s);
  }
  void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_fwd, o, state, qkv, g, beta, ar, b, s);
  }
  void gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du, Act* scratch_ds,
               const Act* d_o, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Act* state, const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_bwd, dq, dk, dv, d_gamma, d_beta, scratch_du, scratch_ds, d_o, qkv, g, beta, ar,
                    state, b, s);
  }
  void gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                    const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta, const Act* proj,
                    const Act* qkv, const float* beta, const float* conv_w, const float* a_log,
                    const float* dt_bias, const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_prep_bwd, dproj, d_conv_w, d_a_log, d_dt_bias, dq, dk, dv, d_gamma, d_beta, proj, qkv,
                    beta, conv_w, a_log, dt_bias, b, s);
  }
  void gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T, const GdnShape& s,
                      float eps) override {
    TESSERA_FORWARD(gated_norm_fwd, y, o, proj, w, T, s, eps);
  }
  void gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o, const Act* proj,
                      const float* w, i64 T, const GdnShape& s, float eps) override {
    TESSERA_FORWARD(gated_norm_bwd, d_o, dproj, dw, dy, o, proj, w, T, s, eps);
  }
  void qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk, const float* rope,
                        const Batch& b, const AttnShape& s, float eps) override {
    TESSERA_FORWARD(qk_norm_rope_fwd, q, k, proj, wq, wk, rope, b, s, eps);
  }
  void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override {
    TESSERA_FORWARD(attention_fwd, y, o, lse, q, k, proj, b, s);
  }
  void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                     const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                     const Batch& b, const AttnShape& s) override {
    TESSERA_FORWARD(attention_bwd, dq, dk, dproj, scratch_do, scratch_delta, dy, o, lse, q, k, proj, b, s);
  }
  void qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk, const Act* proj,
                        const float* wq, const float* wk, const float* rope, const Batch& b,
                        const AttnShape& s, float eps) override {
    TESSERA_FORWARD(qk_norm_rope_bwd, dproj, dwq, dwk, dq, dk, proj, wq, wk, rope, b, s, eps);
  }
  void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) override {
    TESSERA_FORWARD(swiglu_fwd, act, gu, T, I);
  }
  void swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) override {
    TESSERA_FORWARD(swiglu_bwd, dgu, act_out, dact, gu, T, I);
  }
  void gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) override {
    TESSERA_FORWARD(gather_rows, dst, src, row, rows, H);
  }
  void scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T, i64 H) override {
    TESSERA_FORWARD(scatter_rows, dst, src, row, rows, T, H);
  }
  void cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) override {
    TESSERA_FORWARD(cross_entropy, z, nll, label, rows, V, with_grad);
  }
  void loss_sum(StepResult* result, const float* nll, i64 rows) override {
    TESSERA_FORWARD(loss_sum, result, nll, rows);
  }
  void grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                 const StepScalars* scalars) override {
    TESSERA_FORWARD(grad_norm, result, segments, scalars);
  }
  void adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config, const StepScalars* scalars,
             const StepResult* result) override {
    TESSERA_FORWARD(adamw, segments, config, scalars, result);
  }
#undef TESSERA_FORWARD

 private:
  struct Tally {
    i64 calls = 0;
    std::chrono::nanoseconds total{0};
  };
  template <class Call>
  void timed(const char* operation, const Call& call) {
    if (!enabled_) return call();
    const auto start = std::chrono::steady_clock::now();
    call();
    Tally& tally = tallies_[{operation, phase_}];
    ++tally.calls;
    tally.total += std::chrono::steady_clock::now() - start;
  }

  Backend& inner_;
  bool enabled_ = false;
  std::string phase_ = "forward";
  std::map<std::pair<std::string, std::string>, Tally> tallies_;
};

}  // namespace tessera
