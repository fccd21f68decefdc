// The operations of the CUDA backend: each names itself, counts its least work and calls its launch function.
#include <algorithm>

#include "ops/attention/attention_cuda.h"
#include "ops/attention/qk_norm_rope_cuda.h"
#include "ops/cross_entropy/cross_entropy_cuda.h"
#include "ops/cuda_backend.h"
#include "ops/cuda_common.cuh"
#include "ops/embedding/embedding_cuda.h"
#include "ops/gated_norm/gated_norm_cuda.h"
#include "ops/gdn/gdn_cuda.h"
#include "ops/gdn/gdn_prep_cuda.h"
#include "ops/linear/linear_cuda.h"
#include "ops/optimizer/optimizer_cuda.h"
#include "ops/rmsnorm/rmsnorm_cuda.h"
#include "ops/rows/rows_cuda.h"
#include "ops/swiglu/swiglu_cuda.h"

namespace tessera {
namespace {

constexpr size_t kLibraryWorkspace = size_t{64} << 20;

bf16* act(void* p) { return static_cast<bf16*>(p); }
const bf16* act(const void* p) { return static_cast<const bf16*>(p); }

// Work of the delta rule's core, per 64-token chunk and value head (engine.md 5.4): products of 64 x 64 x
// 128, 64 x 128 x 128 and 64^3.
double gdn_core_flops(const Batch& b, const GdnShape& s, int thin, int wide, int square) {
  const double chunk = 2.0 * (thin * 64.0 * 64 * 128 + wide * 64.0 * 128 * 128 + square * 64.0 * 64 * 64);
  return chunk * s.value_heads * (b.T / 64.0);
}

// Matrix units' work of one causal product over the packed sequences cannot be known without their lengths,
// which only the device holds: 8 sequences of T/8 stand for it.
double attention_flops(const Batch& b, const AttnShape& s, int products) {
  return products * 2.0 * s.heads * s.head_dim * b.T * (b.T / 8.0) / 2.0;
}

}  // namespace

float* CudaBackend::scratch(size_t bytes) const {
  if (bytes <= workspace_bytes_) return static_cast<float*>(workspace_);
  throw EngineError("internal", "the workspace holds " + std::to_string(workspace_bytes_) +
                                    " bytes; an operation needs " + std::to_string(bytes));
}

size_t CudaBackend::workspace_bytes(const GdnShape& gdn, const AttnShape&, i64 T, i64 H, i64, i64) const {
  const i64 most_chunks = T / kChunk + T;  // every sequence may end a chunk early
  return std::max({kLibraryWorkspace, rmsnorm_bwd_scratch_bytes(H), gated_norm_bwd_scratch_bytes(),
                   qk_norm_rope_bwd_scratch_bytes(), gdn_prep_bwd_scratch_bytes(T, most_chunks, gdn)});
}

KernelInfo CudaBackend::product_kernel() const {
  if (library_) return {"all", "linear", "cublaslt", "cublaslt", "library", library_->description(), false};
  const char* plain = "matrix_product_reference";
  return {"all", "linear", plain, plain, "reference", "no cuBLASLt: " + library_absent_, true};
}

std::vector<KernelInfo> CudaBackend::kernels(const GdnShape& gdn, const AttnShape& attn) const {
  const auto portable = [](const char* layer, const char* op, const char* forward,
                           const std::string& backward) {
    return KernelInfo{layer, op, forward, backward, "portable", "one source for sm_80 and later", false};
  };
  // Kernels compiled for the head sizes of the published models.
  const auto sized = [&](KernelInfo kernel, bool served, const std::string& got, const std::string& serves) {
    if (served) return kernel;
    return KernelInfo{kernel.layer_kind,
                      kernel.operation,
                      "(none)",
                      "(none)",
                      "unsupported",
                      "the model has " + got + "; the fast CUDA kernels serve " + serves,
                      false};
  };
  const std::string gdn_heads =
      "linear_key_head_dim " + std::to_string(gdn.key_dim) + ", linear_value_head_dim " +
      std::to_string(gdn.value_dim) + ", " + std::to_string(gdn.conv_taps) + " convolution taps and " +
      std::to_string(gdn.value_heads) + " value heads on " + std::to_string(gdn.key_heads) + " key heads";
  const std::string gdn_serves = "128, 128, 4 taps and 1 to 4 value heads a key head";
  const bool gdn_served = gdn_cuda_supports(gdn, KernelTier::portable) && gdn.conv_taps == 4 &&
                          gdn.value_heads <= 4 * gdn.key_heads;
  const std::string heads = "head_dim " + std::to_string(attn.head_dim) + " with " +
                            std::to_string(attn.rotary_dim) + " rotary dims, " + std::to_string(attn.heads) +
                            " heads and " + std::to_string(attn.kv_heads) + " kv heads";
  const std::string heads_serve =
      "head_dim 256 with a multiple of 16 rotary dims, heads divisible by kv heads";
  const bool attention_served =
      attention_cuda_supports(attn, KernelTier::portable) && attn.rotary_dim % 16 == 0;
  const auto delta_net = [&](KernelInfo kernel) { return sized(kernel, gdn_served, gdn_heads, gdn_serves); };
  const auto full = [&](KernelInfo kernel) { return sized(kernel, attention_served, heads, heads_serve); };
  const bool cluster = compute_capability_ >= 90;
  const KernelInfo rule =
      gdn_cuda_tier(gdn, compute_capability_) == KernelTier::hopper
          ? KernelInfo{"linear_attention",
                       "gated_delta_rule",
                       "gdn_fwd_wgmma",
                       "gdn_bwd_wgmma",
                       "hopper",
                       "wgmma, sm_90a",
                       false}
          : KernelInfo{"linear_attention", "gated_delta_rule", "gdn_fwd_portable",
                       "gdn_bwd_portable", "portable",         "mma.sync, sm_80 and later"};
  const KernelInfo attention =
      attention_cuda_tier(attn, compute_capability_) == KernelTier::hopper
          ? KernelInfo{"full_attention",      "attention", "attention_fwd_wgmma",
                       "attention_bwd_wgmma", "hopper",    "wgmma, sm_90a"}
          : KernelInfo{"full_attention",         "attention", "attention_fwd_portable",
                       "attention_bwd_portable", "portable",  "mma.sync, sm_80 and later"};
  return {
      product_kernel(),
      portable("embedding", "embedding", "embedding_fwd", "embedding_bwd"),
      portable("norm", "rmsnorm", "rmsnorm_fwd", "rmsnorm_bwd"),
      delta_net(portable("linear_attention", "conv_silu_l2norm", "gdn_prep_fwd", "gdn_prep_bwd")),
      delta_net(portable("linear_attention", "chunk_inverse", "gdn_kkt_fwd", rule.backward)),
      delta_net(rule),
      delta_net(portable("linear_attention", "gated_norm", "gated_norm_fwd", "gated_norm_bwd")),
      full(portable("full_attention", "qk_norm_rope", "qk_norm_rope_fwd", "qk_norm_rope_bwd")),
      full(attention),
      portable("mlp", "swiglu", "swiglu_fwd", "swiglu_bwd"),
      {"head", "cross_entropy", cluster ? "cross_entropy_cluster" : "cross_entropy", "(with the forward)",
       cluster ? "hopper" : "portable",
       cluster ? "a cluster of 8 blocks holds a row, one block up to 16,384 logits" : "before sm_90", false},
      portable("optimizer", "adamw", "adamw", "(none)"),
  };
}

// ---- embedding, norm, matrix products

void CudaBackend::embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) {
  run("embedding_fwd", {0.0, 4.0 * b.T * H},
      [&] { launch_embedding_fwd(act(x), act(table), b.tok, b.T, H, stream_); });
}

