// Whole runs through the Trainer: schedules, plans, checkpoints that continue to the bit.
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <sstream>

#include "model/boundaries.h"
#include "support.h"
#include "train/bench.h"
#include "train/trainer.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::TempFolder;

TEST(Schedule, WarmsUpAndFallsTowardsTheLeastRate) {
  const Schedule cosine{Schedule::Kind::cosine, 1.0, 0.1, 4};
  EXPECT_DOUBLE_EQ(cosine.at(0, 20), 0.25);
  EXPECT_DOUBLE_EQ(cosine.at(3, 20), 1.0);
  EXPECT_DOUBLE_EQ(cosine.at(4, 20), 1.0);
  EXPECT_NEAR(cosine.at(12, 20), 0.55, 1e-12);
  EXPECT_NEAR(cosine.at(20, 20), 0.1, 1e-12);
  const Schedule linear{Schedule::Kind::linear, 1.0, 0.0, 0};
  EXPECT_DOUBLE_EQ(linear.at(0, 10), 1.0);
  EXPECT_DOUBLE_EQ(linear.at(5, 10), 0.5);
  EXPECT_DOUBLE_EQ(linear.at(9, 10), 0.1);
  EXPECT_DOUBLE_EQ((Schedule{Schedule::Kind::constant, 0.3, 0, 0}.at(1000, 10)), 0.3);
  EXPECT_DOUBLE_EQ(linear.at(0, 1), 1.0);
}

TEST(Recipe, NamesTheFieldThatIsWrong) {
  const auto refused = [](const Json& json, const std::string& fragment) {
    expect_error("invalid_recipe", fragment, [&] { parse_recipe(json, "r.json"); });
  };
  refused({{"optimizer", {{"lr", -1}}}}, "optimizer.lr");
  refused({{"optimizer", {{"betas", {0.9, 1.0}}}}}, "optimizer.betas");
  refused({{"optimizer", {{"mode", "sgd"}}}}, "optimizer.mode");
  refused({{"optimizer", {{"gradients", "fp8"}}}}, "optimizer.gradients");
  refused({{"schedule", {{"kind", "step"}}}}, "schedule.kind");
  refused({{"gradAccumulation", 0}}, "gradAccumulation");
  refused({{"steps", 1.5}}, "steps");
  refused({{"recompute", "P9"}}, "P9");
  refused({{"kernels", "faster"}}, "faster");
  refused({{"optimizer", 3}}, "optimizer");
  EXPECT_EQ(parse_recipe(Json::object(), "r.json").grad_accumulation, 1);
}

// A folder with a small model, a cache of pseudo-random chats and a plan of one example a bin.
class World {
 public:
  explicit World(const std::vector<i64>& lengths = {30, 12, 25, 40, 9, 17, 33, 21}) : data(lengths) {
    testing::write_small_model(folder / "model", model_config(), DType::bf16);
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
  static Json model_config() { return testing::small_config(); }
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
  testing::Packed data;
  TempFolder folder;
  Json recipe;
};

void expect_same_checkpoint(const fs::path& a, const fs::path& b) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(file_checksum(a / name), file_checksum(b / name)) << name;
}

TEST(Training, MeasuresThePlansStepsRoundAfterRoundAndKeepsNothing) {
  World world({30, 12, 20, 28, 9, 17});
  world.plan({0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0, 0}, {30, 12, 20, 28, 9, 17}, {0, 1, 3, 6});
  std::vector<std::string> rules;
  for (const char* kernels : {"fast", "reference"}) {
    world.recipe["kernels"] = kernels;
    write_file(world.folder / "recipe.json", world.recipe.dump());
    Trainer trainer({.recipe = world.folder / "recipe.json",
                     .cache = world.folder / "cache",
                     .plan = world.folder / "plan.safetensors",
                     .model = world.folder / "model",
                     .out = world.folder / "out"});
    const Json measured = trainer.measure({.seconds = 60, .passes = 2});
    EXPECT_FALSE(measured["fixedShapes"]);
    std::vector<i64> positions;
    for (const Json& step : measured["steps"]) {
      positions.push_back(step["positions"]);
      EXPECT_GT(step["milliseconds"].get<double>(), 0);
      EXPECT_EQ(step["learningRate"], 0);
    }
    EXPECT_EQ(positions, (std::vector<i64>{30, 32, 54, 30, 32, 54}));
    // Nothing is learned: the second round sees the weights of the first.
    for (size_t n = 0; n < 3; ++n) EXPECT_EQ(measured["steps"][n]["loss"], measured["steps"][n + 3]["loss"]);
    for (const Json& kernel : measured["kernels"])
      if (kernel["operation"] == "gated_delta_rule") rules.push_back(kernel["forward"]);
  }
  EXPECT_EQ(rules, (std::vector<std::string>{"gdn_fwd_chunked_cpu", "gdn_fwd_recurrent_cpu"}));
  EXPECT_FALSE(fs::exists(world.folder / "out"));
}

