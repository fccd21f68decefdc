#include "train/plan_choice.h"

#include <algorithm>

namespace tessera {

std::vector<PlanChoice> plan_choices(const PlanWishes& w) {
  using enum RecomputePolicy;
  std::vector<PlanChoice> choices;
  const auto add = [&](const std::vector<Sharding>& shardings) {
    for (const RecomputePolicy policy : {p0, p2, p1, full})
      for (const bool keep_all : {true, false})
        for (const Sharding sharding : shardings) {
          const bool unneeded = w.world == 1 && sharding != Sharding::optimizer;
          const bool impossible = w.world > 1 && w.bf16_gradients && sharding == Sharding::optimizer;
          if (unneeded || (impossible && !w.sharding)) continue;
          if (w.world > 1 && w.sharding.value_or(sharding) != sharding) continue;
          if (w.policy.value_or(policy) != policy || (keep_all && policy != p0)) continue;
          choices.push_back({sharding, policy, keep_all});
        }
  };
  add({Sharding::optimizer, Sharding::gradients});
  add({Sharding::weights});
  return choices;
}

std::unique_ptr<Executor> first_that_fits(const PlanWishes& wishes, size_t available,
                                          const MakeExecutor& make) {
  const auto choices = plan_choices(wishes);
  if (available == 0) {
    const auto usual = std::find_if(choices.begin(), choices.end(), [&](const PlanChoice& c) {
      return c.policy == wishes.policy.value_or(RecomputePolicy::p1);
    });
    return make(*usual);
  }
  for (const PlanChoice& choice : choices) {
    auto executor = make(choice);
    if (executor->plan().total <= available || choice == choices.back()) return executor;
  }
  return nullptr;
}

int ranks_that_would_do(PlanWishes wishes, size_t available,
                        const std::function<std::unique_ptr<Executor>(const PlanChoice&, int)>& make) {
  constexpr int kMost = 32;
  const int has = wishes.world;
  for (int world = 2; world <= kMost; world *= 2) {
    if (world <= has) continue;
    wishes.world = world;
    const PlanChoice frugal = plan_choices(wishes).back();
    if (make(frugal, world)->plan().total <= available) return world;
  }
  return 0;
}

}  // namespace tessera
