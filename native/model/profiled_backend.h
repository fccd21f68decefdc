// A backend that forwards every call and, while enabled, measures the host's time in each by operation and
// phase. On cpu a call computes, so this is the operation's time; on cuda it is the time to enqueue it. Two
// readings of the clock a call, about 0.1 us: a run on the CPU is measured whole.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/working_clock.h"
#include "model/forwarding_backend.h"
#include "ops/op_cost.h"

namespace tessera {

class ProfiledBackend : public ForwardingBackend {
  using Clock = WorkingClock;

 public:
  explicit ProfiledBackend(Backend& inner) : ForwardingBackend(inner) {}

  struct Row {
    std::string operation, phase;
    bool layered;  // within a layer; false: embedding, head, optimizer, copies
    i64 calls;
    double ms, flops, bytes;
    double longest_ms = 0;  // of one call
    i64 idle = 0;  // calls of `launch` that found the device without work: it had waited for the host
  };

  void enable(bool on);  // ends a trace
  bool enabled() const { return enabled_; }
  // Work of the host that is no call of the backend, such as preparing data, where it runs beside a device;
  // `name` is a literal.
  template <class Call>
  auto host(const char* name, const Call& call) {
    if (!enabled_ || !inner_.fixed_shapes()) return call();
    scope("host", -1);
    const auto around = std::exchange(within_, {});
    const auto begin = Clock::now();
    auto made = call();
    const auto end = Clock::now();
    record(name, {}, begin, end, 0, within_);
    within_ = around + (end - begin);
    return made;
  }
  void trace(bool on);  // while enabled: keeps every call apart, from now on
  void clear();
  std::vector<Row> rows() const;  // since clear(), the longest first
  const std::vector<OpSpan>& spans() const { return spans_; }

