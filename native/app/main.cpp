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

// What the command line alone gets wrong, wherever it was found out.
bool names_wrong_call(const std::string& code) {
  return code == "wrong_call" || code == "invalid_device" || code == "invalid_shape" ||
         code == "invalid_strategy";
}

/** `There are: bench, generate, …`, or nothing where one of them is called `name`. */
std::string known_instead_of(const CLI::App& app, const std::string& name) {
  std::string names = "There are:";
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == name) return "";
    names += (names.back() == ':' ? " " : ", ") + each->get_name();
  }
  return names + ".";
}

}  // namespace

int main(int argc, char** argv) {
  tessera::use_patient_threads(argv);
  CLI::App app{"Tessera's training engine", "tessera-engine"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  int status = 0;
  for (const auto& add : tessera::command_list()) add(app, &status);
  // CLI11 would only say that one is missing.
  const std::string name = argc < 2 ? "" : argv[1];
  const std::string known = name[0] == '-' ? "" : known_instead_of(app, name);
  if (!known.empty())
    return fail("wrong_call",
                name.empty() ? "no subcommand is given" : "there is no subcommand '" + name + "'", known, 2);
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail("wrong_call", error.what(), "See tessera-engine --help.", 2);
  } catch (const tessera::EngineError& error) {
    return fail(error.code(), error.what(), error.hint(), names_wrong_call(error.code()) ? 2 : 1);
  } catch (const std::bad_alloc&) {
    return fail("out_of_memory", "the machine's memory is exhausted",
                "Lower packing.budget or close other programs.", 1);
  } catch (const std::exception& error) {
    return fail("internal_error", error.what(), "", 1);
  }
}
