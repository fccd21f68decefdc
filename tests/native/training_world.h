// What a run needs, small and made up: a model, a token cache and a plan.
#pragma once

#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "support.h"
#include "train/trainer.h"

namespace tessera::testing {

// A folder with a small model, a cache of pseudo-random chats and a plan of one example a bin.
class World {
 public:
  explicit World(const std::vector<i64>& lengths = {30, 12, 25, 40, 9, 17, 33, 21}) : data(lengths) {
    write_small_model(folder / "model", model_config(), DType::bf16);
    fs::create_directory(folder / "cache");
    std::vector<i32> ids;
    std::vector<u8> supervised;
    std::vector<i64> offsets = {0};
    for (size_t n = 0; n < data.ids.size(); ++n) {
      ids.insert(ids.end(), data.ids[n].begin(), data.ids[n].end());
      for (size_t t = 0; t < data.ids[n].size(); ++t)
        supervised.push_back(t > 0 && data.labels[n][t - 1] != kIgnoreLabel);
      offsets.push_back(static_cast<i64>(ids.size()));
    }
    const auto N = static_cast<i64>(ids.size());
    write_safetensors(
        folder / "cache" / "shard-00000.safetensors",
        {tensor_source("input_ids", DType::i32, {N}, ids.data()),
         tensor_source("supervised", DType::u8, {N}, supervised.data()),
         tensor_source("offsets", DType::i64, {static_cast<i64>(offsets.size())}, offsets.data())},
        "");
    std::vector<i32> example, length;
    std::vector<i64> bins = {0};
    for (size_t n = 0; n < lengths.size(); ++n) {
      example.push_back(static_cast<i32>(n));
      length.push_back(static_cast<i32>(lengths[n]));
      bins.push_back(static_cast<i64>(n) + 1);
    }
    plan(example, std::vector<i64>(example.size(), 0), length, bins);
    recipe = {{"steps", 8},
              {"device", "cpu"},
              {"seed", 3},
              {"packing", {{"budget", 64}}},
              {"optimizer", {{"lr", 3e-3}, {"weightDecay", 0.1}}},
              {"schedule", {{"kind", "cosine"}, {"warmupSteps", 2}}},
              {"checkpoint", {{"everySteps", 4}, {"keep", 9}}}};
  }
  static Json model_config() { return small_config(); }
  void plan(const std::vector<i32>& example, const std::vector<i64>& start, const std::vector<i32>& length,
            const std::vector<i64>& bins) {
    const auto count = static_cast<i64>(example.size());
    write_safetensors(
        folder / "plan.safetensors",
        {tensor_source("example", DType::i32, {count}, example.data()),
         tensor_source("start", DType::i64, {count}, start.data()),
         tensor_source("length", DType::i32, {count}, length.data()),
         tensor_source("bin_offsets", DType::i64, {static_cast<i64>(bins.size())}, bins.data())},
        "");
  }
  // Runs to the end and returns the events.
  std::vector<Json> train(
      const std::string& out, const fs::path& resume = {}, bool held_out = false,
      const std::function<void()>& once_loaded = [] {}) {
    write_file(folder / "recipe.json", recipe.dump());
    TrainOptions o{.recipe = folder / "recipe.json",
                   .cache = folder / "cache",
                   .plan = folder / "plan.safetensors",
                   .model = folder / "model",
                   .out = folder / out,
                   .resume = resume};
    if (held_out) o.eval_plan = o.plan;
    std::ostringstream captured;
    std::streambuf* stdout_buffer = std::cout.rdbuf(captured.rdbuf());
    try {
      CommandReader commands(false);
      Trainer trainer(o);
      once_loaded();
      trainer.run(commands);
    } catch (...) {
      std::cout.rdbuf(stdout_buffer);
      throw;
    }
    std::cout.rdbuf(stdout_buffer);
    std::vector<Json> events;
    std::istringstream lines(captured.str());
    for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
    return events;
  }
  static std::vector<double> losses(const std::vector<Json>& events) {
    std::vector<double> list;
    for (const Json& e : events)
      if (e["event"] == "step") list.push_back(e["loss"]);
    return list;
  }
  Packed data;
  TempFolder folder;
  Json recipe;
};

}  // namespace tessera::testing
