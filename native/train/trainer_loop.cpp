// The steps of a run, its evaluations and checkpoints, and the commands that reach it.
#include <cmath>

#include "core/error.h"
#include "model/flops.h"
#include "train/profile.h"
#include "train/trainer.h"

namespace tessera {
namespace {

using Clock = Account::Clock;
double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }
double milliseconds_since(Clock::time_point t) { return milliseconds(Clock::now() - t); }

// Steps whose results the host has not read yet: it never waits for the device inside a step.
constexpr size_t kStepsInFlight = 2;
// One profile is taken of every run without being asked for: of a step that has warmed up.
constexpr i64 kProfiledStep = 10;
constexpr double kAccountEveryMs = 2000;
// More than what a history writes at once and a pipe that nobody reads any more can hold.
constexpr size_t kRecentSteps = 1024;
constexpr size_t kRecentEvaluations = 64;
constexpr size_t kRecentSamples = 64;

// JSON has no number for what is none.
Json number_or_name(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
}

// Appends to a list of events and keeps the newest of them.
void remember(Json& events, const Json& event, size_t most) {
  events.push_back(event);
  if (events.size() > most) events.erase(0);
}

}  // namespace

void Trainer::take_step() {
  tell(Order::step, only_measured_.has_value(), state_.step);
  Pending p{};
  // What lies between two steps: telling of the one, looking for commands.
  account_.spend("reporting");
  std::vector<MicroBatch> batches;
  for (i64 k = 0, bin; (bin = bins_of_step(state_.step, k)) >= 0; ++k)
    batches.push_back(backend_->host("prepare data", [&] { return micro_batch(cache_, plan_, bin); }));
  p.size = size_of_step(state_.step, batches);
  account_.spend("data");
  const i64 cold_launches = executor_->cold_launches();
  const double t = static_cast<double>(state_.step + 1);
  p.step = state_.step + 1;
  p.learning_rate = only_measured_ ? 0 : recipe_.schedule.at(state_.step, total_steps_);
  const StepScalars scalars{.lr = static_cast<float>(p.learning_rate),
                            .bias1 = static_cast<float>(1.0 - std::pow(recipe_.optimizer.beta1, t)),
                            .bias2 = static_cast<float>(1.0 - std::pow(recipe_.optimizer.beta2, t)),
                            .inv_tokens = static_cast<float>(1.0 / static_cast<double>(p.size.targets)),
                            .clip = static_cast<float>(recipe_.clip),
                            .seed = static_cast<std::uint32_t>(recipe_.seed),
                            .step = static_cast<i32>(p.step)};
  const auto own = static_cast<i64>(batches.size());
  const i64 rounds =
      executor_->meets_each_micro_batch() ? rounds_of_step(state_.step) : std::max<i64>(own, 1);
  for (i64 k = 0; k + 1 < rounds; ++k)
    if (k < own)
      executor_->run_micro_batch(batches[static_cast<size_t>(k)].sequences, k == 0);
    else
      executor_->run_without_micro_batch(k == 0);
  p.ticket = own < rounds ? executor_->run_without_last_micro_batch(rounds == 1, scalars)
                          : executor_->run_last_micro_batch(batches.back().sequences, rounds == 1, scalars);
  account_.spend("engine");
  p.cold = executor_->cold_launches() > cold_launches;
  pending_.push_back(p);
  ++steps_here_;
  state_.step = p.step;
  state_.next_bin = bins_of_step(state_.step, 0);
  // What steps cost one by one is seen only where each is waited for.
  report(backend_->fixed_shapes() && !only_measured_ ? kStepsInFlight : 0);
}

// Reads results until at most so many steps are in flight, one event each.
void Trainer::report(size_t most_pending) {
  while (pending_.size() > most_pending) {
    const Pending p = pending_.front();
    pending_.pop_front();
    account_.spend("reporting");
    const StepResult result = backend_->host("read scalars", [&] { return executor_->result(p.ticket); });
    const auto at = account_.spend("engine");
    const double ms = milliseconds(at - last_report_);
    last_report_ = at;
    const Json event = {{"event", "step"},
                        {"step", p.step},
                        {"steps", total_steps_},
                        {"loss", number_or_name(result.loss_sum / static_cast<double>(p.size.targets))},
                        {"gradNorm", number_or_name(result.grad_norm)},
                        {"learningRate", p.learning_rate},
                        {"supervisedTokens", p.size.targets},
                        {"realTokens", p.size.tokens},
                        {"positions", p.size.positions},
                        {"milliseconds", ms},
                        {"flops", p.size.flops},
                        {"elapsedMs", elapsed_ms()},
                        {"atMs", now_ms()}};
    if (!leads()) continue;  // what becomes of it rank 0 says
    if (only_measured_) {
      if (!result.finite)
        throw EngineError("non_finite",
                          "step " + std::to_string(p.step) +
                              " of the measurement: the loss or a gradient is NaN or infinite",
                          "Check the model's weights: no step has changed them.");
      only_measured_->push_back(event);
      continue;
    }
    if (!result.finite) {
      // Seen where it happened, although the step is not taken.
      say(event);
      fail_non_finite(p.step);
    }
    const Work work{1, p.size.tokens, p.size.targets, p.size.computed, p.size.head_rows, ms};
    account_.add_step(work, p.cold);
    measured_ += work;
    state_.supervised_tokens += p.size.targets;
    state_.real_tokens += p.size.tokens;
    state_.positions += p.size.positions;
    state_.milliseconds += ms;
    say(event);
    recent_.push_back(event);
    if (recent_.size() > kRecentSteps) recent_.pop_front();
  }
  tell_of_gaps();
}

