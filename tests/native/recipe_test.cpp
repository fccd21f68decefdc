// The recipe as the engine reads it.
#include "train/recipe.h"

#include "support.h"

namespace tessera {
namespace {

using testing::expect_error;

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

}  // namespace
}  // namespace tessera