TEST(Training, AMeasurementEndsWithItsTime) {
  World world;
  write_file(world.folder / "recipe.json", world.recipe.dump());
  Trainer trainer({.recipe = world.folder / "recipe.json",
                   .cache = world.folder / "cache",
                   .plan = world.folder / "plan.safetensors",
                   .model = world.folder / "model",
                   .out = world.folder / "out"});
  EXPECT_EQ(trainer.measure({.seconds = 1e-9}).at("steps").size(), 2u);
}

TEST(Training, ResumesToTheBit) {
  World world;
  const auto whole = World::losses(world.train("whole"));
  ASSERT_EQ(whole.size(), 8u);
  // The same run, ended by a crash after its checkpoint at step 4.
  fs::create_directory(world.folder / "resumed");
  fs::copy(checkpoint_path(world.folder / "whole", 4), checkpoint_path(world.folder / "resumed", 4),
           fs::copy_options::recursive);
  const auto rest = World::losses(world.train("resumed", checkpoint_path(world.folder / "resumed", 4)));
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 4, whole.end()));
  expect_same_checkpoint(checkpoint_path(world.folder / "whole", 8),
                         checkpoint_path(world.folder / "resumed", 8));
  // Where the time went goes on too, from the checkpoint: eight steps in all, not those of one engine.
  const Json account = read_state(checkpoint_path(world.folder / "resumed", 8)).account;
  EXPECT_EQ(account["total"]["steps"], 8);
  EXPECT_EQ(account["fromStep"], 1);
}

TEST(Training, WhatItSavesDoesNotHangOnTheModelFolder) {
  World world;
  write_file(world.folder / "model" / "tokenizer.json", "{\"a\": 1}");
  const fs::path named = fs::path("additional_chat_templates") / "tool_use.jinja";
  fs::create_directory((world.folder / "model" / named).parent_path());
  write_file(world.folder / "model" / named, "{{ messages }}");
  world.train("out", {}, false, [&] { fs::remove_all(world.folder / "model"); });
  const fs::path saved = checkpoint_path(world.folder / "out", 8);
  EXPECT_EQ(read_file(saved / "tokenizer.json"), "{\"a\": 1}");
  EXPECT_EQ(read_file(saved / named), "{{ messages }}");
  EXPECT_TRUE(fs::exists(saved / "config.json"));
  EXPECT_NE(read_file(saved / "manifest.json").find("tool_use.jinja"), std::string::npos);
  check_manifest(saved);
}

TEST(Training, ACheckpointWithoutRoomIsRefusedBeforeItIsBegun) {
  TempFolder folder;
  expect_error("disk_full", "the disk is full", [&] { require_space(folder / "", std::uintmax_t{1} << 62); });
  require_space(folder / "", 1);
}

