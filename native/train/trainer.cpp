#include "train/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "model/device.h"
#include "protocol/hello.h"
#include "protocol/nvml.h"

namespace tessera {
namespace {

void check_tokens(const TokenCache& cache, i64 vocab, const fs::path& folder) {
  for (i64 n = 0; n < cache.num_examples(); ++n)
    for (const i32 id : cache.ids(n))
      if (id < 0 || id >= vocab)
        throw EngineError("invalid_token",
                          folder.string() + ": example " + std::to_string(n + 1) + " holds token " +
                              std::to_string(id) + ", the model's vocabulary has " + std::to_string(vocab),
                          "The dataset was tokenised for another model: import it again with this one.");
}

// Bytes that a run may take: half of the machine's free memory on the CPU, so that it stays usable, and nine
// tenths of a GPU's. 0: unknown.
size_t free_memory(const std::string& device, int world) {
  if (device == "cpu")  // which all ranks share
    return static_cast<size_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) /
           2 / static_cast<size_t>(world);
  const Nvml nvml;
  const int index = std::atoi(device.substr(device.find(':') + 1).c_str());
  const Json gpu = nvml.read_device(index);
  if (!gpu.contains("memoryTotalBytes")) return 0;
  return (gpu["memoryTotalBytes"].get<size_t>() - gpu["memoryBytes"].get<size_t>()) / 10 * 9;
}

}  // namespace

Trainer::Trainer(const TrainOptions& options)
    : options_(options),
      recipe_(read_recipe(options.recipe)),
      cache_(options.cache),
      plan_(options.plan, cache_, recipe_.budget),
      samples_(read_samples(options.samples)),
      config_(read_config(options.model)),
      files_(options.model),
      side_files_(read_side_files(options.model)),
      prefix_(tensor_prefix(files_)),
      layout_(make_layout(config_, prefix_)),
      device_(make_model_backend(
          options.device.empty() ? recipe_.device : options.device, config_, recipe_.accept_slow,
          {.threads = options.threads,
           .profile = "",
           .reference = recipe_.reference_kernels ? "asked for by kernels: reference" : "",
           .precision = recipe_.precision})),
      backend_(std::make_unique<ProfiledBackend>(*device_)) {
  if (!options.eval_plan.empty()) {
    eval_cache_.emplace(options.eval_cache.empty() ? options.cache : options.eval_cache);
    eval_plan_.emplace(options.eval_plan, *eval_cache_, recipe_.budget);
  }
  agree_on_accumulation();
  total_steps_ = recipe_.steps > 0 ? recipe_.steps : steps_per_pass();
  check_model_and_plan();
  refuse_empty_steps();
  if (!recipe_.accept_slow) refuse_slow_kernels(*backend_, config_);
  available_ = free_memory(backend_->name(), options_.rank.world);
  collectives_ = join_ranks();
  executor_ = choose_executor_together();
  state_.bins_per_step = bins_per_step_;
  state_.seed = recipe_.seed;
  state_.recipe = recipe_.binding;
  state_.recipe.update(number_types());
  state_.data = {{"cache", cache_.fingerprint()}, {"plan", plan_.fingerprint()}};
}

Trainer::Samples Trainer::read_samples(const fs::path& file) {
  constexpr const char* kBad = "invalid_samples";
  Samples samples;
  if (file.empty()) return samples;
  const Json json = read_json(file);
  const std::string where = file.string();
  samples.prompts = require_field<std::vector<std::vector<i32>>>(json, "prompts", where, kBad);
  samples.sampling.tokens = require_field<i64>(json, "tokens", where, kBad);
  samples.sampling.stop = optional_field<std::vector<i32>>(json, "stop", {}, where, kBad);
  for (const auto& prompt : samples.prompts)
    if (prompt.empty()) throw EngineError(kBad, where + ": a prompt without tokens cannot be continued");
  return samples;
}

void Trainer::check_model_and_plan() const {
  check_tensors(layout_, files_, prefix_, config_.tied);
  check_tokens(cache_, config_.vocab, options_.cache);
  if (eval_cache_) check_tokens(*eval_cache_, config_.vocab, options_.eval_cache);
  const i64 longest =
      std::max(plan_.max_sequence_length(), eval_plan_ ? eval_plan_->max_sequence_length() : 0);
  if (longest > config_.max_positions)
    throw EngineError("invalid_plan",
                      options_.plan.string() + ": an example of " + std::to_string(longest) +
                          " positions exceeds the model's max_position_embeddings of " +
                          std::to_string(config_.max_positions),
                      "Lower packing.budget.");
  if (recipe_.optimizer.mode == OptimizerMode::bf16sr && backend_->weight_dtype() != DType::bf16)
    throw EngineError(
        "unsupported_mode",
        "optimizer.mode bf16sr needs bf16 weights, which " + backend_->name() + " does not have",
        "Use optimizer.mode master32.");
}

