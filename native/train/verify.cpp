#include "train/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/dtype.h"
#include "core/error.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "model/device.h"
#include "model/executor.h"
#include "model/rounded_backend.h"

namespace tessera {
namespace {

// Largest admissible errors. Norms: ||a-b|| / ||b||. Elements: |a-b| / (|b| + rms(b)), which a single wrong
// element in a large tensor cannot hide from.
struct Limits {
  double loss_relative, loss_absolute, logits, gradient, cosine, training, element;
  double median = std::numeric_limits<double>::infinity();  // of the gradients' errors
};
// A gradient's elements are of very different sizes (rows of tokens that come once, or never): one that is
// wrong is off by its own size, one in such a row by more than the others round.
constexpr double kGradientElementRoom = 5;
constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr Limits kFp32{1e-5, kNone, 1e-4, 1e-3, -1.0, 1e-3, 2e-3};
constexpr Limits kBf16{kNone, 5e-3, 2e-2, 3e-2, 0.999, 2e-2, kNone};

// Rounding is chance: another order of the same sums moves a tensor's error. A whole tensor of few elements
// that nearly cancel moves most, so the median carries the judgement and single tensors get room.
constexpr double kWholeRoom = 1.5, kTensorRoom = 4.0;

Limits bf16_limits(const Json* yardstick) {
  if (!yardstick) return kBf16;
  const Json& y = *yardstick;
  Limits l = kBf16;
  l.loss_absolute = std::max(l.loss_absolute, kTensorRoom * y["loss"]["absoluteError"].get<double>());
  l.logits = std::max(l.logits, kWholeRoom * y["logits"]["relativeError"].get<double>());
  l.median = std::max(l.gradient, kWholeRoom * y["gradients"]["median"].get<double>());
  l.training = std::max(l.training, kTensorRoom * y["training"]["worstRelativeError"].get<double>());
  l.cosine = -1.0;  // said by the error of each tensor
  return l;
}

struct Difference {
  double relative = 0, element = 0, cosine = 1;
  size_t worst_index = 0;
};

Difference compare(const std::vector<float>& got, const std::vector<float>& want, double scale) {
  double difference = 0, norm = 0, got_norm = 0, dot = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double a = got[i] * scale, b = want[i];
    difference += (a - b) * (a - b);
    norm += b * b;
    got_norm += a * a;
    dot += a * b;
  }
  Difference d;
  const double tiny = 1e-30, rms = std::sqrt(norm / std::max<double>(1, static_cast<double>(want.size())));
  d.relative = std::sqrt(difference) / std::max(std::sqrt(norm), tiny);
  d.cosine = norm == 0 && got_norm == 0 ? 1.0 : dot / std::max(std::sqrt(norm * got_norm), tiny);
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] * scale - want[i]) / std::max(std::abs(double{want[i]}) + rms, tiny);
    if (!(error <= d.element)) {
      d.element = error;
      d.worst_index = i;
    }
  }
  return d;
}

// A gradient that is next to nothing of the whole one has no scale of its own: what it holds is rounding (the
// only key of a query, for instance, learns nothing). It is asked to stay next to nothing.
constexpr double kNegligible = 1e-6, kNegligibleScale = 1e-3;

Difference compare_gradient(const std::vector<float>& got, const std::vector<float>& want, double scale,
                            double whole) {
  double norm = 0, difference = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    norm += double{want[i]} * want[i];
    difference += std::pow(got[i] * scale - want[i], 2);
  }
  if (!(std::sqrt(norm) <= kNegligible * whole) || whole == 0) return compare(got, want, scale);
  return {.relative = std::sqrt(difference) / (kNegligibleScale * whole)};
}

double relative(double got, double want) { return std::abs(got - want) / std::max(std::abs(want), 1e-30); }

// A fixture's inputs as sequences.
struct Inputs {
  std::vector<i32> ids, labels, cu;
  i64 supervised = 0;
  std::vector<Sequence> sequences(const std::vector<i32>& tokens) const {
    std::vector<Sequence> list;
    for (size_t n = 0; n + 1 < cu.size(); ++n) {
      const auto begin = static_cast<size_t>(cu[n]), count = static_cast<size_t>(cu[n + 1] - cu[n]);
      list.push_back({std::span(tokens).subspan(begin, count), std::span(labels).subspan(begin, count),
                      static_cast<i64>(count)});
    }
    return list;
  }
};

