// Memory, uploads, graphs and results; the mathematics of the step is in executor_step.cpp.
#include "model/executor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/dtype.h"
#include "core/error.h"

namespace tessera {
namespace {

// With one micro-batch a step nothing is added up over time, so gradients may be bf16. Ranks sum in fp32, so
// there it may be only what each keeps of the sum.
DType gradient_type_of(const Backend& backend, const ExecutorOptions& options) {
  const bool sums = options.rank.world > 1 && options.sharding == Sharding::optimizer;
  const bool can = !options.accumulates && !sums && backend.weight_dtype() == DType::bf16;
  if (options.gradients == DType::bf16 && !can)
    throw EngineError("unsupported_mode",
                      options.accumulates ? "bf16 gradients cannot be added up over micro-batches"
                      : sums ? "bf16 gradients cannot be added up over ranks that each hold all of them"
                             : "bf16 gradients need bf16 weights, which " + backend.name() + " does not have",
                      options.accumulates ? "Use gradients auto or fp32, or gradAccumulation 1."
                      : sums              ? "Use gradients auto or fp32, or sharding gradients or weights."
                                          : "Use gradients auto or fp32.");
  if (options.gradients) return *options.gradients;
  return can && options.optimizer.mode == OptimizerMode::bf16sr ? DType::bf16 : DType::f32;
}

// What a step clears: all but `refused`.
constexpr size_t kResultOfStep = offsetof(StepResult, refused);

// What NCCL takes of a GPU for its buffers: 850 to 860 MiB with 2.28 on two H200.
constexpr size_t kJoiningBytes = size_t{860} << 20;

double gib(size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

Executor::Executor(Backend& backend, const ModelConfig& config, const Layout& layout,
                   const ExecutorOptions& options)
    : backend_(backend),
      config_(config),
      layout_(layout),
      options_(options),
      gradient_type_(gradient_type_of(backend, options)),
      rules_{backend.fixed_shapes(), options.compaction, config.vocab},
      parameters_(backend, layout, options.optimizer, gradient_type_, &arena_, options.rank,
                  options.sharding),
      memory_(config, options.batch, backend.act_dtype(), {options.policy, options.keep_all},
              options.head_rows, options.compaction, &arena_) {
  if (options_.rank.world > 1 && options_.sharding == Sharding::weights)
    weight_slots_.emplace(layout, backend.weight_dtype(), MemoryPart::weights, &arena_);
  if (options_.rank.world > 1 && options_.sharding != Sharding::optimizer)
    gradient_slots_.emplace(layout, DType::f32, MemoryPart::gradients, &arena_);
  if (options_.max_sequence == 0) options_.max_sequence = options_.batch.tokens;
  const auto table = static_cast<size_t>(options_.max_sequence * config.attn.rotary_dim) * sizeof(float);
  batch_item_ = arena_.add(MemoryPart::activations, options_.batch.bytes());
  if (backend.fixed_shapes())
    for (int& item : staging_items_) item = arena_.add(MemoryPart::activations, options_.batch.bytes());
  scalars_item_ = arena_.add(MemoryPart::optimizer, sizeof(StepScalars));
  result_item_ = arena_.add(MemoryPart::optimizer, sizeof(StepResult));
  rope_item_ = arena_.add(MemoryPart::weights, table);
  workspace_bytes_ = backend.workspace_bytes(config.gdn, config.attn, options_.batch.tokens, config.hidden,
                                             config.intermediate, config.vocab);
  workspace_item_ = arena_.add(MemoryPart::workspace, workspace_bytes_);
  arena_.plan();
}

Executor::~Executor() {
  if (!base_) return;
  backend_.synchronize();
  for (const BatchSlot& slot : batches_) backend_.release_host(slot.blob);
  backend_.release_host(results_);
  backend_.release(base_);
}

MemoryPlan Executor::plan() const {
  MemoryPlan m = arena_.memory();
  m.context =
      backend_.context_bytes() + (options_.rank.world > 1 && backend_.fixed_shapes() ? kJoiningBytes : 0);
  m.total += m.context;
  return m;
}

void Executor::allocate() {
  const MemoryPlan m = plan();
  try {
    base_ = backend_.allocate(arena_.size());
  } catch (const EngineError& error) {
    char text[320];
    std::snprintf(text, sizeof text,
                  "%s: this run needs %.2f GiB (weights %.2f, gradients %.2f, optimizer %.2f, activations "
                  "%.2f, workspace %.2f)",
                  backend_.name().c_str(), gib(m.total), gib(m.weights), gib(m.gradients), gib(m.optimizer),
                  gib(m.activations), gib(m.workspace));
    throw EngineError(error.code(), text + std::string(": ") + error.what(),
                      "Lower packing.budget, set recompute to full, or use optimizer.mode bf16sr.");
  }
  arena_.bind(base_);
  parameters_.bind(arena_);
  if (weight_slots_) weight_slots_->bind(arena_);
  if (gradient_slots_) gradient_slots_->bind(arena_);
  head_ = memory_.head(arena_);
  result_ = static_cast<StepResult*>(arena_.at(result_item_));
  backend_.zero(result_, sizeof(StepResult));
  scalars_ = static_cast<StepScalars*>(arena_.at(scalars_item_));
  backend_.set_workspace(arena_.at(workspace_item_), workspace_bytes_);
  segments_ = parameters_.segments(options_.optimizer);
  norm_segments_ = parameters_.norm_segments(options_.optimizer);
  for (BatchSlot& slot : batches_) slot.blob = backend_.allocate_host(options_.batch.bytes());
  results_ = static_cast<ResultSlot*>(backend_.allocate_host(sizeof(ResultSlot) * kResultSlots));
  result_marks_.fill(-1);
  fill_rope_table();
}

void Executor::fill_rope_table() {
  const i64 rows = options_.max_sequence, half = config_.attn.rotary_dim / 2;
  std::vector<float> table(static_cast<size_t>(rows * 2 * half));
  for (i64 t = 0; t < rows; ++t)
    for (i64 i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) *
                           std::pow(config_.rope_theta, -static_cast<double>(i) / static_cast<double>(half));
      float* row = &table[static_cast<size_t>(t * 2 * half)];
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  rope_ = static_cast<const float*>(arena_.at(rope_item_));
  backend_.copy_in(arena_.at(rope_item_), table.data(), table.size() * sizeof(float));
}

Batch Executor::upload(std::span<const Sequence> sequences) {
  for (const Sequence& s : sequences)
    if (s.computed > options_.max_sequence)
      throw EngineError("batch_too_large", "a sequence of " + std::to_string(s.computed) +
                                               " positions exceeds the planned " +
                                               std::to_string(options_.max_sequence));
  backend_.scope("forward", -1);
  const int staging = staging_items_[next_batch_ % staging_items_.size()];
  BatchSlot& slot = batches_[next_batch_++ % kBatchSlots];
  if (slot.mark >= 0) backend_.wait(slot.mark);
  shape_ = fill_batch(options_.batch, rules_, sequences, slot.blob);
  void* device = arena_.at(batch_item_);
  if (staging >= 0)
    backend_.upload_ahead(device, arena_.at(staging), slot.blob, options_.batch.bytes());
  else
    backend_.upload(device, slot.blob, options_.batch.bytes());
  slot.mark = backend_.mark();
  return options_.batch.view(device, shape_, options_.compaction);
}

void Executor::launch(Work work, const std::function<void()>& enqueue) {
  if (!backend_.fixed_shapes()) return enqueue();
  const auto [graph, first_time] = graphs_.try_emplace({work, work == Work::measure ? BatchShape{} : shape_});
  // The first run is eager: libraries choose their algorithms and load their kernels then.
  cold_launches_ += first_time || (!graph->second && !meets_each_micro_batch());
  // What ranks exchange becomes no graph (CudaBackend::capture), and slots are not rehearsed.
  if (first_time || meets_each_micro_batch()) return enqueue();
  if (!graph->second) graph->second = backend_.capture(enqueue);
  backend_.launch(*graph->second);
  kernels_launched_ += backend_.kernels(*graph->second);
}

void Executor::forward_and_backward(const Batch& b, bool first, bool last) {
  const bool split = meets_each_micro_batch(), sums = options_.rank.world > 1 && (last || split);
  first_round_ = first;
  backend_.scope("forward", -1);
  if (first) {
    backend_.zero(result_, kResultOfStep);
    parameters_.zero_small_gradients();
  }
  forward(b);
  head(b, true, !first && !split, sums);
  backward(b, first || split, sums);
  if (sums && last) sum_small_gradients();
}

void Executor::run_micro_batch(std::span<const Sequence> sequences, bool first) {
  const Batch b = upload(sequences);
  launch(first ? Work::first_micro_batch : Work::micro_batch,
         [this, b, first] { forward_and_backward(b, first, false); });
}

int Executor::run_last_micro_batch(std::span<const Sequence> sequences, bool first,
                                   const StepScalars& scalars) {
  const Batch b = upload(sequences);
  upload_scalars(scalars);
  launch(first ? Work::only_micro_batch : Work::last_micro_batch, [this, b, first] {
    forward_and_backward(b, first, true);
    update();
  });
  return download_result();
}

void Executor::run_without_micro_batch(bool first) {
  first_round_ = first;
  if (first) {
    backend_.zero(result_, kResultOfStep);
    parameters_.zero_gradients();
  }
  backend_.scope("forward", -1);
  walk_forward([] {}, [](i64) {});
  backend_.scope("backward", -1);
  if (!config_.tied) {
    zero_gradients_of(head_unit());
    sum_unit(head_unit());
  }
  walk_backward(
      true, [this](i64 l) { zero_gradients_of(static_cast<size_t>(l) + 1); },
      [this] { zero_gradients_of(0); });
}

int Executor::run_without_last_micro_batch(bool first, const StepScalars& scalars) {
  upload_scalars(scalars);
  run_without_micro_batch(first);
  sum_small_gradients();
  update();
  return download_result();
}

int Executor::evaluate(std::span<const Sequence> sequences) {
  const Batch b = upload(sequences);
  launch(Work::evaluation, [this, b] {
    backend_.zero(result_, kResultOfStep);
    forward(b);
    head(b, false, false);
  });
  return download_result();
}

void Executor::evaluate_nothing() {
  if (!weight_slots_) return;
  backend_.scope("forward", -1);
  walk_forward([] {}, [](i64) {});
}

int Executor::measure(const StepScalars& scalars) {
  upload_scalars(scalars);
  launch(Work::measure, [this] { norm(); });
  return download_result();
}

// Into the slot of the next ticket.
void Executor::upload_scalars(const StepScalars& scalars) {
  const auto slot = static_cast<size_t>(next_ticket_ % kResultSlots);
  if (result_marks_[slot] >= 0) backend_.wait(result_marks_[slot]);
  results_[slot].scalars = scalars;
  backend_.upload(scalars_, &results_[slot].scalars, sizeof(StepScalars));
}

int Executor::download_result() {
  const auto slot = static_cast<size_t>(next_ticket_ % kResultSlots);
  if (result_marks_[slot] >= 0) backend_.wait(result_marks_[slot]);
  backend_.download(&results_[slot].result, result_, sizeof(StepResult));
  result_marks_[slot] = backend_.mark();
  return next_ticket_++;
}

StepResult Executor::result(int ticket) {
  if (ticket < next_ticket_ - kResultSlots || ticket >= next_ticket_)
    throw EngineError("internal_error", "the result of ticket " + std::to_string(ticket) + " is gone");
  const auto slot = static_cast<size_t>(ticket % kResultSlots);
  backend_.wait(result_marks_[slot]);
  return results_[slot].result;
}

std::vector<float> Executor::read_activations(const Act* x, i64 count) const {
  const DType type = backend_.act_dtype();
  std::vector<char> raw(static_cast<size_t>(count) * dtype_bytes(type));
  backend_.copy_out(raw.data(), x, raw.size());
  std::vector<float> values(static_cast<size_t>(count));
  to_f32(values.data(), raw.data(), type, count);
  return values;
}

std::vector<float> Executor::logits(std::span<const Sequence> sequences) {
  const Batch b = upload(sequences);
  forward(b);
  const i64 H = config_.hidden, V = config_.vocab;
  backend_.rmsnorm_fwd(head_.xf, memory_.x(arena_, config_.num_layers()), p(layout_.final_norm), b.T, H,
                       config_.norm_eps);
  std::vector<float> all;
  for (i64 row = 0; row < b.T; row += options_.head_rows) {
    const i64 n = std::min(options_.head_rows, b.T - row);
    const char* x =
        static_cast<const char*>(head_.xf) + static_cast<size_t>(row * H) * dtype_bytes(backend_.act_dtype());
    backend_.linear_fwd(head_.z, x, w(layout_.head), nullptr, n, V, H);
    const auto piece = read_activations(head_.z, n * V);
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

std::vector<float> Executor::losses() const {
  std::vector<float> values(static_cast<size_t>(shape_.T));
  backend_.copy_out(values.data(), head_.nll, values.size() * sizeof(float));
  return values;
}

std::vector<float> Executor::output() const {
  return read_activations(memory_.x(arena_, config_.num_layers()), i64{shape_.T} * config_.hidden);
}

std::vector<float> Executor::input_gradient() const {
  return read_activations(memory_.d(arena_), i64{shape_.T} * config_.hidden);
}

std::string Executor::find_non_finite() const {
  const auto bad = [](const std::vector<float>& values) {
    return std::any_of(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  };
  for (i64 l = 0; l <= config_.num_layers(); ++l)
    if (bad(read_activations(memory_.x(arena_, l), i64{shape_.T} * config_.hidden)))
      return l == 0 ? "the embedding" : "the forward pass of layer " + std::to_string(l - 1);
  // Backward runs from the last layer to the first: the highest layer with a bad gradient is where it began.
  for (i64 l = config_.num_layers() - 1; l >= -1; --l)
    for (const TensorEntry& t : layout_.tensors)
      if (t.layer == l && bad(parameters_.read_own(t, Field::gradient))) return "the gradient of " + t.name;
  return "";
}

}  // namespace tessera
