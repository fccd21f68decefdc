// A training run: steps over a plan's bins, evaluation, checkpoints, and the protocol's events and commands.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "model/decoder.h"
#include "model/executor.h"
#include "model/profiled_backend.h"
#include "protocol/channel.h"
#include "train/account.h"
#include "train/checkpoint.h"
#include "train/recipe.h"
#include "train/token_cache.h"

namespace tessera {

struct TrainOptions {
  fs::path recipe, cache, plan, model, out;
  fs::path eval_cache, eval_plan;  // empty: no held-out loss
  fs::path resume;                 // empty: from the beginning
  fs::path samples;                // prompts to answer after each evaluation; empty: none
  std::string device;              // empty: the recipe's
  int threads = 0;
  bool profile = false;   // of every step
  bool forecast = false;  // check everything, report the memory, train nothing
};

class Trainer {
 public:
  // Reads and checks everything; allocates nothing. Throws EngineError of the reader that refuses.
  explicit Trainer(const TrainOptions& options);
  // Trains to the end, a stop or a failure, emitting events. Throws EngineError where the run fails.
  void run(CommandReader& commands);
  Json hello() const;     // the first event
  Json forecast() const;  // memory by part in bytes, steps
  struct MeasureOptions {
    double seconds = 3;  // begins no step after them, nor one that would likely end past twice as much
    i64 passes = 0;      // rounds over the plan at most; 0: as many as there is time for
  };
  // Takes steps over the plan, round after round, to learn what they cost: nothing is learned or saved.
  // {device, fixedShapes, recompute, kernels, steps: [a step event's fields]}, warm-up steps left out.
  // Throws EngineError of allocation, and non_finite.
  Json measure(const MeasureOptions& how);

 private:
  // The micro-batches of one step, with the memory that their sequences view.
  struct MicroBatch {
    std::vector<i32> ids, labels;
    std::vector<Sequence> sequences;
    i64 targets = 0, tokens = 0, positions = 0;
  };
  struct Pending {
    int ticket;
    i64 step;
    double learning_rate;
    i64 targets, tokens, positions;
    i64 computed, head_rows;  // positions and logit rows on the device
    double flops;
    bool cold;  // something ran for the first time
  };
  // What is answered in the run's own words as it learns.
  struct Samples {
    std::vector<std::vector<i32>> prompts;
    SamplingOptions sampling;
  };

  static Samples read_samples(const fs::path& file);
  void check_model_and_plan() const;
  BatchLayout capacity() const;
  std::unique_ptr<Executor> plan_executor(RecomputePolicy policy, bool keep_all = true) const;
  std::unique_ptr<Executor> choose_executor() const;
  Json memory_report() const;
  Json number_types() const;
  void refuse_empty_steps() const;
  void start();
  void resume_from(const fs::path& checkpoint);

  i64 bins_of_step(i64 step,
                   i64 index) const;  // bin number of the step's index-th micro-batch; -1 past the end
  MicroBatch micro_batch(const TokenCache& cache, const Plan& plan, i64 bin) const;
  void take_step();
  void report(size_t most_pending);
  void fail_non_finite(i64 step);
  std::string repeat_to_non_finite(i64 step);
  void evaluate(const char* phase);
  void answer_samples();
  double elapsed_ms() const;
  CheckpointSource checkpoint_source() const;
  bool save();
  bool has_room() const;
  void save_last(CommandReader& commands, const std::string& reason);
  bool checkpoint_due() const;
  void tell_of_gaps();
  void warm_up();
  bool profile_due();
  void take_profiled_step();
  double usual_step_ms() const;
  Json profile_report(i64 launches, double step_ms);
  void settle_operations();
  void emit_account();
  std::optional<std::string> obey(CommandReader& commands);
  std::optional<std::string> pause(CommandReader& commands);

  const TrainOptions options_;
  const Recipe recipe_;
  const TokenCache cache_;
  const Plan plan_;
  std::optional<TokenCache> eval_cache_;
  std::optional<Plan> eval_plan_;
  const Samples samples_;
  const ModelConfig config_;
  const SafetensorsFolder files_;
  const std::vector<SideFile> side_files_;
  const std::string prefix_;
  const Layout layout_;
  std::unique_ptr<Backend> device_;
  std::unique_ptr<ProfiledBackend> backend_;
  size_t available_ = 0;  // bytes that this run may take, before it took any; 0: unknown
  i64 total_steps_ = 0;
  std::unique_ptr<Executor> executor_;

  RunState state_;
  std::deque<Pending> pending_;
  std::deque<Json> recent_;  // step events, the newest last
  i64 saved_step_ = -1;
  i64 kept_best_ = 0;                   // the best step that was saved; 0: none
  std::optional<EngineError> unsaved_;  // why the newest checkpoint was skipped
  Account account_;
  Work measured_;                      // the steps of the profile being taken
  std::optional<Json> only_measured_;  // the step events of measure(), which trains nothing
  i64 first_step_ = 0, steps_here_ = 0;
  bool profile_next_ = false, profiled_ = false;
  Account::Clock::time_point started_, last_report_, last_save_, last_account_;
  Account::Clock::duration told_gap_{0};
  double paused_ms_ = 0;
};

}  // namespace tessera