Inputs read_inputs(const SafetensorsFile& file) {
  const auto ints = [&](const char* name) {
    const auto* data = static_cast<const i32*>(file.typed(name, DType::i32));
    return std::vector<i32>(data, data + file.info(name).count());
  };
  Inputs in{ints("input_ids"), ints("labels"), ints("cu_seqlens")};
  const auto T = static_cast<i32>(in.ids.size());
  bool good =
      in.cu.size() >= 2 && in.cu.front() == 0 && in.cu.back() == T && in.labels.size() == in.ids.size();
  for (size_t n = 0; good && n + 1 < in.cu.size(); ++n) good = in.cu[n] <= in.cu[n + 1];
  if (!good)
    throw EngineError("invalid_fixture", file.path().string() +
                                             ": cu_seqlens must begin at 0, never fall and end at " +
                                             std::to_string(T) + ", the length of input_ids and labels");
  in.supervised = T - std::count(in.labels.begin(), in.labels.end(), kIgnoreLabel);
  if (in.supervised == 0)
    throw EngineError("invalid_fixture", file.path().string() + ": no position is supervised");
  return in;
}

class Verifier {
 public:
  Verifier(Backend& backend, const fs::path& folder, const VerifyOptions& options)
      : backend_(backend),
        options_(options),
        limits_(backend.act_dtype() == DType::f32 ? kFp32 : bf16_limits(options.yardstick)),
        settings_path_((folder / "expected.json").string()),
        settings_(read_json(folder / "expected.json")),
        expected_(folder / "expected.safetensors"),
        config_(read_config(folder)),
        files_(folder),
        prefix_(tensor_prefix(files_)),
        layout_(make_layout(config_, prefix_)),
        inputs_(read_inputs(expected_)) {
    check_tensors(layout_, files_, prefix_, config_.tied);
  }

  Json run() {
    const Json adamw = require_field<Json>(settings_, "adamw", settings_path_, "invalid_fixture");
    auto executor = make_executor(adamw);
    report_["device"] = backend_.name();
    report_["precision"] = backend_.act_dtype() == DType::f32 && !options_.rounded_weights ? "fp32" : "bf16";
    report_["slowKernels"] = slow_kernels();
    report_["kernels"] = kernels_json(backend_.kernels(config_.gdn, config_.attn));
    check_forward(*executor);
    check_gradients(*executor);
    check_isolation(*executor);
    check_training(*executor, adamw);
    report_["ok"] = failures_.empty();
    report_["failures"] = failures_;
    return report_;
  }

 private:
  std::unique_ptr<Executor> make_executor(const Json& adamw) {
    const auto get = [&](const char* key) {
      return require_field<double>(adamw, key, settings_path_, "invalid_fixture");
    };
    const auto betas = require_field<std::vector<double>>(adamw, "betas", settings_path_, "invalid_fixture");
    if (betas.size() != 2)
      throw EngineError("invalid_fixture", settings_path_ + ": betas must be two numbers");
    ExecutorOptions o;
    o.optimizer = {.beta1 = betas[0],
                   .beta2 = betas[1],
                   .eps = get("eps"),
                   .weight_decay = static_cast<float>(get("weight_decay")),
                   .decay_small = optional_field<bool>(adamw, "all_params_decayed", false, settings_path_,
                                                       "invalid_fixture")};
    o.policy = options_.policy;
    o.compaction = options_.compaction;
    const auto used = static_cast<i64>(inputs_.ids.size()), count = static_cast<i64>(inputs_.cu.size()) - 1;
    o.batch.tokens = backend_.fixed_shapes() ? (used + 63) / 64 * 64 : used;
    o.batch.sequences = sequences_with_tail(count, used, o.batch.tokens);
    auto executor = std::make_unique<Executor>(backend_, config_, layout_, o);
    executor->allocate();
    load_weights(executor->parameters(), files_);
    if (options_.rounded_weights) round_weights(executor->parameters());
    return executor;
  }

