// The CPU backend: checks what a caller can get wrong, then forwards to the operations of the instruction set
// found at start. Runs everything at once, in fp32.
#include <omp.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "ops/backend.h"

#define TESSERA_ISA avx2
#include "ops/cpu/ops.inc"
#undef TESSERA_ISA
#define TESSERA_ISA baseline
#include "ops/cpu/ops.inc"
#undef TESSERA_ISA

// Calls an operation of the chosen instruction set for fp32.
#define TESSERA_CALL(op, ...) \
  (avx2_ ? avx2::op<float>(threads_, __VA_ARGS__) : baseline::op<float>(threads_, __VA_ARGS__))

namespace tessera {
namespace {

float* f32(void* p) { return static_cast<float*>(p); }
const float* f32(const void* p) { return static_cast<const float*>(p); }

bool use_avx2() {
  const char* choice = std::getenv("TESSERA_CPU");
  const std::string asked = choice == nullptr ? "" : choice;
  const bool able = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (asked == "baseline") return false;
  if (asked.empty()) return able;
  if (asked == "avx2" && able) return true;
  throw EngineError("bad_option", "TESSERA_CPU is \"" + asked + "\"",
                    "use \"baseline\", \"avx2\" on a processor that has AVX2 and FMA, or leave it unset");
}

void require_f32(DType t, const char* what) {
  if (t == DType::f32) return;
  throw EngineError("unsupported_dtype", std::string("the CPU backend keeps ") + what + " in fp32 only",
                    "run with precision fp32 on the CPU, or on a CUDA device");
}

void require_below(const i32* values, i64 count, i64 limit, const char* what) {
  for (i64 i = 0; i < count; ++i) {
    if (values[i] < limit) continue;
    throw EngineError(
        "bad_batch",
        std::string(what) + " at position " + std::to_string(i) + " is " + std::to_string(values[i]) +
            ", outside the vocabulary of " + std::to_string(limit),
        "the dataset was tokenised for another model; import it again with this model's tokenizer");
  }
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : threads_(options.threads > 0 ? options.threads : omp_get_num_procs()),
        recurrent_(options.gdn == GdnAlgorithm::recurrent),
        avx2_(!options.baseline && use_avx2()) {}

  std::string name() const override { return "cpu"; }
  DType act_dtype() const override { return DType::f32; }
  DType weight_dtype() const override { return DType::f32; }
  bool fixed_shapes() const override { return false; }
  using Backend::kernels;
  std::vector<KernelInfo> kernels(const GdnShape& gdn, const AttnShape& attn) const override;

  void* allocate(size_t bytes) override {
    void* p = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (p == nullptr) {
      throw EngineError("out_of_memory", "no memory for " + std::to_string(bytes >> 20) + " MiB",
                        "lower the token budget or use a smaller model");
    }
    return p;
  }
  void release(void* p) override { std::free(p); }
  void zero(void* p, size_t bytes) override { std::memset(p, 0, bytes); }
  void copy_in(void* dst, const void* host, size_t bytes) override { std::memcpy(dst, host, bytes); }
  void copy_out(void* host, const void* src, size_t bytes) override { std::memcpy(host, src, bytes); }
  void copy(void* dst, const void* src, size_t bytes) override { std::memmove(dst, src, bytes); }
  void synchronize() override {}
  // Operations hold their own scratch: partial sums, and a few blocks per thread.
  size_t workspace_bytes(const GdnShape&, const AttnShape&, i64, i64, i64, i64) const override { return 0; }
  void set_workspace(void*, size_t) override {}
  int capture(const std::function<void()>& enqueue) override {
    graphs_.push_back(enqueue);
    return static_cast<int>(graphs_.size()) - 1;
  }
  void launch(int graph) override { graphs_.at(static_cast<size_t>(graph))(); }
  void scope(const char*, int) override {}
  DeviceRoof roof() override;

  void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) override {
    TESSERA_CALL(embedding_fwd, f32(x), f32(table), b, H);
  }
  void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) override {
    require_f32(grad, "gradients");
    TESSERA_CALL(embedding_bwd, f32(d_table), f32(dx), b, H);
  }
  void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) override {
    TESSERA_CALL(rmsnorm_fwd, f32(y), f32(x), w, rows, H, eps);
  }
  void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres, i64 rows,
                   i64 H, float eps) override {
    TESSERA_CALL(rmsnorm_bwd, f32(dx), dw, f32(dy), f32(x), w, f32(dres), rows, H, eps);
  }
  void linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) override {
    TESSERA_CALL(linear_fwd, f32(y), f32(x), f32(w), f32(residual), T, N, K);
  }
  void linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N, i64 K) override {
    TESSERA_CALL(linear_bwd_data, f32(dx), f32(dy), f32(w), T, N, K);
  }
  void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                         bool accumulate) override {
    require_f32(grad, "gradients");
    TESSERA_CALL(linear_bwd_weight, f32(dw), f32(dy), f32(x), T, N, K, accumulate);
  }

  void gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                    const GdnShape& s) override {
    TESSERA_CALL(gdn_prep_fwd, f32(qkv), f32(proj), conv_w, b, s);
  }
  void gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                   const float* dt_bias, const Batch& b, const GdnShape& s) override {
    TESSERA_CALL(gdn_gates_fwd, g, beta, f32(proj), a_log, dt_bias, b, s);
    if (!recurrent_) TESSERA_CALL(gdn_kkt_fwd, f32(ar), f32(qkv), beta, b, s);
  }
  void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Batch& b, const GdnShape& s) override {
    if (recurrent_) {
      TESSERA_CALL(gdn_fwd_recurrent, f32(o), f32(state), f32(qkv), g, beta, b, s);
    } else {
      TESSERA_CALL(gdn_fwd_chunked, f32(o), f32(state), f32(qkv), g, beta, f32(ar), b, s);
    }
  }
  void gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act*, Act*, const Act* d_o,
               const Act* qkv, const float* g, const float* beta, const Act* ar, const Act* state,
               const Batch& b, const GdnShape& s) override {
    if (recurrent_) {
      TESSERA_CALL(gdn_bwd_recurrent, f32(dq), f32(dk), f32(dv), d_gamma, d_beta, f32(d_o), f32(qkv), g, beta,
                   f32(state), b, s);
    } else {
      TESSERA_CALL(gdn_bwd_chunked, f32(dq), f32(dk), f32(dv), d_gamma, d_beta, f32(d_o), f32(qkv), g, beta,
                   f32(ar), f32(state), b, s);
    }
  }
  void gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                    const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta, const Act* proj,
                    const Act*, const float* beta, const float* conv_w, const float* a_log,
                    const float* dt_bias, const Batch& b, const GdnShape& s) override {
    TESSERA_CALL(gdn_prep_bwd, f32(dproj), d_conv_w, d_a_log, d_dt_bias, f32(dq), f32(dk), f32(dv), d_gamma,
                 d_beta, f32(proj), beta, conv_w, a_log, dt_bias, b, s);
  }
  void gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T, const GdnShape& s,
                      float eps) override {
    TESSERA_CALL(gated_norm_fwd, f32(y), f32(o), f32(proj), w, T, s, eps);
  }
  void gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o, const Act* proj,
                      const float* w, i64 T, const GdnShape& s, float eps) override {
    TESSERA_CALL(gated_norm_bwd, f32(d_o), f32(dproj), dw, f32(dy), f32(o), f32(proj), w, T, s, eps);
  }

  void qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk, const float* rope,
                        const Batch& b, const AttnShape& s, float eps) override {
    TESSERA_CALL(qk_norm_rope_fwd, f32(q), f32(k), f32(proj), wq, wk, rope, b, s, eps);
  }
  void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override {
    TESSERA_CALL(attention_fwd, f32(y), f32(o), lse, f32(q), f32(k), f32(proj), b, s);
  }
  void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                     const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                     const Batch& b, const AttnShape& s) override {
    TESSERA_CALL(attention_bwd, f32(dq), f32(dk), f32(dproj), f32(scratch_do), scratch_delta, f32(dy), f32(o),
                 lse, f32(q), f32(k), f32(proj), b, s);
  }
  void qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk, const Act* proj,
                        const float* wq, const float* wk, const float* rope, const Batch& b,
                        const AttnShape& s, float eps) override {
    TESSERA_CALL(qk_norm_rope_bwd, f32(dproj), dwq, dwk, f32(dq), f32(dk), f32(proj), wq, wk, rope, b, s,
                 eps);
  }

  void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) override {
    TESSERA_CALL(swiglu_fwd, f32(act), f32(gu), T, I);
  }
  void swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) override {
    TESSERA_CALL(swiglu_bwd, f32(dgu), f32(act_out), f32(dact), f32(gu), T, I);
  }
  void gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) override {
    TESSERA_CALL(gather_rows, f32(dst), f32(src), row, rows, H);
  }
  void scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T, i64 H) override {
    TESSERA_CALL(scatter_rows, f32(dst), f32(src), row, rows, T, H);
  }
  void cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) override {
    require_below(label, rows, V, "the label");
    TESSERA_CALL(cross_entropy, f32(z), nll, label, rows, V, with_grad);
  }
  void loss_sum(StepResult* result, const float* nll, i64 rows) override {
    double sum = 0;
    for (i64 i = 0; i < rows; ++i) sum += nll[i];
    result->loss_sum += sum;
  }

  void grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                 const StepScalars* scalars) override;
  void grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) override;
  void finish_norm(StepResult* result, const StepScalars* scalars) override;
  void keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate, void* stream) override;
  void adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config, const StepScalars* scalars,
             const StepResult* result) override;

 private:
  int threads_;
  bool recurrent_;
  bool avx2_;
  DeviceRoof roof_;
  std::vector<std::function<void()>> graphs_;
};

