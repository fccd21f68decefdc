#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "model/device.h"
#include "protocol/hello.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

// Steps whose results the host has not read yet: it never waits for the device inside a step.
constexpr size_t kStepsInFlight = 2;

}  // namespace

Trainer::Trainer(const TrainOptions& options)
    : options_(options),
      recipe_(read_recipe(options.recipe)),
      cache_(options.cache),
      plan_(options.plan, cache_, recipe_.budget),
      config_(read_config(options.model)),
      files_(options.model),
      prefix_(tensor_prefix(files_)),
      layout_(make_layout(config_, prefix_)),
      device_(make_backend(options.device.empty() ? recipe_.device : options.device,
                           {.threads = options.threads, .profile = options.profile ? "cupti" : ""})),
      backend_(std::make_unique<ProfiledBackend>(*device_)) {
  if (!options.eval_plan.empty()) {
    eval_cache_.emplace(options.eval_cache.empty() ? options.cache : options.eval_cache);
    eval_plan_.emplace(options.eval_plan, *eval_cache_, recipe_.budget);
  }
  const i64 available = (plan_.num_bins() + recipe_.grad_accumulation - 1) / recipe_.grad_accumulation;
  total_steps_ = recipe_.steps > 0 ? recipe_.steps : available;
  check_model_and_plan();
  refuse_empty_steps();
  refuse_slow_kernels();
  executor_ = std::make_unique<Executor>(*backend_, config_, layout_,
                                         ExecutorOptions{.optimizer = recipe_.optimizer,
                                                         .policy = recipe_.policy,
                                                         .batch = capacity(),
                                                         .head_rows = recipe_.head_rows,
                                                         .compaction = recipe_.compaction,
                                                         .accumulates = recipe_.grad_accumulation > 1});
  state_.seed = recipe_.seed;
  state_.recipe = recipe_.binding;
  state_.data = {{"cache", cache_.fingerprint()}, {"plan", plan_.fingerprint()}};
}

void Trainer::check_model_and_plan() const {
  check_tensors(layout_, files_, prefix_, config_.tied);
  const i64 longest =
      std::max(plan_.max_sequence_length(), eval_plan_ ? eval_plan_->max_sequence_length() : 0);
  if (longest > config_.max_positions)
    throw EngineError("invalid_plan",
                      options_.plan.string() + ": an example of " + std::to_string(longest) +
                          " positions exceeds the model's max_position_embeddings of " +
                          std::to_string(config_.max_positions),
                      "Lower packing.budget.");
  if (recipe_.optimizer.mode == OptimizerMode::bf16sr && backend_->weight_dtype() != DType::bf16)
    throw EngineError(
        "unsupported_mode",
        "optimizer.mode bf16sr needs bf16 weights, which " + backend_->name() + " does not have",
        "Use optimizer.mode master32.");
}

BatchLayout Trainer::capacity() const {
  BatchLayout layout;
  const Plan* plans[] = {&plan_, eval_plan_ ? &*eval_plan_ : nullptr};
  for (const Plan* plan : plans)
    if (plan) layout.tokens = std::max(layout.tokens, plan->max_positions());
  if (backend_->fixed_shapes())
    layout.tokens = (std::max(layout.tokens, recipe_.budget) + kChunk - 1) / kChunk * kChunk;
  for (const Plan* plan : plans)
    for (i64 b = 0; plan && b < plan->num_bins(); ++b) {
      const auto count = static_cast<i64>(plan->bin(b).size());
      layout.sequences = std::max(
          layout.sequences,
          backend_->fixed_shapes() ? sequences_with_tail(count, plan->positions(b), layout.tokens) : count);
    }
  return layout;
}

