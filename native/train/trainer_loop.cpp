// The steps of a run, its evaluations and checkpoints, and the commands that reach it.
#include <cmath>

#include "core/error.h"
#include "model/device.h"
#include "train/trainer.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

// Steps whose results the host has not read yet: it never waits for the device inside a step.
constexpr size_t kStepsInFlight = 2;

}  // namespace

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