  void round_weights(const Parameters& parameters) const {
    for (const TensorEntry& t : layout_.tensors) {
      if (t.bucket != Bucket::big) continue;
      auto values = parameters.read(t, Field::weight);
      std::vector<char> narrow(values.size() * dtype_bytes(DType::bf16));
      from_f32(narrow.data(), DType::bf16, values.data(), t.count);
      to_f32(values.data(), narrow.data(), DType::bf16, t.count);
      parameters.write(t, Field::weight, values.data());
    }
  }

  // The most that a tensor's gradient may be off by.
  double gradient_limit(const std::string& name) const {
    if (!options_.yardstick) return limits_.gradient;
    const Json& g = (*options_.yardstick)["gradients"];
    return std::max({limits_.gradient, kTensorRoom * g["each"][name].get<double>(),
                     kTensorRoom * g["median"].get<double>()});
  }

  Json slow_kernels() const {
    Json slow = Json::array();
    for (const KernelInfo& k : backend_.kernels(config_.gdn, config_.attn))
      if (k.slow) slow.push_back(k.operation);
    return slow;
  }

  void limit(const std::string& what, double error, double most) {
    if (!(error <= most)) {
      char text[64];
      std::snprintf(text, sizeof text, ": %.3g exceeds %.3g", error, most);
      failures_.push_back(what + text);
    }
  }

  StepScalars scalars(i32 step, double lr, double clip, double beta1, double beta2) const {
    return {.lr = static_cast<float>(lr),
            .bias1 = static_cast<float>(1 - std::pow(beta1, step)),
            .bias2 = static_cast<float>(1 - std::pow(beta2, step)),
            .inv_tokens = static_cast<float>(1.0 / static_cast<double>(inputs_.supervised)),
            .clip = static_cast<float>(clip),
            .seed = 0,
            .step = step};
  }

  void check_forward(Executor& executor) {
    const auto T = inputs_.ids.size();
    auto got = executor.logits(inputs_.sequences(inputs_.ids));
    got.resize(T * static_cast<size_t>(config_.vocab));
    const auto want = expected("logits", got.size());
    const Difference d = compare(got, want, 1.0);
    report_["logits"] = {{"relativeError", d.relative}, {"elementError", d.element}};
    limit("logits", d.relative, limits_.logits);
    limit("logits, element " + std::to_string(d.worst_index), d.element, limits_.element);
  }

  void check_gradients(Executor& executor) {
    executor.run_micro_batch(inputs_.sequences(inputs_.ids), true);
    const StepResult result = executor.result(executor.measure(scalars(1, 0, 0, 0, 0)));
    const double n = static_cast<double>(inputs_.supervised), got = result.loss_sum / n;
    const double want = require_field<double>(settings_, "loss", settings_path_, "invalid_fixture");
    report_["loss"] = {{"got", got},
                       {"want", want},
                       {"relativeError", relative(got, want)},
                       {"absoluteError", std::abs(got - want)}};
    limit("loss", relative(got, want), limits_.loss_relative);
    limit("loss (absolute)", std::abs(got - want), limits_.loss_absolute);
    if (expected_.contains("nll") && !options_.compaction) {
      auto nll = executor.losses();
      nll.resize(inputs_.ids.size());
      const Difference d = compare(nll, expected("nll", nll.size()), 1.0);
      report_["nll"] = {{"relativeError", d.relative}, {"elementError", d.element}};
      limit("nll", d.relative, limits_.logits);
      limit("nll, element " + std::to_string(d.worst_index), d.element, limits_.element);
    }
    const double norm = require_field<double>(settings_, "grad_norm", settings_path_, "invalid_fixture");
    report_["gradNorm"] = {
        {"got", result.grad_norm}, {"want", norm}, {"relativeError", relative(result.grad_norm, norm)}};
    const double rounding =
        options_.yardstick ? (*options_.yardstick)["gradNorm"]["relativeError"].get<double>() : 0.0;
    limit("gradient norm", relative(result.grad_norm, norm),
          std::max(limits_.gradient, kTensorRoom * rounding));

    std::vector<double> errors;
    Json worst, worst_element, each = Json::object();
    double worst_cosine = 1;
    for (const TensorEntry& t : layout_.tensors) {
      const auto gradient = executor.parameters().read(t, Field::gradient);
      const Difference d =
          compare_gradient(gradient, expected("grad." + t.name, gradient.size()), 1.0 / n, norm);
      errors.push_back(d.relative);
      each[t.name] = d.relative;
      worst_cosine = std::min(worst_cosine, d.cosine);
      if (worst.is_null() || !(d.relative <= worst["relativeError"].get<double>()))
        worst = {{"name", t.name}, {"relativeError", d.relative}};
      if (worst_element.is_null() || !(d.element <= worst_element["error"].get<double>()))
        worst_element = {{"name", t.name}, {"index", d.worst_index}, {"error", d.element}};
      limit("gradient of " + t.name, d.relative, gradient_limit(t.name));
      limit("gradient of " + t.name + ", element " + std::to_string(d.worst_index), d.element,
            kGradientElementRoom * limits_.element);
      limit("gradient of " + t.name + ", 1 - cosine", 1 - d.cosine, 1 - limits_.cosine);
    }
    std::sort(errors.begin(), errors.end());
    report_["gradients"] = {{"worst", worst},
                            {"median", errors[errors.size() / 2]},
                            {"worstCosine", worst_cosine},
                            {"worstElement", worst_element},
                            {"each", each}};
    limit("median of the gradients", errors[errors.size() / 2], limits_.median);
  }

