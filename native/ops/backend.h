// The seam between the training step and the hardware: one virtual function per kernel of the engine.
//
// The step executor (model/executor.h) is written once against this interface; `cpu` (fp32, the reference)
// and `cuda` (bf16) implement it. Every call only enqueues: results are readable after synchronize().
//
// Shape legend
//   T    positions in the micro-batch            H   hidden size          I   MLP width      V   vocabulary
//   NH/NKV/D  attention heads / kv heads / head size                      R   rotary dims (first R of D)
//   HK/HV/K/Vh linear key heads / value heads / key head size / value head size   grp = HV/HK
//   KD = HK*K   VD = HV*Vh   CQ = 2*KD + VD      C  = 64, the chunk length
//   NC   capacity of the chunk list
//
// Types
//   Act*   activations in the backend's own element type (act_dtype(): fp32 on cpu, bf16 on cuda), row-major
//   Wgt*   matrices in the backend's weight type (weight_dtype()); the small parameters are fp32
//   f32    statistics, gates, gradients of weights
//
// Contract marks: "=" the output is overwritten, "+=" the output is accumulated into (in a fixed order; no
// atomics). Padding positions belong to an ordinary sequence with label -100; kernels do not know them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace tessera {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;

enum class DType : u8 { f32, bf16, f16, i32, i64, u8 };
size_t dtype_bytes(DType t);  // core/dtype.cpp

// Opaque element pointers: a kernel casts them to the type that act_dtype()/weight_dtype() names.
using Act = void;
using Wgt = void;

inline constexpr i32 kChunk = 64;          // C, the gated delta rule's chunk length
inline constexpr i32 kIgnoreLabel = -100;  // no target at this position

struct GdnShape {
  i32 key_heads;    // HK
  i32 value_heads;  // HV, a multiple of HK; value head h reads key head h / grp
  i32 key_dim;      // K, per head
  i32 value_dim;    // Vh, per head
  i32 conv_taps;    // 4; the last tap multiplies the current token
  i32 group() const { return value_heads / key_heads; }
  i64 keys() const { return i64{key_heads} * key_dim; }                     // KD
  i64 values() const { return i64{value_heads} * value_dim; }               // VD
  i64 conv_dim() const { return 2 * keys() + values(); }                    // CQ: q heads | k heads | v heads
  i64 proj_dim() const { return conv_dim() + values() + 2 * value_heads; }  // row of proj: qkv | z | b | a
  i64 z_offset() const { return conv_dim(); }
  i64 b_offset() const { return conv_dim() + values(); }
  i64 a_offset() const { return b_offset() + value_heads; }
};

struct AttnShape {
  i32 heads;       // NH
  i32 kv_heads;    // NKV
  i32 head_dim;    // D
  i32 rotary_dim;  // R, even; pairs (i, i + R/2) rotate
  // row of proj: per head (D query | D gate), then NKV*D keys, then NKV*D values
  i64 proj_dim() const { return 2 * i64{heads} * head_dim + 2 * i64{kv_heads} * head_dim; }
  i64 k_offset() const { return 2 * i64{heads} * head_dim; }
  i64 v_offset() const { return k_offset() + i64{kv_heads} * head_dim; }
};

struct Chunk {
  i32 begin;  // first token
  i32 count;  // 1..64; 0 marks an unused slot
  i32 seq;    // sequence index
  i32 flags;  // bit 0: first chunk of its sequence, bit 1: last
};
struct ChunkRange {
  i32 begin, end;  // chunks of one sequence; begin == end for an empty sequence
};

