#include <iostream>
#include <iterator>
#include <memory>

#include "app/commands.h"
#include "core/error.h"
#include "core/json.h"
#include "model/decoder.h"
#include "protocol/channel.h"

namespace tessera {
namespace {

std::vector<i32> read_prompt(const std::string& file) {
  const std::string where = file.empty() ? "stdin" : file;
  const std::string text =
      file.empty() ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_file(file);
  const Json json = Json::parse(text, nullptr, false);
  return require_field<std::vector<i32>>(json, "ids", where, "invalid_prompt");
}

}  // namespace

void add_generate(CLI::App& app, int* status) {
  struct Arguments {
    std::string model, ids_in;
    SamplingOptions sampling;
    bool stream = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("generate", "Continue token ids: {\"ids\":[…]} on stdin, the new ones on stdout");
  command->add_option("--model", args->model, "Model or checkpoint folder")->required();
  command->add_option("--ids-in", args->ids_in, "File with {\"ids\":[…]} instead of stdin");
  command->add_option("--tokens", args->sampling.tokens, "New tokens at most")
      ->check(at_least_zero())
      ->capture_default_str();
  command->add_option("--temperature", args->sampling.temperature, "0: the likeliest token")
      ->check(at_least_zero())
      ->capture_default_str();
  command->add_option("--seed", args->sampling.seed, "Seed of the drawing")->capture_default_str();
  command->add_option("--stop", args->sampling.stop, "Ids that end the answer")->delimiter(',');
  command->add_flag("--stream", args->stream, "One {\"event\":\"token\",\"id\":…} a token before the result");
  accept_json(command);
  command->callback([args, status] {
    const auto prompt = read_prompt(args->ids_in);
    Decoder decoder(args->model);
    const auto answer = generate(decoder, prompt, args->sampling, [&](i32 id) {
      if (args->stream) emit({{"event", "token"}, {"id", id}});
    });
    print_json({{"ids", answer}});
    *status = 0;
  });
}

}  // namespace tessera
