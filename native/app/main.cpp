// tessera-engine: one subcommand a file, errors as JSON, exit 0 on success, 1 on failure, 2 on a wrong call.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>

#include "app/commands.h"
#include "core/error.h"
#include "core/json.h"
#include "core/patient_threads.h"

namespace {

int fail(const std::string& code, const std::string& message, const std::string& hint, int status) {
  nlohmann::json error = {{"code", code}, {"message", message}};
  if (!hint.empty()) error["hint"] = hint;
  std::cout << nlohmann::json{{"error", error}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
            << std::endl;
  std::fprintf(stderr, "tessera-engine: %s%s%s\n", message.c_str(), hint.empty() ? "" : "\n  ", hint.c_str());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  tessera::use_patient_threads(argv);
  CLI::App app{"Tessera's training engine", "tessera-engine"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  int status = 0;
  for (const auto& add : tessera::command_list()) add(app, &status);
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail("wrong_call", error.what(), "See tessera-engine --help.", 2);
  } catch (const tessera::EngineError& error) {
    return fail(error.code(), error.what(), error.hint(), 1);
  } catch (const std::bad_alloc&) {
    return fail("out_of_memory", "the machine's memory is exhausted",
                "Lower packing.budget or close other programs.", 1);
  } catch (const std::exception& error) {
    return fail("internal_error", error.what(), "", 1);
  }
}
