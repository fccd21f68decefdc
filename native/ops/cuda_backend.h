// The CUDA backend: bf16 activations and matrices, fp32 small parameters and sums, one stream, one workspace.
//
// Every operation is a launch function of its own folder; this class adds what they share: memory, the
// library for matrix products, graphs, the profiler, and an error that names the operation.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/kernel_tier.h"
#include "ops/linear/cublaslt.h"
#include "ops/nvtx_ranges.h"
#include "ops/op_profiler.h"

namespace tessera {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options);  // throws EngineError no_cuda, unsupported_architecture
  ~CudaBackend() override;

  std::string name() const override;
  DType act_dtype() const override { return DType::bf16; }
  DType weight_dtype() const override { return DType::bf16; }
  bool fixed_shapes() const override { return true; }
  std::vector<KernelInfo> kernels(const GdnShape& gdn, const AttnShape& attn) const override;
  void* allocate(size_t bytes) override;
  void release(void* p) override;
  void zero(void* p, size_t bytes) override;
  void copy_in(void* dst, const void* host, size_t bytes) override;
  void copy_out(void* host, const void* src, size_t bytes) override;
  void copy(void* dst, const void* src, size_t bytes) override;
  void synchronize() override;
  void* allocate_host(size_t bytes) override;
  void release_host(void* p) override;
  void upload(void* dst, const void* host, size_t bytes) override;
  void upload_ahead(void* dst, void* staging, const void* host, size_t bytes) override;
  void download(void* host, const void* src, size_t bytes) override;
  i64 mark() override;
  void wait(i64 mark) override;
  size_t workspace_bytes(const GdnShape& gdn, const AttnShape& attn, i64 T, i64 H, i64 I,
                         i64 V) const override;
  void set_workspace(void* p, size_t bytes) override;
  // Chooses the matrix products' algorithms first, by submitting `enqueue` once with those products alone, on
  // random activations: at a capture no activation may be live, unless its products have been seen before.
  int capture(const std::function<void()>& enqueue) override;
  void launch(int graph) override;
  void scope(const char* phase, int layer) override;
  // Times by events: where graphs are used, each is captured a second time, with events in it, when it is
  // first launched while this is on.
  void profile(bool on) override;
  std::vector<OpTime> op_times() override;
  std::vector<OpSpan> op_spans() override;
  DeviceRoof roof() override;
  std::string profile_source() const override { return profiling_ ? profiler_.source() : ""; }
  i64 idle_launches() const override { return idle_launches_; }
  i64 submissions() const override { return submissions_; }
  i64 kernels(int graph) const override;
  size_t context_bytes() const override;
  size_t memory_used() const override;
  i64 beside(const char* op, double bytes, const std::function<void(void* stream)>& work) override;
  void meet() override;
  void meet(i64 ticket) override;
  void keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate, void* stream) override;

  void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) override;
  void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b, i64 H) override;
  void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) override;
  void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres, i64 rows,
                   i64 H, float eps) override;
  void linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) override;
  void linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N, i64 K) override;
  void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                         bool accumulate) override;
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
  void loss_sum(StepResult* result, const float* nll, i64 rows) override;
  void grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                 const StepScalars* scalars) override;
  void grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) override;
  void finish_norm(StepResult* result, const StepScalars* scalars) override;
  void adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config, const StepScalars* scalars,
             const StepResult* result) override;

 protected:
  enum class Mode { eager, capturing, rehearsing };
  struct Graph {
    std::function<void()> enqueue;
    cudaGraphExec_t exec = nullptr;   // null: without graphs, submitted at every launch
    cudaGraphExec_t timed = nullptr;  // the same with events around each operation
    i64 kernels = 0;
    std::vector<OpProfiler::Span> spans;  // of `timed`
    bool uncollected = false;             // its events hold times that have not been read
  };
  cudaGraphExec_t instantiate(const std::function<void()>& enqueue, i64* kernels);
  void launch_timed(Graph& graph);
  void collect_times();  // synchronizes

  // Submits one operation: named to the profiler and to its error, left out of a rehearsal.
  template <class Launch>
  void run(const char* op, OpCost cost, Launch&& launch) {
    if (mode_ == Mode::rehearsing) return;
    const NvtxRanges::Operation range(op);
    begin_op(op, cost);
    launch();
    end_op();
  }
  // stream null: the one that computes.
  void begin_op(const char* op, OpCost cost, cudaStream_t stream = nullptr);
  void end_op(cudaStream_t stream = nullptr);
  void multiply(const char* op, MatrixProduct product);
  void rehearse_product(const MatrixProduct& product);
  void measure_roof();
  float* scratch(size_t bytes) const;  // the workspace, once it is known to hold that much
  KernelInfo product_kernel() const;

  int device_;
  int compute_capability_ = 0;  // 90 for 9.0
  std::string gpu_name_;
  bool use_graphs_, profiling_;
  Mode mode_ = Mode::eager;
  cudaStream_t stream_ = nullptr, copy_stream_ = nullptr;
  std::map<void*, cudaEvent_t> staging_free_;  // the last copy out of each staging buffer
  cudaEvent_t arrived_ = nullptr;
  // Communication between ranks; made when there is some.
  cudaStream_t beside_stream_ = nullptr;
  cudaEvent_t ready_ = nullptr;
  std::array<cudaEvent_t, 8> done_{};  // after each submission, in turn
  i64 next_beside_ = 0;
  bool communicates_ = false;  // what was submitted last: then it becomes no graph
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  std::unique_ptr<CublasLt> library_;  // null: the plain product
  std::string library_absent_;
  std::vector<Graph> graphs_;
  std::array<cudaEvent_t, 64> marks_{};
  i64 next_mark_ = 0;
  i64 submissions_ = 0, idle_launches_ = 0;
  std::string phase_ = "forward";
  int layer_ = -1;
  NvtxRanges ranges_;
  OpProfiler profiler_;
  DeviceRoof roof_;
};

}  // namespace tessera
