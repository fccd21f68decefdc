// Plans, boundaries and labels: refused by name, or what they say they are.
#include <limits>
#include <random>

#include "model/boundaries.h"
#include "training_world.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::World;

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

}  // namespace
}  // namespace tessera
