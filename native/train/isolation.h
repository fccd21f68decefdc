// Proof that packed examples do not see each other, on a pack of a run's own data with the model, device and
// kernels that the run is about to use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/files.h"
#include "core/json_fwd.h"
#include "model/layer_memory.h"
#include "ops/backend.h"
#include "train/token_cache.h"

namespace tessera {

// One example as it stands in the pack.
struct PackedExample {
  i64 example;                   // number in the cache
  std::vector<i32> ids, labels;  // [length]
  i64 computed;                  // positions, >= length: the rest is padding
};

// Which sequences the engine is given for a pack. The right one gives every example a sequence of its own;
// tests hand in wrong ones, to see the proof fail.
using Arrangement = std::function<std::vector<Sequence>(const std::vector<PackedExample>&)>;
std::vector<Sequence> one_sequence_each(const std::vector<PackedExample>& pack);
// What a lost boundary does: example n and the one after it share a sequence.
Arrangement joined_at(size_t n);

struct IsolationOptions {
  fs::path model, cache, plan;
  i64 budget = 0;  // of the plan's bins; 0: not checked
  RecomputePolicy policy = RecomputePolicy::p1;
  i64 positions = 0;  // of the pack at most; 0: as many as a few seconds take
  Arrangement arrangement = one_sequence_each;
};

// Changes every token of one example after the other (at most two of them, in the middle of the pack). Of all
// others the last layer's output, the loss and the gradient at the embedding must keep every bit, and so must
// the gradients of all weights while the changed example has no targets itself. Each changed example is also
// computed alone, and must agree with itself in the pack within the backend's tolerance.
// Large models are proven on their first layers of each kind. The report: {ok, examples, positions, layers,
// modelLayers, changed, leaked, alone: {relativeError, tolerance}, failures, message, seconds, device}.
// Throws EngineError of the readers, or no_supervised_tokens where the data holds nothing to learn.
Json prove_isolation(Backend& backend, const IsolationOptions& options);

// The pack that is run: the first bin with three examples that have targets, as many of them as fit; where
// the plan has none, the first examples of several bins, cut to fit. Two entries at least: a single example
// stands twice.
std::vector<PackedExample> choose_pack(const TokenCache& cache, const Plan& plan, i64 positions);

}  // namespace tessera
