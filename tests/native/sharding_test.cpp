// What is split among ranks, as it is planned: nothing here is allocated.
#include "model/profiled_backend.h"
#include "support.h"
#include "train/bench.h"
#include "train/plan_choice.h"

namespace tessera {
namespace {

constexpr double kGib = 1 << 30;
// An H200 has 140.4 GiB; a run takes nine tenths.
constexpr auto kH200 = static_cast<size_t>(140.4 * kGib * 0.9);

// The types and the own needs of a GPU, for plans; its operations are never called.
class LikeAGpu final : public ProfiledBackend {
 public:
  explicit LikeAGpu(Backend& cpu) : ProfiledBackend(cpu) {}
  DType act_dtype() const override { return DType::bf16; }
  DType weight_dtype() const override { return DType::bf16; }
  bool fixed_shapes() const override { return true; }
  size_t context_bytes() const override { return size_t{535} << 20; }
  size_t workspace_bytes(const GdnShape&, const AttnShape&, i64, i64, i64, i64) const override {
    return size_t{64} << 20;
  }
};

// One bin of 8,192 positions a rank.
struct Planned {
  explicit Planned(const std::string& shape, OptimizerMode mode)
      : config(shape_config(shape)), layout(make_layout(config, "model.")), mode(mode) {}
  std::unique_ptr<Executor> make(const PlanChoice& choice, int world, bool accumulates = false) {
    return std::make_unique<Executor>(gpu, config, layout,
                                      ExecutorOptions{.optimizer = {.mode = mode},
                                                      .policy = choice.policy,
                                                      .keep_all = choice.keep_all,
                                                      .batch = {8192, 64},
                                                      .accumulates = accumulates,
                                                      .rank = {0, world},
                                                      .sharding = choice.sharding});
  }
  std::unique_ptr<Executor> choose(int world, bool accumulates = false) {
    return first_that_fits({.world = world}, kH200,
                           [&](const PlanChoice& choice) { return make(choice, world, accumulates); });
  }
  ModelConfig config;
  Layout layout;
  OptimizerMode mode;
  std::unique_ptr<Backend> cpu = make_cpu_backend({.threads = 1});
  LikeAGpu gpu{*cpu};
};

std::string named(const Executor& e) {
  return std::string(sharding_name(e.options().sharding)) + " " + policy_name(e.options().policy);
}

TEST(Sharding, TheLargestModelFitsTwoGpus) {
  Planned p("27b", OptimizerMode::bf16sr);
  const auto two = p.choose(2);
  const MemoryPlan m = two->plan();
  EXPECT_EQ(two->options().sharding, Sharding::weights) << named(*two);
  EXPECT_LE(m.total, kH200);
  EXPECT_EQ(two->gradient_type(), DType::bf16);
  // engine.md 7.3: 107.6 GB of weights, gradients and state a GPU, beside the slots: two layers and a table.
  const double slots = 2 * 0.77e9 + 2.54e9 + 2 * (2 * 0.77e9 + 2.54e9);
  EXPECT_NEAR((static_cast<double>(m.weights + m.gradients + m.optimizer) - slots) / 107.6e9, 1, 0.02);
  for (const int world : {4, 8}) {
    const auto more = p.choose(world);
    EXPECT_LE(more->plan().total, kH200) << named(*more);
    EXPECT_LT(static_cast<int>(two->options().policy), static_cast<int>(more->options().policy))
        << named(*more);
  }
}

TEST(Sharding, WhatIsSplitLeavesLessToEachRank) {
  Planned p("4b", OptimizerMode::master32);
  const auto plan = [&](Sharding sharding, int world) {
    return p.make({sharding, RecomputePolicy::p1, false}, world)->plan();
  };
  const double params = static_cast<double>(p.layout.big_count);
  for (const int world : {2, 4, 8}) {
    const MemoryPlan one = plan(Sharding::optimizer, world), two = plan(Sharding::gradients, world),
                     three = plan(Sharding::weights, world);
    EXPECT_EQ(one.optimizer, two.optimizer);
    EXPECT_EQ(two.gradients, three.gradients);
    // Gradients in fp32: 4 bytes of each parameter, then of a share and what stands in the slots.
    EXPECT_NEAR(static_cast<double>(one.gradients) / (4 * params), 1, 0.01);
    EXPECT_LT(static_cast<double>(two.gradients), 4 * params / world + 5e9);
    EXPECT_LT(static_cast<double>(three.weights), 2 * params / world + 2.5e9);
    EXPECT_LT(two.total, one.total);
    EXPECT_LT(three.total, two.total);
  }
}

TEST(Sharding, ShareLeastThenRecomputeThenSplitWeights) {
  using enum RecomputePolicy;
  const auto all = plan_choices({.world = 2});
  EXPECT_EQ(all.front(), (PlanChoice{Sharding::optimizer, p0, true}));
  EXPECT_EQ(all[1], (PlanChoice{Sharding::gradients, p0, true}));
  EXPECT_EQ(all.back(), (PlanChoice{Sharding::weights, full, false}));
  for (const PlanChoice& one : plan_choices({})) EXPECT_EQ(one.sharding, Sharding::optimizer);
  for (const PlanChoice& some : plan_choices({.world = 2, .sharding = Sharding::gradients, .policy = p1}))
    EXPECT_EQ(some, (PlanChoice{Sharding::gradients, p1, false}));
  for (const PlanChoice& some : plan_choices({.world = 2, .bf16_gradients = true}))
    EXPECT_NE(some.sharding, Sharding::optimizer);
}

TEST(Sharding, SaysHowManyGpusWouldDo) {
  Planned sr("27b", OptimizerMode::bf16sr), master("27b", OptimizerMode::master32);
  const auto would_do = [](Planned& p, int world) {
    return ranks_that_would_do({.world = world}, kH200,
                               [&](const PlanChoice& choice, int w) { return p.make(choice, w); });
  };
  EXPECT_EQ(would_do(sr, 1), 2);
  EXPECT_EQ(would_do(master, 2), 8);  // 18 bytes a parameter: 121 GB on each of four, and slots
}

TEST(Sharding, Bf16GradientsAreKeptOfSumsOnly) {
  Planned p("27b-8l", OptimizerMode::bf16sr);
  const auto type = [&](Sharding sharding, bool accumulates) {
    return p.make({sharding, RecomputePolicy::p1, false}, 2, accumulates)->gradient_type();
  };
  EXPECT_EQ(type(Sharding::optimizer, false), DType::f32);
  EXPECT_EQ(type(Sharding::gradients, false), DType::bf16);
  EXPECT_EQ(type(Sharding::weights, false), DType::bf16);
  EXPECT_EQ(type(Sharding::weights, true), DType::f32);
}

}  // namespace
}  // namespace tessera
