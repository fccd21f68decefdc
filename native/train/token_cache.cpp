#include "train/token_cache.h"

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "ops/backend.h"

namespace tessera {
namespace {

std::string at_entry(const std::string& where, size_t i) {
  return where + ": placement " + std::to_string(i);
}

[[noreturn]] void bad_plan(const std::string& message) {
  throw EngineError("invalid_plan", message, "Make the plan again for this cache.");
}

// The cache that a plan names in its metadata, "" where it names none.
std::string cache_of(const SafetensorsFile& file) {
  const Json metadata = Json::parse(file.metadata(), nullptr, false);
  if (!metadata.is_object() || !metadata.contains("cache") || !metadata["cache"].is_string()) return "";
  return metadata["cache"];
}

}  // namespace

TokenCache::TokenCache(const fs::path& folder) {
  std::vector<fs::path> paths;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("shard-", 0) == 0 && entry.path().extension() == ".safetensors")
        paths.push_back(entry.path());
    }
  if (paths.empty())
    throw EngineError("missing_file", folder.string() + ": no shard-*.safetensors in this token cache",
                      "Import the dataset again.");
  std::sort(paths.begin(), paths.end());
  std::string sums;
  for (const fs::path& path : paths) {
    shards_.emplace_back(path);
    add_shard(shards_.back());
    sums += file_checksum(path);
  }
  fingerprint_ = text_checksum(sums);
  const fs::path manifest = folder / "cache.json";
  if (fs::exists(manifest))
    key_ = optional_field<std::string>(read_json(manifest), "key", "", manifest.string(), "invalid_cache");
}

void TokenCache::add_shard(const SafetensorsFile& file) {
  const auto refuse = [&](const std::string& why) {
    throw EngineError("invalid_cache", file.path().string() + ": " + why, "Import the dataset again.");
  };
  for (const char* name : {"input_ids", "supervised", "offsets"})
    if (!file.contains(name)) refuse(std::string("tensor ") + name + " is missing");
  const auto* ids = static_cast<const i32*>(file.typed("input_ids", DType::i32));
  const auto* supervised = static_cast<const u8*>(file.typed("supervised", DType::u8));
  const auto* offsets = static_cast<const i64*>(file.typed("offsets", DType::i64));
  const i64 N = file.info("input_ids").count(), entries = file.info("offsets").count();
  if (file.info("supervised").count() != N) refuse("supervised and input_ids have different lengths");
  if (entries < 1 || offsets[0] != 0 || offsets[entries - 1] != N)
    refuse("offsets must begin at 0 and end at " + std::to_string(N));
  for (i64 i = 0; i + 1 < entries; ++i) {
    if (offsets[i] > offsets[i + 1]) refuse("offsets fall at entry " + std::to_string(i + 1));
    examples_.push_back({ids + offsets[i], supervised + offsets[i], offsets[i + 1] - offsets[i]});
  }
}

std::span<const i32> TokenCache::ids(i64 example) const {
  const Example& e = examples_[static_cast<size_t>(example)];
  return {e.ids, static_cast<size_t>(e.length)};
}

std::span<const u8> TokenCache::supervised(i64 example) const {
  const Example& e = examples_[static_cast<size_t>(example)];
  return {e.supervised, static_cast<size_t>(e.length)};
}

Plan::Plan(const fs::path& path, const TokenCache& cache, i64 budget) {
  const SafetensorsFile file(path);
  read(file);
  const std::string made_for = cache_of(file);
  if (!made_for.empty() && !cache.key().empty() && made_for != cache.key())
    throw EngineError(
        "invalid_plan",
        path.string() + ": was made for the token cache " + made_for + ", not for " + cache.key(),
        "Pack the dataset again.");
  check(path.string(), cache, budget);
  fingerprint_ = file_checksum(path);
}

