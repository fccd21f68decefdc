// Several ranks: what they sum, how they share an optimizer, and how each learns that another is gone. Ranks
// are threads here; scripts run them as processes (tests/integration/ranks.test.ts).
#include <bit>
#include <cmath>
#include <thread>

#include "ranks/launcher.h"
#include "ranks/rank_link.h"
#include "support.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::Packed;
using testing::SmallRun;
using testing::TempFolder;

// Runs `work` as every rank, each with its link, and returns when all are done.
void as_ranks(int world, const std::function<void(RankLink&)>& work) {
  TempFolder folder;
  std::vector<std::thread> others;
  const auto one = [&](int rank) {
    RankOptions options;
    options.rank = rank;
    options.world = world;
    options.rendezvous = folder / "socket";
    RankLink link(std::move(options));
    work(link);
    link.leave();
  };
  for (int r = 1; r < world; ++r) others.emplace_back(one, r);
  one(0);
  for (std::thread& other : others) other.join();
}

TEST(Ranks, DevicesOfARecipeAreThoseOfItsRanks) {
  using List = std::vector<std::string>;
  EXPECT_EQ(rank_devices("cuda:0,3"), (List{"cuda:0", "cuda:3"}));
  EXPECT_EQ(rank_devices("cpu:0,1"), (List{"cpu", "cpu"}));
  EXPECT_EQ(rank_devices("cuda:2"), List{"cuda:2"});
  EXPECT_EQ(rank_devices("auto"), List{"auto"});
}

TEST(Ranks, SharesAreWholeBlocksThatMeet) {
  for (const int world : {1, 2, 3, 7}) {
    const Shares shares = deal(512, 5 * kShareAlign, world);
    EXPECT_EQ(shares.begin.front(), 512);
    EXPECT_EQ(shares.begin.back(), 512 + 5 * kShareAlign);
    for (int r = 0; r < world; ++r) {
      EXPECT_EQ(shares.count(r) % kShareAlign, 0);
      EXPECT_LE(shares.count(r), (5 + world - 1) / world * kShareAlign);
    }
  }
}

TEST(Ranks, CollectivesSumInTheOrderOfTheRanks) {
  constexpr int kWorld = 3;
  constexpr i64 kCount = 4 * kShareAlign;
  const Shares shares = deal(0, kCount, kWorld);  // 256, 256 and 512
  as_ranks(kWorld, [&](RankLink& link) {
    const auto all = make_local_collectives(link);
    const auto mine = [&](int rank, i64 i) {
      return std::ldexp(1.0f, -12 * rank) * static_cast<float>(i % 97 + 1) / 3;
    };
    std::vector<float> data(kCount);
    for (i64 i = 0; i < kCount; ++i) data[static_cast<size_t>(i)] = mine(link.rank(), i);
    const auto sum = [&](i64 i) { return (mine(0, i) + mine(1, i)) + mine(2, i); };
    auto copy = data;
    all->reduce_scatter(copy.data(), shares, nullptr);
    const auto r = static_cast<size_t>(link.rank());
    for (i64 i = shares.begin[r]; i < shares.begin[r + 1]; ++i)
      EXPECT_EQ(copy[static_cast<size_t>(i)], sum(i));
    const std::vector<float> own(copy.begin() + shares.begin[r], copy.begin() + shares.begin[r + 1]);
    all->all_gather(own.data(), copy.data(), DType::f32, shares, nullptr);
    for (i64 i = 0; i < kCount; ++i) EXPECT_EQ(copy[static_cast<size_t>(i)], sum(i));
    all->all_reduce(data.data(), kCount, nullptr);
    EXPECT_EQ(data, copy);
    all->broadcast(data.data(), sizeof(float), 2, nullptr);
    double one = 0.1 * (link.rank() + 1);
    all->all_reduce(&one, 1, nullptr);
    EXPECT_EQ(one, 0.1 * 1 + 0.1 * 2 + 0.1 * 3);
    all->barrier();
  });
}

TEST(Ranks, OneThatSendsOtherThanIsAwaitedIsNamed) {
  as_ranks(2, [&](RankLink& link) {
    const float value = 1;
    if (link.rank() == 1) return link.send(0, &value, sizeof value);
    double wanted;
    expect_error("ranks_disagree", "rank 1 sent 4 bytes", [&] { link.receive(1, &wanted, sizeof wanted); });
  });
}

// What a run over ranks leaves behind after some steps.
struct Outcome {
  double held_out = 0;
  std::vector<double> losses;
  std::vector<float> norms, weights, m, v;
};

// `parts` of the sequences are the bins of every step, dealt to the ranks in turn; one rank takes all of
// them.
struct Way {
  Sharding sharding = Sharding::optimizer;
  RecomputePolicy policy = RecomputePolicy::p1;
  bool tied = true, breaks = false;
};

