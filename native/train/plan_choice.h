// In which order a run's ways to need less memory are tried.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/executor.h"

namespace tessera {

struct PlanChoice {
  Sharding sharding;
  RecomputePolicy policy;
  bool keep_all;
  bool operator==(const PlanChoice&) const = default;
};

struct PlanWishes {
  int world = 1;
  std::optional<Sharding> sharding;       // absent: the one that shares least
  std::optional<RecomputePolicy> policy;  // absent: the one that computes least again
  bool bf16_gradients = false;            // asked for: not to be had where every rank holds all gradients
};

// All that the wishes leave, the fastest first, the most frugal last. To split gradients costs next to
// nothing, so that comes before any recomputation; to split weights moves them twice in every micro-batch,
// so that comes after all of it.
std::vector<PlanChoice> plan_choices(const PlanWishes& wishes);

// The first that fits, or the last; available 0: unknown, and then the first that computes again as P1 does.
using MakeExecutor = std::function<std::unique_ptr<Executor>(const PlanChoice&)>;
std::unique_ptr<Executor> first_that_fits(const PlanWishes& wishes, size_t available,
                                          const MakeExecutor& make);

// The fewest ranks, more than wishes.world, of which each would have enough with `available` bytes; 0: none
// of those tried.
int ranks_that_would_do(PlanWishes wishes, size_t available,
                        const std::function<std::unique_ptr<Executor>(const PlanChoice&, int world)>& make);

}  // namespace tessera
