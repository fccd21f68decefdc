#include "train/recipe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tessera {
namespace {

constexpr const char* kBadRecipe = "invalid_recipe";

// One section of the recipe, for messages such as "recipe.json: optimizer.lr is -1, it must be positive".
class Section {
 public:
  Section(const Json& root, const char* name, const std::string& where)
      : where_(where), prefix_(name ? std::string(name) + "." : "") {
    json_ = name ? root.value(name, Json::object()) : root;
    if (json_.is_null()) json_ = Json::object();
    if (!json_.is_object()) throw EngineError(kBadRecipe, where + ": " + name + " is not an object");
  }
  template <class T>
  T get(const char* key, T fallback) const {
    return optional_field<T>(json_, key, fallback, where_ + (prefix_.empty() ? "" : ": " + prefix_),
                             kBadRecipe);
  }
  double number(const char* key, double fallback, double least, double most) const {
    const double value = get<double>(key, fallback);
    if (!(value >= least && value <= most)) refuse(key, Json(value).dump(), least, most);
    return value;
  }
  i64 whole(const char* key, i64 fallback, i64 least) const {
    const Json value = json_.value(key, Json());
    if (value.is_null()) return fallback;
    if (!value.is_number_integer() || value.get<i64>() < least)
      throw EngineError(kBadRecipe, where_ + ": " + prefix_ + key + " is " + value.dump() +
                                        ", it must be a whole number of at least " + std::to_string(least));
    return value.get<i64>();
  }
  [[noreturn]] void unknown(const char* key, const std::string& value, const char* choices) const {
    throw EngineError(kBadRecipe, where_ + ": " + prefix_ + key + " \"" + value + "\" is unknown",
                      std::string("Use ") + choices + ".");
  }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& value, double least, double most) const {
    char range[96];
    if (std::isinf(most))
      std::snprintf(range, sizeof range, "at least %g", least);
    else
      std::snprintf(range, sizeof range, "between %g and %g", least, most);
    throw EngineError(kBadRecipe, where_ + ": " + prefix_ + key + " is " + value + ", it must be " + range);
  }

  Json json_;
  std::string where_, prefix_;
};

constexpr double kAny = std::numeric_limits<double>::infinity();

void read_optimizer(const Json& json, const std::string& where, Recipe* r) {
  const Section s(json, "optimizer", where);
  const auto mode = s.get<std::string>("mode", "master32");
  if (mode != "master32" && mode != "bf16sr") s.unknown("mode", mode, "master32 or bf16sr");
  r->optimizer.mode = mode == "bf16sr" ? OptimizerMode::bf16sr : OptimizerMode::master32;
  const auto gradients = s.get<std::string>("gradients", "auto");
  const auto type = parse_gradients(gradients);
  if (!type) s.unknown("gradients", gradients, "auto, fp32 or bf16");
  r->gradients = *type;
  r->schedule.lr = s.number("lr", 1e-5, 0, kAny);
  const auto betas = s.get<std::vector<double>>("betas", {0.9, 0.95});
  if (betas.size() != 2 || !(betas[0] >= 0 && betas[0] < 1 && betas[1] >= 0 && betas[1] < 1))
    throw EngineError(kBadRecipe, where + ": optimizer.betas must be two numbers of at least 0 and below 1");
  r->optimizer.beta1 = betas[0];
  r->optimizer.beta2 = betas[1];
  r->optimizer.eps = s.number("eps", 1e-8, 0, 1);
  r->optimizer.weight_decay = static_cast<float>(s.number("weightDecay", 0.0, 0, kAny));
  r->optimizer.decay_small = s.get<bool>("decay1d", false);
  r->clip = s.number("clip", 1.0, 0, kAny);
}

void read_schedule(const Json& json, const std::string& where, Recipe* r) {
  const Section s(json, "schedule", where);
  const auto kind = s.get<std::string>("kind", "constant");
  if (kind != "constant" && kind != "linear" && kind != "cosine")
    s.unknown("kind", kind, "constant, linear or cosine");
  r->schedule.kind = kind == "constant" ? Schedule::Kind::constant
                     : kind == "linear" ? Schedule::Kind::linear
                                        : Schedule::Kind::cosine;
  r->schedule.warmup_steps = s.whole("warmupSteps", 0, 0);
  r->schedule.min_lr = s.number("minLr", 0.0, 0, kAny);
}

