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

// CLI11's own name the largest double there is, in 309 digits.
inline CLI::Validator number_check(const char* kind, const char* words, bool (*good)(double)) {
  return {[=](std::string& text) {
            double value = 0;
            return CLI::detail::lexical_cast(text, value) && good(value) ? std::string()
                                                                         : "'" + text + "' is " + words;
          },
          kind};
}
inline CLI::Validator above_zero() {
  return number_check("POSITIVE", "no number above 0", [](double v) { return v > 0; });
}
inline CLI::Validator at_least_zero() {
  return number_check("NONNEGATIVE", "no number of 0 or more", [](double v) { return v >= 0; });
}

// One JSON value on one line of stdout.
void print_json(const Json& value);

}  // namespace tessera
