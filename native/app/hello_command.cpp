#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/json.h"
#include "model/device.h"
#include "protocol/hello.h"
#include "train/bench.h"

namespace tessera {
namespace {

// Kernels by device, for a model's sizes. A device whose fast kernels do not serve them says why in
// `unserved`.
Json all_kernels(Json* devices, const ModelConfig& config) {
  Json all = Json::array();
  for (Json& device : *devices) {
    const auto name = device["device"].get<std::string>();
    try {
      const auto backend = make_backend(name);
      if (const std::string why = why_unserved(*backend, config); !why.empty()) device["unserved"] = why;
      for (Json kernel : kernels_json(backend->kernels(config.gdn, config.attn))) {
        kernel["device"] = name;
        all.push_back(kernel);
      }
    } catch (const EngineError& error) {
      device["unserved"] = error.what();
      std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    }
  }
  return all;
}

// Those that the published models share, where no model is named or its configuration cannot be read: whoever
// trains it is told of that.
ModelConfig sizes_of(const std::string& model) {
  if (model.empty()) return shape_config("0.8b");
  try {
    return read_config(model);
  } catch (const EngineError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return shape_config("0.8b");
  }
}

}  // namespace

void add_hello(CLI::App& app, int* status) {
  auto model = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("hello", "Devices, libraries and kernels");
  command->add_option("--model", *model,
                      "Model folder: which kernels serve it, and what keeps a device from it");
  accept_json(command);
  command->callback([model, status] {
    Json hello = hello_event(Json::array());
    hello["kernels"] = all_kernels(&hello["devices"], sizes_of(*model));
    print_json(hello);
    *status = 0;
  });
}

}  // namespace tessera