// One packed micro-batch in the backend's memory. Capacities are fixed per run, so that launch shapes never
// change: unused `cu` slots repeat T, unused chunks have count 0, unused sequences an empty range.
struct Batch {
  i32 T;               // positions computed
  i32 num_seq;         // capacity of cu (num_seq + 1 entries) and seq_chunk
  i32 num_chunk;       // NC, capacity of chunk
  i32 num_loss;        // rows the head computes: T, or the compacted count rounded up
  const i32* tok;      // [T]
  const i32* label;    // [T] already shifted: the target of position t stands at t; kIgnoreLabel where none
  const i32* pos;      // [T] restarts at 0 with every sequence
  const i32* seq_end;  // [T] exclusive end of the token's sequence
  const i32* cu;       // [num_seq + 1]
  const Chunk* chunk;  // [NC]
  const ChunkRange* seq_chunk;  // [num_seq], of any order; the longest first is fastest
  // Embedding backward in a fixed order: the distinct ids, and for each the increasing positions that hold
  // it.
  i32 num_unique_cap;
  const i32* unique_id;   // [num_unique_cap], -1 in unused slots
  const i32* unique_ptr;  // [num_unique_cap + 1] ranges into unique_pos
  const i32* unique_pos;  // [T]
  // Loss-token compaction: row i of the head is position loss_row[i]; -1 in unused rows. Null: no compaction.
  const i32* loss_row;    // [num_loss]
  const i32* loss_label;  // [num_loss] labels of those rows
  i32 longest = 0;        // tokens; no sequence of the run has more. 0: not known
};

// Scalars of one optimizer step, in the backend's memory (graphs replay with new values in place).
struct StepScalars {
  float lr;
  float bias1;       // 1 - beta1^t
  float bias2;       // 1 - beta2^t
  float inv_tokens;  // 1 / supervised tokens over all micro-batches and ranks
  float clip;        // global norm limit; <= 0: no clipping
  std::uint32_t seed;
  i32 step;  // 1-based
};
// What a step leaves behind, read by the host two steps later.
struct StepResult {
  double loss_sum;  // sum of -log p over supervised positions of all micro-batches (and ranks)
  double squares;   // of several ranks: sum of the squares of the gradient before it is scaled
  float grad_norm;  // global norm of the mean gradient, before clipping
  float scale;      // inv_tokens * clip coefficient, applied to every gradient by adamw
  i32 finite;       // 0: adamw changes nothing: `refused`
  i32 refused;  // 1 from the first step on with a NaN or infinite loss or gradient; never cleared by a step,
                // so that those submitted after it before the host knew change nothing either
};

enum class OptimizerMode : u8 { master32, bf16sr };

// One flat run of parameters that are updated alike.
struct AdamSegment {
  void* param;       // weights the kernels read (weight_dtype or fp32)
  float* master;     // fp32 master copy; null where param itself is fp32 or in bf16sr
  const void* grad;  // grad_dtype or fp32
  void* m;           // fp32 (master32) or bf16 (bf16sr)
  void* v;
  i64 count;
  DType param_dtype, grad_dtype, state_dtype;
  float weight_decay;  // 0 where the segment is not decayed
  i64 rng_offset;  // first element's number in the whole model: stochastic rounding does not depend on layout
};
struct AdamConfig {
  double beta1, beta2, eps;  // double: 1 - beta2 in fp32 would already be off by 1e-5
  OptimizerMode mode;
};

// Which kernel serves an operation, for `hello`, `doctor` and the run record.
struct KernelInfo {
  std::string layer_kind;  // linear_attention | full_attention | mlp | norm | embedding | head | optimizer
  std::string operation;
  std::string forward;
  std::string backward;
  std::string tier;    // reference | portable | hopper | library
  std::string reason;  // why this one
  bool slow = false;   // a run with one of these needs acceptSlow
};

// Device time of one operation in one phase, summed over the profiled launches.
struct OpTime {
  std::string op;
  std::string phase;
  bool layered;  // within a layer; false: embedding, head, optimizer
  i64 calls;
  double total_ms;
  double flops;            // floating-point operations of all calls, by the operation's own count
  double bytes;            // fewest bytes that all calls must move through device memory
  double percent_of_roof;  // the slower of the two floors / measured time * 100; 0 where the device's roofs
                           // are unknown
};

// One operation as it ran: milliseconds since profiling began. layer -1: embedding, head and optimizer.
struct OpSpan {
  const char* op;
  const char* phase;
  int layer;
  double begin_ms;
  double ms;
};

// What a device reaches on large work: the ceilings that times are compared with. 0: unknown.
struct DeviceRoof {
  double flops_per_second = 0.0;
  double bytes_per_second = 0.0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // ---- identity and memory