BatchLayout Trainer::capacity() const {
  BatchLayout layout;
  const Plan* plans[] = {&plan_, eval_plan_ ? &*eval_plan_ : nullptr};
  for (const Plan* plan : plans)
    if (plan) {
      layout.tokens = std::max(layout.tokens, plan->max_positions());
      layout.longest = std::max(layout.longest, plan->max_sequence_length());
    }
  if (backend_->fixed_shapes())
    layout.tokens = (std::max(layout.tokens, recipe_.budget) + kChunk - 1) / kChunk * kChunk;
  for (const Plan* plan : plans)
    for (i64 b = 0; plan && b < plan->num_bins(); ++b) {
      const auto count = static_cast<i64>(plan->bin(b).size());
      layout.sequences = std::max(
          layout.sequences,
          backend_->fixed_shapes() ? sequences_with_tail(count, plan->positions(b), layout.tokens) : count);
    }
  return layout;
}

PlanWishes Trainer::wishes() const {
  return {options_.rank.world, recipe_.sharding, recipe_.policy, recipe_.gradients == DType::bf16};
}

std::unique_ptr<Executor> Trainer::plan_executor(const PlanChoice& choice, RankOf rank) const {
  return std::make_unique<Executor>(*backend_, config_, layout_,
                                    ExecutorOptions{.optimizer = recipe_.optimizer,
                                                    .policy = choice.policy,
                                                    .keep_all = choice.keep_all,
                                                    .batch = capacity(),
                                                    .head_rows = recipe_.head_rows,
                                                    .compaction = recipe_.compaction,
                                                    .accumulates = accumulation_ > 1,
                                                    .gradients = recipe_.gradients,
                                                    .rank = rank,
                                                    .sharding = choice.sharding,
                                                    .collectives = collectives_.get()});
}

// What is not asked for is the fastest that fits the memory.
std::unique_ptr<Executor> Trainer::choose_executor() const {
  return first_that_fits(wishes(), available_,
                         [this](const PlanChoice& choice) { return plan_executor(choice); });
}

Json Trainer::memory_report() const {
  const MemoryPlan planned = executor_->plan();
  Json memory = {{"planned", planned.total},
                 {"activations", planned.activations},
                 {"withoutRecompute",
                  plan_executor({executor_->options().sharding, RecomputePolicy::p0, true})->plan().total}};
  if (available_ > 0) memory["available"] = available_;
  return memory;
}

// What the numbers of a run are kept in. Another backend, or another number of micro-batches, may choose
// otherwise.
Json Trainer::number_types() const {
  const auto name = [](DType t) { return t == DType::bf16 ? "bf16" : "fp32"; };
  return {{"precision", name(backend_->weight_dtype())},
          {"optimizer.gradients", name(executor_->gradient_type())}};
}

// Refused here, before the first step, so that no run ends in its middle for it.
void Trainer::refuse_empty_steps() const {
  const i64 distinct = std::min(total_steps_, steps_per_pass());
  std::vector<i32> labels;
  for (i64 step = 0; step < distinct; ++step) {
    i64 targets = 0;
    const i64 first = step * bins_per_step_, end = std::min(first + bins_per_step_, plan_.num_bins());
    for (i64 bin = first; bin < end; ++bin)
      for (const Placement& p : plan_.bin(bin)) {
        labels.clear();
        targets += append_labels(cache_, p, &labels);
      }
    if (targets == 0)
      throw EngineError("no_supervised_tokens",
                        options_.plan.string() + ": step " + std::to_string(step + 1) + " (bin " +
                            std::to_string(first) + ") has 0 trainable tokens",
                        "Leave out examples without an assistant's turn, or raise gradAccumulation.");
  }
}

Json Trainer::hello() const {
  // The list is kept with the run; what its numbers are kept in belongs to the update's row.
  Json kernels = kernels_json(backend_->kernels(config_.gdn, config_.attn));
  const Json types = number_types();
  for (Json& row : kernels)
    if (row["layerKind"] == "optimizer")
      row["reason"] = row["reason"].get<std::string>() + "; weights " +
                      types["precision"].get<std::string>() + ", gradients " +
                      types["optimizer.gradients"].get<std::string>();
  Json hello = hello_event(kernels);
  if (options_.rank.world > 1) add_ranks(hello);
  return hello;
}

