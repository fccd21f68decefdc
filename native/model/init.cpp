#include "model/init.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/json.h"

namespace tessera {
namespace {

class Random {
 public:
  Random(std::uint64_t seed, const std::string& name) : state_(seed) {
    for (const char c : name) state_ = mix(state_ ^ static_cast<unsigned char>(c));
  }
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }  // inside (0, 1)
  double normal() {
    return std::sqrt(-2.0 * std::log(uniform())) * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {  // splitmix64
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  std::uint64_t state_;
};

bool ends_with(const std::string& text, const char* end) { return text.ends_with(end); }

}  // namespace

std::vector<float> initial_values(const TensorEntry& t, const ModelConfig& config, std::uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(t.count));
  Random random(seed, t.name);
  if (ends_with(t.name, "A_log")) {
    for (float& v : values) v = static_cast<float>(std::log(16.0 * random.uniform()));
  } else if (ends_with(t.name, "dt_bias") || ends_with(t.name, "linear_attn.norm.weight")) {
    values.assign(values.size(), 1.0f);
  } else if (t.bucket == Bucket::big || ends_with(t.name, "conv1d.weight")) {
    for (float& v : values) v = static_cast<float>(config.initializer_range * random.normal());
  }  // the other norms are zero-centred
  return values;
}

void write_initial_model(const fs::path& config_file, std::uint64_t seed, DType dtype,
                         const fs::path& folder) {
  const Json json = read_json(config_file);
  const ModelConfig config = parse_config(json, config_file.string());
  const Layout layout =
      make_layout(config, json.contains("text_config") ? "model.language_model." : "model.");
  std::vector<TensorSource> tensors;
  for (const TensorEntry& t : layout.tensors) {
    const bool exact = ends_with(t.name, "A_log") || ends_with(t.name, "linear_attn.norm.weight");
    const DType type = exact ? DType::f32 : dtype;
    tensors.push_back(
        {t.name, std::string(dtype_name(type)), t.shape, [&config, &t, type, seed](const auto& write) {
           const auto values = initial_values(t, config, seed);
           std::vector<char> raw(values.size() * dtype_bytes(type));
           from_f32(raw.data(), type, values.data(), t.count);
           write(raw.data(), raw.size());
         }});
  }
  make_folder(folder);
  write_safetensors(folder / "model.safetensors", tensors, R"({"format":"pt"})");
  write_file(folder / "config.json", read_file(config_file));
}

}  // namespace tessera
