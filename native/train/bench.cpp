#include "train/bench.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include "core/dtype.h"
#include "core/json.h"
#include "model/device.h"
#include "model/executor.h"
#include "model/flops.h"
#include "model/init.h"
#include "model/profiled_backend.h"
#include "protocol/nvml.h"
#include "ranks/rank_link.h"
#include "train/profile.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// Dense bf16 peak that utilisation refers to: the H200's datasheet value. Other cards read as a share of it.
constexpr double kPeakFlops = 989e12;

struct Shape {
  i64 hidden, intermediate;
  i32 layers, heads, kv_heads, key_heads, value_heads;
  bool tied;
};
const std::map<std::string, Shape> kShapes = {
    {"0.8b", {1024, 3584, 24, 8, 2, 16, 16, true}},   {"2b", {2048, 6144, 24, 8, 2, 16, 16, true}},
    {"4b", {2560, 9216, 32, 16, 4, 16, 32, true}},    {"9b", {4096, 12288, 32, 16, 4, 16, 32, false}},
    {"27b", {5120, 17408, 64, 24, 4, 16, 48, false}}, {"27b-8l", {5120, 17408, 8, 24, 4, 16, 48, false}},
    {"tiny", {128, 384, 4, 2, 1, 2, 4, true}}};

// One sequence of a bin: real tokens, and positions computed for it.
struct Piece {
  i64 length, positions;
};
using Bins = std::vector<std::vector<Piece>>;

constexpr const char* kOneALine = "Give the tokens of each example, a whole number above 0 a line.";

std::vector<i64> read_lengths(const BenchOptions& o) {
  if (o.lengths.empty()) return std::vector<i64>(1024, std::min<i64>(1024, o.budget));
  std::istringstream text(read_file(o.lengths));
  std::vector<i64> lengths;
  for (std::string line; std::getline(text, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    i64 n = 0;
    const char* end = line.data() + line.size();
    const auto [rest, error] = std::from_chars(line.data(), end, n);
    if (error != std::errc() || rest != end || n <= 0)
      throw EngineError(
          "invalid_lengths",
          o.lengths.string() + ", line " + std::to_string(lengths.size() + 1) + ": not a length: " + line,
          kOneALine);
    lengths.push_back(std::min(n, o.budget));
  }
  if (lengths.empty())
    throw EngineError("invalid_lengths", o.lengths.string() + ": holds no lengths", kOneALine);
  return lengths;
}

Bins pack_best_fit(std::vector<i64> lengths, i64 budget, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = lengths.size(); i > 1; --i) std::swap(lengths[i - 1], lengths[random() % i]);
  Bins bins;
  std::multimap<i64, size_t> open;  // free positions → bin
  for (const i64 n : lengths) {
    const auto fit = open.lower_bound(n);
    const size_t bin = fit == open.end() ? bins.size() : fit->second;
    const i64 free = (fit == open.end() ? budget : fit->first) - n;
    if (fit == open.end())
      bins.emplace_back();
    else
      open.erase(fit);
    bins[bin].push_back({n, n});
    open.emplace(free, bin);
  }
  return bins;
}

Bins pack_in_order(const std::vector<i64>& lengths, i64 budget, bool padded) {
  Bins bins(1);
  i64 used = 0, longest = 0;
  for (const i64 n : lengths) {
    auto* bin = &bins.back();
    const i64 most = std::max(longest, n);
    const i64 after = padded ? most * (static_cast<i64>(bin->size()) + 1) : used + n;
    if (after > budget) {
      bin = &bins.emplace_back();
      used = longest = 0;
    }
    bin->push_back({n, n});
    used += n;
    longest = std::max(longest, n);
    if (padded)
      for (Piece& p : *bin) p.positions = longest;
  }
  return bins;
}

Bins pack(const BenchOptions& o) {
  const auto lengths = read_lengths(o);
  if (o.strategy == "best-fit") return pack_best_fit(lengths, o.budget, o.seed);
  if (o.strategy == "in-order") return pack_in_order(lengths, o.budget, false);
  if (o.strategy == "padded") return pack_in_order(lengths, o.budget, true);
  throw EngineError("invalid_strategy", "strategy \"" + o.strategy + "\" is unknown here",
                    "Use best-fit, in-order or padded.");
}

// Elements begin … begin + count of the endless repetition of a block, on the device: one block comes from
// the host, the device copies it over the rest.
void repeat_block(Backend& backend, const Parameters::Run& run, const std::vector<char>& block,
                  size_t element) {
  const size_t bytes = static_cast<size_t>(run.count) * element;
  const size_t from = static_cast<size_t>(run.begin) * element % block.size();
  char* at = static_cast<char*>(run.at);
  const size_t first = std::min(bytes, block.size() - from);
  backend.copy_in(at, block.data() + from, first);
  if (from > 0 && bytes > first) backend.copy_in(at + first, block.data(), std::min(bytes - first, from));
  for (size_t done = block.size(); done < bytes; done += block.size())
    backend.copy(at + done, at, std::min(block.size(), bytes - done));
}

