// A training run: steps over a plan's bins, evaluation, checkpoints, and the protocol's events and commands.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "model/decoder.h"
#include "model/executor.h"
#include "model/profiled_backend.h"
#include "protocol/channel.h"
#include "ranks/rank_link.h"
#include "train/account.h"
#include "train/checkpoint.h"
#include "train/plan_choice.h"
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
  // One process of several: rank 0 leads, and alone speaks. Without a link such a run can only be forecast.
  RankOf rank{};
  RankLink* link = nullptr;
  std::vector<std::string> rank_devices{};  // of all ranks, for the record
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
  // What a rank other than 0 does instead: what that one says, to the end. `measures`: it measures.
  void follow(bool measures);

 private:
  // The micro-batches of one step, with the memory that their sequences view.
  struct MicroBatch {
    std::vector<i32> ids, labels;
    std::vector<Sequence> sequences;
    i64 targets = 0, tokens = 0, positions = 0;
  };
  // What a step is over all ranks.
  struct StepSize {
    i64 targets = 0, tokens = 0, positions = 0;
    i64 computed = 0, head_rows = 0;  // positions and logit rows on the devices
    double flops = 0;
  };
  struct Pending {
    int ticket;
    i64 step;
    double learning_rate;
    StepSize size;
    bool cold;  // something ran for the first time
  };
  // What is answered in the run's own words as it learns.
  struct Samples {
    std::vector<std::vector<i32>> prompts;
    SamplingOptions sampling;
  };

  // What rank 0 tells the others to do next.
  enum class Order : u8 { step, evaluate, serve, locate, end };
  struct Telling {
    Order order;
    bool flag;  // step: only measured; locate: further steps are behind it
    i64 step;   // steps taken; locate: the step that was refused
  };
  // A rank's share of the held-out bins.
  struct HeldOut {
    double loss;
    i64 targets;
  };

  static Samples read_samples(const fs::path& file);
  bool leads() const { return options_.rank.rank == 0; }
  void tell(Order order, bool flag = false, i64 step = 0) const;
  void serve();
  void while_serving(const std::function<void()>& work);
  std::unique_ptr<Collectives> join_ranks();
  void agree_on_accumulation();
  i64 steps_per_pass() const { return (plan_.num_bins() + bins_per_step_ - 1) / bins_per_step_; }
  StepSize size_of_step(i64 step, const std::vector<MicroBatch>& own) const;
  std::vector<HeldOut> evaluate_share();
  std::string locate_non_finite(i64 step, bool behind);
  void check_model_and_plan() const;
  BatchLayout capacity() const;
  PlanWishes wishes() const;
  std::unique_ptr<Executor> plan_executor(const PlanChoice& choice, RankOf rank) const;
  std::unique_ptr<Executor> plan_executor(const PlanChoice& choice) const {
    return plan_executor(choice, options_.rank);
  }
  std::unique_ptr<Executor> choose_executor() const;
  std::unique_ptr<Executor> choose_executor_together() const;
  i64 rounds_of_step(i64 step) const;
  Json memory_report() const;
  Json number_types() const;
  void add_ranks(Json& hello) const;
  void refuse_empty_steps() const;
  void start();
  void resume_from(const fs::path& checkpoint);

  // Bin number of this rank's index-th micro-batch in a step; -1 past the end.
  i64 bins_of_step(i64 step, i64 index) const;
  MicroBatch micro_batch(const TokenCache& cache, const Plan& plan, i64 bin) const;
  void take_step();
  void report(size_t most_pending);
  void fail_non_finite(i64 step);
  std::string repeat_to_non_finite(i64 step);
  void evaluate(const char* phase);
  void answer_samples();
  double elapsed_ms() const;
  void say(const Json& event) const;
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
  std::unique_ptr<Collectives> collectives_;  // of several ranks
  std::vector<std::string> rank_processes_;   // their ids, by rank
  // Checkpoint to go on from, and why not the one that was asked for.
  fs::path resume_;
  std::string resume_warning_;
  i64 bins_per_step_ = 1, accumulation_ = 1;  // of all ranks; of each
  size_t available_ = 0;                      // bytes that this run may take, before it took any; 0: unknown
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