  // Changes every token of one example at a time: nothing of any other example may change, not by one bit.
  void check_isolation(Executor& executor) {
    const auto base = observe(executor, inputs_.ids);
    double change = 0;
    bool same = true;
    for (size_t n = 0; n + 1 < inputs_.cu.size(); ++n) {
      auto ids = inputs_.ids;
      for (i32 t = inputs_.cu[n]; t < inputs_.cu[n + 1]; ++t) {
        i32& id = ids[static_cast<size_t>(t)];
        id = static_cast<i32>((id + 1 + t % 7) % config_.vocab);
      }
      const auto other = observe(executor, ids);
      for (size_t k = 0; k < base.size(); ++k) {
        const size_t width = base[k].size() / inputs_.ids.size();
        for (size_t i = 0; i < base[k].size(); ++i) {
          const auto t = static_cast<i32>(i / width);
          if (t >= inputs_.cu[n] && t < inputs_.cu[n + 1]) continue;
          if (std::bit_cast<std::uint32_t>(base[k][i]) == std::bit_cast<std::uint32_t>(other[k][i])) continue;
          same = false;
          const double by = std::abs(double{base[k][i]} - other[k][i]);
          change = std::isnan(by) ? by : std::max(change, by);
        }
      }
    }
    report_["isolation"] = {{"ok", same}, {"maxChange", change}};
    if (!same) failures_.push_back("isolation: an example sees another");
  }

  // What an example could leak into: logits [T,V], losses [T], gradients at the embedding [T,H].
  std::vector<std::vector<float>> observe(Executor& executor, const std::vector<i32>& ids) const {
    const size_t T = ids.size();
    std::vector<std::vector<float>> values;
    values.push_back(executor.logits(inputs_.sequences(ids)));
    executor.run_micro_batch(inputs_.sequences(ids), true);
    if (!options_.compaction) values.push_back(executor.losses());
    values.push_back(executor.input_gradient());
    const std::vector<size_t> widths =
        options_.compaction
            ? std::vector<size_t>{static_cast<size_t>(config_.vocab), static_cast<size_t>(config_.hidden)}
            : std::vector<size_t>{static_cast<size_t>(config_.vocab), 1, static_cast<size_t>(config_.hidden)};
    for (size_t k = 0; k < values.size(); ++k) values[k].resize(T * widths[k]);
    return values;
  }