// Values that look like trained weights to the hardware (zeros run faster): the small tensors as a new model
// has them, the big bucket from one random block over and over. A rank makes what it holds.
void fill_weights(Backend& backend, const Parameters& parameters, const ModelConfig& config,
                  std::uint64_t seed) {
  const Layout& layout = parameters.layout();
  for (const TensorEntry& t : layout.tensors)
    if (t.bucket == Bucket::small) parameters.write(t, Field::weight, initial_values(t, config, seed).data());
  const i64 block = std::min<i64>(layout.big_count, i64{1} << 22);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw(0.0f, config.initializer_range);
  std::vector<float> values(static_cast<size_t>(block));
  for (float& v : values) v = draw(random);
  for (const Field field : {Field::weight, Field::master}) {
    if (field == Field::master && !parameters.has_master()) continue;
    const DType type = parameters.type(field, Bucket::big);
    std::vector<char> raw(values.size() * dtype_bytes(type));
    from_f32(raw.data(), type, values.data(), block);
    for (const Parameters::Run& run : parameters.runs(field))
      repeat_block(backend, run, raw, dtype_bytes(type));
  }
}

// Of all weights in their order, on rank 0, whoever holds them.
std::string weight_hash(Backend& backend, const Parameters& parameters, RankLink* link) {
  const DType type = parameters.type(Field::weight, Bucket::big);
  std::vector<char> raw(static_cast<size_t>(parameters.layout().big_count) * dtype_bytes(type));
  const bool split = parameters.runs(Field::weight).size() > 1;
  for (const Parameters::Run& run : parameters.runs(Field::weight))
    backend.copy_out(raw.data() + static_cast<size_t>(run.begin) * dtype_bytes(type), run.at,
                     static_cast<size_t>(run.count) * dtype_bytes(type));
  for (size_t u = 0; split && u < parameters.shares().size(); ++u)
    for (int r = 1; r < link->world(); ++r) {
      const Shares& shares = parameters.shares()[u];
      char* at = raw.data() + static_cast<size_t>(shares.begin[static_cast<size_t>(r)]) * dtype_bytes(type);
      const size_t bytes = static_cast<size_t>(shares.count(r)) * dtype_bytes(type);
      if (link->rank() == 0) link->receive(r, at, bytes);
      if (link->rank() == r) link->send(0, at, bytes);
    }
  return text_checksum({raw.data(), raw.size()});
}

// Random tokens for one micro-batch.
struct Tokens {
  std::vector<i32> ids, labels;
  std::vector<Sequence> sequences;
  i64 targets = 0, real = 0, positions = 0;
};

Tokens make_tokens(const std::vector<Piece>& pieces, const BenchOptions& o, i64 vocab,
                   std::mt19937_64& random) {
  Tokens out;
  for (const Piece& p : pieces) {
    out.real += p.length;
    out.positions += p.positions;
    for (i64 t = 0; t < p.length; ++t) {
      out.ids.push_back(static_cast<i32>(random() % static_cast<std::uint64_t>(vocab)));
      const bool target = t + 1 < p.length && static_cast<double>(random() >> 11) * 0x1p-53 < o.supervised;
      out.labels.push_back(target ? static_cast<i32>(random() % static_cast<std::uint64_t>(vocab))
                                  : kIgnoreLabel);
      out.targets += target;
    }
  }
  size_t at = 0;
  for (const Piece& p : pieces) {
    const auto n = static_cast<size_t>(p.length);
    out.sequences.push_back(
        {std::span(out.ids).subspan(at, n), std::span(out.labels).subspan(at, n), p.positions});
    at += n;
  }
  return out;
}

BatchLayout capacity(const Bins& bins, const BenchOptions& o, bool fixed) {
  BatchLayout layout{(o.budget + kChunk - 1) / kChunk * kChunk, 0};
  for (const auto& bin : bins) {
    i64 used = 0;
    for (const Piece& p : bin) {
      used += p.positions;
      layout.longest = std::max(layout.longest, p.positions);
    }
    const auto count = static_cast<i64>(bin.size());
    layout.sequences =
        std::max(layout.sequences, fixed ? sequences_with_tail(count, used, layout.tokens) : count);
  }
  return layout;
}