Outcome train_as_ranks(int world, const std::vector<std::pair<size_t, size_t>>& parts, const Way& way = {}) {
  const Packed packed({40, 9, 100, 3, 64, 21});
  Json config = testing::small_config();
  config["tie_word_embeddings"] = way.tied;
  const bool breaks = way.breaks;
  Outcome outcome;
  as_ranks(world, [&](RankLink& link) {
    const auto collectives = make_local_collectives(link);
    SmallRun run({.policy = way.policy,
                  .accumulates = true,
                  .rank = {link.rank(), world},
                  .sharding = way.sharding,
                  .collectives = collectives.get()},
                 1, config);
    Executor& e = *run.executor;
    if (breaks && link.rank() == world - 1) {
      const TensorEntry& norm = *run.layout.find("model.layers.1.input_layernorm.weight");
      auto values = e.parameters().read(norm, Field::weight);
      values[3] = std::nanf("");
      e.parameters().write(norm, Field::weight, values.data());
    }
    i64 targets = 0;
    for (const auto& [first, count] : parts) targets += packed.targets(first, count);
    for (i32 step = 1; step <= 4; ++step) {
      std::vector<size_t> own;
      for (size_t n = static_cast<size_t>(link.rank()); n < parts.size(); n += static_cast<size_t>(world))
        own.push_back(n);
      const size_t ranks = static_cast<size_t>(world), most = (parts.size() + ranks - 1) / ranks;
      const size_t rounds = e.meets_each_micro_batch() ? most : std::max<size_t>(own.size(), 1);
      const auto sequences = [&](size_t k) {
        return packed.sequences(parts[own[k]].first, parts[own[k]].second);
      };
      for (size_t k = 0; k + 1 < rounds; ++k)
        if (k < own.size())
          e.run_micro_batch(sequences(k), k == 0);
        else
          e.run_without_micro_batch(k == 0);
      const StepScalars scalars = SmallRun::scalars(targets, step);
      const StepResult r =
          e.result(own.size() < rounds ? e.run_without_last_micro_batch(rounds == 1, scalars)
                                       : e.run_last_micro_batch(sequences(rounds - 1), rounds == 1, scalars));
      EXPECT_EQ(r.finite, breaks ? 0 : 1) << "rank " << link.rank();
      if (link.rank() > 0) continue;
      outcome.losses.push_back(r.loss_sum / static_cast<double>(targets));
      outcome.norms.push_back(r.grad_norm);
    }
    // Held out: one bin, of rank 0; its ticket is read where it was taken.
    if (link.rank() == 0)
      outcome.held_out = e.result(e.evaluate(packed.sequences(0, 2))).loss_sum;
    else
      e.evaluate_nothing();
    // Rank 0 reads what the others hold, as a checkpoint does.
    struct Wanted {
      i64 field, begin, count;
    } wanted{};
    Parameters& parameters = e.parameters();
    if (link.rank() > 0)
      for (;;) {
        link.receive(0, &wanted, sizeof wanted);
        if (wanted.count == 0) return;
        std::vector<float> raw(static_cast<size_t>(wanted.count));
        parameters.read_own(static_cast<Field>(wanted.field), wanted.begin, wanted.count, raw.data());
        link.send(0, raw.data(), raw.size() * sizeof(float));
      }
    parameters.set_fetch([&](int rank, Field field, i64 begin, i64 count, void* raw) {
      wanted = {static_cast<i64>(field), begin, count};
      link.send(rank, &wanted, sizeof wanted);
      link.receive(rank, raw, static_cast<size_t>(count) * sizeof(float));
    });
    outcome.weights = run.all(Field::weight);
    outcome.m = run.all(Field::m);
    outcome.v = run.all(Field::v);
    wanted = {};
    for (int r = 1; r < world; ++r) link.send(r, &wanted, sizeof wanted);
  });
  return outcome;
}

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2.0);
    norm += std::pow(b[i], 2.0);
  }
  return std::sqrt(difference / norm);
}

constexpr Sharding kShardings[] = {Sharding::optimizer, Sharding::gradients, Sharding::weights};