  void check_training(Executor& executor, const Json& adamw) {
    const auto want = require_field<std::vector<double>>(adamw, "losses", settings_path_, "invalid_fixture");
    const auto get = [&](const char* key) {
      return require_field<double>(adamw, key, settings_path_, "invalid_fixture");
    };
    const auto betas = require_field<std::vector<double>>(adamw, "betas", settings_path_, "invalid_fixture");
    std::vector<double> got;
    double worst = 0;
    for (size_t k = 0; k < want.size(); ++k) {
      const int ticket = executor.run_last_micro_batch(
          inputs_.sequences(inputs_.ids), true,
          scalars(static_cast<i32>(k) + 1, get("lr"), get("clip"), betas[0], betas[1]));
      got.push_back(executor.result(ticket).loss_sum / static_cast<double>(inputs_.supervised));
      const double error = relative(got.back(), want[k]);
      if (!(error <= worst)) worst = error;
      limit("training loss " + std::to_string(k + 1), error, limits_.training);
    }
    report_["training"] = {{"losses", got}, {"worstRelativeError", worst}};
  }

  std::vector<float> expected(const std::string& name, size_t count) const {
    auto values = expected_.floats(name);
    if (values.size() != count)
      throw EngineError("invalid_fixture", expected_.path().string() + ": " + name + " holds " +
                                               std::to_string(values.size()) + " values, expected " +
                                               std::to_string(count));
    return values;
  }

  Backend& backend_;
  const VerifyOptions options_;
  const Limits limits_;
  const std::string settings_path_;
  const Json settings_;
  const SafetensorsFile expected_;
  const ModelConfig config_;
  const SafetensorsFolder files_;
  const std::string prefix_;
  const Layout layout_;
  const Inputs inputs_;
  Json report_;
  std::vector<std::string> failures_;
};

}  // namespace

Json verify_fixture(Backend& backend, const fs::path& fixture, const VerifyOptions& options) {
  return Verifier(backend, fixture, options).run();
}

namespace {

// What bf16 costs this fixture on any hardware.
Json measure_yardstick(int threads, const fs::path& fixture, VerifyOptions options) {
  const auto cpu = make_cpu_backend({.threads = threads});
  RoundedBackend rounded(*cpu);
  options.rounded_weights = true;
  return verify_fixture(rounded, fixture, options);
}

Json verify_bf16(const std::string& device, int threads, bool accept_slow, const fs::path& fixture,
                 VerifyOptions options) {
  const auto backend = make_model_backend(device, read_config(fixture), accept_slow,
                                          {.profile = "", .portable = options.portable, .precision = "bf16"});
  const Json yardstick = measure_yardstick(threads, fixture, options);
  options.yardstick = &yardstick;
  Json report = verify_fixture(*backend, fixture, options);
  report["yardstick"] = {{"device", yardstick["device"]},       {"loss", yardstick["loss"]},
                         {"logits", yardstick["logits"]},       {"gradNorm", yardstick["gradNorm"]},
                         {"gradients", yardstick["gradients"]}, {"training", yardstick["training"]}};
  return report;
}

}  // namespace

Json verify_device(const std::string& device, int threads, const std::string& precision, bool accept_slow,
                   const fs::path& fixture, const VerifyOptions& options) {
  const bool cpu = device == "cpu" || make_backend(device)->name() == "cpu";
  if (cpu && precision == "bf16") return measure_yardstick(threads, fixture, options);
  if (precision == "bf16") return verify_bf16(device, threads, accept_slow, fixture, options);
  const auto backend = make_backend(device, {.threads = threads, .profile = "", .precision = "fp32"});
  Json report = verify_fixture(*backend, fixture, options);
  if (cpu || precision == "fp32") return report;
  try {
    report["bf16"] = verify_bf16(device, threads, accept_slow, fixture, options);
  } catch (const EngineError& error) {
    if (error.code() != "unsupported_head_size") throw;
    // The model is right and can be trained slowly; that it was not checked in bf16 is said.
    report["bf16"] = {{"skipped", error.what()}, {"hint", error.hint()}};
    return report;
  }
  if (!report["bf16"]["ok"].get<bool>()) report["ok"] = false;
  for (const Json& failure : report["bf16"]["failures"])
    report["failures"].push_back("bf16: " + failure.get<std::string>());
  return report;
}

}  // namespace tessera