  void scope(const char* phase, int layer) override {
    phase_ = phase;
    layer_ = layer;
    inner_.scope(phase, layer);
  }

#define TESSERA_FORWARD(method, cost, ...) \
  timed(                                   \
      #method, [&] { return cost; }, [&] { inner_.method(__VA_ARGS__); })
  void zero(void* p, size_t n) override { TESSERA_FORWARD(zero, (OpCost{0, double(n)}), p, n); }
  void copy_in(void* d, const void* s, size_t n) override {
    TESSERA_FORWARD(copy_in, (OpCost{0, 2.0 * n}), d, s, n);
  }
  void copy_out(void* d, const void* s, size_t n) override {
    TESSERA_FORWARD(copy_out, (OpCost{0, 2.0 * n}), d, s, n);
  }
  void copy(void* d, const void* s, size_t n) override {
    TESSERA_FORWARD(copy, (OpCost{0, 2.0 * n}), d, s, n);
  }
  void synchronize() override { TESSERA_FORWARD(synchronize, (OpCost{})); }
  void upload(void* d, const void* s, size_t n) override {
    TESSERA_FORWARD(upload, (OpCost{0, 2.0 * n}), d, s, n);
  }
  void download(void* d, const void* s, size_t n) override {
    TESSERA_FORWARD(download, (OpCost{0, 2.0 * n}), d, s, n);
  }
  void upload_ahead(void* d, void* staging, const void* s, size_t n) override {
    TESSERA_FORWARD(upload_ahead, (OpCost{0, 2.0 * n}), d, staging, s, n);
  }
  void wait(i64 m) override { TESSERA_FORWARD(wait, (OpCost{}), m); }
  void launch(int graph) override { TESSERA_FORWARD(launch, (OpCost{}), graph); }

  void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) override {
    TESSERA_FORWARD(embedding_fwd, (cost::elementwise(b.T, H, 2, e())), x, table, b, H);
  }
  void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) override {
    TESSERA_FORWARD(embedding_bwd, (cost::elementwise(b.T, H, 3, e())), d_table, grad, dx, b, H);
  }
  void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) override {
    TESSERA_FORWARD(rmsnorm_fwd, (cost::elementwise(rows, H, 2, e())), y, x, w, rows, H, eps);
  }
  void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres, i64 rows,
                   i64 H, float eps) override {
    TESSERA_FORWARD(rmsnorm_bwd, (cost::elementwise(rows, H, dres ? 4 : 3, e())), dx, dw, dy, x, w, dres,
                    rows, H, eps);
  }
  void linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) override {
    TESSERA_FORWARD(linear_fwd, (cost::product(T, N, K, e(), e(), residual != nullptr)), y, x, w, residual, T,
                    N, K);
  }
  void linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N, i64 K) override {
    TESSERA_FORWARD(linear_bwd_data, (cost::product(T, K, N, e(), e(), false)), dx, dy, w, T, N, K);
  }
  void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                         bool accumulate) override {
    TESSERA_FORWARD(linear_bwd_weight, (cost::product(N, K, T, e(), dtype_bytes(grad), accumulate)), dw, grad,
                    dy, x, T, N, K, accumulate);
  }
  void gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                    const GdnShape& s) override {
    TESSERA_FORWARD(gdn_prep_fwd, (cost::elementwise(b.T, s.conv_dim(), 2, e())), qkv, proj, conv_w, b, s);
  }
  void gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                   const float* dt_bias, const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(
        gdn_kkt_fwd,
        (OpCost{cost::delta_rule(b, s, 1, 0, 0) / s.group(), e() * b.T * (s.keys() + 64.0 * s.value_heads)}),
        g, beta, ar, qkv, proj, a_log, dt_bias, b, s);
  }
  void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_fwd,
                    (OpCost{cost::delta_rule(b, s, 3, 3, 0),
                            e() * b.T * (s.conv_dim() + s.values() + 64.0 * s.value_heads) +
                                (state ? cost::delta_states(b, s, e()) : 0)}),
                    o, state, qkv, g, beta, ar, b, s);
  }
  void gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du, Act* scratch_ds,
               const Act* d_o, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Act* state, const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_bwd,
                    (OpCost{cost::delta_rule(b, s, 10, 7, 2),
                            e() * b.T * (s.conv_dim() + 4.0 * s.values() + 64.0 * s.value_heads) +
                                cost::delta_states(b, s, e())}),
                    dq, dk, dv, d_gamma, d_beta, scratch_du, scratch_ds, d_o, qkv, g, beta, ar, state, b, s);
  }
  void gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                    const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta, const Act* proj,
                    const Act* qkv, const float* beta, const float* conv_w, const float* a_log,
                    const float* dt_bias, const Batch& b, const GdnShape& s) override {
    TESSERA_FORWARD(gdn_prep_bwd, (cost::elementwise(b.T, 2.0 * s.conv_dim() + 3.0 * s.values(), 1, e())),
                    dproj, d_conv_w, d_a_log, d_dt_bias, dq, dk, dv, d_gamma, d_beta, proj, qkv, beta, conv_w,
                    a_log, dt_bias, b, s);
  }
  void gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T, const GdnShape& s,
                      float eps) override {
    TESSERA_FORWARD(gated_norm_fwd, (cost::elementwise(T, s.values(), 3, e())), y, o, proj, w, T, s, eps);
  }
  void gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o, const Act* proj,
                      const float* w, i64 T, const GdnShape& s, float eps) override {
    TESSERA_FORWARD(gated_norm_bwd, (cost::elementwise(T, s.values(), 5, e())), d_o, dproj, dw, dy, o, proj,
                    w, T, s, eps);
  }
  void qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk, const float* rope,
                        const Batch& b, const AttnShape& s, float eps) override {
    TESSERA_FORWARD(qk_norm_rope_fwd, (cost::elementwise(b.T, (s.heads + s.kv_heads) * s.head_dim, 2, e())),
                    q, k, proj, wq, wk, rope, b, s, eps);
  }
  void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override {
    TESSERA_FORWARD(attention_fwd, (causal(b, s, 2, (o ? 4.0 : 3.0) * s.heads + 2.0 * s.kv_heads)), y, o, lse,
                    q, k, proj, b, s);
  }
  void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                     const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                     const Batch& b, const AttnShape& s) override {
    TESSERA_FORWARD(attention_bwd, (causal(b, s, 5, 6.0 * s.heads + 4.0 * s.kv_heads)), dq, dk, dproj,
                    scratch_do, scratch_delta, dy, o, lse, q, k, proj, b, s);
  }
  void qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk, const Act* proj,
                        const float* wq, const float* wk, const float* rope, const Batch& b,
                        const AttnShape& s, float eps) override {
    TESSERA_FORWARD(qk_norm_rope_bwd, (cost::elementwise(b.T, (s.heads + s.kv_heads) * s.head_dim, 3, e())),
                    dproj, dwq, dwk, dq, dk, proj, wq, wk, rope, b, s, eps);
  }
  void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) override {
    TESSERA_FORWARD(swiglu_fwd, (cost::elementwise(T, I, 3, e())), act, gu, T, I);
  }
  void swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) override {
    TESSERA_FORWARD(swiglu_bwd, (cost::elementwise(T, I, act_out ? 6 : 5, e())), dgu, act_out, dact, gu, T,
                    I);
  }
  void gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) override {
    TESSERA_FORWARD(gather_rows, (cost::elementwise(rows, H, 2, e())), dst, src, row, rows, H);
  }
  void scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T, i64 H) override {
    TESSERA_FORWARD(scatter_rows, (cost::elementwise(rows + T, H, 1, e())), dst, src, row, rows, T, H);
  }
  void cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) override {
    TESSERA_FORWARD(cross_entropy, (cost::elementwise(rows, V, with_grad ? 2 : 1, e())), z, nll, label, rows,
                    V, with_grad);
  }
  void loss_sum(StepResult* result, const float* nll, i64 rows) override {
    TESSERA_FORWARD(loss_sum, (OpCost{0, 4.0 * rows}), result, nll, rows);
  }
  void grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                 const StepScalars* scalars) override {
    TESSERA_FORWARD(grad_norm, (segment_cost(segments, false)), result, segments, scalars);
  }
  void grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) override {
    TESSERA_FORWARD(grad_squares, (segment_cost(segments, false)), result, segments);
  }
  void finish_norm(StepResult* result, const StepScalars* scalars) override {
    TESSERA_FORWARD(finish_norm, (OpCost{}), result, scalars);
  }
  i64 beside(const char* op, double bytes, const std::function<void(void*)>& work) override {
    i64 ticket = 0;
    timed(
        op,
        [&] {
          return OpCost{0, bytes};
        },
        [&] { ticket = inner_.beside(op, bytes, work); });
    return ticket;
  }
  void adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config, const StepScalars* scalars,
             const StepResult* result) override {
    TESSERA_FORWARD(adamw, (segment_cost(segments, true)), segments, config, scalars, result);
  }
