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
};

// The report of `tessera-engine verify`; its "ok" says whether every limit of the backend held, "failures"
// which did not. Throws EngineError where the fixture itself cannot be read.
Json verify_fixture(Backend& backend, const fs::path& fixture, const VerifyOptions& options = {});

}  // namespace tessera