  virtual std::string name() const = 0;  // "cpu", "cuda:0"
  virtual DType act_dtype() const = 0;
  virtual DType weight_dtype() const = 0;
  virtual bool fixed_shapes() const = 0;  // true: T must be the same in every micro-batch (graphs)
  virtual std::vector<KernelInfo> kernels(const GdnShape& gdn, const AttnShape& attn) const = 0;
  virtual void* allocate(size_t bytes) = 0;  // throws EngineError out_of_memory
  virtual void release(void* p) = 0;
  virtual void zero(void* p, size_t bytes) = 0;
  virtual void copy_in(void* dst, const void* host, size_t bytes) = 0;   // host -> backend
  virtual void copy_out(void* host, const void* src, size_t bytes) = 0;  // backend -> host, synchronizes
  virtual void copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void synchronize() = 0;
  // Copies that only enqueue. Their host side comes from allocate_host (pinned where the hardware wants it)
  // and may be touched again once wait(mark()) of a later mark has returned. A backend that runs at once
  // keeps the defaults.
  virtual void* allocate_host(size_t bytes) { return ::operator new(bytes); }
  virtual void release_host(void* p) { ::operator delete(p); }
  virtual void upload(void* dst, const void* host, size_t bytes) { copy_in(dst, host, bytes); }
  virtual void download(void* host, const void* src, size_t bytes) { copy_out(host, src, bytes); }
  // The same beside what is enqueued already: to `staging` (device memory of its own, not the batch in use)
  // while the device computes, then from there to dst in its turn.
  virtual void upload_ahead(void* dst, void* staging, const void* host, size_t bytes) {
    upload(dst, host, bytes);
  }
  virtual i64 mark() { return 0; }  // a point after everything enqueued so far
  virtual void wait(i64 mark) {}    // until the device has passed that point; later marks are not waited for
  // Scratch that kernels share (partial sums, library workspace). Sized before the arena is planned, set
  // once.
  virtual size_t workspace_bytes(const GdnShape& gdn, const AttnShape& attn, i64 T, i64 H, i64 I,
                                 i64 V) const = 0;
  virtual void set_workspace(void* p, size_t bytes) = 0;
  // Records what `enqueue` submits and returns a handle to replay; a backend without graphs runs it at each
  // launch.
  virtual int capture(const std::function<void()>& enqueue) = 0;
  virtual void launch(int graph) = 0;
  // Names the operation that the next calls belong to, for the profiler; phase: forward | recompute |
  // backward | optimizer.
  virtual void scope(const char* phase, int layer) = 0;
  // Device time by operation, for backends that run behind the host: from profile(true) on, which forgets
  // what was measured before. Empty on a backend that computes within the call: there the caller's clock
  // tells.
  virtual void profile(bool on) {}
  virtual std::vector<OpTime> op_times() { return {}; }      // synchronizes
  virtual std::vector<OpSpan> op_spans() { return {}; }      // the same operations one by one; synchronizes
  virtual DeviceRoof roof() { return {}; }                   // measured at the first call; synchronizes
  virtual std::string profile_source() const { return ""; }  // events, cupti, or why not cupti
  virtual i64 idle_launches() const { return 0; }            // launches that found the device without work
  virtual i64 submissions() const { return 0; }       // graphs, and kernels outside graphs, submitted so far
  virtual i64 kernels(int graph) const { return 0; }  // kernels that one launch of this graph runs
  // Device memory that the backend itself takes beside what is allocated: context, code, libraries. For the
  // forecast.
  virtual size_t context_bytes() const { return 0; }
  virtual size_t memory_used() const { return 0; }  // bytes in use on the device, by everyone; 0: unknown

  // ---- communication