void CudaBackend::embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) {
  run("embedding_bwd", {0.0, 6.0 * b.T * H},
      [&] { launch_embedding_bwd(d_table, grad, act(dx), b, H, stream_); });
}

void CudaBackend::rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) {
  run("rmsnorm_fwd", {0.0, 4.0 * rows * H},
      [&] { launch_rmsnorm_fwd(act(y), act(x), w, rows, H, eps, stream_); });
}

void CudaBackend::rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w,
                              const Act* dres, i64 rows, i64 H, float eps) {
  run("rmsnorm_bwd", {0.0, (dres ? 8.0 : 6.0) * rows * H}, [&] {
    launch_rmsnorm_bwd(act(dx), dw, act(dy), act(x), w, act(dres), rows, H, eps,
                       scratch(rmsnorm_bwd_scratch_bytes(H)), stream_);
  });
}

void CudaBackend::multiply(const char* op, MatrixProduct p) {
  p.ab_type = act_dtype();
  if (mode_ == Mode::rehearsing) return rehearse_product(p);
  const double operand = static_cast<double>(dtype_bytes(p.ab_type));
  const double element = static_cast<double>(dtype_bytes(p.d_type));
  const OpCost cost{2.0 * p.m * p.n * p.k,
                    operand * (p.m * p.k + p.k * p.n) + element * p.m * p.n * (p.c ? 2.0 : 1.0)};
  if (library_ && mode_ == Mode::eager && !library_->has_algorithm(p)) library_->choose_algorithm(p, stream_);
  run(op, cost, [&] {
    if (library_)
      library_->multiply(p, stream_);
    else
      launch_matrix_product_reference(p, stream_);
  });
}

