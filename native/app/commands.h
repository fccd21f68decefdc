// The subcommands of tessera-engine. Each adds itself to the parser and sets *status when it has run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "core/json_fwd.h"

namespace tessera {

using AddCommand = std::function<void(CLI::App&, int* status)>;
std::vector<AddCommand> command_list();

void add_bench(CLI::App& app, int* status);
void add_generate(CLI::App& app, int* status);
void add_hello(CLI::App& app, int* status);
void add_init(CLI::App& app, int* status);
void add_monitor(CLI::App& app, int* status);
void add_train(CLI::App& app, int* status);
void add_verify(CLI::App& app, int* status);

// --json is accepted everywhere; the engine speaks nothing else.
inline void accept_json(CLI::App* command) {
  command->add_flag_callback(
      "--json", [] {}, "JSON on stdout (always on)");
}

// One JSON value on one line of stdout.
void print_json(const Json& value);

}  // namespace tessera