  // Submits communication to run beside the computation that is enqueued from now on, after all that was
  // enqueued before; `work` gets the stream for it, null on a backend that runs at once. `op` is a literal.
  // Submissions run one after another. Returns a ticket for meet().
  virtual i64 beside(const char* op, double bytes, const std::function<void(void* stream)>& work) {
    work(nullptr);
    return 0;
  }
  virtual void meet() {}            // what is enqueued from now on runs after all that was submitted beside
  virtual void meet(i64 ticket) {}  // after that submission and those before it
  // to[count] = or += sum[count], rounded to type (f32 or bf16; bf16 only overwrites); within beside's work.
  virtual void keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate, void* stream) = 0;

  // ---- embedding, norm, matrix products

  virtual void embedding_fwd(Act* x, const Wgt* table, const Batch& b, i64 H) = 0;  // x =
  virtual void embedding_bwd(void* d_table, DType grad, const Act* dx, const Batch& b,
                             i64 H) = 0;  // d_table +=
  // y = x * rsqrt(mean(x^2) + eps) * (1 + w)
  virtual void rmsnorm_fwd(Act* y, const Act* x, const float* w, i64 rows, i64 H, float eps) = 0;
  // dx = d(norm) + dres (dres may be null or equal dx); dw +=
  virtual void rmsnorm_bwd(Act* dx, float* dw, const Act* dy, const Act* x, const float* w, const Act* dres,
                           i64 rows, i64 H, float eps) = 0;
  // y[T,N] = x[T,K] w[N,K]^T (+ residual[T,N], which may be null)
  virtual void linear_fwd(Act* y, const Act* x, const Wgt* w, const Act* residual, i64 T, i64 N, i64 K) = 0;
  virtual void linear_bwd_data(Act* dx, const Act* dy, const Wgt* w, i64 T, i64 N,
                               i64 K) = 0;  // dx[T,K] = dy w
  // dw[N,K] (+)= dy^T x, in grad's type; accumulate false overwrites
  virtual void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                                 bool accumulate) = 0;

  // ---- gated delta net

  // qkv[T,CQ] = l2norm(silu(conv(proj.qkv))) for q and k heads, silu(conv) for v heads
  virtual void gdn_prep_fwd(Act* qkv, const Act* proj, const float* conv_w, const Batch& b,
                            const GdnShape& s) = 0;
  // Gates g = inclusive cumulated log decay within the chunk, beta; and Ar = (I + strict_lower(beta k
  // k^T))^-1. g, beta: f32 [NC,HV,64]; ar: Act [NC,HV,64,64]. Padded rows: beta 0, g = g_last.
  virtual void gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj,
                           const float* a_log, const float* dt_bias, const Batch& b, const GdnShape& s) = 0;
  // o[T,VD] =; state (may be null) Act [NC,HV,K,Vh] = the state entering each chunk
  virtual void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
                       const Batch& b, const GdnShape& s) = 0;
  // dq, dk: Act [T,HV,K] per value head; dv: Act [T,VD]; d_gamma (of the per-token log decay), d_beta: f32
  // [NC,HV,64]; all =. scratch_du: Act [T,VD]; scratch_ds: Act [NC,HV,K,Vh].
  virtual void gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du,
                       Act* scratch_ds, const Act* d_o, const Act* qkv, const float* g, const float* beta,
                       const Act* ar, const Act* state, const Batch& b, const GdnShape& s) = 0;
  // Fills the qkv, b and a slices of dproj (=); d_conv_w [CQ,taps], d_a_log [HV], d_dt_bias [HV] +=
  virtual void gdn_prep_bwd(Act* dproj, float* d_conv_w, float* d_a_log, float* d_dt_bias, const Act* dq,
                            const Act* dk, const Act* dv, const float* d_gamma, const float* d_beta,
                            const Act* proj, const Act* qkv, const float* beta, const float* conv_w,
                            const float* a_log, const float* dt_bias, const Batch& b, const GdnShape& s) = 0;
  // y[T,VD] = w * o * rsqrt(mean(o^2) + eps) * silu(z), per head; w [Vh] is a plain scale
  virtual void gated_norm_fwd(Act* y, const Act* o, const Act* proj, const float* w, i64 T, const GdnShape& s,
                              float eps) = 0;
  // d_o =, the z slice of dproj =, dw +=
  virtual void gated_norm_bwd(Act* d_o, Act* dproj, float* dw, const Act* dy, const Act* o, const Act* proj,
                              const float* w, i64 T, const GdnShape& s, float eps) = 0;

  // ---- attention

  // q[T,NH,D], k[T,NKV,D] = rope(norm(.)); rope f32 [max_pos, R] = (cos [R/2] | sin [R/2]); wq, wk
  // zero-centred [D]
  virtual void qk_norm_rope_fwd(Act* q, Act* k, const Act* proj, const float* wq, const float* wk,
                                const float* rope, const Batch& b, const AttnShape& s, float eps) = 0;
  // Causal within each sequence, scale 1/sqrt(D). o = softmax(q k^T) v; y = o * sigmoid(gate); lse f32
  // [NH,T]. o may be null.
  virtual void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj,
                             const Batch& b, const AttnShape& s) = 0;
  // dq, dk =; the gate and v slices of dproj =. scratch_do: Act [T,NH,D]; scratch_delta: f32 [NH,T]
  virtual void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta,
                             const Act* dy, const Act* o, const float* lse, const Act* q, const Act* k,
                             const Act* proj, const Batch& b, const AttnShape& s) = 0;
  // the q and k slices of dproj =; dwq, dwk +=
  virtual void qk_norm_rope_bwd(Act* dproj, float* dwq, float* dwk, const Act* dq, const Act* dk,
                                const Act* proj, const float* wq, const float* wk, const float* rope,
                                const Batch& b, const AttnShape& s, float eps) = 0;

  // ---- MLP, head

  virtual void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) = 0;  // gu[T,2I] = gate | up
  // dgu (may alias gu) =; act_out (may alias dact, or be null) = silu(g)*u, for the down projection's weight
  // gradient
  virtual void swiglu_bwd(Act* dgu, Act* act_out, const Act* dact, const Act* gu, i64 T, i64 I) = 0;
  virtual void gather_rows(Act* dst, const Act* src, const i32* row, i64 rows,
                           i64 H) = 0;  // row -1 gives zeros
  virtual void scatter_rows(Act* dst, const Act* src, const i32* row, i64 rows, i64 T,
                            i64 H) = 0;  // dst = 0 elsewhere
  // nll[rows] = lse - z[label] (0 where unsupervised); with_grad: z becomes dz = softmax - onehot, 0 rows
  // where unsupervised
  virtual void cross_entropy(Act* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad) = 0;
  virtual void loss_sum(StepResult* result, const float* nll,
                        i64 rows) = 0;  // result->loss_sum += sum(nll), fixed order

  // ---- optimizer

  // Norm over all segments into result (grad_norm, scale, finite), then the update; nothing changes where not
  // finite.
  virtual void grad_norm(StepResult* result, const std::vector<AdamSegment>& segments,
                         const StepScalars* scalars) = 0;
  // The same in two parts, between which ranks add up result->squares and result->loss_sum.
  virtual void grad_squares(StepResult* result, const std::vector<AdamSegment>& segments) = 0;  // squares =
  virtual void finish_norm(StepResult* result, const StepScalars* scalars) = 0;
  virtual void adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config,
                     const StepScalars* scalars, const StepResult* result) = 0;
};

enum class GdnAlgorithm : u8 { chunked, recurrent };
struct CpuOptions {
  GdnAlgorithm gdn = GdnAlgorithm::chunked;
  int threads = 0;        // 0: all cores; results do not depend on it
  bool baseline = false;  // the instruction set that every x86-64 has, even where there is a wider one
};
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

struct CudaOptions {
  int device = 0;
  std::string profile;  // "", "events", "cupti"
  bool library =
      true;  // false: matrix products by the plain kernel (tier reference), as where cuBLASLt is absent
  bool graphs = true;  // false: launch() submits operation by operation (the same kernels, the same results)
  // The plain kernels for every operation but the products: any head sizes, slow. Not empty: why.
  std::string reference;
  bool fp32 = false;      // activations and weights in fp32; by the reference kernels alone
  bool portable = false;  // the kernels of GPUs without the instructions that this one has beyond sm_80
};
// Throws EngineError no_cuda (with the reason) where the build or the machine has none.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options);

}  // namespace tessera
