// config.json of the Qwen3.5 family: flat (qwen3_5_text) or with the text part nested under text_config.
#pragma once

#include <string>
#include <vector>

#include "core/files.h"
#include "core/json_fwd.h"
#include "ops/backend.h"

namespace tessera {

enum class LayerKind : u8 { linear_attention, full_attention };

struct ModelConfig {
  i64 vocab = 0, hidden = 0, intermediate = 0;  // V, H, I
  GdnShape gdn{};
  AttnShape attn{};
  std::vector<LayerKind> layers;
  float norm_eps = 1e-6f;
  bool tied = false;  // the head is the embedding table
  double rope_theta = 1e7;
  i64 max_positions = 0;
  float initializer_range = 0.02f;
  i64 num_layers() const { return static_cast<i64>(layers.size()); }
};

// Throws EngineError unsupported_model (another architecture or an option that would change the mathematics,
// by name) or invalid_config (a missing or impossible value, by name). `where` names the source in messages.
ModelConfig parse_config(const Json& json, const std::string& where);
ModelConfig read_config(const fs::path& model_folder);

}  // namespace tessera
