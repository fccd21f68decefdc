#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/json.h"
#include "model/init.h"

namespace tessera {

void add_init(CLI::App& app, int* status) {
  struct Arguments {
    std::string config, out, dtype = "BF16";
    std::uint64_t seed = 0;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("init", "Write a randomly initialised model");
  command->add_option("--config", args->config, "config.json of the model to make")->required();
  command->add_option("--seed", args->seed, "Seed of the weights")->capture_default_str();
  command->add_option("--out", args->out, "Model folder to write")->required();
  command->add_option("--dtype", args->dtype, "BF16 or F32")
      ->check(CLI::IsMember({"BF16", "F32"}))
      ->capture_default_str();
  accept_json(command);
  command->callback([args, status] {
    write_initial_model(args->config, args->seed, *dtype_from_safetensors(args->dtype), args->out);
    print_json({{"ok", true}, {"folder", args->out}});
    *status = 0;
  });
}

}  // namespace tessera