void Plan::read(const SafetensorsFile& file) {
  const std::string where = file.path().string();
  for (const char* name : {"example", "start", "length", "bin_offsets"})
    if (!file.contains(name)) bad_plan(where + ": tensor " + name + " is missing");
  const auto* example = static_cast<const i32*>(file.typed("example", DType::i32));
  const auto* start = static_cast<const i64*>(file.typed("start", DType::i64));
  const auto* length = static_cast<const i32*>(file.typed("length", DType::i32));
  const auto* positions =
      file.contains("positions") ? static_cast<const i32*>(file.typed("positions", DType::i32)) : length;
  const i64 count = file.info("example").count();
  for (const char* name : {"start", "length", "positions"})
    if (file.contains(name) && file.info(name).count() != count)
      bad_plan(where + ": " + name + " and example have different lengths");
  for (i64 i = 0; i < count; ++i) placements_.push_back({example[i], start[i], length[i], positions[i]});
  const auto* bins = static_cast<const i64*>(file.typed("bin_offsets", DType::i64));
  bins_.assign(bins, bins + file.info("bin_offsets").count());
}

void Plan::check(const std::string& where, const TokenCache& cache, i64 budget) const {
  for (size_t i = 0; i < placements_.size(); ++i) {
    const Placement& p = placements_[i];
    if (p.example < 0 || p.example >= cache.num_examples())
      bad_plan(at_entry(where, i) + " names example " + std::to_string(p.example) + ", the cache has " +
               std::to_string(cache.num_examples()));
    const i64 available = cache.length(p.example);
    if (p.start < 0 || p.length <= 0 || p.start > available || p.length > available - p.start)
      bad_plan(at_entry(where, i) + " covers " + std::to_string(p.length) + " tokens from " +
               std::to_string(p.start) + " of example " + std::to_string(p.example) + ", which has " +
               std::to_string(available));
    if (p.positions < p.length)
      bad_plan(at_entry(where, i) + " computes " + std::to_string(p.positions) + " positions for " +
               std::to_string(p.length) + " tokens");
  }
  const auto total = static_cast<i64>(placements_.size());
  if (bins_.size() < 2 || bins_.front() != 0 || bins_.back() != total)
    bad_plan(where + ": bin_offsets must begin at 0 and end at " + std::to_string(total) +
             ", with at least one bin");
  for (size_t b = 0; b + 1 < bins_.size(); ++b) {
    if (bins_[b] > bins_[b + 1] || bins_[b + 1] > total)
      bad_plan(where + ": bin_offsets fall at entry " + std::to_string(b + 1));
    if (bins_[b] == bins_[b + 1]) bad_plan(where + ": bin " + std::to_string(b) + " is empty");
    const i64 used = positions(static_cast<i64>(b));
    if (budget > 0 && used > budget)
      bad_plan(where + ": bin " + std::to_string(b) + " holds " + std::to_string(used) +
               " positions, the budget is " + std::to_string(budget));
  }
}

std::span<const Placement> Plan::bin(i64 index) const {
  const auto begin = static_cast<size_t>(bins_[static_cast<size_t>(index)]);
  const auto end = static_cast<size_t>(bins_[static_cast<size_t>(index) + 1]);
  return std::span(placements_).subspan(begin, end - begin);
}

i64 Plan::positions(i64 bin_index) const {
  i64 sum = 0;
  for (const Placement& p : bin(bin_index)) sum += p.positions;
  return sum;
}

i64 Plan::max_positions() const {
  i64 most = 0;
  for (i64 b = 0; b < num_bins(); ++b) most = std::max(most, positions(b));
  return most;
}

i64 Plan::max_sequences() const {
  i64 most = 0;
  for (i64 b = 0; b < num_bins(); ++b) most = std::max(most, static_cast<i64>(bin(b).size()));
  return most;
}

i64 Plan::max_sequence_length() const {
  i64 most = 0;
  for (const Placement& p : placements_) most = std::max(most, p.positions);
  return most;
}

i64 append_labels(const TokenCache& cache, const Placement& p, std::vector<i32>* labels) {
  const auto ids = cache.ids(p.example);
  const auto supervised = cache.supervised(p.example);
  i64 targets = 0;
  for (i64 t = p.start; t < p.start + p.length; ++t) {
    const auto next = static_cast<size_t>(t) + 1;
    const bool target = t + 1 < p.start + p.length && supervised[next] != 0;
    labels->push_back(target ? ids[next] : kIgnoreLabel);
    targets += target;
  }
  return targets;
}

}  // namespace tessera
