// The fields of a resolved recipe that the engine acts on; the core has checked the rest.
#pragma once

#include <optional>
#include <string>

#include "core/files.h"
#include "core/json.h"
#include "model/layer_memory.h"
#include "model/parameters.h"

namespace tessera {

struct Schedule {
  enum class Kind : u8 { constant, linear, cosine } kind = Kind::constant;
  double lr = 0, min_lr = 0;
  i64 warmup_steps = 0;
  // Learning rate of a step (0-based) of a run of `total` steps: rises linearly over the warm-up, reaching lr
  // at its last step, then stays, or falls linearly or by a half cosine towards min_lr, which it would reach
  // at step `total`: the last step still learns, as in transformers.
  double at(i64 step, i64 total) const;
};

struct CheckpointRules {
  i64 every_steps = 0;       // 0: only at the end and on request
  double every_minutes = 0;  // 0: never by time
  i64 keep = 2;              // newest ones kept
  bool best = false;         // also keep the one with the lowest held-out loss
};

struct Recipe {
  std::string device = "cpu", precision = "auto";
  i64 budget = 0, steps = 0;  // steps 0: as many as the plan holds
  i64 grad_accumulation = 1;
  OptimizerOptions optimizer;
  std::optional<DType> gradients;  // absent: as the executor chooses
  double clip = 0;
  Schedule schedule;
  std::optional<RecomputePolicy> policy;  // absent: the fastest one that fits
  std::optional<Sharding> sharding;       // absent: the same
  CheckpointRules checkpoint;
  i64 evaluate_every = 0;
  i64 profile_at = 0;
  bool accept_slow = false;
  bool reference_kernels = false;  // the plain kernels, to measure the fast ones against
  bool compaction = true;
  i64 head_rows = 2048;
  i64 seed = 0;
  // What a resumed run must share with the one it continues, by field name.
  Json binding;
};

// "auto" (nothing), "fp32" or "bf16"; another name has no value.
std::optional<std::optional<DType>> parse_gradients(const std::string& name);

// Throws EngineError invalid_recipe, naming the file and the field.
Recipe parse_recipe(const Json& json, const std::string& where);
Recipe read_recipe(const fs::path& path);

}  // namespace tessera
