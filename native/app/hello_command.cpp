#include "app/commands.h"
#include "core/error.h"
#include "core/json.h"
#include "model/device.h"
#include "protocol/hello.h"

namespace tessera {
namespace {

// Kernels for the dimensions that the published models share, by device.
Json all_kernels(const Json& devices) {
  constexpr GdnShape gdn{
      .key_heads = 16, .value_heads = 16, .key_dim = 128, .value_dim = 128, .conv_taps = 4};
  constexpr AttnShape attn{.heads = 8, .kv_heads = 2, .head_dim = 256, .rotary_dim = 64};
  Json all = Json::array();
  for (const Json& device : devices) {
    const auto name = device["device"].get<std::string>();
    try {
      for (Json kernel : kernels_json(make_backend(name)->kernels(gdn, attn))) {
        kernel["device"] = name;
        all.push_back(kernel);
      }
    } catch (const EngineError& error) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    }
  }
  return all;
}

}  // namespace

void add_hello(CLI::App& app, int* status) {
  CLI::App* command = app.add_subcommand("hello", "Devices, libraries and kernels");
  accept_json(command);
  command->callback([status] {
    Json hello = hello_event(Json::array());
    hello["kernels"] = all_kernels(hello["devices"]);
    print_json(hello);
    *status = 0;
  });
}

}  // namespace tessera