// Activations hold nothing yet: B (x or dy) and, where it is one, A get random values, so that timing means
// something.
void CudaBackend::rehearse_product(const MatrixProduct& p) {
  if (!library_ || library_->has_algorithm(p)) return;
  if (p.ab_type == DType::f32) return library_->choose_algorithm(p, stream_);  // nothing is timed
  const auto fill = [&](const void* operand, bool transposed, i64 rows, i64 cols, i64 ld) {
    launch_fill_random(static_cast<bf16*>(const_cast<void*>(operand)), transposed ? rows : cols,
                       transposed ? cols : rows, ld, stream_);
  };
  fill(p.b, p.transpose_b, p.k, p.n, p.ldb);
  if (p.transpose_b) fill(p.a, p.transpose_a, p.m, p.k, p.lda);  // a weight gradient: both are activations
  library_->choose_algorithm(p, stream_);
}

void CudaBackend::linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) {
  multiply("linear_fwd", {N, T, K, true, false, w, K, x, K, residual, y, N, act_dtype()});
}

void CudaBackend::linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N, i64 K) {
  multiply("linear_bwd_data", {K, T, N, false, false, w, K, dy, N, nullptr, dx, K, act_dtype()});
}

void CudaBackend::linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                                    bool accumulate) {
  multiply("linear_bwd_weight", {K, N, T, false, true, x, K, dy, N, accumulate ? dw : nullptr, dw, K, grad});
}

// ---- gated delta net

void CudaBackend::gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                               const GdnShape& s) {
  run("gdn_prep_fwd", {0.0, 4.0 * b.T * s.conv_dim()},
      [&] { launch_gdn_prep_fwd(act(qkv), act(proj), conv_w, b, s, stream_); });
}

void CudaBackend::gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj,
                              const float* a_log, const float* dt_bias, const Batch& b, const GdnShape& s) {
  run("gdn_kkt_fwd",
      {gdn_core_flops(b, s, 1, 0, 0) / s.group(), 2.0 * b.T * s.keys() + 2.0 * b.T * 64 * s.value_heads},
      [&] {
        launch_gdn_kkt_fwd(g, beta, ar, qkv, proj, a_log, dt_bias, b, s,
                           gdn_cuda_tier(s, compute_capability_), stream_);
      });
}