// Time in which nobody could work is in no step; the run's time line says that it passed.
void Trainer::tell_of_gaps() {
  const auto left_out = Clock::left_out();
  const double seconds = milliseconds(left_out - told_gap_) / 1e3;
  if (seconds < 1) return;
  told_gap_ = left_out;
  char text[32];
  std::snprintf(text, sizeof text, "%.0f s", seconds);
  say({{"event", "warning"},
       {"code", "stood_still"},
       {"seconds", seconds},
       {"message", std::string("the run stood still for ") + text +
                       ": the machine slept, or its programs were stopped; no step is charged for it"}});
}

// Runs the step's micro-batches again until the first that shows where; later steps have overwritten it.
// Where ranks meet in each, all of them go on to the end.
std::string Trainer::repeat_to_non_finite(i64 step) {
  std::string where;
  const bool meets = executor_->meets_each_micro_batch();
  const i64 rounds = meets ? rounds_of_step(step - 1) : accumulation_;
  for (i64 k = 0; k < rounds && (meets || where.empty()); ++k) {
    const i64 bin = bins_of_step(step - 1, k);
    if (bin < 0 && meets) executor_->run_without_micro_batch(k == 0);
    if (bin < 0) continue;
    executor_->run_micro_batch(micro_batch(cache_, plan_, bin).sequences, k == 0);
    if (where.empty()) where = executor_->find_non_finite();
  }
  return where;
}

// Where the first NaN or infinity of a step that was refused came from, by the first rank that knows.
std::string Trainer::locate_non_finite(i64 step, bool behind) {
  pending_.clear();
  state_.step = step - 1;
  state_.next_bin = bins_of_step(state_.step, 0);
  std::string where = behind ? repeat_to_non_finite(step) : executor_->find_non_finite();
  if (!options_.link) return where;
  const auto all = options_.link->gather_texts(where);
  // A share of a sum does not tell whose part of it was bad.
  const auto of_sum = [&](const std::string& text) {
    return executor_->meets_each_micro_batch() && text.starts_with("the gradient");
  };
  for (size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty() && !of_sum(all[r])) return all[r] + " on rank " + std::to_string(r);
  for (const std::string& text : all)
    if (!text.empty()) return text;
  return "";
}

void Trainer::fail_non_finite(i64 step) {
  // Its update changed nothing, nor did those submitted behind it: the state is that after the step before.
  const bool behind = !pending_.empty();
  tell(Order::locate, behind, step);
  const std::string where = locate_non_finite(step, behind);
  std::string saved;
  if (saved_step_ != step - 1)
    saved = save() ? "; the state before it was saved" : "; the state before it could not be saved";
  throw EngineError("non_finite",
                    "step " + std::to_string(step) + ": the loss or a gradient is NaN or infinite" +
                        (where.empty() ? "" : ", first seen in " + where) + saved,
                    "Lower optimizer.lr, add warm-up steps, or look at the examples of this step.");
}

void Trainer::evaluate(const char* phase) {
  if (!eval_plan_) return;
  report(0);
  const bool measuring = backend_->enabled();
  backend_->enable(false);
  tell(Order::evaluate);
  double sum = 0;
  i64 targets = 0;
  for (const HeldOut& bin : evaluate_share()) {
    sum += bin.loss;
    targets += bin.targets;
  }
  if (targets == 0)
    throw EngineError("no_supervised_tokens",
                      options_.eval_plan.string() + ": the held-out examples have 0 supervised tokens");
  backend_->enable(measuring);
  const double loss = sum / static_cast<double>(targets);
  // The model as it came is no result of this run: what it scores before the first step competes with
  // nothing.
  const bool better = state_.step > 0 && (!state_.best_eval || loss < *state_.best_eval);
  const Json event = {{"event", "eval"},
                      {"step", state_.step},
                      {"loss", number_or_name(loss)},
                      {"perplexity", number_or_name(std::exp(loss))},
                      {"tokens", targets},
                      {"phase", phase},
                      {"best", better}};
  say(event);
  remember(state_.recent_evaluations, event, kRecentEvaluations);
  last_report_ = account_.spend("evaluation");
  // Before the checkpoint of the best step, which holds them then.
  answer_samples();
  last_report_ = account_.spend("samples");
  if (better) {
    state_.best_eval = loss;
    state_.best_step = state_.step;
    if (recipe_.checkpoint.best) save();
  }
}

