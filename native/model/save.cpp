#include "model/save.h"

#include <algorithm>

#include "core/error.h"
#include "core/json.h"

namespace tessera {
namespace {

template <typename Bits>
bool any_with(const char* raw, size_t bytes, Bits exponent) {
  const auto* values = reinterpret_cast<const Bits*>(raw);
  bool found = false;
  for (size_t i = 0; i < bytes / sizeof(Bits); ++i) found |= (values[i] & exponent) == exponent;
  return found;
}

// A weight that is NaN, infinite, or beyond what the file's dtype holds makes a model worthless.
void require_finite(const std::vector<char>& raw, DType type, const TensorEntry& t) {
  const bool broken = type == DType::f32   ? any_with<std::uint32_t>(raw.data(), raw.size(), 0x7f800000)
                      : type == DType::f16 ? any_with<std::uint16_t>(raw.data(), raw.size(), 0x7c00)
                                           : any_with<std::uint16_t>(raw.data(), raw.size(), 0x7f80);
  if (broken)
    throw EngineError(
        "non_finite",
        t.name + ": a weight is NaN, infinite or too large for the model's " + std::string(dtype_name(type)),
        "Nothing was saved over the last checkpoint. Lower optimizer.lr or add warm-up steps.");
}

// Trained values converted piece by piece to the file's dtype.
TensorSource trained(const Parameters& parameters, const TensorEntry& t, const TensorInfo& info) {
  const DType to = *dtype_from_safetensors(info.dtype);
  return {t.name, info.dtype, info.shape, [&parameters, &t, to](const auto& write) {
            std::vector<char> raw;
            parameters.read_exact(t, [&](const float* values, i64 count) {
              raw.resize(static_cast<size_t>(count) * dtype_bytes(to));
              from_f32(raw.data(), to, values, count);
              require_finite(raw, to, t);
              write(raw.data(), raw.size());
            });
          }};
}

TensorSource copied(const SafetensorsFile& file, const std::string& name) {
  const TensorInfo& info = file.info(name);
  return {name, info.dtype, info.shape,
          [&file, name, &info](const auto& write) { write(file.data(name), info.end - info.begin); }};
}

}  // namespace

void save_weights(const Parameters& parameters, const SafetensorsFolder& source, bool tied,
                  const fs::path& folder) {
  Json weight_map = Json::object();
  size_t total = 0;
  for (const SafetensorsFile& file : source.files()) {
    std::vector<std::pair<size_t, std::string>> order;  // as in the source file
    for (const auto& [name, info] : file.tensors())
      if (!(tied && name == "lm_head.weight")) order.emplace_back(info.begin, name);
    std::sort(order.begin(), order.end());
    std::vector<TensorSource> tensors;
    for (const auto& [begin, name] : order) {
      const TensorEntry* entry = parameters.layout().find(name);
      tensors.push_back(entry ? trained(parameters, *entry, file.info(name)) : copied(file, name));
      weight_map[name] = file.path().filename().string();
      total += file.info(name).end - file.info(name).begin;
    }
    write_safetensors(folder / file.path().filename(), tensors, file.metadata());
  }
  if (source.sharded())
    write_file(folder / "model.safetensors.index.json",
               Json{{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}}.dump(1));
}

std::vector<SideFile> read_side_files(const fs::path& folder) {
  std::vector<SideFile> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    const bool text =
        name.extension() == ".json" || name.extension() == ".jinja" || name.extension() == ".txt";
    if (!entry.is_regular_file() || !text || name == "model.safetensors.index.json") continue;
    // A checkpoint used as the source brings its own bookkeeping; that is not part of the model.
    if (name == "state.json" || name == "manifest.json") continue;
    files.push_back({name, read_file(entry.path())});
  }
  const fs::path templates = "additional_chat_templates";
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / templates, none))
    if (entry.is_regular_file() && entry.path().extension() == ".jinja")
      files.push_back({templates / entry.path().filename(), read_file(entry.path())});
  return files;
}

void write_side_files(const std::vector<SideFile>& files, const fs::path& folder) {
  for (const SideFile& file : files) {
    fs::create_directories((folder / file.name).parent_path());
    write_file(folder / file.name, file.bytes);
    if (file.name.has_parent_path()) sync_folder((folder / file.name).parent_path());
  }
}

}  // namespace tessera