void CudaBackend::gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta,
                          const Act* ar, const Batch& b, const GdnShape& s) {
  const double states = state ? 2.0 * b.T / 64 * s.value_heads * s.key_dim * s.value_dim : 0.0;
  run("gdn_fwd",
      {gdn_core_flops(b, s, 3, 3, 0),
       2.0 * b.T * (s.conv_dim() + s.values() + 64.0 * s.value_heads) + states},
      [&] {
        launch_gdn_fwd(o, state, qkv, g, beta, ar, b, s, gdn_cuda_tier(s, compute_capability_), stream_);
      });
}

void CudaBackend::gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du,
                          Act* scratch_ds, const Act* d_o, const Act* qkv, const float* g, const float* beta,
                          const Act* ar, const Act* state, const Batch& b, const GdnShape& s) {
  const double states = 2.0 * b.T / 64 * s.value_heads * s.key_dim * s.value_dim;
  const double rows = 2.0 * b.T * (s.conv_dim() + s.values() + 64.0 * s.value_heads + 3.0 * s.values());
  run("gdn_bwd", {gdn_core_flops(b, s, 10, 7, 2), rows + states}, [&] {
    launch_gdn_bwd(dq, dk, dv, d_gamma, d_beta, scratch_du, scratch_ds, d_o, qkv, g, beta, ar, state, b, s,
                   gdn_cuda_tier(s, compute_capability_), stream_);
  });
}

void CudaBackend::gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                               const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta,
                               const Act* proj, const Act*, const float* beta, const float* conv_w,
                               const float* a_log, const float* dt_bias, const Batch& b, const GdnShape& s) {
  run("gdn_prep_bwd", {0.0, 2.0 * b.T * (2.0 * s.conv_dim() + 3.0 * s.values())}, [&] {
    float* partials = scratch(gdn_prep_bwd_scratch_bytes(b.T, b.num_chunk, s));
    launch_gdn_prep_bwd({act(dproj), d_conv_w, d_a_log, d_dt_bias, act(dq), act(dk), act(dv), d_gamma, d_beta,
                         act(proj), beta, conv_w, a_log, dt_bias, partials},
                        b, s, stream_);
  });
}

void CudaBackend::gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T,
                                 const GdnShape& s, float eps) {
  run("gated_norm_fwd", {0.0, 6.0 * T * s.values()},
      [&] { launch_gated_norm_fwd(act(y), act(o), act(proj), w, T, s, eps, stream_); });
}

void CudaBackend::gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o,
                                 const Act* proj, const float* w, i64 T, const GdnShape& s, float eps) {
  run("gated_norm_bwd", {0.0, 10.0 * T * s.values()}, [&] {
    launch_gated_norm_bwd(act(d_o), act(dproj), dw, act(dy), act(o), act(proj), w, T, s, eps,
                          scratch(gated_norm_bwd_scratch_bytes()), stream_);
  });
}

// ---- attention

void CudaBackend::qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk,
                                   const float* rope, const Batch& b, const AttnShape& s, float eps) {
  run("qk_norm_rope_fwd", {0.0, 4.0 * b.T * (s.heads + s.kv_heads) * s.head_dim},
      [&] { launch_qk_norm_rope_fwd(act(q), act(k), act(proj), wq, wk, rope, b, s, eps, stream_); });
}

void CudaBackend::attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj,
                                const Batch& b, const AttnShape& s) {
  run("attention_fwd",
      {attention_flops(b, s, 2), 2.0 * b.T * s.head_dim * ((o ? 4.0 : 3.0) * s.heads + 2.0 * s.kv_heads)},
      [&] {
        launch_attention_fwd(y, o, lse, q, k, proj, b, s, attention_cuda_tier(s, compute_capability_),
                             stream_);
      });
}

void CudaBackend::attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta,
                                const Act* dy, const Act* o, const float* lse, const Act* q, const Act* k,
                                const Act* proj, const Batch& b, const AttnShape& s) {
  run("attention_bwd",
      {attention_flops(b, s, 5), 2.0 * b.T * s.head_dim * (6.0 * s.heads + 4.0 * s.kv_heads)}, [&] {
        launch_attention_bwd(dq, dk, dproj, scratch_do, scratch_delta, dy, o, lse, q, k, proj, b, s,
                             attention_cuda_tier(s, compute_capability_), stream_);
      });
}