std::vector<KernelInfo> CpuBackend::kernels(const GdnShape&, const AttnShape&) const {
  const std::string rule = recurrent_ ? "recurrent" : "chunked";
  const std::string reason = avx2_ ? "CPU backend, AVX2 and FMA" : "CPU backend, baseline x86-64";
  const auto pair = [&](const char* kind, const char* operation, const std::string& fwd,
                        const std::string& bwd) {
    return KernelInfo{kind, operation, fwd + "_cpu", bwd.empty() ? "" : bwd + "_cpu", "reference", reason};
  };
  return {pair("embedding", "embedding", "embedding_fwd", "embedding_bwd"),
          pair("norm", "rmsnorm", "rmsnorm_fwd", "rmsnorm_bwd"),
          pair("linear_attention", "linear", "linear_fwd", "linear_bwd"),
          pair("linear_attention", "conv_silu_l2norm", "gdn_prep_fwd", "gdn_prep_bwd"),
          pair("linear_attention", "chunk_inverse", recurrent_ ? "gdn_gates_fwd" : "gdn_kkt_fwd",
               "gdn_bwd_" + rule),
          pair("linear_attention", "gated_delta_rule", "gdn_fwd_" + rule, "gdn_bwd_" + rule),
          pair("linear_attention", "gated_norm", "gated_norm_fwd", "gated_norm_bwd"),
          pair("full_attention", "linear", "linear_fwd", "linear_bwd"),
          pair("full_attention", "qk_norm_rope", "qk_norm_rope_fwd", "qk_norm_rope_bwd"),
          pair("full_attention", "attention", "attention_fwd", "attention_bwd"),
          pair("mlp", "linear", "linear_fwd", "linear_bwd"),
          pair("mlp", "swiglu", "swiglu_fwd", "swiglu_bwd"),
          pair("head", "linear", "linear_fwd", "linear_bwd"),
          pair("head", "cross_entropy", "cross_entropy", "cross_entropy"),
          pair("optimizer", "adamw", "adamw", "")};
}