// Refused here, before the first step, so that no run ends in its middle for it.
void Trainer::refuse_empty_steps() const {
  const i64 distinct =
      std::min(total_steps_, (plan_.num_bins() + recipe_.grad_accumulation - 1) / recipe_.grad_accumulation);
  std::vector<i32> labels;
  for (i64 step = 0; step < distinct; ++step) {
    i64 targets = 0;
    for (i64 k = 0, bin; k < recipe_.grad_accumulation && (bin = bins_of_step(step, k)) >= 0; ++k)
      for (const Placement& p : plan_.bin(bin)) {
        labels.clear();
        targets += append_labels(cache_, p, &labels);
      }
    if (targets == 0)
      throw EngineError("no_supervised_tokens",
                        options_.plan.string() + ": step " + std::to_string(step + 1) + " (bin " +
                            std::to_string(bins_of_step(step, 0)) + ") has 0 trainable tokens",
                        "Leave out examples without an assistant's turn, or raise gradAccumulation.");
  }
}

void Trainer::refuse_slow_kernels() const {
  if (recipe_.accept_slow) return;
  for (const KernelInfo& k : backend_->kernels(config_.gdn, config_.attn))
    if (k.slow)
      throw EngineError("slow_kernel",
                        backend_->name() + ": " + k.operation + " would run by the slow kernel " + k.forward +
                            ": " + k.reason,
                        "Set acceptSlow: true to train with it nevertheless.");
}

Json Trainer::hello() const {
  return hello_event(kernels_json(backend_->kernels(config_.gdn, config_.attn)));
}

Json Trainer::forecast() const {
  const MemoryPlan m = executor_->plan();
  return {{"steps", total_steps_},
          {"memory",
           {{"weights", m.weights},
            {"gradients", m.gradients},
            {"optimizer", m.optimizer},
            {"activations", m.activations},
            {"workspace", m.workspace},
            {"context", m.context},
            {"total", m.total}}}};
}

void Trainer::start() {
  emit(
      {{"event", "progress"}, {"what", "load"}, {"done", 0}, {"total", 1}, {"memory", forecast()["memory"]}});
  executor_->allocate();
  if (options_.resume.empty()) {
    load_weights(executor_->parameters(), files_);
  } else {
    std::string warning;
    const fs::path checkpoint = choose_checkpoint(options_.resume, &warning);
    if (!warning.empty()) emit({{"event", "warning"}, {"code", "damaged_checkpoint"}, {"message", warning}});
    resume_from(checkpoint);
  }
  emit({{"event", "progress"}, {"what", "load"}, {"done", 1}, {"total", 1}});
  last_report_ = last_save_ = Clock::now();
}

void Trainer::resume_from(const fs::path& checkpoint) {
  RunState saved = read_state(checkpoint);
  check_binding(saved.recipe, recipe_.binding, "recipe");
  check_binding(saved.data, state_.data, "dataset or plan");
  restore(executor_->parameters(), checkpoint);
  state_ = std::move(saved);
  saved_step_ = state_.step;
}

// Bins are taken in order; a run longer than its plan goes through it again.
i64 Trainer::bins_of_step(i64 step, i64 index) const {
  const i64 per_pass = (plan_.num_bins() + recipe_.grad_accumulation - 1) / recipe_.grad_accumulation;
  const i64 bin = step % per_pass * recipe_.grad_accumulation + index;
  return bin < plan_.num_bins() ? bin : -1;
}

Trainer::MicroBatch Trainer::micro_batch(const TokenCache& cache, const Plan& plan, i64 bin) const {
  MicroBatch m;
  for (const Placement& p : plan.bin(bin)) {
    const auto ids =
        cache.ids(p.example).subspan(static_cast<size_t>(p.start), static_cast<size_t>(p.length));
    m.ids.insert(m.ids.end(), ids.begin(), ids.end());
    m.targets += append_labels(cache, p, &m.labels);
    m.positions += p.positions;
  }
  m.tokens = static_cast<i64>(m.ids.size());
  size_t at = 0;
  for (const Placement& p : plan.bin(bin)) {
    const auto length = static_cast<size_t>(p.length);
    m.sequences.push_back(
        {std::span(m.ids).subspan(at, length), std::span(m.labels).subspan(at, length), p.positions});
    at += length;
  }
  return m;
}