Json Trainer::forecast() const {
  const MemoryPlan m = executor_->plan();
  Json forecast = {{"steps", total_steps_},
                   {"recompute", policy_name(executor_->options().policy)},
                   {"numbers", number_types()},
                   {"fixedShapes", backend_->fixed_shapes()},
                   {"checkpointBytes", checkpoint_bytes(checkpoint_source())},
                   {"ranks", options_.rank.world},
                   {"memory",  // of each rank
                    {{"weights", m.weights},
                     {"gradients", m.gradients},
                     {"optimizer", m.optimizer},
                     {"activations", m.activations},
                     {"workspace", m.workspace},
                     {"context", m.context},
                     {"total", m.total}}}};
  if (options_.rank.world > 1) forecast["sharding"] = sharding_name(executor_->options().sharding);
  if (available_ > 0 && m.total > available_ && backend_->fixed_shapes())
    if (const int ranks =
            ranks_that_would_do(wishes(), available_, [this](const PlanChoice& choice, int world) {
              return plan_executor(choice, {0, world});
            }))
      forecast["ranksThatWouldDo"] = ranks;
  return forecast;
}

void Trainer::start() {
  account_.begin();
  if (leads()) make_folder(options_.out);  // where nothing can be written, nothing is learnt
  say({{"event", "progress"},
       {"what", "load"},
       {"done", 0},
       {"total", 1},
       {"recompute", policy_name(executor_->options().policy)},
       {"numbers", number_types()},
       {"memory", forecast()["memory"]}});
  // Its large matrices: while the memory is still free, so that the run's peak is what was planned.
  if (backend_->fixed_shapes()) backend_->roof();
  executor_->allocate();
  first_step_ = 1;
  if (resume_.empty()) {
    load_weights(executor_->parameters(), files_);
  } else {
    if (!resume_warning_.empty())
      say({{"event", "warning"}, {"code", "damaged_checkpoint"}, {"message", resume_warning_}});
    resume_from(resume_);
  }
  say({{"event", "progress"}, {"what", "load"}, {"done", 1}, {"total", 1}});
  started_ = last_report_ = last_save_ = last_account_ = account_.spend("load");
}

void Trainer::resume_from(const fs::path& checkpoint) {
  RunState saved = read_state(checkpoint);
  // Checkpoints of older versions do not say what their numbers were.
  const Json types = number_types();
  for (const auto& [field, value] : types.items())
    if (!saved.recipe.contains(field)) saved.recipe[field] = value;
  // Gradients are no part of a state, and how several bins share one is a matter of how many ranks there are.
  if (bins_per_step_ > 1) saved.recipe["optimizer.gradients"] = types["optimizer.gradients"];
  check_binding(saved.recipe, state_.recipe, "recipe");
  check_binding(saved.data, state_.data, "dataset or plan");
  restore(executor_->parameters(), checkpoint);
  state_ = std::move(saved);
  state_.bins_per_step = bins_per_step_;
  saved_step_ = state_.step;
  kept_best_ = state_.best_step;
  // Without an account (of an older version) a new one begins here.
  first_step_ = state_.step + 1;
  if (state_.account.is_null()) return;
  const std::string where = (checkpoint / "state.json").string();
  account_.restore(state_.account, where);
  first_step_ = require_field<i64>(state_.account, "fromStep", where, "damaged_checkpoint");
}

// Micro-batches that the rank with the most has in a step.
i64 Trainer::rounds_of_step(i64 step) const {
  const i64 first = step % steps_per_pass() * bins_per_step_, world = options_.rank.world;
  return (std::min(bins_per_step_, plan_.num_bins() - first) + world - 1) / world;
}

// Bins are taken in order; a run longer than its plan goes through it again.
i64 Trainer::bins_of_step(i64 step, i64 index) const {
  if (index >= accumulation_) return -1;
  const auto [rank, world] = options_.rank;
  const i64 bin = step % steps_per_pass() * bins_per_step_ + index * world + rank;
  return bin < plan_.num_bins() ? bin : -1;
}

Trainer::MicroBatch Trainer::micro_batch(const TokenCache& cache, const Plan& plan, i64 bin) const {
  MicroBatch m;
  for (const Placement& p : plan.bin(bin)) {
    const auto ids =
        cache.ids(p.example).subspan(static_cast<size_t>(p.start), static_cast<size_t>(p.length));
    m.ids.insert(m.ids.end(), ids.begin(), ids.end());
    m.targets += append_labels(cache, p, &m.labels);
    m.positions += p.positions;
  }
  m.tokens = static_cast<i64>(m.ids.size());
  size_t at = 0;
  for (const Placement& p : plan.bin(bin)) {
    const auto length = static_cast<size_t>(p.length);
    m.sequences.push_back(
        {std::span(m.ids).subspan(at, length), std::span(m.labels).subspan(at, length), p.positions});
    at += length;
  }
  return m;
}

}  // namespace tessera