// With policy "auto" the first that the device has room for.
std::unique_ptr<Executor> allocate_executor(Backend& backend, const ModelConfig& config, const Layout& layout,
                                            const BenchOptions& o, const BatchLayout& batch,
                                            std::string* policy, Collectives* collectives) {
  struct Try {
    std::string policy;
    bool keep_all;
  };
  std::vector<Try> tried = {{o.policy, true}, {o.policy, false}};
  if (o.policy == "auto")
    tried = {{"P0", true}, {"P0", false}, {"P2", false}, {"P1", false}, {"full", false}};
  for (const auto& [name, keep_all] : tried) {
    *policy = name;
    auto executor =
        std::make_unique<Executor>(backend, config, layout,
                                   ExecutorOptions{.optimizer = {.mode = o.optimizer, .weight_decay = 0.1f},
                                                   .policy = parse_policy(name),
                                                   .keep_all = keep_all,
                                                   .batch = batch,
                                                   .head_rows = o.head_rows > 0 ? o.head_rows : batch.tokens,
                                                   .compaction = o.compaction,
                                                   .accumulates = o.micro_batches > 1,
                                                   .gradients = o.gradients,
                                                   .rank = o.rank,
                                                   .sharding = o.sharding,
                                                   .collectives = collectives});
    try {
      executor->allocate();
      return executor;
    } catch (const EngineError& error) {
      if (error.code() != "out_of_memory" || &name == &tried.back().policy) throw;
    }
  }
  return nullptr;
}

Json op_table(Backend& device, const ProfiledBackend& profiled) {
  Json ops = op_times_json(device.op_times(), "op");
  if (!ops.empty()) return ops;
  for (const auto& row : profiled.rows())
    ops.push_back({{"op", row.operation},
                   {"phase", row.phase},
                   {"calls", row.calls},
                   {"totalMs", row.ms},
                   {"averageUs", row.ms * 1e3 / static_cast<double>(row.calls)}});
  return ops;
}

}  // namespace

ModelConfig shape_config(const std::string& name) {
  const auto found = kShapes.find(name);
  if (found == kShapes.end())
    throw EngineError("invalid_shape", "shape \"" + name + "\" is unknown",
                      "Use 0.8b, 2b, 4b, 9b, 27b, 27b-8l or tiny.");
  const Shape& s = found->second;
  const bool tiny = name == "tiny";
  ModelConfig c;
  c.vocab = tiny ? 2048 : 248320;
  c.hidden = s.hidden;
  c.intermediate = s.intermediate;
  const i32 head = tiny ? 64 : 256, linear_head = tiny ? 32 : 128;
  c.attn = {s.heads, s.kv_heads, head, head / 4};
  c.gdn = {s.key_heads, s.value_heads, linear_head, linear_head, 4};
  for (i32 l = 0; l < s.layers; ++l)
    c.layers.push_back((l + 1) % 4 == 0 ? LayerKind::full_attention : LayerKind::linear_attention);
  c.tied = s.tied;
  c.max_positions = 262144;
  return c;
}

i64 used_bytes(const std::string& device) {
  if (device.rfind("cuda:", 0) != 0) return -1;
  const Nvml nvml;
  return nvml.read_device(std::atoi(device.c_str() + 5)).value("memoryBytes", i64{-1});
}

