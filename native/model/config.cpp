#include "model/config.h"

#include <array>

#include "core/json.h"

namespace tessera {
namespace {

constexpr const char* kBad = "invalid_config";

[[noreturn]] void unsupported(const std::string& where, const std::string& what) {
  throw EngineError("unsupported_model", where + ": " + what,
                    "Tessera trains dense Qwen3.5 models (model_type qwen3_5 or qwen3_5_text).");
}

// One number that must be positive.
i64 positive(const Json& c, const char* key, const std::string& where) {
  const auto value = require_field<i64>(c, key, where, kBad);
  if (value <= 0)
    throw EngineError(kBad, where + ": " + key + " is " + std::to_string(value) + ", it must be positive");
  return value;
}

void refuse_other_architectures(const Json& root, const Json& c, const std::string& where) {
  const auto type = optional_field<std::string>(root, "model_type", "", where, kBad);
  if (type != "qwen3_5" && type != "qwen3_5_text")
    unsupported(where, "model_type \"" + type + "\" is not supported");
  const auto text_type = optional_field<std::string>(c, "model_type", "qwen3_5_text", where, kBad);
  if (text_type != "qwen3_5_text" && text_type != "qwen3_5")
    unsupported(where, "text_config.model_type \"" + text_type + "\" is not supported");
  for (const auto& name : optional_field<std::vector<std::string>>(root, "architectures", {}, where, kBad))
    if (name != "Qwen3_5ForCausalLM" && name != "Qwen3_5ForConditionalGeneration")
      unsupported(where, "architecture \"" + name + "\" is not supported");
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"})
    if (optional_field<i64>(c, key, 0, where, kBad) > 0)
      unsupported(where, std::string(key) + " is set: mixtures of experts are not supported");
}

void refuse_other_mathematics(const Json& c, const std::string& where) {
  if (optional_field<bool>(c, "attention_bias", false, where, kBad))
    unsupported(where, "attention_bias true is not supported");
  if (!optional_field<bool>(c, "attn_output_gate", true, where, kBad))
    unsupported(where, "attn_output_gate false is not supported");
  const auto act = optional_field<std::string>(c, "hidden_act", "silu", where, kBad);
  if (act != "silu") unsupported(where, "hidden_act \"" + act + "\" is not supported");
  const auto gate = optional_field<std::string>(c, "output_gate_type", "swish", where, kBad);
  if (gate != "swish" && gate != "silu")
    unsupported(where, "output_gate_type \"" + gate + "\" is not supported");
  if (optional_field<double>(c, "attention_dropout", 0.0, where, kBad) != 0.0)
    unsupported(where, "attention_dropout other than 0 is not supported");
}

std::vector<LayerKind> layer_kinds(const Json& c, i64 layers, const std::string& where) {
  std::vector<LayerKind> kinds;
  const auto types = optional_field<std::vector<std::string>>(c, "layer_types", {}, where, kBad);
  if (types.empty()) {
    const auto interval = optional_field<i64>(c, "full_attention_interval", 4, where, kBad);
    if (interval <= 0) throw EngineError(kBad, where + ": full_attention_interval must be positive");
    for (i64 l = 0; l < layers; ++l)
      kinds.push_back((l + 1) % interval == 0 ? LayerKind::full_attention : LayerKind::linear_attention);
    return kinds;
  }
  if (static_cast<i64>(types.size()) != layers)
    throw EngineError(kBad, where + ": layer_types names " + std::to_string(types.size()) +
                                " layers, num_hidden_layers is " + std::to_string(layers));
  for (size_t l = 0; l < types.size(); ++l) {
    if (types[l] != "linear_attention" && types[l] != "full_attention")
      unsupported(where, "layer_types[" + std::to_string(l) + "] \"" + types[l] + "\" is not supported");
    kinds.push_back(types[l] == "full_attention" ? LayerKind::full_attention : LayerKind::linear_attention);
  }
  return kinds;
}

void read_rope(const Json& c, ModelConfig* config, const std::string& where) {
  // rope_* stand in rope_parameters, or (older files) in rope_scaling and at the top level.
  Json rope = c.value("rope_parameters", Json());
  if (!rope.is_object()) rope = c.value("rope_scaling", Json());
  if (!rope.is_object()) rope = Json::object();
  for (const char* key : {"rope_theta", "partial_rotary_factor"})
    if (!rope.contains(key) && c.contains(key)) rope[key] = c[key];
  const auto legacy = optional_field<std::string>(rope, "type", "default", where, kBad);
  const auto type = optional_field<std::string>(rope, "rope_type", legacy, where, kBad);
  if (type != "default" && type != "mrope") unsupported(where, "rope_type \"" + type + "\" is not supported");
  config->rope_theta = require_field<double>(rope, "rope_theta", where, kBad);
  if (!(config->rope_theta > 0)) throw EngineError(kBad, where + ": rope_theta must be positive");
  const auto share = optional_field<double>(rope, "partial_rotary_factor", 0.25, where, kBad);
  config->attn.rotary_dim = static_cast<i32>(config->attn.head_dim * share);
  if (config->attn.rotary_dim <= 0 || config->attn.rotary_dim % 2 != 0 ||
      config->attn.rotary_dim > config->attn.head_dim)
    throw EngineError(kBad, where + ": partial_rotary_factor " + std::to_string(share) + " of head_dim " +
                                std::to_string(config->attn.head_dim) + " is no even number of dimensions");
}

void check_shapes(const ModelConfig& m, const std::string& where) {
  if (m.gdn.value_heads % m.gdn.key_heads != 0)
    throw EngineError(kBad, where + ": linear_num_value_heads is no multiple of linear_num_key_heads");
  if (m.attn.heads % m.attn.kv_heads != 0)
    throw EngineError(kBad, where + ": num_attention_heads is no multiple of num_key_value_heads");
  constexpr i64 kLimit = i64{1} << 24;  // no real model comes near; products of two stay in 64 bits
  for (const i64 n : {m.vocab, m.hidden, m.intermediate, m.gdn.proj_dim(), m.attn.proj_dim()})
    if (n > kLimit)
      throw EngineError(kBad, where + ": a dimension of " + std::to_string(n) + " is not plausible");
}

}  // namespace

ModelConfig parse_config(const Json& root, const std::string& where) {
  if (!root.is_object()) throw EngineError(kBad, where + ": not a JSON object");
  const Json& c = root.contains("text_config") ? root["text_config"] : root;
  if (!c.is_object()) throw EngineError(kBad, where + ": text_config is not an object");
  refuse_other_architectures(root, c, where);
  refuse_other_mathematics(c, where);

  const auto small = [&](const char* key) {
    const i64 value = positive(c, key, where);
    if (value > 1 << 20)
      throw EngineError(kBad, where + ": " + key + " " + std::to_string(value) + " is not plausible");
    return static_cast<i32>(value);
  };
  ModelConfig m;
  m.vocab = positive(c, "vocab_size", where);
  m.hidden = positive(c, "hidden_size", where);
  m.intermediate = positive(c, "intermediate_size", where);
  m.layers = layer_kinds(c, small("num_hidden_layers"), where);
  m.attn.heads = small("num_attention_heads");
  m.attn.kv_heads = small("num_key_value_heads");
  m.attn.head_dim = small("head_dim");
  m.gdn = {.key_heads = small("linear_num_key_heads"),
           .value_heads = small("linear_num_value_heads"),
           .key_dim = small("linear_key_head_dim"),
           .value_dim = small("linear_value_head_dim"),
           .conv_taps = small("linear_conv_kernel_dim")};
  if (m.gdn.conv_taps != 4) unsupported(where, "linear_conv_kernel_dim other than 4 is not supported");
  m.norm_eps = optional_field<float>(c, "rms_norm_eps", 1e-6f, where, kBad);
  m.max_positions = optional_field<i64>(c, "max_position_embeddings", 262144, where, kBad);
  m.initializer_range = optional_field<float>(c, "initializer_range", 0.02f, where, kBad);
  m.tied = optional_field<bool>(c, "tie_word_embeddings",
                                optional_field<bool>(root, "tie_word_embeddings", false, where, kBad), where,
                                kBad);
  read_rope(c, &m, where);
  check_shapes(m, where);
  return m;
}

ModelConfig read_config(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  return parse_config(read_json(path), path.string());
}

}  // namespace tessera