void Trainer::answer_samples() {
  for (size_t n = 0; n < samples_.prompts.size(); ++n) {
    std::optional<Decoder> decoder;
    while_serving([&] { decoder.emplace(config_, executor_->parameters()); });
    const auto ids = generate(*decoder, samples_.prompts[n], samples_.sampling, [](i32) {});
    const Json event = {{"event", "sample"}, {"step", state_.step}, {"index", n}, {"ids", ids}};
    say(event);
    remember(state_.recent_samples, event, kRecentSamples);
  }
}

// Since this process began to train, pauses left out, by a clock that no one sets.
double Trainer::elapsed_ms() const { return milliseconds_since(started_) - paused_ms_; }

CheckpointSource Trainer::checkpoint_source() const {
  return {executor_->parameters(), files_, side_files_, config_.tied};
}

// A checkpoint that cannot be written ends no run: it is told of, and the last good one stays. Returns
// whether the state is on disk.
bool Trainer::save() {
  report(0);
  const bool measuring = backend_->enabled();
  backend_->enable(false);
  settle_operations();
  state_.account = account_.to_json(first_step_);
  state_.recent = recent_;
  const fs::path path = checkpoint_path(options_.out, state_.step);
  unsaved_.reset();
  try {
    if (saved_step_ != state_.step || !fs::exists(path))
      while_serving([&] { write_checkpoint(checkpoint_source(), state_, options_.out); });
    saved_step_ = state_.step;
    if (state_.best_step == state_.step) kept_best_ = state_.step;
    std::vector<fs::path> spare;
    if (recipe_.checkpoint.best && kept_best_ > 0) spare.push_back(checkpoint_path(options_.out, kept_best_));
    prune_checkpoints(options_.out, recipe_.checkpoint.keep, spare);
    say({{"event", "checkpoint"}, {"step", state_.step}, {"path", fs::absolute(path).string()}});
  } catch (const EngineError& error) {
    unsaved_ = error;
    say({{"event", "warning"},
         {"code", "checkpoint_skipped"},
         {"step", state_.step},
         {"message", error.what()},
         {"hint", error.hint()}});
  }
  backend_->enable(measuring);
  last_report_ = last_save_ = account_.spend("checkpoint");
  return !unsaved_;
}

bool Trainer::has_room() const {
  std::error_code error;
  const auto space = fs::space(options_.out, error);
  return !error && space.available >= checkpoint_bytes(checkpoint_source());
}

// What a run has learnt is worth nothing unsaved: where its end cannot be written it waits, until there is
// room again or somebody says so. A second stop gives it up. Throws what kept it from being written.
void Trainer::save_last(CommandReader& commands, const std::string& reason) {
  constexpr int kLookAgainMs = 5000;
  while (!save()) {
    // Weights that are NaN or infinite stay so: nothing is worth waiting for.
    if (reason == "parent-gone" || unsaved_->code() == "non_finite") throw *unsaved_;
    say({{"event", "paused"},
         {"step", state_.step},
         {"message",
          std::string(unsaved_->what()) +
              ". The run waits with what it has learnt: free some space, then let it go on; a stop ends "
              "it unsaved."}});
    const bool was_full = unsaved_->code() == "disk_full";
    for (bool again = false; !again;) {
      const auto command = commands.wait(kLookAgainMs);
      if (command == "stop" || command == "parent-gone") throw *unsaved_;
      again = command == "resume" || command == "checkpoint" || (!command && was_full && has_room());
    }
    say({{"event", "resumed"}, {"step", state_.step}});
  }
}

