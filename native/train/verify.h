// Proof against a fixture: logits, loss, every gradient, eight optimizer steps, and that packed examples do
// not see each other. A fixture folder holds config.json, model.safetensors, expected.safetensors and
// expected.json.
#pragma once

#include <string>

#include "core/files.h"
#include "core/json_fwd.h"
#include "model/layer_memory.h"
#include "ops/backend.h"

namespace tessera {

struct VerifyOptions {
  RecomputePolicy policy = RecomputePolicy::p1;
  bool compaction = false;
  bool portable = false;         // cuda: the kernels of every GPU, in place of this one's
  bool rounded_weights = false;  // matrices as bf16 holds them, on a backend that keeps them in fp32
  const Json* yardstick =
      nullptr;  // report of the rounded CPU on this fixture: what bf16 itself may differ by
};

// The report of `tessera-engine verify` on one backend; its "ok" says whether every limit of the backend
// held, "failures" which did not. Throws EngineError where the fixture itself cannot be read.
Json verify_fixture(Backend& backend, const fs::path& fixture, const VerifyOptions& options = {});

// The whole of `tessera-engine verify`. On a CUDA device with precision "auto" the model is checked twice
// (docs/adr/0006): in fp32 by the reference kernels, within limits that only right mathematics keeps, and as
// the report's "bf16" by the kernels that train, within what bf16 rounding costs the same model on the CPU.
// precision: auto | fp32 | bf16. accept_slow: sizes that the fast kernels do not serve are checked in bf16
// too.
Json verify_device(const std::string& device, int threads, const std::string& precision, bool accept_slow,
                   const fs::path& fixture, const VerifyOptions& options);

}  // namespace tessera
