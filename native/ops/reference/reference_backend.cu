#include "ops/attention/attention_kernels.h"
#include "ops/gdn/gdn_kernels.h"
#include "ops/reference/reference_backend.h"
#include "ops/reference/reference_ops.h"

namespace tessera {
namespace {

constexpr int kMostGdnHead = 128, kMostAttentionHead = 256;  // of gdn_reference.cu, attention_reference.cu

template <typename Real>
gdn::BasicArgs<Real> gdn_args(const void* qkv, const float* g, const float* beta, const Batch& b,
                              const GdnShape& s) {
  if (s.key_dim > kMostGdnHead || s.value_dim > kMostGdnHead)
    throw EngineError("unsupported_head_size",
                      "linear attention has heads of " + std::to_string(s.key_dim) + " and " +
                          std::to_string(s.value_dim) + "; the reference kernels serve 1 to 128",
                      "Use the cpu device for this model.");
  return gdn::make_args<Real>(qkv, g, beta, nullptr, b, s);
}

template <typename Real>
attention::BasicArgs<Real> attention_args(const void* q, const void* k, const void* proj, const Batch& b,
                                          const AttnShape& s) {
  if (s.head_dim > kMostAttentionHead)
    throw EngineError("unsupported_head_size",
                      "full attention has head_dim " + std::to_string(s.head_dim) +
                          "; the reference kernels serve 1 to 256",
                      "Use the cpu device for this model.");
  return attention::make_args<Real>(q, k, proj, b, s);
}

}  // namespace

// Their least work is not counted: a share of the roof would say nothing of use.
#define RUN(op, ...) this->run(op, {}, [&] { __VA_ARGS__; })
#define R(p) static_cast<Real*>(p)
#define C(p) static_cast<const Real*>(p)

template <typename Real>
CudaReferenceBackend<Real>::CudaReferenceBackend(const CudaOptions& options, std::string reason)
    : CudaBackend(options), reason_(std::move(reason)) {}

template <typename Real>
std::vector<KernelInfo> CudaReferenceBackend<Real>::kernels(const GdnShape&, const AttnShape&) const {
  constexpr const char* kOps[][2] = {{"embedding", "embedding"},
                                     {"norm", "rmsnorm"},
                                     {"linear_attention", "conv_silu_l2norm"},
                                     {"linear_attention", "chunk_inverse"},
                                     {"linear_attention", "gated_delta_rule"},
                                     {"linear_attention", "gated_norm"},
                                     {"full_attention", "qk_norm_rope"},
                                     {"full_attention", "attention"},
                                     {"mlp", "swiglu"},
                                     {"head", "cross_entropy"}};
  const std::string type = sizeof(Real) == 4 ? "_fp32" : "_bf16";
  std::vector<KernelInfo> list = {this->product_kernel()};
  for (const auto& [layer, op] : kOps) {
    const std::string name = std::string(op) + "_reference" + type;
    list.push_back({layer, op, name, name, "reference", reason_, true});
  }
  list.push_back({"optimizer", "adamw", "adamw", "(none)", "portable", "one source for sm_80 and later"});
  return list;
}

template <typename Real>
size_t CudaReferenceBackend<Real>::workspace_bytes(const GdnShape& gdn, const AttnShape& attn, i64 T, i64 H,
                                                   i64 I, i64 V) const {
  return std::max(CudaBackend::workspace_bytes(gdn, attn, T, H, I, V),
                  reference::scratch_bytes(gdn, attn, T, H));
}

template <typename Real>
void CudaReferenceBackend<Real>::embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) {
  RUN("embedding_fwd", reference::RowOps<Real>::embedding_fwd(R(x), C(table), b.tok, b.T, H, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b,
                                               i64 H) {
  RUN("embedding_bwd", reference::RowOps<Real>::embedding_bwd(d_table, grad, C(dx), b, H, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H,
                                             float eps) {
  RUN("rmsnorm_fwd", reference::RowOps<Real>::rmsnorm_fwd(R(y), C(x), w, rows, H, eps, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w,
                                             const Act* dres, i64 rows, i64 H, float eps) {
  RUN("rmsnorm_bwd", reference::RowOps<Real>::rmsnorm_bwd(R(dx), dw, C(dy), C(x), w, C(dres), rows, H, eps,
                                                          this->scratch(0), this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                                              const GdnShape& s) {
  RUN("gdn_prep_fwd", reference::gdn_prep_fwd<Real>(R(qkv), C(proj), conv_w, b, s, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj,
                                             const float* a_log, const float* dt_bias, const Batch& b,
                                             const GdnShape& s) {
  RUN("gdn_kkt_fwd", gdn::run_kkt_fwd_ref<Real>(gdn_args<Real>(qkv, nullptr, nullptr, b, s), g, beta, R(ar),
                                                C(proj), a_log, dt_bias, s, b.num_chunk, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g,
                                         const float* beta, const Act*, const Batch& b, const GdnShape& s) {
  RUN("gdn_fwd",
      gdn::run_fwd_ref<Real>(gdn_args<Real>(qkv, g, beta, b, s), R(o), R(state), b.num_seq, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act*, Act*,
                                         const Act* d_o, const Act* qkv, const float* g, const float* beta,
                                         const Act*, const Act* state, const Batch& b, const GdnShape& s) {
  const gdn::BasicGradients<Real> out{R(dq), R(dk), R(dv), d_gamma, d_beta, nullptr, nullptr};
  RUN("gdn_bwd", gdn::run_bwd_ref<Real>(gdn_args<Real>(qkv, g, beta, b, s), out, C(d_o), C(state), b.num_seq,
                                        this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias,
                                              const Act* dq, const Act* dk, const Act* dv,
                                              const float* d_gamma, const float* d_beta, const Act* proj,
                                              const Act*, const float* beta, const float* conv_w,
                                              const float* a_log, const float* dt_bias, const Batch& b,
                                              const GdnShape& s) {
  const reference::PrepBackward<Real> p{R(dproj), d_conv_w, d_a_log, d_dt_bias, C(dq),
                                        C(dk),    C(dv),    d_gamma, d_beta,    C(proj),
                                        beta,     conv_w,   a_log,   dt_bias,   this->scratch(0)};
  RUN("gdn_prep_bwd", reference::gdn_prep_bwd<Real>(p, b, s, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T,
                                                const GdnShape& s, float eps) {
  RUN("gated_norm_fwd",
      reference::RowOps<Real>::gated_norm_fwd(R(y), C(o), C(proj), w, T, s, eps, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o,
                                                const Act* proj, const float* w, i64 T, const GdnShape& s,
                                                float eps) {
  RUN("gated_norm_bwd", reference::RowOps<Real>::gated_norm_bwd(R(d_o), R(dproj), dw, C(dy), C(o), C(proj), w,
                                                                T, s, eps, this->scratch(0), this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq,
                                                  const float* wk, const float* rope, const Batch& b,
                                                  const AttnShape& s, float eps) {
  RUN("qk_norm_rope_fwd",
      reference::RowOps<Real>::qk_norm_rope_fwd(R(q), R(k), C(proj), wq, wk, rope, b, s, eps, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k,
                                               const Act* proj, const Batch& b, const AttnShape& s) {
  RUN("attention_fwd",
      attention::run_fwd_ref<Real>(attention_args<Real>(q, k, proj, b, s), {R(y), R(o), lse}, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do,
                                               float* scratch_delta, const Act* dy, const Act* o,
                                               const float* lse, const Act* q, const Act* k, const Act* proj,
                                               const Batch& b, const AttnShape& s) {
  const attention::BasicGradients<Real> out{R(dq), R(dk), R(dproj), R(scratch_do), scratch_delta};
  RUN("attention_bwd", attention::run_bwd_ref<Real>(attention_args<Real>(q, k, proj, b, s), out, lse, C(dy),
                                                    C(o), this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq,
                                                  const Act* dk, const Act* proj, const float* wq,
                                                  const float* wk, const float* rope, const Batch& b,
                                                  const AttnShape& s, float eps) {
  RUN("qk_norm_rope_bwd",
      reference::RowOps<Real>::qk_norm_rope_bwd(R(dproj), dwq, dwk, C(dq), C(dk), C(proj), wq, wk, rope, b, s,
                                                eps, this->scratch(0), this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) {
  RUN("swiglu_fwd", reference::RowOps<Real>::swiglu_fwd(R(act), C(gu), T, I, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T,
                                            i64 I) {
  RUN("swiglu_bwd",
      reference::RowOps<Real>::swiglu_bwd(R(dgu), R(act_out), C(dact), C(gu), T, I, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::gather_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 H) {
  RUN("gather_rows", reference::RowOps<Real>::gather_rows(R(dst), C(src), row, rows, H, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T,
                                              i64 H) {
  RUN("scatter_rows", reference::RowOps<Real>::scatter_rows(R(dst), C(src), row, rows, T, H, this->stream_));
}

template <typename Real>
void CudaReferenceBackend<Real>::cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V,
                                               bool with_grad) {
  RUN("cross_entropy",
      reference::RowOps<Real>::cross_entropy(R(z), nll, label, rows, V, with_grad, this->stream_));
}

#undef RUN
#undef R
#undef C

template class CudaReferenceBackend<bf16>;
template class CudaReferenceBackend<float>;

}  // namespace tessera