void Trainer::take_step() {
  Pending p{};
  std::vector<MicroBatch> batches;
  for (i64 k = 0, bin; k < recipe_.grad_accumulation && (bin = bins_of_step(state_.step, k)) >= 0; ++k) {
    batches.push_back(micro_batch(cache_, plan_, bin));
    p.targets += batches.back().targets;
    p.tokens += batches.back().tokens;
    p.positions += batches.back().positions;
  }
  for (size_t k = 0; k < batches.size(); ++k) executor_->run_micro_batch(batches[k].sequences, k == 0);
  const double t = static_cast<double>(state_.step + 1);
  p.step = state_.step + 1;
  p.learning_rate = recipe_.schedule.at(state_.step, total_steps_);
  p.ticket = executor_->update({.lr = static_cast<float>(p.learning_rate),
                                .bias1 = static_cast<float>(1.0 - std::pow(recipe_.optimizer.beta1, t)),
                                .bias2 = static_cast<float>(1.0 - std::pow(recipe_.optimizer.beta2, t)),
                                .inv_tokens = static_cast<float>(1.0 / static_cast<double>(p.targets)),
                                .clip = static_cast<float>(recipe_.clip),
                                .seed = static_cast<std::uint32_t>(recipe_.seed),
                                .step = static_cast<i32>(p.step)});
  pending_.push_back(p);
  state_.step = p.step;
  state_.next_bin = bins_of_step(state_.step, 0);
  report(backend_->fixed_shapes() ? kStepsInFlight : 0);
}

// Reads results until at most so many steps are in flight, one event each.
void Trainer::report(size_t most_pending) {
  while (pending_.size() > most_pending) {
    const Pending p = pending_.front();
    pending_.pop_front();
    const StepResult result = executor_->result(p.ticket);
    if (!result.finite) fail_non_finite(p.step);
    const double ms = milliseconds_since(last_report_);
    last_report_ = Clock::now();
    state_.supervised_tokens += p.targets;
    state_.real_tokens += p.tokens;
    state_.positions += p.positions;
    state_.milliseconds += ms;
    emit({{"event", "step"},
          {"step", p.step},
          {"steps", total_steps_},
          {"loss", result.loss_sum / static_cast<double>(p.targets)},
          {"gradNorm", result.grad_norm},
          {"learningRate", p.learning_rate},
          {"supervisedTokens", p.targets},
          {"realTokens", p.tokens},
          {"positions", p.positions},
          {"milliseconds", ms},
          {"atMs", now_ms()}});
  }
}

void Trainer::fail_non_finite(i64 step) {
  const bool undisturbed = pending_.empty();
  const std::string where = undisturbed ? executor_->find_non_finite() : "";
  std::string saved;
  if (undisturbed && saved_step_ != step - 1) {
    // The update changed nothing: the state is that after the step before.
    state_.step = step - 1;
    state_.next_bin = bins_of_step(state_.step, 0);
    save();
    saved = "; the state before it was saved";
  }
  throw EngineError("non_finite",
                    "step " + std::to_string(step) + ": the loss or a gradient is NaN or infinite" +
                        (where.empty() ? "" : ", first seen in " + where) + saved,
                    "Lower optimizer.lr, add warm-up steps, or look at the examples of this step.");
}