Json run_bench(Backend& device, const BenchOptions& o) {
  ProfiledBackend backend(device);
  const ModelConfig config = shape_config(o.shape);
  const Layout layout = make_layout(config, "model.");
  const Bins bins = pack(o);
  std::string policy;
  const auto collectives = !o.link                  ? nullptr
                           : device.name() == "cpu" ? make_local_collectives(*o.link)
                                                    : make_nccl_collectives(*o.link);
  const auto allocated = allocate_executor(
      backend, config, layout, o, capacity(bins, o, device.fixed_shapes()), &policy, collectives.get());
  Executor& executor = *allocated;
  fill_weights(backend, executor.parameters(), config, o.seed);

  std::mt19937_64 random(o.seed + static_cast<std::uint64_t>(o.rank.rank));
  auto next_bin = static_cast<size_t>(o.rank.rank);
  struct Flight {
    int ticket;
    i64 targets;
  };
  std::deque<Flight> flights;
  std::vector<double> ms, losses;
  i64 real = 0, positions = 0, submitted = 0, kernels = 0;
  double flops = 0;
  auto last = Clock::now();
  const auto land = [&](size_t most) {
    for (; flights.size() > most; flights.pop_front()) {
      const StepResult r =
          backend.host("read scalars", [&] { return executor.result(flights.front().ticket); });
      losses.push_back(r.loss_sum / static_cast<double>(flights.front().targets));
      const auto now = Clock::now();
      ms.push_back(std::chrono::duration<double, std::milli>(now - last).count());
      last = now;
    }
  };
  const size_t in_flight = device.fixed_shapes() ? 2 : 0;
  for (i64 step = 0; step < o.warmup + o.steps; ++step) {
    if (step == o.warmup) {
      land(0);
      device.synchronize();
      backend.enable(true);
      if (!device.profile_source().empty()) device.profile(true);  // forgets the warm-up's operations
      ms.clear();
      real = positions = 0;
      flops = 0;
      submitted = device.submissions();
      kernels = executor.kernels_launched();
      last = Clock::now();
    }
    std::vector<Tokens> batches;
    i64 targets = 0;
    for (i64 k = 0; k < o.micro_batches; ++k) {
      const auto& bin = bins[next_bin % bins.size()];
      next_bin += static_cast<size_t>(o.rank.world);
      batches.push_back(
          backend.host("prepare data", [&] { return make_tokens(bin, o, config.vocab, random); }));
      const Tokens& b = batches.back();
      targets += b.targets;
      real += b.real;
      positions += b.positions;
      std::vector<i64> lengths;
      for (const Piece& p : bin) lengths.push_back(p.positions);
      flops += step_flops(config, layout, lengths, o.compaction ? b.targets : b.positions);
    }
    for (size_t k = 0; k + 1 < batches.size(); ++k) executor.run_micro_batch(batches[k].sequences, k == 0);
    targets *= o.rank.world;  // as many on each, nearly
    const float t = static_cast<float>(step + 1);
    const StepScalars scalars{.lr = 1e-5f,
                              .bias1 = 1 - std::pow(0.9f, t),
                              .bias2 = 1 - std::pow(0.95f, t),
                              .inv_tokens = 1.0f / static_cast<float>(std::max<i64>(1, targets)),
                              .clip = static_cast<float>(o.clip),
                              .seed = static_cast<std::uint32_t>(o.seed),
                              .step = static_cast<i32>(step + 1)};
    const int ticket = executor.run_last_micro_batch(batches.back().sequences, batches.size() == 1, scalars);
    flights.push_back({ticket, std::max<i64>(1, targets)});
    land(in_flight);
  }
  land(0);

  const double total = std::accumulate(ms.begin(), ms.end(), 0.0), n = static_cast<double>(o.steps);
  auto sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  const MemoryPlan m = executor.plan();
  const i64 used = o.used_before >= 0
                       ? used_bytes(device.name()) - o.used_before
                       : static_cast<i64>(device.fixed_shapes() ? device.memory_used() : m.total);
  const i64 capacity_positions = executor.options().batch.tokens * o.micro_batches;
  Json report = {
      {"device", device.name()},
      {"shape", o.shape},
      {"strategy", o.strategy},
      {"policy", policy},
      {"gradients", executor.gradient_type() == DType::bf16 ? "bf16" : "fp32"},
      {"msPerStep", {{"median", sorted[sorted.size() / 2]}, {"min", sorted.front()}, {"max", sorted.back()}}},
      {"positionsPerStep",
       device.fixed_shapes() ? static_cast<double>(capacity_positions) : static_cast<double>(positions) / n},
      {"ranks", o.rank.world},
      {"realTokensPerSecond", static_cast<double>(real * o.rank.world) / total * 1e3},
      {"fill", static_cast<double>(real) / (static_cast<double>(capacity_positions) * n)},
      {"peakMemoryGiB", static_cast<double>(used) / (1 << 30)},
      {"launchesPerStep", static_cast<double>(device.submissions() - submitted) / n},
      {"kernelsPerStep", static_cast<double>(executor.kernels_launched() - kernels) / n},
      {"loss", {{"first", losses.front()}, {"last", losses.back()}}},
      {"memory",
       {{"weights", m.weights},
        {"gradients", m.gradients},
        {"optimizer", m.optimizer},
        {"activations", m.activations},
        {"workspace", m.workspace},
        {"context", m.context},
        {"total", m.total}}},
      {"ops", op_table(device, backend)}};
  if (device.fixed_shapes()) report["host"] = host_rows(backend.rows(), {});
  if (const std::string source = device.profile_source(); !source.empty()) report["profileSource"] = source;
  report["msPerStep"]["mean"] = total / n;  // the others mean little where few steps are submitted ahead
  if (o.rank.world > 1) report["sharding"] = sharding_name(o.sharding);
  if (o.hash) report["weightHash"] = weight_hash(device, executor.parameters(), o.link);
  const DeviceRoof roof = device.roof();
  if (roof.flops_per_second > 0)
    report["roof"] = {{"tflopPerSecond", roof.flops_per_second / 1e12},
                      {"gbPerSecond", roof.bytes_per_second / 1e9}};
  if (device.fixed_shapes()) report["mfu"] = flops / (total / 1e3) / kPeakFlops;
  return report;
}

}  // namespace tessera