bool Trainer::checkpoint_due() const {
  const CheckpointRules& rules = recipe_.checkpoint;
  return (rules.every_steps > 0 && state_.step % rules.every_steps == 0) ||
         (rules.every_minutes > 0 && milliseconds_since(last_save_) >= rules.every_minutes * 60'000);
}

bool Trainer::profile_due() {
  const bool last = state_.step + 1 == total_steps_,
             asked = profile_next_ || recipe_.profile_at == state_.step + 1;
  profile_next_ = false;
  if (asked) return true;
  return recipe_.profile_at == 0 && !profiled_ && (steps_here_ + 1 == kProfiledStep || last);
}

// The host's record goes into the account; what it measures next stands alone.
void Trainer::settle_operations() {
  if (!backend_->fixed_shapes()) account_.add_operations(backend_->rows());
  backend_->clear();
}

// Of the steps before, with others in flight: one that is profiled is waited for, which leaves the device
// idle while the next is submitted. Single ones are seen late or early; the mean of several is right. 0: too
// few.
double Trainer::usual_step_ms() const {
  constexpr size_t kMost = 5, kFewest = 3;
  const size_t count = std::min(kMost, recent_.size());
  if (count < kFewest) return 0;
  double sum = 0;
  for (size_t n = 1; n <= count; ++n) sum += recent_[recent_.size() - n]["milliseconds"].get<double>();
  return sum / static_cast<double>(count);
}

void Trainer::take_profiled_step() {
  report(0);
  const double usual_ms = backend_->fixed_shapes() ? usual_step_ms() : 0;
  settle_operations();
  // On a device that runs behind, this captures each graph once more, with events in it: in a step before.
  backend_->profile(true);
  if (backend_->fixed_shapes() && state_.step + 1 < total_steps_) {
    take_step();
    report(0);
    backend_->profile(true);
  }
  measured_ = {};
  const i64 submitted = backend_->submissions();
  backend_->enable(true);
  backend_->trace(true);
  take_step();
  report(0);
  const i64 launches = backend_->submissions() - submitted;
  say(profile_report(launches, usual_ms > 0 ? usual_ms : measured_.ms));
  backend_->profile(false);
  backend_->trace(false);
  settle_operations();
  backend_->enable(!backend_->fixed_shapes());
  profiled_ = true;
  emit_account();
  last_report_ = account_.spend("profiling");
}

Json Trainer::profile_report(i64 launches, double step_ms) {
  const std::vector<OpTime> device = backend_->op_times();
  const bool behind = backend_->fixed_shapes();
  const std::vector<OpSpan> spans = behind ? backend_->op_spans() : backend_->spans();
  if (behind) {
    account_.add_operations(as_rows(device));
    account_.add_sample(measured_, span_ms(spans));
  }
  const DeviceRoof roof = backend_->roof();
  Json event = {{"event", "profile"},
                {"step", state_.step},
                {"stepsBefore", steps_here_ - 1},
                {"device", device_rows(device)},
                {"host", host_rows(backend_->rows(), behind ? DeviceRoof{} : roof)},
                {"source", backend_->profile_source()},
                {"timeline", timeline_json(spans)},
                {"milliseconds", step_ms},
                {"spanMs", span_ms(spans)},
                {"realTokens", measured_.real_tokens},
                {"positions", measured_.positions},
                {"headRows", measured_.head_rows},
                {"backend", backend_->name()},
                {"recompute", policy_name(executor_->options().policy)},
                {"memory", memory_report()}};
  if (behind) event["launches"] = launches;
  if (roof.flops_per_second > 0)
    event["roof"] = {{"flopsPerSecond", roof.flops_per_second}, {"bytesPerSecond", roof.bytes_per_second}};
  return event;
}

// The running sum so far. Small: some forty operations.
void Trainer::emit_account() {
  settle_operations();
  say(account_.to_json(first_step_));
  last_account_ = Clock::now();
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
  emit_account();
  say({{"event", "paused"}, {"step", state_.step}});
  const auto since = Clock::now();
  for (;;) {
    const auto command = commands.wait(60'000);
    if (!command) continue;
    if (*command == "stop") return "stopped";
    if (*command == "parent-gone") return "parent-gone";
    if (*command == "checkpoint") {
      account_.spend("paused");
      save();
    }
    if (*command == "resume") break;
  }
  paused_ms_ += milliseconds_since(since);
  say({{"event", "resumed"}, {"step", state_.step}});
  last_report_ = account_.spend("paused");
  tell_of_gaps();
  return std::nullopt;
}

void Trainer::run(CommandReader& commands) {
  const Clock::Watch watch;
  start();
  if (state_.step == 0) evaluate("before");
  std::string reason = "completed";
  backend_->enable(!backend_->fixed_shapes());
  while (state_.step < total_steps_) {
    if (const auto end = obey(commands)) {
      reason = *end;
      break;
    }
    if (options_.profile || profile_due())
      take_profiled_step();
    else
      take_step();
    if (milliseconds_since(last_account_) > kAccountEveryMs) emit_account();
    if (recipe_.evaluate_every > 0 && state_.step % recipe_.evaluate_every == 0 && state_.step < total_steps_)
      evaluate("during");
    if (checkpoint_due() && state_.step < total_steps_) save();
  }
  report(0);
  if (reason == "completed") evaluate("after");
  save_last(commands, reason);
  emit_account();
  tell(Order::end);
  say({{"event", "done"}, {"step", state_.step}, {"reason", reason}});
}

}  // namespace tessera
