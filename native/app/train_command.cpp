#include <memory>

#include "app/commands.h"
#include "core/json.h"
#include "protocol/channel.h"
#include "train/trainer.h"

namespace tessera {

void add_train(CLI::App& app, int* status) {
  struct Arguments {
    TrainOptions train;
    bool attached = false;
    Trainer::MeasureOptions measure;
  };
  auto args = std::make_shared<Arguments>();
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
  accept_json(command);
  command->callback([args, command, status] {
    *status = 1;
    const bool measures = command->count("--measure") > 0;
    try {
      if (args->train.forecast) {
        print_json(Trainer(args->train).forecast());
      } else if (measures) {
        print_json(Trainer(args->train).measure(args->measure));
      } else {
        CommandReader commands(args->attached);
        Trainer trainer(args->train);
        emit(trainer.hello());
        trainer.run(commands);
      }
      *status = 0;
    } catch (const EngineError& error) {
      if (args->train.forecast || measures) throw;
      emit({{"event", "error"}, {"code", error.code()}, {"message", error.what()}, {"hint", error.hint()}});
      std::fprintf(stderr, "tessera-engine: %s\n", error.what());
    } catch (const std::exception& error) {
      if (args->train.forecast || measures) throw;
      emit({{"event", "error"}, {"code", "internal_error"}, {"message", error.what()}});
      std::fprintf(stderr, "tessera-engine: %s\n", error.what());
    }
  });
}

}  // namespace tessera
