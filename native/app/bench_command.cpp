#include <memory>

#include "app/commands.h"
#include "app/rank_process.h"
#include "core/json.h"
#include "model/device.h"
#include "train/bench.h"
#include "train/recipe.h"

namespace tessera {
namespace {

struct BenchArguments {
  BenchOptions bench;
  std::string device = "cpu", optimizer = "master32", gradients = "auto", compaction = "on",
              profile = "events";
  int threads = 0;
  i64 profile_steps = 5;
  bool eager = false, accept_slow = false;
  std::string precision = "auto", sharding = "optimizer";
  RankArguments ranks;
};

// Rank 0 prints the report.
void time_steps(const BenchArguments& args, const std::string& on) {
  BenchOptions bench = args.bench;
  const DeviceOptions plain{
      .threads = args.threads, .profile = "", .graphs = !args.eager, .precision = args.precision};
  const ModelConfig config = shape_config(bench.shape);
  bench.used_before = used_bytes(on);
  Json report;
  bool timed_by_operation = false;
  {
    const auto device = make_model_backend(on, config, args.accept_slow, plain);
    report = run_bench(*device, bench);
    timed_by_operation = !device->fixed_shapes();  // the cpu times its operations as it goes
  }
  if (!timed_by_operation && args.profile_steps > 0) {
    // Events around every operation cost time of their own: a run apart.
    bench.steps = args.profile_steps;
    bench.hash = false;
    bench.used_before = -1;
    const auto device =
        make_model_backend(on, config, args.accept_slow,
                           {.threads = args.threads, .profile = args.profile, .precision = args.precision});
    const Json profiled = run_bench(*device, bench);
    report["ops"] = profiled["ops"];
    report["profileSource"] = profiled["profileSource"];
  }
  if (bench.rank.rank == 0) print_json(report);
}

}  // namespace

void add_bench(CLI::App& app, int* status) {
  auto args = std::make_shared<BenchArguments>();
  BenchOptions& b = args->bench;
  CLI::App* command =
      app.add_subcommand("bench", "Time whole training steps with random weights in a published shape");
  command->add_option("--shape", b.shape, "0.8b, 2b, 4b, 9b, 27b, 27b-8l or tiny")->required();
  command->add_option("--device", args->device, "cpu, cuda:N, or several: cuda:0,1, cpu:0,1")
      ->capture_default_str();
  command->add_option("--steps", b.steps, "Steps measured")->check(above_zero())->capture_default_str();
  command->add_option("--warmup", b.warmup, "Steps before")->check(at_least_zero())->capture_default_str();
  command->add_option("--budget", b.budget, "Positions of a micro-batch")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--micro-batches", b.micro_batches, "Micro-batches of a step")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--lengths", b.lengths, "Example lengths, one a line; absent: sequences of 1024");
  command->add_option("--strategy", b.strategy, "best-fit, in-order or padded")->capture_default_str();
  command->add_option("--policy", b.policy, "Recomputation: full, P1, P2, P0 or auto")->capture_default_str();
  command->add_option("--optimizer", args->optimizer, "master32 or bf16sr")
      ->check(CLI::IsMember({"master32", "bf16sr"}))
      ->capture_default_str();
  command->add_option("--gradients", args->gradients, "auto, fp32 or bf16")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}))
      ->capture_default_str();
  command->add_option("--sharding", args->sharding, "Of several ranks: optimizer, gradients or weights")
      ->check(CLI::IsMember({"optimizer", "gradients", "weights"}))
      ->capture_default_str();
  command->add_option("--clip", b.clip, "Global norm; 0: none")->capture_default_str();
  command->add_option("--compaction", args->compaction, "Head over supervised rows only")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command->add_option("--supervised", b.supervised, "Share of positions with a target")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--head-rows", b.head_rows, "Rows of logits at a time; 0: all")
      ->check(at_least_zero())
      ->capture_default_str();
  command->add_option("--profile", args->profile, "cuda: events or cupti")
      ->check(CLI::IsMember({"events", "cupti"}))
      ->capture_default_str();
  command
      ->add_option("--profile-steps", args->profile_steps, "cuda: further steps, timed by operation; 0: none")
      ->check(at_least_zero())
      ->capture_default_str();
  command->add_flag("--hash", b.hash, "Hash of the weights at the end");
  command->add_flag("--eager", args->eager, "cuda: submit operation by operation instead of graphs");
  command->add_option("--precision", args->precision, "auto, fp32 or bf16")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}))
      ->capture_default_str();
  command->add_flag("--accept-slow", args->accept_slow, "cuda: measure with reference kernels where needed");
  command->add_option("--threads", args->threads, "cpu threads; 0: all cores");
  accept_json(command);
  add_rank_options(command, &args->ranks);
  command->callback([args, status] {
    BenchOptions& bench = args->bench;
    bench.optimizer = args->optimizer == "bf16sr" ? OptimizerMode::bf16sr : OptimizerMode::master32;
    bench.gradients = *parse_gradients(args->gradients);
    bench.sharding = **parse_sharding(args->sharding);
    bench.compaction = args->compaction == "on";
    const RankPlace place = settle_ranks(args->device, args->ranks);
    bench.rank = place.rank;
    if (place.rank.world == 1)
      time_steps(*args, place.device());
    else
      as_rank(
          place, args->ranks, args->threads,
          [](const Json& error) {
            print_json({{"error", error}});
          },
          [&](RankLink& link, int threads) {
            bench.link = &link;
            args->threads = threads;
            time_steps(*args, place.device());
          });
    *status = 0;
  });
}

}  // namespace tessera
