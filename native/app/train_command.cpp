#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/rank_process.h"
#include "core/json.h"
#include "protocol/channel.h"
#include "train/trainer.h"

namespace tessera {
namespace {

enum class TrainJob : u8 { run, measure, forecast };

struct TrainArguments {
  TrainOptions train;
  bool attached = false;
  Trainer::MeasureOptions measure;
  TrainJob job = TrainJob::run;
  RankArguments ranks;
};

// The last word of a run, on the channel that its caller reads.
void tell_failure(TrainJob job, const Json& error) {
  Json event = {{"event", "error"}};
  event.update(error);
  if (job == TrainJob::run)
    emit(event);
  else
    print_json({{"error", error}});
  std::fprintf(stderr, "tessera-engine: %s\n", error.value("message", "").c_str());
}

void use_trainer(const TrainArguments& a, Trainer& trainer) {
  if (a.train.rank.rank > 0) return trainer.follow(a.job == TrainJob::measure);
  if (a.job == TrainJob::forecast) return print_json(trainer.forecast());
  if (a.job == TrainJob::measure) return print_json(trainer.measure(a.measure));
  CommandReader commands(a.attached);
  emit(trainer.hello());
  trainer.run(commands);
}

void do_job(const TrainArguments& a) {
  auto trainer = std::make_unique<Trainer>(a.train);
  try {
    use_trainer(a, *trainer);
  } catch (...) {
    // Its destructors would wait for a device that may wait for another rank; the process ends in any case.
    if (a.train.link) (void)trainer.release();
    throw;
  }
}

void do_job_on_devices(TrainArguments a) {
  const RankPlace place =
      settle_ranks(a.train.device.empty() ? read_recipe(a.train.recipe).device : a.train.device, a.ranks);
  a.train.rank = place.rank;
  a.train.rank_devices = place.devices;
  if (place.rank.world > 1) a.train.device = place.device();
  if (place.rank.world == 1 || a.job == TrainJob::forecast) return do_job(a);
  as_rank(
      place, a.ranks, a.train.threads, [&](const Json& error) { tell_failure(a.job, error); },
      [&](RankLink& link, int threads) {
        a.train.link = &link;
        a.train.threads = threads;
        do_job(a);
      });
}

}  // namespace

void add_train(CLI::App& app, int* status) {
  auto args = std::make_shared<TrainArguments>();
  TrainOptions& o = args->train;
  CLI::App* command = app.add_subcommand(
      "train", "Train a model: events on stdout, commands on stdin, one JSON object a line");
  command->add_option("--recipe", o.recipe, "The resolved recipe, JSON")->required();
  command->add_option("--cache", o.cache, "Folder of tokenised shards")->required();
  command->add_option("--plan", o.plan, "The packed bins")->required();
  command->add_option("--model", o.model, "Hugging Face model folder")->required();
  command->add_option("--out", o.out, "Folder for the run's checkpoints")->required();
  command->add_option("--eval-cache", o.eval_cache, "Held-out shards; the training cache where absent");
  command->add_option("--eval-plan", o.eval_plan, "Held-out bins");
  command->add_option("--resume", o.resume, "Checkpoint folder to go on from");
  command->add_option("--samples", o.samples, "Prompts to answer after each evaluation, as token ids");
  command->add_option("--device", o.device, "Instead of the recipe's");
  command->add_option("--threads", o.threads, "cpu threads; 0: all cores");
  command->add_flag("--profile", o.profile, "Profile every step");
  command->add_flag("--forecast", o.forecast, "Check everything and report steps and memory; train nothing");
  command
      ->add_option("--measure", args->measure.seconds,
                   "Time steps over the plan for about so many seconds; train and save nothing")
      ->check(above_zero());
  command->add_option("--passes", args->measure.passes, "With --measure: rounds over the plan at most")
      ->check(at_least_zero());
  command->add_flag("--attached", args->attached,
                    "The end of stdin means that the parent is gone: save and exit");
  add_rank_options(command, &args->ranks);
  accept_json(command);
  command->callback([args, command, status] {
    *status = 1;
    TrainArguments& a = *args;
    if (command->count("--measure") > 0) a.job = TrainJob::measure;
    if (a.train.forecast) a.job = TrainJob::forecast;
    try {
      do_job_on_devices(a);
      *status = 0;
    } catch (const EngineError& error) {
      if (a.job != TrainJob::run) throw;
      tell_failure(a.job, error_json(error));
    } catch (const std::exception& error) {
      if (a.job != TrainJob::run) throw;
      tell_failure(a.job, {{"code", "internal_error"}, {"message", error.what()}});
    }
  });
}

}  // namespace tessera