TEST(Ranks, TrainLikeOneThatAccumulates) {
  const std::vector<std::pair<size_t, size_t>> bins = {{0, 1}, {1, 2}, {3, 1}, {4, 2}};
  for (const bool tied : {true, false}) {
    const Outcome one = train_as_ranks(1, bins, {.tied = tied});
    for (const Sharding sharding : kShardings)
      for (const int world : {2, 3, 4}) {  // three ranks: two bins, one and one
        SCOPED_TRACE(std::string(sharding_name(sharding)) + " over " + std::to_string(world));
        const Way way{.sharding = sharding, .tied = tied};
        const Outcome several = train_as_ranks(world, bins, way), again = train_as_ranks(world, bins, way);
        for (size_t n = 0; n < one.losses.size(); ++n) {
          EXPECT_NEAR(several.losses[n] / one.losses[n], 1, 1e-6);
          EXPECT_NEAR(several.norms[n] / one.norms[n], 1, 1e-5);
        }
        EXPECT_NEAR(several.held_out / one.held_out, 1, 1e-6);
        EXPECT_LT(apart(several.weights, one.weights), 1e-5);
        EXPECT_LT(apart(several.m, one.m), 1e-4);
        EXPECT_LT(apart(several.v, one.v), 1e-4);
        EXPECT_EQ(several.weights, again.weights);
        EXPECT_EQ(several.losses, again.losses);
      }
  }
}

// With one bin each, what is split changes where numbers stand and none of them; with more, gradients are
// summed in another order.
TEST(Ranks, WhatIsSplitChangesNoBit) {
  const std::vector<std::pair<size_t, size_t>> bins = {{0, 1}, {1, 2}, {3, 3}};
  for (const bool tied : {true, false}) {
    const Outcome least = train_as_ranks(3, bins, {.tied = tied});
    for (const Sharding sharding : {Sharding::gradients, Sharding::weights})
      for (const RecomputePolicy policy : {RecomputePolicy::full, RecomputePolicy::p0}) {
        const Outcome more = train_as_ranks(3, bins, {.sharding = sharding, .policy = policy, .tied = tied});
        EXPECT_EQ(more.losses, least.losses);
        EXPECT_EQ(more.norms, least.norms);
        EXPECT_EQ(more.held_out, least.held_out);
        EXPECT_EQ(more.weights, least.weights);
        EXPECT_EQ(more.m, least.m);
        EXPECT_EQ(more.v, least.v);
      }
  }
}

TEST(Ranks, OneWithoutABinAddsNothing) {
  const std::vector<std::pair<size_t, size_t>> bins = {{0, 2}};
  const Outcome one = train_as_ranks(1, bins);
  for (const Sharding sharding : kShardings) {
    const Outcome two = train_as_ranks(2, bins, {.sharding = sharding});
    EXPECT_EQ(two.losses[0], one.losses[0]);
    EXPECT_LT(apart(two.weights, one.weights), 1e-6);
  }
}

TEST(Ranks, ANanOnOneRankIsRefusedByAll) {
  const std::vector<std::pair<size_t, size_t>> bins = {{0, 1}, {1, 2}};
  SmallRun untouched;
  for (const Sharding sharding : kShardings) {
    const Outcome broken = train_as_ranks(2, bins, {.sharding = sharding, .breaks = true});
    EXPECT_EQ(broken.weights, untouched.all(Field::weight));
    for (const float value : broken.m) EXPECT_EQ(value, 0);
  }
}

// Shard gradients [3] and [4] have the norm 5, not 3 and 4.
TEST(Ranks, TheNormIsThatOfAllShares) {
  as_ranks(2, [&](RankLink& link) {
    const auto backend = make_cpu_backend({.threads = 1});
    const auto all = make_local_collectives(link);
    float gradient = link.rank() == 0 ? 3.0f : 4.0f;
    AdamSegment share{};
    share.grad = &gradient;
    share.count = 1;
    StepResult result{};
    const StepScalars scalars = SmallRun::scalars(1);
    backend->grad_squares(&result, {share});
    all->all_reduce(&result.loss_sum, 2, nullptr);
    backend->finish_norm(&result, &scalars);
    EXPECT_FLOAT_EQ(result.grad_norm, 5.0f);
  });
}

TEST(Ranks, APeerThatDiesEndsTheOthersAndIsNamed) {
  // The rank that is left ends its process, so it is one of its own here.
  EXPECT_EXIT(
      {
        TempFolder folder;
        const auto join = [&](int rank) {
          RankOptions options;
          options.rank = rank;
          options.world = 2;
          options.rendezvous = folder / "socket";
          options.on_lost = [](const Json& error) {
            std::fprintf(stderr, "%s\n", error.at("message").get<std::string>().c_str());
            std::_Exit(1);
          };
          return std::make_unique<RankLink>(std::move(options));
        };
        std::unique_ptr<RankLink> other;
        std::thread meeting([&] { other = join(1); });
        const auto link = join(0);
        meeting.join();
        std::thread dying([&] { other.reset(); });  // without leave()
        double never;
        link->receive(1, &never, sizeof never);
        dying.join();
      },
      ::testing::ExitedWithCode(1), "rank 1 has gone");
}

}  // namespace
}  // namespace tessera
