#include <memory>

#include "app/commands.h"
#include "core/json.h"
#include "model/device.h"
#include "train/verify.h"

namespace tessera {
namespace {

struct Arguments {
  std::string fixture, device = "cpu", policy = "P1";
  int threads = 0;
  bool compaction = false;
};

}  // namespace

void add_verify(CLI::App& app, int* status) {
  auto args = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("verify", "Check the engine against a fixture of reference values");
  command
      ->add_option("--fixture", args->fixture,
                   "Folder with config, model, expected.safetensors and expected.json")
      ->required();
  command->add_option("--device", args->device, "cpu or cuda:N")->capture_default_str();
  command->add_option("--policy", args->policy, "Recomputation: full, P1, P2, P0")->capture_default_str();
  command->add_option("--threads", args->threads, "cpu threads; 0: all cores")->capture_default_str();
  command->add_flag("--compaction", args->compaction, "Let the head skip unsupervised rows");
  accept_json(command);
  command->callback([args, status] {
    const auto backend = make_backend(args->device, {.threads = args->threads, .profile = ""});
    const Json report = verify_fixture(
        *backend, args->fixture, {.policy = parse_policy(args->policy), .compaction = args->compaction});
    print_json(report);
    *status = report["ok"].get<bool>() ? 0 : 1;
  });
}

}  // namespace tessera