#undef TESSERA_FORWARD

 private:
  struct Tally {
    const char* operation;
    const char* phase;
    bool layered;
    i64 calls = 0;
    std::chrono::nanoseconds total{0}, longest{0};
    double flops = 0, bytes = 0;
    i64 idle = 0;
  };
  template <class Cost, class Call>
  void timed(const char* operation, const Cost& cost, const Call& call) {
    if (!enabled_) return call();
    const i64 idle = inner_.idle_launches();
    const auto begin = Clock::now();
    call();
    const auto end = Clock::now();
    within_ += end - begin;
    record(operation, cost(), begin, end, inner_.idle_launches() - idle);
  }
  // within: of this time, what was recorded of calls inside it.
  void record(const char* operation, OpCost cost, Clock::time_point begin, Clock::time_point end, i64 idle,
              Clock::duration within = {});
  double e() const { return static_cast<double>(dtype_bytes(act_dtype())); }
  // Where the sequences' ends lie in the device's memory, its own profiler counts.
  OpCost causal(const Batch& b, const AttnShape& s, int products, double heads) const {
    if (fixed_shapes()) return {};
    return {cost::causal_products(b, s, products), e() * b.T * s.head_dim * heads};
  }
  static OpCost segment_cost(const std::vector<AdamSegment>& segments, bool updates);
  bool enabled_ = false, tracing_ = false;
  const char* phase_ = "forward";
  int layer_ = -1;
  std::vector<Tally> tallies_;
  std::vector<OpSpan> spans_;
  Clock::time_point origin_{};
  Clock::duration within_{};  // recorded since the work of the host began that is going on
};

}  // namespace tessera
