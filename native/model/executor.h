// The training step over a Backend: forward, backward with recomputation, loss and update. Written once for
// all backends; everything that varies from step to step stands in device buffers, so that the enqueued work
// of a micro-batch is the same list every time and can be captured as a graph.
//
// Order of one layer (linear attention; full attention alike):
//   forward   norm, in-proj, prep, kkt, gdn, gated norm, out-proj + x, norm, gate-up, swiglu, down + x'
//   backward  gate-up again, MLP backwards, the mixer again up to what the policy kept, mixer backwards
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/batch.h"
#include "model/layer_memory.h"
#include "model/parameters.h"
#include "model/unit_slots.h"

namespace tessera {

struct ExecutorOptions {
  OptimizerOptions optimizer{};
  RecomputePolicy policy = RecomputePolicy::p1;
  bool keep_all = true;      // p0 alone: also outputs of norms and activation, 8-11 % more memory
  BatchLayout batch{};       // capacities
  i64 max_sequence = 0;      // longest sequence: rows of the rotary table; 0: batch.tokens
  i64 head_rows = 2048;      // Tc: logits are computed for this many rows at a time
  bool compaction = true;    // the head skips unsupervised rows
  bool accumulates = false;  // more than one micro-batch a step on a rank: gradients stay fp32
  // Of the matrices. Absent: bf16 where nothing is added up over micro-batches and bf16sr rounds the weights
  // anyway.
  std::optional<DType> gradients{};
  // More than one process: then gradients are summed over them, and each updates its own share. Without
  // `collectives` such an executor can only be planned.
  RankOf rank{};
  Sharding sharding = Sharding::optimizer;
  Collectives* collectives = nullptr;
};

class Executor {
 public:
  // Plans; allocates nothing until allocate(). The layout must outlive the executor. Throws unsupported_mode
  // where bf16 gradients are asked for and cannot be had.
  Executor(Backend& backend, const ModelConfig& config, const Layout& layout, const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  MemoryPlan plan() const;  // what the device will hold at the peak
  void allocate();          // throws out_of_memory with the forecast

  Parameters& parameters() { return parameters_; }
  const ExecutorOptions& options() const { return options_; }
  DType gradient_type() const { return gradient_type_; }  // of the matrices

  // A micro-batch before a step's last: forward and backward. The first of a step overwrites the gradients,
  // later ones add to them.
  void run_micro_batch(std::span<const Sequence> sequences, bool first);
  // The step's last micro-batch, then norm and update: one launch on a backend with graphs. With ranks the
  // gradients are summed over them, each unit's while the units below are still being computed; where
  // gradients are split, that is done in every micro-batch. Returns a ticket for result().
  int run_last_micro_batch(std::span<const Sequence> sequences, bool first, const StepScalars& scalars);
  // The part of a rank that has no micro-batch where others have one: in the whole step, or, where they meet
  // in each, in this round of it.
  void run_without_micro_batch(bool first);
  int run_without_last_micro_batch(bool first, const StepScalars& scalars);
  bool meets_each_micro_batch() const { return gradient_slots_.has_value(); }
  // Norm only: the gradients stay as they are and no parameter changes.
  int measure(const StepScalars& scalars);
  // Forward and loss only; the ticket's result holds loss_sum.
  int evaluate(std::span<const Sequence> sequences);
  // The part of a rank that has nothing to evaluate where others have, when weights are split.
  void evaluate_nothing();
  // Waits for the device to have passed the ticket's point. A ticket is good for kResultSlots further ones.
  StepResult result(int ticket);
  static constexpr int kResultSlots = 4;
  const BatchShape& shape() const { return shape_; }          // of the last micro-batch
  i64 cold_launches() const { return cold_launches_; }        // that ran eagerly or captured a graph first
  i64 kernels_launched() const { return kernels_launched_; }  // by graphs, so far; 0 on backends without

  // ---- for verification and diagnosis; these synchronize
  std::vector<float> logits(std::span<const Sequence> sequences);  // [T, V] of a forward pass
  std::vector<float> output() const;          // [T, H] of the last layer, of the last micro-batch
  std::vector<float> losses() const;          // [T] of the last micro-batch (compaction off)
  std::vector<float> input_gradient() const;  // [T, H] of the last micro-batch
  // Where a NaN or infinity of the last step first appeared: "forward of layer 3", or "" where none is found.
  std::string find_non_finite() const;

 private:
  enum class Work : u8 {
    first_micro_batch,
    micro_batch,
    only_micro_batch,
    last_micro_batch,
    evaluation,
    measure
  };

  Batch upload(std::span<const Sequence> sequences);
  void upload_scalars(const StepScalars& scalars);
  void launch(Work work, const std::function<void()>& enqueue);
  int download_result();
  void fill_rope_table();

  void forward_and_backward(const Batch& b, bool first, bool last);
  void norm();
  void update();
  void forward(const Batch& b);
  void forward_layer(i64 l, const Batch& b);
  void mixer_input(i64 l, const LayerBuffers& s, i64 T);
  void in_projection(i64 l, const LayerBuffers& s, i64 T);
  void mixer_core(i64 l, const LayerBuffers& s, const Batch& b);
  void mixer_output(i64 l, const LayerBuffers& s, i64 T);
  void mlp_input(i64 l, const LayerBuffers& s, i64 T);
  void gate_up(i64 l, const LayerBuffers& s, i64 T);
  void head(const Batch& b, bool train, bool accumulate, bool sums = false);
  void backward(const Batch& b, bool first, bool sums);
  // The order of a pass, with what ranks exchange on the way: the same for one that computes and one that has
  // nothing to.
  void walk_forward(const std::function<void()>& embed, const std::function<void(i64 l)>& layer);
  void walk_backward(bool sums, const std::function<void(i64 l)>& layer, const std::function<void()>& embed);
  size_t head_unit() const { return config_.tied ? 0 : layout_.units.size() - 1; }
  void fetch_unit(size_t unit);
  void need_unit(size_t unit);
  void claim_gradients(size_t unit);
  void zero_gradients_of(size_t unit);
  void sum_unit(size_t unit);
  void sum_small_gradients();
  void share_norm();
  void gather_weights();
  void backward_layer(i64 l, const Batch& b, bool accumulate);
  void recompute_mixer(i64 l, const LayerBuffers& s, const Batch& b);
  void backward_mlp(i64 l, const LayerBuffers& s, i64 T, bool accumulate);
  void backward_mixer(i64 l, const LayerBuffers& s, const Batch& b, bool accumulate);
  void weight_gradient(i64 offset, const Act* dy, const Act* x, i64 T, i64 N, i64 K, bool accumulate);
  std::vector<float> read_activations(const Act* x, i64 count) const;
  bool linear_layer(i64 l) const {
    return config_.layers[static_cast<size_t>(l)] == LayerKind::linear_attention;
  }
  const LayerOffsets& at(i64 l) const { return layout_.layers[static_cast<size_t>(l)]; }
  Wgt* w(i64 offset) const {
    return weight_slots_ ? weight_slots_->at(offset) : parameters_.big(Field::weight, offset);
  }
  void* dw(i64 offset) const {
    return gradient_slots_ ? gradient_slots_->at(offset) : parameters_.big(Field::gradient, offset);
  }
  DType dw_type() const { return gradient_slots_ ? gradient_slots_->type() : gradient_type_; }
  const float* p(i64 offset) const { return parameters_.small(Field::weight, offset); }
  float* dp(i64 offset) const { return parameters_.small(Field::gradient, offset); }

  Backend& backend_;
  const ModelConfig config_;
  const Layout& layout_;
  ExecutorOptions options_;
  DType gradient_type_;
  BatchRules rules_;
  Arena arena_;
  Parameters parameters_;
  // Whole units where weights or gradients are split.
  std::optional<UnitSlots> weight_slots_, gradient_slots_;
  bool first_round_ = true;  // of the step: a unit's sum is kept, later ones are added
  LayerMemory memory_;
  int batch_item_, scalars_item_, result_item_, rope_item_, workspace_item_;
  std::array<int, 2> staging_items_{-1, -1};  // where the next micro-batches arrive while one is computed
  size_t workspace_bytes_;
  void* base_ = nullptr;
  std::vector<AdamSegment> segments_, norm_segments_;
  HeadBuffers head_{};
  const float* rope_ = nullptr;
  StepResult* result_ = nullptr;
  StepScalars* scalars_ = nullptr;

  // Host memory that copies read and write while the device runs behind; each slot waits for its last use.
  struct BatchSlot {
    void* blob = nullptr;
    i64 mark = -1;
  };
  struct ResultSlot {
    StepScalars scalars;
    StepResult result;
  };
  static constexpr size_t kBatchSlots = 3;
  std::array<BatchSlot, kBatchSlots> batches_;
  size_t next_batch_ = 0;
  ResultSlot* results_ = nullptr;  // [kResultSlots]
  std::array<i64, kResultSlots> result_marks_{};
  int next_ticket_ = 0;

  i64 kernels_launched_ = 0, cold_launches_ = 0;
  BatchShape shape_{};  // of the last micro-batch
  std::map<std::tuple<Work, BatchShape>, std::optional<int>> graphs_;
};

}  // namespace tessera