// A copy of what a micro-batch's activations take, which the caches hold in part, and a product of the
// engine's own kernel: the best of a few, about 0.1 s together.
DeviceRoof CpuBackend::roof() {
  if (roof_.bytes_per_second > 0) return roof_;
  constexpr i64 kSide = 640, kFloats = i64{1} << 22;
  std::vector<float> from(kFloats, 1.0f), to(kFloats), product(kSide * kSide);
  const auto best_seconds = [](const auto& work) {
    double best = 1e9;
    for (int n = 0; n < 4; ++n) {
      const double begin = omp_get_wtime();
      work();
      best = std::fmin(best, omp_get_wtime() - begin);
    }
    return best;
  };
  const double copy = best_seconds([&] {
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (i64 part = 0; part < 64; ++part)
      std::memcpy(&to[static_cast<size_t>(part * (kFloats / 64))],
                  &from[static_cast<size_t>(part * (kFloats / 64))], kFloats / 64 * sizeof(float));
  });
  const double multiply = best_seconds([&] {
    TESSERA_CALL(linear_fwd, product.data(), from.data(), from.data(), static_cast<const float*>(nullptr),
                 kSide, kSide, kSide);
  });
  roof_ = {2.0 * kSide * kSide * kSide / multiply, 2.0 * kFloats * sizeof(float) / copy};
  return roof_;
}