TEST(Training, ADamagedCheckpointGivesWayToTheOneBefore) {
  World world;
  const auto whole = World::losses(world.train("run"));
  {
    std::fstream file(checkpoint_path(world.folder / "run", 8) / "optimizer.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  }
  const auto events = world.train("run", checkpoint_path(world.folder / "run", 8));
  const auto warning =
      std::find_if(events.begin(), events.end(), [](const Json& e) { return e["event"] == "warning"; });
  ASSERT_NE(warning, events.end());
  EXPECT_NE((*warning)["message"].get<std::string>().find("optimizer.safetensors differs"),
            std::string::npos);
  EXPECT_EQ(World::losses(events), std::vector<double>(whole.begin() + 4, whole.end()));
  for (const auto& path : list_checkpoints(world.folder / "run")) write_file(path / "state.json", "{}");
  expect_error("damaged_checkpoint", "no earlier checkpoint is whole",
               [&] { world.train("run", checkpoint_path(world.folder / "run", 8)); });
}

TEST(Training, RefusesToResumeWithAnotherRecipeNamingTheField) {
  World world;
  world.train("run");
  world.recipe["optimizer"]["lr"] = 1e-4;
  expect_error("recipe_changed", "optimizer.lr (0.003 → 0.0001)",
               [&] { world.train("run", checkpoint_path(world.folder / "run", 4)); });
}

TEST(Training, ARunIsBoundToWhatItsNumbersAreKeptIn) {
  World world;
  const auto losses = World::losses(world.train("run"));
  const fs::path saved = checkpoint_path(world.folder / "run", 4);
  const std::string untouched = read_file(saved / "state.json");
  const auto resume_from = [&](const std::function<void(Json&)>& edit) {
    Json state = Json::parse(untouched);
    edit(state["recipe"]);
    write_file(saved / "state.json", state.dump());
    write_manifest(saved);
    return World::losses(world.train("run", saved));
  };
  EXPECT_EQ(Json::parse(untouched)["recipe"]["precision"], "fp32");
  EXPECT_EQ(Json::parse(untouched)["recipe"]["optimizer.gradients"], "fp32");
  expect_error("recipe_changed", "precision (\"bf16\" → \"fp32\")",
               [&] { resume_from([](Json& recipe) { recipe["precision"] = "bf16"; }); });
  // A checkpoint of before these were kept.
  const auto rest = resume_from([](Json& recipe) {
    recipe.erase("precision");
    recipe.erase("optimizer.gradients");
  });
  EXPECT_EQ(rest, std::vector<double>(losses.begin() + 4, losses.end()));
  world.recipe["optimizer"]["gradients"] = "bf16";
  expect_error("unsupported_mode", "bf16 gradients need bf16 weights, which cpu does not have",
               [&] { world.train("other"); });
}

TEST(Training, AccumulatesOverConsecutiveBins) {
  World world;
  world.recipe["gradAccumulation"] = 3;
  world.recipe.erase("steps");
  const auto events = world.train("run");
  std::vector<i64> tokens;
  for (const Json& e : events)
    if (e["event"] == "step") tokens.push_back(e["realTokens"]);
  EXPECT_EQ(tokens, (std::vector<i64>{67, 66, 54}));  // the last step is short
}

// Micro-batches of 3 and 1 targets with loss sums 6 and 6 are a loss of 3.0, never the 4.0 of averaged means:
// here with the sums that the model really has.
TEST(Training, TheLossOfAStepIsItsSumOverItsTargetsNotAMeanOfMeans) {
  World world({31, 5});
  world.recipe["optimizer"] = {{"lr", 1e-30}, {"weightDecay", 0}};  // both runs see the same weights
  world.recipe["steps"] = 2;
  double sum = 0, targets = 0, means = 0;
  for (const Json& e : world.train("apart"))
    if (e["event"] == "step") {
      const double n = e["supervisedTokens"];
      sum += e["loss"].get<double>() * n;
      targets += n;
      means += e["loss"].get<double>() / 2;
    }
  world.recipe["steps"] = 1;
  world.recipe["gradAccumulation"] = 2;
  const auto together = World::losses(world.train("together"));
  ASSERT_EQ(together.size(), 1u);
  EXPECT_NEAR(together[0], sum / targets, 1e-6);
  EXPECT_GT(std::abs(means - sum / targets), 1e-4);
}

TEST(Training, EvaluatesBeforeAndAfterAndKeepsOnlySoManyCheckpoints) {
  World world;
  world.recipe["checkpoint"] = {{"everySteps", 2}, {"keep", 2}};
  world.recipe["evaluate"] = {{"everySteps", 3}};
  std::vector<std::string> phases;
  double before = 0, after = 0;
  for (const Json& e : world.train("run", {}, true))
    if (e["event"] == "eval") {
      phases.push_back(e["phase"]);
      (phases.size() == 1 ? before : after) = e["loss"];
    }
  EXPECT_EQ(phases, (std::vector<std::string>{"before", "during", "during", "after"}));
  EXPECT_LT(after, before);
  EXPECT_EQ(list_checkpoints(world.folder / "run").size(), 2u);
}

TEST(Training, AStepWithoutTargetsIsRefusedBeforeTheFirst) {
  World world({30, 1, 20});
  world.recipe["steps"] = 3;
  expect_error("no_supervised_tokens", "step 2 (bin 1) has 0 trainable tokens", [&] { world.train("run"); });
  EXPECT_FALSE(fs::exists(world.folder / "run"));
}

// Step 1 is refused, the layer is named, and no checkpoint holds what no model may hold.
TEST(Training, ANanEndsTheRunNamingStepAndLayer) {
  World world;
  const fs::path path = world.folder / "model" / "model.safetensors";
  std::string bytes = read_file(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  const size_t at = SafetensorsFile(path).info("model.layers.1.mlp.up_proj.weight").begin;
  const std::uint16_t nan = 0x7fc0;
  std::memcpy(bytes.data() + 8 + header + at, &nan, 2);
  write_file(path, bytes);
  expect_error("non_finite",
               "step 1: the loss or a gradient is NaN or infinite, first seen in the forward pass of layer 1",
               [&] { world.train("run"); });
  EXPECT_TRUE(list_checkpoints(world.folder / "run").empty());
}

// The last step's loss and gradients are finite, what it makes of the weights is not: seen as it is saved.
TEST(Training, WeightsThatTheFileCannotHoldEndTheRunByName) {
  World world;
  world.recipe["steps"] = 1;
  world.recipe["optimizer"]["lr"] = 3.4e38;
  expect_error("non_finite", "a weight is NaN, infinite or too large for the model's BF16",
               [&] { world.train("run"); });
  EXPECT_TRUE(list_checkpoints(world.folder / "run").empty());
}

TEST(Training, TokensOutsideTheVocabularyAreRefusedByExample) {
  World world({30, 12});
  Json config = read_json(world.folder / "model" / "config.json");
  config["vocab_size"] = 20;
  testing::write_small_model(world.folder / "model", config, DType::bf16);
  expect_error("invalid_token", "example 1 holds token", [&] { world.train("run"); });
}

TEST(Plan, IsRefusedNamingTheEntry) {
  World world({30, 12});
  const auto refused = [&](const std::string& fragment) {
    expect_error("invalid_plan", fragment,
                 [&] { Plan(world.folder / "plan.safetensors", TokenCache(world.folder / "cache"), 64); });
  };
  world.plan({0, 2}, {0, 0}, {30, 12}, {0, 1, 2});
  refused("placement 1 names example 2");
  world.plan({0, 1}, {0, 5}, {30, 12}, {0, 1, 2});
  refused("placement 1 covers 12 tokens from 5 of example 1, which has 12");
  world.plan({0, 1}, {0, std::numeric_limits<i64>::max()}, {30, 12}, {0, 1, 2});
  refused("placement 1 covers 12 tokens from 9223372036854775807");
  world.plan({0, 1}, {0, 0}, {30, 0}, {0, 1, 2});
  refused("placement 1");
  world.plan({0, 1}, {0, 0}, {30, 12}, {0, 2, 1});
  refused("bin_offsets");
  world.plan({0, 1, 0, 1}, {0, 0, 0, 0}, {3, 3, 3, 3}, {0, 3, 1, 4});
  refused("bin_offsets fall at entry 2");
  world.plan({0, 0, 0}, {0, 0, 0}, {30, 30, 30}, {0, 3});
  refused("bin 0 holds 90 positions, the budget is 64");
}

TEST(Plan, OfAnotherCacheIsRefusedNamingBoth) {
  World world({30, 12});
  const std::vector<i32> example = {0, 1}, length = {30, 12};
  const std::vector<i64> start = {0, 0}, bins = {0, 1, 2};
  write_safetensors(world.folder / "plan.safetensors",
                    {tensor_source("example", DType::i32, {2}, example.data()),
                     tensor_source("start", DType::i64, {2}, start.data()),
                     tensor_source("length", DType::i32, {2}, length.data()),
                     tensor_source("bin_offsets", DType::i64, {3}, bins.data())},
                    R"({"cache":"first"})");
  const auto read = [&] {
    return Plan(world.folder / "plan.safetensors", TokenCache(world.folder / "cache"), 64).num_bins();
  };
  EXPECT_EQ(read(), 2);  // a cache that has no name takes any plan that fits
  write_file(world.folder / "cache" / "cache.json", R"({"key":"first"})");
  EXPECT_EQ(read(), 2);
  write_file(world.folder / "cache" / "cache.json", R"({"key":"second"})");
  expect_error("invalid_plan", "made for the token cache first, not for second", read);
}

// A damaged plan is refused by name, or it is a plan: bins that hold parts of examples, within the budget.
void expect_plan_or_refusal(const World& world, const TokenCache& cache, int* refused) {
  try {
    const Plan plan(world.folder / "plan.safetensors", cache, 64);
    ASSERT_GT(plan.num_bins(), 0);
    for (i64 b = 0; b < plan.num_bins(); ++b) {
      i64 positions = 0;
      ASSERT_FALSE(plan.bin(b).empty());
      for (const Placement& p : plan.bin(b)) {
        ASSERT_TRUE(p.example >= 0 && p.example < cache.num_examples());
        ASSERT_TRUE(p.start >= 0 && p.length > 0 && p.start + p.length <= cache.length(p.example));
        positions += p.positions;
      }
      ASSERT_LE(positions, 64);
    }
  } catch (const EngineError& error) {
    ASSERT_FALSE(std::string(error.what()).empty());
    ++*refused;
  }
}

TEST(Plan, BytesFlippedAtRandomAndFilesCutShortAreRefusedOrStayAPlan) {
  World world({30, 12, 25, 9});
  const TokenCache cache(world.folder / "cache");
  world.plan({0, 1, 2, 3}, {0, 0, 5, 0}, {30, 12, 20, 9}, {0, 2, 4});
  const fs::path path = world.folder / "plan.safetensors";
  const std::string whole = read_file(path);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int n = 0; n < 250; ++n) {
    std::string bytes = whole;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    write_file(path, bytes);
    expect_plan_or_refusal(world, cache, &refused);
    if (HasFatalFailure()) FAIL() << "round " << n;
  }
  EXPECT_GT(refused, 120);
  for (size_t size = 0; size < whole.size(); size += 11) {
    write_file(path, whole.substr(0, size));
    EXPECT_THROW(Plan(path, cache, 64), EngineError) << size;
  }
}

TEST(Boundaries, ThatFallOrMissTheEndAreRefusedByName) {
  const auto refused = [](const std::vector<i32>& cu, const std::string& fragment) {
    expect_error("bad_boundaries", fragment, [&] { check_boundaries(cu, 9); });
  };
  refused({}, "there are none");
  refused({1, 9}, "entry 0 is 1, not 0");
  refused({0, 5, 4, 9}, "entry 2 falls from 5 to 4");
  refused({0, 5}, "the last is 5, the stream has 9 positions");
  refused({0, 12}, "the last is 12");
  refused({0, -3, 9}, "entry 1 falls from 0 to -3");
  check_boundaries(std::vector<i32>{0, 9}, 9);
  check_boundaries(std::vector<i32>{0, 4, 4, 9, 9}, 9);  // sequences that are not there
}

// What a backend of fixed shapes computes is a whole number of chunks, whatever the budget is.
TEST(Boundaries, HoldForEveryBudgetOfABackendWithFixedShapes) {
  World world({30, 12, 25, 9});
  for (i64 budget = 42; budget < 42 + 2 * kChunk; budget += 5) {
    BatchLayout layout;
    layout.tokens = (budget + kChunk - 1) / kChunk * kChunk;
    layout.sequences = sequences_with_tail(2, 42, layout.tokens);
    std::vector<char> blob(layout.bytes() + 64);
    void* at = blob.data() + (64 - reinterpret_cast<std::uintptr_t>(blob.data()) % 64);
    const std::vector<Sequence> two = {{world.data.ids[0], world.data.labels[0], 30},
                                       {world.data.ids[1], world.data.labels[1], 12}};
    const BatchShape shape = fill_batch(layout, {.fixed_shapes = true, .vocab = 64}, two, at);
    EXPECT_EQ(shape.T, layout.tokens);
    EXPECT_EQ(shape.T % kChunk, 0);
    const Batch batch = layout.view(at, shape, true);
    EXPECT_EQ(batch.cu[1], 30);
    EXPECT_EQ(batch.cu[2], 42);
    EXPECT_EQ(batch.cu[shape.num_seq], shape.T);
  }
}

TEST(Cache, LabelsStayInsideTheirExample) {
  World world({3, 4});
  const TokenCache cache(world.folder / "cache");
  std::vector<i32> labels;
  const i64 targets =
      append_labels(cache, {0, 0, 3, 3}, &labels) + append_labels(cache, {1, 0, 4, 4}, &labels);
  EXPECT_EQ(labels[2], kIgnoreLabel);
  EXPECT_EQ(labels[6], kIgnoreLabel);
  EXPECT_EQ(targets, world.data.targets());
}

// Asked before the device is made: of one that cannot be, nothing is known.
TEST(Bench, AnImpossibleDeviceHasNoMemoryInUse) {
  for (const char* device : {"cuda:-1", "cuda:", "cuda:4096", "cpu"})
    EXPECT_EQ(used_bytes(device), -1) << device;
}

TEST(Files, AFolderIsMadeOrThePathIsNamed) {
  const TempFolder folder;
  make_folder(folder.path() / "a" / "b");
  make_folder(folder.path() / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder.path() / "a" / "b"));
  write_file(folder.path() / "file", "");
  expect_error("io_error", "file", [&] { make_folder(folder.path() / "file"); });
  expect_error("io_error", "within", [&] { make_folder(folder.path() / "file" / "within"); });
}

}  // namespace
}  // namespace tessera
