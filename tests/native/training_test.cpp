// Whole runs through the Trainer: checkpoints that continue to the bit, and what ends a run.
#include <cmath>
#include <cstring>
#include <fstream>

#include "train/bench.h"
#include "training_world.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::TempFolder;
using testing::World;

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

// Asked before the device is made: of one that cannot be, nothing is known.
TEST(Bench, AnImpossibleDeviceHasNoMemoryInUse) {
  for (const char* device : {"cuda:-1", "cuda:", "cuda:4096", "cpu"})
    EXPECT_EQ(used_bytes(device), -1) << device;
}

}  // namespace
}  // namespace tessera
