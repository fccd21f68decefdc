#include "train/isolation.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "model/executor.h"

namespace tessera {
namespace {

// ||packed - alone|| / ||alone|| at most: sums run in another order where an example begins elsewhere.
constexpr double kToleranceF32 = 1e-4, kToleranceBf16 = 3e-2;
constexpr size_t kMostExamples = 12, kMostChanged = 2;
// Gradients of larger tensors would not come back within a few seconds.
constexpr i64 kMostGradient = i64{1} << 26;
// A model with more parameters is proven on its first layers.
constexpr i64 kMostParameters = 300'000'000;

struct Observation {
  std::vector<float> output, losses, gradient;  // [T,H], [T], [T,H]
  std::vector<std::string> weights;             // a checksum per tensor
};

double relative_error(const float* got, const float* want, size_t count) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < count; ++i) {
    difference += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    norm += double{want[i]} * want[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
}

i64 count_targets(const std::vector<i32>& labels) {
  return static_cast<i64>(labels.size()) - std::count(labels.begin(), labels.end(), kIgnoreLabel);
}

PackedExample take(const TokenCache& cache, const Placement& p) {
  PackedExample e{p.example, {}, {}, p.positions};
  const auto ids = cache.ids(p.example).subspan(static_cast<size_t>(p.start), static_cast<size_t>(p.length));
  e.ids.assign(ids.begin(), ids.end());
  append_labels(cache, p, &e.labels);
  return e;
}

// The placement itself where it fits, else a window around its first target.
Placement cut(const TokenCache& cache, const Placement& p, i64 positions) {
  if (p.positions <= positions) return p;
  std::vector<i32> labels;
  append_labels(cache, p, &labels);
  const auto first = std::find_if(labels.begin(), labels.end(), [](i32 l) { return l != kIgnoreLabel; });
  const i64 length = std::min(positions, p.length);
  const i64 start = std::clamp<i64>(first - labels.begin() - length / 2, 0, p.length - length);
  return {p.example, p.start + start, length, std::max(length, std::min(p.positions, positions))};
}

void silence(PackedExample* e) { std::fill(e->labels.begin(), e->labels.end(), kIgnoreLabel); }

void change(PackedExample* e, i64 vocab) {
  for (size_t t = 0; t < e->ids.size(); ++t)
    e->ids[t] = static_cast<i32>((e->ids[t] + 1 + static_cast<i64>(t % 7)) % vocab);
}

class Prover {
 public:
  Prover(Backend& backend, const IsolationOptions& o)
      : backend_(backend),
        options_(o),
        whole_(read_config(o.model)),
        files_(o.model),
        prefix_(tensor_prefix(files_)),
        config_(first_layers(whole_, prefix_)),
        layout_(make_layout(config_, prefix_)) {
    const TokenCache cache(o.cache);
    const Plan plan(o.plan, cache, o.budget);
    pack_ = choose_pack(cache, plan, most_positions(plan));
    for (size_t n = 0, at = 0; n < pack_.size(); ++n) {
      begin_.push_back(at);
      at += static_cast<size_t>(pack_[n].computed);
    }
    begin_.push_back(begin_.back() + static_cast<size_t>(pack_.back().computed));
    make_executor();
  }

  Json run() {
    const auto began = std::chrono::steady_clock::now();
    const Observation base = observe(pack_);
    for (const size_t n : changed_examples()) prove(n, base);
    const bool f32 = backend_.act_dtype() == DType::f32;
    const double tolerance = f32 ? kToleranceF32 : kToleranceBf16;
    if (!(alone_ <= tolerance)) {
      char text[160];
      std::snprintf(text, sizeof text,
                    "an example alone differs from itself in the pack by %.2g, allowed %.2g", alone_,
                    tolerance);
      failures_.push_back(text);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return {{"ok", failures_.empty()},
            {"device", backend_.name()},
            {"examples", numbers()},
            {"changed", changed_},
            {"leaked", std::vector<i64>(leaked_.begin(), leaked_.end())},
            {"positions", begin_.back()},
            {"layers", config_.num_layers()},
            {"modelLayers", whole_.num_layers()},
            {"weightGradients", weights_compared_},
            {"alone", {{"relativeError", alone_}, {"tolerance", tolerance}}},
            {"failures", failures_},
            {"message", message()},
            {"seconds", seconds}};
  }

 private:
  static ModelConfig first_layers(const ModelConfig& whole, const std::string& prefix) {
    if (make_layout(whole, prefix).big_count <= kMostParameters) return whole;
    ModelConfig config = whole;
    size_t count = whole.layers.size();
    for (const LayerKind kind : {LayerKind::linear_attention, LayerKind::full_attention}) {
      const auto found = std::find(whole.layers.begin(), whole.layers.end(), kind);
      if (found == whole.layers.end()) continue;
      const auto needed = static_cast<size_t>(found - whole.layers.begin()) + 1;
      count = kind == LayerKind::linear_attention ? needed : std::max(count, needed);
    }
    config.layers.resize(count);
    return config;
  }

  // On the CPU what a second or two computes; a GPU runs a bin as large as the run's, by the run's kernels.
  i64 most_positions(const Plan& plan) const {
    if (options_.positions > 0) return options_.positions;
    if (backend_.fixed_shapes()) return std::max<i64>(192, plan.max_positions());
    const double flops_per_position = 6.0 * static_cast<double>(layout_.big_count);
    return std::clamp<i64>(static_cast<i64>(6e9 / flops_per_position), 192, 1024);
  }

  void make_executor() {
    ExecutorOptions o;
    o.policy = options_.policy;
    o.compaction = false;
    const auto used = static_cast<i64>(begin_.back()), count = static_cast<i64>(pack_.size());
    o.batch.tokens = backend_.fixed_shapes() ? (used + kChunk - 1) / kChunk * kChunk : used;
    o.batch.sequences = sequences_with_tail(count, std::min<i64>(used, kChunk), o.batch.tokens);
    executor_ = std::make_unique<Executor>(backend_, config_, layout_, o);
    executor_->allocate();
    load_weights(executor_->parameters(), files_);
  }

  std::vector<size_t> changed_examples() const {
    std::vector<size_t> list = {pack_.size() / 2};
    if (pack_.size() > 2) list.push_back(0);
    list.resize(std::min(list.size(), kMostChanged));
    return list;
  }

  Observation observe(const std::vector<PackedExample>& pack, bool with_weights = false) {
    executor_->run_micro_batch(options_.arrangement(pack), true);
    Observation seen{executor_->output(), executor_->losses(), executor_->input_gradient(), {}};
    if (!with_weights) return seen;
    for (const TensorEntry& t : layout_.tensors) {
      if (t.count > kMostGradient) continue;
      auto values = executor_->parameters().read(t, Field::gradient);
      for (float& v : values) v += 0.0f;  // a zero's sign says nothing
      seen.weights.push_back(
          text_checksum({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
    }
    return seen;
  }

  void prove(size_t n, const Observation& base) {
    changed_.push_back(pack_[n].example);
    auto silent = pack_;
    silence(&silent[n]);
    const Observation before = observe(silent, true);
    change(&silent[n], config_.vocab);
    const Observation after = observe(silent, true);
    expect_same(n, before, after, "changing the tokens");
    expect_same(n, base, before, "taking the targets");
    expect_no_gradient(n, before);
    expect_same_weights(n, before, after);
    compare_alone(n, base);
  }

  void expect_same(size_t n, const Observation& a, const Observation& b, const char* deed) {
    const auto compare = [&](const std::vector<float>& x, const std::vector<float>& y, const char* what) {
      const size_t width = x.size() / static_cast<size_t>(executor_->options().batch.tokens);
      for (size_t other = 0; other < pack_.size(); ++other) {
        if (other == n) continue;
        for (size_t i = begin_[other] * width; i < begin_[other + 1] * width; ++i) {
          if (std::bit_cast<std::uint32_t>(x[i]) == std::bit_cast<std::uint32_t>(y[i])) continue;
          char text[240];
          std::snprintf(text, sizeof text,
                        "%s of example %lld changed %s of example %lld at its position %zu by %.3g", deed,
                        number_of(n), what, number_of(other), i / width - begin_[other],
                        std::abs(double{x[i]} - y[i]));
          failures_.push_back(text);
          leaked_.insert(pack_[other].example);
          return;
        }
      }
    };
    compare(a.output, b.output, "the output");
    compare(a.losses, b.losses, "the loss");
    compare(a.gradient, b.gradient, "the gradient");
  }

  // Of an example of the pack in words: they count from 1, as the app does; data counts from 0.
  long long number_of(size_t n) const { return static_cast<long long>(pack_[n].example) + 1; }

  // An example without targets learns nothing; what reaches it comes from another's loss.
  void expect_no_gradient(size_t n, const Observation& seen) {
    const auto width = static_cast<size_t>(config_.hidden);
    for (size_t i = begin_[n] * width; i < begin_[n + 1] * width; ++i)
      if (seen.gradient[i] != 0.0f) {
        leaked_.insert(pack_[n].example);
        failures_.push_back("the loss of the other examples reaches example " + std::to_string(number_of(n)) +
                            " at its position " + std::to_string(i / width - begin_[n]));
        return;
      }
  }

  void expect_same_weights(size_t n, const Observation& a, const Observation& b) {
    weights_compared_ = a.weights.size();
    size_t k = 0;
    for (const TensorEntry& t : layout_.tensors) {
      if (t.count > kMostGradient) continue;
      if (a.weights[k] != b.weights[k]) {
        failures_.push_back("changing the tokens of example " + std::to_string(number_of(n)) +
                            " changed what the others teach " + t.name);
        return;
      }
      ++k;
    }
  }

  void compare_alone(size_t n, const Observation& packed) {
    executor_->run_micro_batch(one_sequence_each({pack_[n]}), true);
    const auto output = executor_->output(), gradient = executor_->input_gradient();
    const auto width = static_cast<size_t>(config_.hidden), count = pack_[n].ids.size() * width;
    const size_t from = begin_[n] * width;
    for (const double error : {relative_error(packed.output.data() + from, output.data(), count),
                               relative_error(packed.gradient.data() + from, gradient.data(), count)})
      if (!(error <= alone_)) alone_ = error;
  }

  std::vector<i64> numbers() const {
    std::vector<i64> list;
    for (const PackedExample& e : pack_) list.push_back(e.example);
    return list;
  }

  std::string message() const {
    if (!failures_.empty()) return failures_.front();
    char alone[64] = "is itself to the bit";
    if (alone_ > 0) std::snprintf(alone, sizeof alone, "agrees with itself within %.1e", alone_);
    char text[256];
    std::snprintf(
        text, sizeof text,
        "%zu examples in one pack of %zu positions: changing one moves no bit of the others, and one "
        "alone %s",
        pack_.size(), begin_.back(), alone);
    return text;
  }

  Backend& backend_;
  const IsolationOptions& options_;
  const ModelConfig whole_;
  const SafetensorsFolder files_;
  const std::string prefix_;
  const ModelConfig config_;
  const Layout layout_;
  std::vector<PackedExample> pack_;
  std::vector<size_t> begin_;  // first position of each example, and the end
  std::unique_ptr<Executor> executor_;
  std::vector<i64> changed_;
  std::set<i64> leaked_;  // examples that another one reached
  std::vector<std::string> failures_;
  size_t weights_compared_ = 0;
  double alone_ = 0;
};

}  // namespace

std::vector<Sequence> one_sequence_each(const std::vector<PackedExample>& pack) {
  std::vector<Sequence> list;
  for (const PackedExample& e : pack) list.push_back({e.ids, e.labels, e.computed});
  return list;
}

Arrangement joined_at(size_t n) {
  // The joined tokens must outlive the sequences that view them.
  auto ids = std::make_shared<std::vector<i32>>(), labels = std::make_shared<std::vector<i32>>();
  return [n, ids, labels](const std::vector<PackedExample>& pack) {
    if (pack.size() < n + 2) return one_sequence_each(pack);
    ids->clear();
    labels->clear();
    for (size_t k : {n, n + 1}) {
      const auto padded = static_cast<size_t>(pack[k].computed) - pack[k].ids.size();
      ids->insert(ids->end(), pack[k].ids.begin(), pack[k].ids.end());
      labels->insert(labels->end(), pack[k].labels.begin(), pack[k].labels.end());
      ids->insert(ids->end(), padded, 0);
      labels->insert(labels->end(), padded, kIgnoreLabel);
    }
    auto list = one_sequence_each(pack);
    list[n] = {*ids, *labels, static_cast<i64>(ids->size())};
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(n) + 1);
    return list;
  };
}

std::vector<PackedExample> choose_pack(const TokenCache& cache, const Plan& plan, i64 positions) {
  std::vector<PackedExample> best;
  const i64 bins = std::min<i64>(plan.num_bins(), 2048);
  for (i64 b = 0; b < bins && best.size() < 3; ++b) {
    std::vector<PackedExample> pack;
    i64 used = 0;
    for (const Placement& p : plan.bin(b)) {
      if (pack.size() == kMostExamples || used + p.positions > positions) continue;
      PackedExample e = take(cache, p);
      if (count_targets(e.labels) == 0) continue;
      used += p.positions;
      pack.push_back(std::move(e));
    }
    if (pack.size() > best.size()) best = std::move(pack);
  }
  if (best.size() >= 2) return best;
  best.clear();
  for (i64 b = 0; b < bins && best.size() < 3; ++b) {
    for (const Placement& p : plan.bin(b)) {
      PackedExample e = take(cache, cut(cache, p, positions / 3));
      const bool is_new = std::none_of(best.begin(), best.end(), [&](const PackedExample& other) {
        return other.example == e.example && other.ids == e.ids;
      });
      if (is_new && best.size() < 3 && count_targets(e.labels) > 0) best.push_back(std::move(e));
    }
  }
  if (best.empty())
    throw EngineError("no_supervised_tokens", "the plan's examples hold 0 supervised tokens",
                      "Import examples with an assistant's turn, or raise packing.budget.");
  if (best.size() == 1) best.push_back(best.front());
  return best;
}

Json prove_isolation(Backend& backend, const IsolationOptions& options) {
  return Prover(backend, options).run();
}

}  // namespace tessera