void CudaBackend::qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk,
                                   const Act* proj, const float* wq, const float* wk, const float* rope,
                                   const Batch& b, const AttnShape& s, float eps) {
  run("qk_norm_rope_bwd", {0.0, 6.0 * b.T * (s.heads + s.kv_heads) * s.head_dim}, [&] {
    launch_qk_norm_rope_bwd(act(dproj), dwq, dwk, act(dq), act(dk), act(proj), wq, wk, rope, b, s, eps,
                            scratch(qk_norm_rope_bwd_scratch_bytes()), stream_);
  });
}

// ---- MLP, head

void CudaBackend::swiglu_fwd(Act* out, const Act* gu, i64 T, i64 I) {
  run("swiglu_fwd", {0.0, 6.0 * T * I}, [&] { launch_swiglu_fwd(act(out), act(gu), T, I, stream_); });
}

void CudaBackend::swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) {
  run("swiglu_bwd", {0.0, (act_out ? 12.0 : 10.0) * T * I},
      [&] { launch_swiglu_bwd(act(dgu), act(act_out), act(dact), act(gu), T, I, stream_); });
}

void CudaBackend::gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) {
  run("gather_rows", {0.0, 4.0 * rows * H},
      [&] { launch_gather_rows(act(dst), act(src), row, rows, H, stream_); });
}

void CudaBackend::scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T, i64 H) {
  run("scatter_rows", {0.0, 2.0 * rows * H + 2.0 * T * H},
      [&] { launch_scatter_rows(act(dst), act(src), row, rows, T, H, stream_); });
}

void CudaBackend::cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) {
  const bool cluster = compute_capability_ >= 90 && cross_entropy_cluster_serves(V);
  run("cross_entropy", {0.0, (with_grad ? 4.0 : 2.0) * rows * V},
      [&] { launch_cross_entropy(act(z), nll, label, rows, V, with_grad, cluster, stream_); });
}

void CudaBackend::loss_sum(StepResult* result, const float* nll, i64 rows) {
  run("loss_sum", {0.0, 4.0 * rows}, [&] { launch_loss_sum(result, nll, rows, stream_); });
}

// ---- optimizer

void CudaBackend::grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                            const StepScalars* scalars) {
  double bytes = 0.0;
  for (const AdamSegment& s : segments) bytes += double(s.count) * (s.grad_dtype == DType::f32 ? 4 : 2);
  run("grad_norm", {0.0, bytes}, [&] {
    launch_grad_norm(result, segments, scalars, static_cast<float*>(workspace_), workspace_bytes_, stream_);
  });
}

void CudaBackend::grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) {
  double bytes = 0.0;
  for (const AdamSegment& s : segments) bytes += double(s.count) * (s.grad_dtype == DType::f32 ? 4 : 2);
  run("grad_squares", {0.0, bytes}, [&] {
    launch_grad_squares(result, segments, static_cast<float*>(workspace_), workspace_bytes_, stream_);
  });
}

void CudaBackend::keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate, void* stream) {
  launch_keep_sum(to, type, sum, count, accumulate, static_cast<cudaStream_t>(stream));
}

void CudaBackend::finish_norm(StepResult* result, const StepScalars* scalars) {
  run("finish_norm", {0.0, 0.0}, [&] { launch_finish_norm(result, scalars, stream_); });
}

void CudaBackend::adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config,
                        const StepScalars* scalars, const StepResult* result) {
  double bytes = 0.0;
  const auto size = [](DType t) { return t == DType::f32 ? 4.0 : 2.0; };
  for (const AdamSegment& s : segments) {
    const double param = s.master ? size(s.param_dtype) + 8.0 : 2.0 * size(s.param_dtype);
    bytes += double(s.count) * (param + size(s.grad_dtype) + 4.0 * size(s.state_dtype));
  }
  run("adamw", {0.0, bytes}, [&] { launch_adamw(segments, config, scalars, result, stream_); });
}

}  // namespace tessera
