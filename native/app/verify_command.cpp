#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/json.h"
#include "model/device.h"
#include "train/bench.h"
#include "train/isolation.h"
#include "train/numerics.h"
#include "train/verify.h"

namespace tessera {
namespace {

struct Arguments {
  std::string fixture, device = "cpu", policy = "P1", precision = "auto";
  int threads = 0;
  std::string kernels = "fast";
  bool compaction = false, isolation = false, numerics = false, roof = false, leak = false,
       accept_slow = false;
  IsolationOptions proof;
};

// Without a model: the sizes that the published ones share.
ModelConfig sizes_of(const Arguments& a) {
  return a.proof.model.empty() ? shape_config("0.8b") : read_config(a.proof.model);
}

Json verify(Backend& backend, const ModelConfig& config, Arguments& a) {
  Json report = {{"ok", true}};
  const auto add = [&](const char* name, Json part) {
    report["ok"] = report["ok"].get<bool>() && part["ok"].get<bool>();
    report[name] = std::move(part);
  };
  if (a.numerics) add("numerics", test_numerics(backend, config));
  if (a.roof) {
    const DeviceRoof roof = backend.roof();
    if (roof.bytes_per_second > 0)
      report["roof"] = {{"flopsPerSecond", roof.flops_per_second}, {"bytesPerSecond", roof.bytes_per_second}};
  }
  if (a.isolation) {
    a.proof.policy = parse_policy(a.policy);
    if (a.leak) a.proof.arrangement = joined_at(0);
    add("isolation", prove_isolation(backend, a.proof));
  }
  return report;
}

}  // namespace

void add_verify(CLI::App& app, int* status) {
  auto args = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "verify", "Check the engine: against a fixture, or with a model on this device before it trains");
  command->add_option("--fixture", args->fixture,
                      "Folder with config, model, expected.safetensors and expected.json");
  command->add_flag("--numerics", args->numerics,
                    "Every kernel against fp64, in the sizes of --model or those of the published models");
  command->add_flag("--roof", args->roof, "Measure matrix rate and copy bandwidth too");
  command->add_flag("--isolation", args->isolation,
                    "Packed examples of --cache, by --plan, must not see each other");
  command->add_option("--model", args->proof.model, "Model folder");
  command->add_option("--cache", args->proof.cache, "Folder of tokenised shards");
  command->add_option("--plan", args->proof.plan, "The packed bins");
  command->add_option("--positions", args->proof.positions, "Positions of the pack at most; 0: a few seconds")
      ->check(at_least_zero());
  command->add_flag("--leak", args->leak, "Lose a boundary of the pack: the proof must fail");
  command->add_option("--device", args->device, "cpu or cuda:N")->capture_default_str();
  command->add_option("--policy", args->policy, "Recomputation: full, P1, P2, P0")->capture_default_str();
  command->add_option("--threads", args->threads, "cpu threads; 0: all cores")->capture_default_str();
  command->add_flag("--compaction", args->compaction, "Let the head skip unsupervised rows");
  command
      ->add_option("--precision", args->precision,
                   "fp32: the mathematics; bf16: the arithmetic of training; auto: both on cuda, fp32 on cpu")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}))
      ->capture_default_str();
  command
      ->add_option("--kernels", args->kernels,
                   "fast; portable: in bf16 those of every GPU; with a model reference too")
      ->check(CLI::IsMember({"fast", "portable", "reference"}))
      ->capture_default_str();
  command->add_flag("--accept-slow", args->accept_slow,
                    "Check bf16 by reference kernels where the fast ones do not serve the model");
  accept_json(command);
  command->callback([args, status] {
    const Arguments& a = *args;
    if (a.fixture.empty() == !(a.isolation || a.numerics))
      throw EngineError("wrong_call", "verify takes --fixture, or --isolation and --numerics with a model",
                        "See tessera-engine verify --help.");
    if (a.isolation && (a.proof.model.empty() || a.proof.cache.empty() || a.proof.plan.empty()))
      throw EngineError("wrong_call", "--isolation needs --model, --cache and --plan",
                        "Name the model folder, the token cache and a plan of it.");
    const auto check_model = [&] {
      const ModelConfig config = sizes_of(a);
      const auto backend =
          make_model_backend(a.device, config, a.accept_slow,
                             {.threads = a.threads,
                              .profile = "",
                              .reference = a.kernels == "reference" ? "asked for by --kernels reference" : "",
                              .portable = a.kernels == "portable",
                              .precision = a.device == "cpu" ? "auto" : a.precision});
      return verify(*backend, config, *args);
    };
    const Json report = a.fixture.empty()
                            ? check_model()
                            : verify_device(a.device, a.threads, a.precision, a.accept_slow, a.fixture,
                                            {.policy = parse_policy(a.policy),
                                             .compaction = a.compaction,
                                             .portable = a.kernels == "portable"});
    print_json(report);
    *status = report["ok"].get<bool>() ? 0 : 1;
  });
}

}  // namespace tessera