// Two recipes that differ in one of these train differently; the rest may change between a run and its
// continuation.
Json binding_of(const Recipe& r) {
  Json b = {{"packing.budget", r.budget},
            {"gradAccumulation", r.grad_accumulation},
            {"optimizer.mode", r.optimizer.mode == OptimizerMode::bf16sr ? "bf16sr" : "master32"},
            {"optimizer.lr", r.schedule.lr},
            {"optimizer.betas", {r.optimizer.beta1, r.optimizer.beta2}},
            {"optimizer.eps", r.optimizer.eps},
            {"optimizer.weightDecay", r.optimizer.weight_decay},
            {"optimizer.decay1d", r.optimizer.decay_small},
            {"optimizer.clip", r.clip},
            {"schedule.kind", static_cast<int>(r.schedule.kind)},
            {"schedule.warmupSteps", r.schedule.warmup_steps},
            {"schedule.minLr", r.schedule.min_lr},
            {"seed", r.seed}};
  // A constant rate does not know how long the run is, so such a run may be made longer.
  if (r.schedule.kind != Schedule::Kind::constant) b["steps"] = r.steps;
  return b;
}

}  // namespace

std::optional<std::optional<DType>> parse_gradients(const std::string& name) {
  if (name == "auto") return std::optional<DType>();
  if (name == "fp32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  return std::nullopt;
}

double Schedule::at(i64 step, i64 total) const {
  if (step < warmup_steps) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (kind == Kind::constant) return lr;
  const i64 span = std::max<i64>(1, total - warmup_steps);
  const double progress = std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(span));
  const double share =
      kind == Kind::linear ? 1.0 - progress : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return min_lr + (lr - min_lr) * share;
}

Recipe parse_recipe(const Json& json, const std::string& where) {
  if (!json.is_object()) throw EngineError(kBadRecipe, where + ": a recipe is a JSON object");
  Recipe r;
  const Section top(json, nullptr, where), packing(json, "packing", where),
      checkpoint(json, "checkpoint", where), evaluate(json, "evaluate", where), head(json, "head", where);
  r.device = top.get<std::string>("device", "cpu");
  r.precision = top.get<std::string>("precision", "auto");
  r.budget = packing.whole("budget", 0, 0);
  r.steps = top.whole("steps", 0, 0);
  r.grad_accumulation = top.whole("gradAccumulation", 1, 1);
  read_optimizer(json, where, &r);
  read_schedule(json, where, &r);
  const auto policy = top.get<std::string>("recompute", "auto");
  if (policy != "auto") r.policy = parse_policy(policy);
  const auto sharding = top.get<std::string>("sharding", "auto");
  const auto split = parse_sharding(sharding);
  if (!split) top.unknown("sharding", sharding, "auto, optimizer, gradients or weights");
  r.sharding = *split;
  r.checkpoint = {.every_steps = checkpoint.whole("everySteps", 0, 0),
                  .every_minutes = checkpoint.number("everyMinutes", 0, 0, kAny),
                  .keep = checkpoint.whole("keep", 2, 1),
                  .best = checkpoint.get<bool>("best", false)};
  r.evaluate_every = evaluate.whole("everySteps", 0, 0);
  r.profile_at = top.whole("profileAtStep", 0, 0);
  r.accept_slow = top.get<bool>("acceptSlow", false);
  const auto kernels = top.get<std::string>("kernels", "fast");
  if (kernels != "fast" && kernels != "reference") top.unknown("kernels", kernels, "fast or reference");
  r.reference_kernels = kernels == "reference";
  r.compaction = head.get<bool>("compaction", true);
  r.head_rows = head.whole("rows", 2048, 1);
  r.seed = top.whole("seed", 0, 0);
  r.binding = binding_of(r);
  return r;
}

Recipe read_recipe(const fs::path& path) { return parse_recipe(read_json(path), path.string()); }

}  // namespace tessera