void Trainer::evaluate(const char* phase) {
  if (!eval_plan_) return;
  report(0);
  double sum = 0;
  i64 targets = 0;
  for (i64 b = 0; b < eval_plan_->num_bins(); ++b) {
    const MicroBatch m = micro_batch(*eval_cache_, *eval_plan_, b);
    if (m.targets == 0) continue;
    sum += executor_->result(executor_->evaluate(m.sequences)).loss_sum;
    targets += m.targets;
  }
  if (targets == 0)
    throw EngineError("no_supervised_tokens",
                      options_.eval_plan.string() + ": the held-out examples have 0 supervised tokens");
  const double loss = sum / static_cast<double>(targets);
  emit({{"event", "eval"}, {"step", state_.step}, {"loss", loss}, {"tokens", targets}, {"phase", phase}});
  const bool better = !state_.best_eval || loss < *state_.best_eval;
  if (better) state_.best_eval = loss;
  if (better && recipe_.checkpoint.best && state_.step > 0) {
    save();
    best_checkpoint_ = checkpoint_path(options_.out, state_.step);
  }
  last_report_ = Clock::now();
}

void Trainer::save() {
  report(0);
  const fs::path path =
      saved_step_ == state_.step && fs::exists(checkpoint_path(options_.out, state_.step))
          ? checkpoint_path(options_.out, state_.step)
          : write_checkpoint({executor_->parameters(), files_, options_.model, config_.tied}, state_,
                             options_.out);
  saved_step_ = state_.step;
  std::vector<fs::path> spare;
  if (best_checkpoint_) spare.push_back(*best_checkpoint_);
  prune_checkpoints(options_.out, recipe_.checkpoint.keep, spare);
  emit({{"event", "checkpoint"}, {"step", state_.step}, {"path", fs::absolute(path).string()}});
  last_report_ = last_save_ = Clock::now();
}

bool Trainer::checkpoint_due() const {
  const CheckpointRules& rules = recipe_.checkpoint;
  return (rules.every_steps > 0 && state_.step % rules.every_steps == 0) ||
         (rules.every_minutes > 0 && milliseconds_since(last_save_) >= rules.every_minutes * 60'000);
}

void Trainer::emit_profile() {
  emit({{"event", "profile"},
        {"step", state_.step},
        {"host", backend_->take_report()},
        {"device", op_times_json(backend_->op_times(), "operation")}});
}

// Takes the commands that have come; a reason where the run is to end.
std::optional<std::string> Trainer::obey(CommandReader& commands) {
  while (const auto command = commands.next()) {
    if (*command == "stop") return "stopped";
    if (*command == "parent-gone") return "parent-gone";
    if (*command == "checkpoint") save();
    if (*command == "profile") profile_next_ = true;
    if (*command == "pause")
      if (auto reason = pause(commands)) return reason;
  }
  return std::nullopt;
}

std::optional<std::string> Trainer::pause(CommandReader& commands) {
  report(0);
  emit({{"event", "paused"}, {"step", state_.step}});
  for (;;) {
    const auto command = commands.wait(60'000);
    if (!command) continue;
    if (*command == "stop") return "stopped";
    if (*command == "parent-gone") return "parent-gone";
    if (*command == "checkpoint") save();
    if (*command == "resume") break;
  }
  emit({{"event", "resumed"}, {"step", state_.step}});
  last_report_ = Clock::now();
  return std::nullopt;
}

void Trainer::run(CommandReader& commands) {
  start();
  if (state_.step == 0) evaluate("before");
  std::string reason = "completed";
  backend_->enable(options_.profile);
  while (state_.step < total_steps_) {
    if (const auto end = obey(commands)) {
      reason = *end;
      break;
    }
    const bool profile = profile_next_ || recipe_.profile_at == state_.step + 1;
    profile_next_ = false;
    if (profile) {
      report(0);
      backend_->take_report();
      backend_->enable(true);
    }
    take_step();
    if (profile) {
      report(0);
      emit_profile();
      backend_->enable(options_.profile);
    }
    if (recipe_.evaluate_every > 0 && state_.step % recipe_.evaluate_every == 0 && state_.step < total_steps_)
      evaluate("during");
    if (checkpoint_due() && state_.step < total_steps_) save();
  }
  report(0);
  if (options_.profile) emit_profile();
  if (reason == "completed") evaluate("after");
  save();
  emit({{"event", "done"}, {"step", state_.step}, {"reason", reason}});
}

}  // namespace tessera
