// Speed of whole training steps over random weights in the published shapes.
#pragma once

#include <optional>
#include <string>

#include "core/files.h"
#include "core/json_fwd.h"
#include "model/layer_memory.h"
#include "model/parameters.h"

namespace tessera {

class RankLink;

struct BenchOptions {
  std::string shape;  // tiny, 0.8b, 2b, 4b, 9b, 27b, 27b-8l (8 layers of the 27B model)
  i64 steps = 20, warmup = 4;
  i64 budget = 8192;                  // positions of a micro-batch
  i64 micro_batches = 1;              // a step
  fs::path lengths;                   // one example length a line; empty: full sequences of 1024
  std::string strategy = "best-fit";  // best-fit, in-order, padded
  std::string policy = "P1";          // full, P1, P2, P0; auto: the one that recomputes least and fits
  OptimizerMode optimizer = OptimizerMode::master32;
  std::optional<DType> gradients{};  // absent: as the executor chooses
  double clip = 1.0;
  bool compaction = true;
  double supervised = 1.0;  // share of targets
  i64 head_rows = 2048;     // 0: the whole micro-batch at once
  bool hash = false;        // of the weights at the end: equal runs end in equal bits
  std::uint64_t seed = 1;
  // Several processes, each with micro-batches of its own; rank 0 reports for all.
  RankOf rank{};
  Sharding sharding = Sharding::optimizer;
  RankLink* link = nullptr;
  i64 used_before = -1;  // bytes in use on the device before this process came to it; -1: not known
};

// Bytes in use on a device as its driver tells them, whoever has them; -1: it does not.
i64 used_bytes(const std::string& device);

ModelConfig shape_config(const std::string& shape);  // throws invalid_shape

// {msPerStep: {mean,median,min,max}, positionsPerStep, realTokensPerSecond, fill, mfu?, peakMemoryGiB,
// launchesPerStep, kernelsPerStep,
// loss: {first,last}, memory: {…}, ops: […]}
Json run_bench(Backend& device, const BenchOptions& options);

}  // namespace tessera