void CpuBackend::grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                           const StepScalars* scalars) {
  grad_squares(result, segments);
  finish_norm(result, scalars);
}

void CpuBackend::grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) {
  result->squares = 0;
  for (const AdamSegment& segment : segments) {
    require_f32(segment.grad_dtype, "gradients");
    result->squares += TESSERA_CALL(sum_of_squares, f32(segment.grad), segment.count);
  }
}

void CpuBackend::keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate, void*) {
  require_f32(type, "gradients");
  if (!accumulate) return copy(to, sum, static_cast<size_t>(count) * sizeof(float));
  for (i64 i = 0; i < count; ++i) f32(to)[i] += sum[i];
}

void CpuBackend::finish_norm(StepResult* result, const StepScalars* scalars) {
  const double norm = scalars->inv_tokens * std::sqrt(result->squares);
  result->grad_norm = static_cast<float>(norm);
  if (!std::isfinite(result->grad_norm) || !std::isfinite(result->loss_sum)) result->refused = 1;
  result->finite = result->refused == 0;
  const double clip = scalars->clip > 0 ? std::fmin(1.0, scalars->clip / (norm + 1e-6)) : 1.0;
  result->scale = static_cast<float>(scalars->inv_tokens * clip);
}

void CpuBackend::adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config,
                       const StepScalars* scalars, const StepResult* result) {
  if (config.mode != OptimizerMode::master32) {
    throw EngineError("unsupported_mode",
                      "optimizer mode bf16sr needs bf16 weights, which the CPU backend does not have",
                      "use optimizer mode master32 on the CPU");
  }
  if (!result->finite) return;
  for (const AdamSegment& segment : segments) {
    require_f32(segment.param_dtype, "parameters");
    require_f32(segment.grad_dtype, "gradients");
    require_f32(segment.state_dtype, "optimizer state");
    const AdamRates rates{.shrink = double(scalars->lr) * segment.weight_decay,
                          .beta1 = config.beta1,
                          .beta2 = config.beta2,
                          .step_size = double(scalars->lr) / scalars->bias1,
                          .root_bias2 = std::sqrt(double(scalars->bias2)),
                          .eps = config.eps,
                          .grad_scale = result->scale};
    float* param = segment.master != nullptr ? segment.master : f32(segment.param);
    TESSERA_CALL(adamw, param, f32(segment.m), f32(segment.v), f32(segment.grad), segment.count, rates);
    if (param != segment.param)
      copy(segment.param, param, static_cast<size_t>(segment.count) * sizeof(float));
  }
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace tessera
