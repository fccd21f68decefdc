// Tokenised examples and the plan that packs them into bins: the files that the core hands to the engine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace tessera {

// A folder of shard-*.safetensors: input_ids I32 [N], supervised U8 [N], offsets I64 [examples + 1].
class TokenCache {
 public:
  // Throws EngineError missing_file | invalid_cache, naming the shard and what is wrong with it.
  explicit TokenCache(const fs::path& folder);
  i64 num_examples() const { return static_cast<i64>(examples_.size()); }
  i64 length(i64 example) const { return examples_[static_cast<size_t>(example)].length; }
  std::span<const i32> ids(i64 example) const;
  std::span<const u8> supervised(i64 example) const;
  // XXH3 over the offsets and tokens: what a resumed run must find unchanged.
  const std::string& fingerprint() const { return fingerprint_; }
  // The name by which plans know this cache: of its cache.json, "" where there is none.
  const std::string& key() const { return key_; }

 private:
  struct Example {
    const i32* ids;
    const u8* supervised;
    i64 length;
  };
  void add_shard(const SafetensorsFile& file);

  std::vector<SafetensorsFile> shards_;
  std::vector<Example> examples_;
  std::string fingerprint_, key_;
};

// A placement: tokens start .. start+length of an example; `positions` >= length are computed, the rest
// padding.
struct Placement {
  i64 example, start, length, positions;
};

// A plan file: example I32, start I64, length I32, bin_offsets I64 [bins + 1] over the placements; optional
// positions I32.
class Plan {
 public:
  // budget: positions that a bin may hold; 0: not checked. Checks every entry against the cache.
  // Throws EngineError invalid_plan, naming the entry, or the cache that it was made for.
  Plan(const fs::path& path, const TokenCache& cache, i64 budget);
  i64 num_bins() const { return static_cast<i64>(bins_.size()) - 1; }
  std::span<const Placement> bin(i64 index) const;
  i64 positions(i64 bin) const;     // computed
  i64 max_positions() const;        // over all bins
  i64 max_sequences() const;        // placements of the fullest bin
  i64 max_sequence_length() const;  // positions of the longest placement
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  void read(const SafetensorsFile& file);
  void check(const std::string& where, const TokenCache& cache, i64 budget) const;

  std::vector<Placement> placements_;
  std::vector<i64> bins_;
  std::string fingerprint_;
};

// Labels of a placement: position t learns token t+1 of the example where that is supervised and inside the
// placement; kIgnoreLabel elsewhere. Appends to *labels and returns the number of targets.
i64 append_labels(const TokenCache& cache, const Placement& placement, std::vector<i32>* labels);

}  // namespace tessera
