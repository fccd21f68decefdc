#include "core/safetensors.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/json.h"

namespace tessera {
namespace {

// Bytes per element of every type that the format knows; 0: unknown.
size_t element_bytes(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "U8" || dtype == "I8" || dtype == "BOOL" || dtype.rfind("F8_", 0) == 0) return 1;
  return 0;
}

// Product of the shape times the element size; false on a negative extent or where it passes `limit`.
bool byte_size(const TensorInfo& t, size_t limit, size_t* bytes) {
  unsigned __int128 total = element_bytes(t.dtype);
  for (const i64 extent : t.shape) {
    if (extent < 0) return false;
    total *= static_cast<unsigned __int128>(extent);
    if (total > limit) return false;
  }
  *bytes = static_cast<size_t>(total);
  return true;
}

constexpr size_t kMaxHeader = size_t{100} << 20;  // the format's own limit
const char* kIndexName = "model.safetensors.index.json";
const char* kDamagedHint = "The file is damaged or cut short: download or copy it again.";

}  // namespace

i64 TensorInfo::count() const {
  i64 n = 1;
  for (const i64 extent : shape) n *= extent;
  return n;
}

std::string shape_text(const std::vector<i64>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

SafetensorsFile::SafetensorsFile(const fs::path& path)
    : path_(path), map_(std::make_shared<MappedFile>(path)) {
  parse_header();
}

void SafetensorsFile::refuse(const std::string& why) const {
  throw EngineError("damaged_safetensors", path_.string() + ": " + why, kDamagedHint);
}

void SafetensorsFile::parse_header() {
  if (map_->size() < 8) refuse("has " + std::to_string(map_->size()) + " bytes, too few for a header");
  std::uint64_t length = 0;
  std::memcpy(&length, map_->data(), 8);
  if (length > kMaxHeader || length > map_->size() - 8)
    refuse("its header claims " + std::to_string(length) + " bytes, the file has " +
           std::to_string(map_->size()));
  data_ = map_->data() + 8 + length;
  data_bytes_ = map_->size() - 8 - static_cast<size_t>(length);

  const auto* text = reinterpret_cast<const char*>(map_->data() + 8);
  const Json header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) refuse("its header is not a JSON object");
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = value.dump();
      continue;
    }
    TensorInfo info;
    try {
      info.dtype = value.at("dtype").get<std::string>();
      info.shape = value.at("shape").get<std::vector<i64>>();
      const auto range = value.at("data_offsets").get<std::vector<std::uint64_t>>();
      if (range.size() != 2) refuse("tensor " + name + ": data_offsets must hold two numbers");
      info.begin = range[0];
      info.end = range[1];
    } catch (const nlohmann::json::exception&) {
      refuse("tensor " + name + ": dtype, shape or data_offsets is missing or malformed");
    }
    if (element_bytes(info.dtype) == 0) refuse("tensor " + name + ": unknown dtype " + info.dtype);
    if (info.begin > info.end || info.end > data_bytes_)
      refuse("tensor " + name + ": bytes " + std::to_string(info.begin) + ".." + std::to_string(info.end) +
             " lie outside the data (" + std::to_string(data_bytes_) + " bytes)");
    size_t bytes = 0;
    if (!byte_size(info, data_bytes_, &bytes) || bytes != info.end - info.begin)
      refuse("tensor " + name + ": " + info.dtype + " " + shape_text(info.shape) + " does not fill its " +
             std::to_string(info.end - info.begin) + " bytes");
    if (bytes > 0) order.emplace_back(info.begin, name);
    tensors_.emplace(name, std::move(info));
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 1; i < order.size(); ++i)
    if (tensors_[order[i - 1].second].end > order[i].first)
      refuse("tensors " + order[i - 1].second + " and " + order[i].second + " overlap");
}

const TensorInfo& SafetensorsFile::info(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw EngineError("missing_tensor", path_.string() + ": there is no tensor " + name);
  return found->second;
}

const void* SafetensorsFile::typed(const std::string& name, DType type) const {
  const TensorInfo& t = info(name);
  if (t.dtype != dtype_name(type))
    throw EngineError("wrong_dtype", path_.string() + ": tensor " + name + " is " + t.dtype + ", expected " +
                                         std::string(dtype_name(type)));
  const void* view = data(name);
  if (reinterpret_cast<std::uintptr_t>(view) % dtype_bytes(type) == 0) return view;
  auto& copy = aligned_[name];
  if (!copy) {
    const size_t bytes = static_cast<size_t>(t.count()) * dtype_bytes(type);
    copy = std::make_shared<std::uint64_t[]>(bytes / sizeof(std::uint64_t) + 1);
    std::memcpy(copy.get(), view, bytes);
  }
  return copy.get();
}

std::vector<float> SafetensorsFile::floats(const std::string& name) const {
  const TensorInfo& t = info(name);
  const auto type = dtype_from_safetensors(t.dtype);
  if (!type || !is_float(*type))
    throw EngineError("wrong_dtype",
                      path_.string() + ": tensor " + name + " is " + t.dtype + ", expected F32, BF16 or F16");
  std::vector<float> values(static_cast<size_t>(t.count()));
  to_f32(values.data(), data(name), *type, t.count());
  return values;
}

SafetensorsFolder::SafetensorsFolder(const fs::path& folder) {
  const fs::path single = folder / "model.safetensors", index_path = folder / kIndexName;
  if (!fs::exists(index_path)) {
    if (!fs::exists(single))
      throw EngineError("missing_file",
                        folder.string() + ": holds neither model.safetensors nor " + kIndexName,
                        "Name a folder with a Hugging Face safetensors model.");
    files_.emplace_back(single);
    for (const auto& [name, info] : files_[0].tensors()) where_[name] = 0;
    return;
  }
  sharded_ = true;
  const Json index = read_json(index_path);
  const auto weight_map = require_field<std::map<std::string, std::string>>(
      index, "weight_map", index_path.string(), "invalid_index");
  std::map<std::string, size_t> shards;
  std::string missing;
  for (const auto& [name, shard] : weight_map) shards.emplace(shard, 0);
  for (const auto& [shard, number] : shards) {
    if (shard.find('/') != std::string::npos || shard.find('\\') != std::string::npos)
      throw EngineError("invalid_index", index_path.string() + ": shard " + shard + " is outside the folder");
    if (!fs::exists(folder / shard)) missing += (missing.empty() ? "" : ", ") + shard;
  }
  if (!missing.empty())
    throw EngineError("missing_shard",
                      folder.string() + ": these shards of the index are missing: " + missing,
                      "Download the model again; every file that the index names is needed.");
  for (auto& [shard, number] : shards) {
    number = files_.size();
    files_.emplace_back(folder / shard);
  }
  for (const auto& [name, shard] : weight_map) {
    if (!files_[shards[shard]].contains(name))
      missing += (missing.empty() ? "" : ", ") + name + " (" + shard + ")";
    where_[name] = shards[shard];
  }
  if (!missing.empty())
    throw EngineError("missing_tensor",
                      folder.string() + ": the index names tensors that their shards lack: " + missing,
                      kDamagedHint);
  for (const SafetensorsFile& file : files_)
    for (const auto& [name, info] : file.tensors())
      if (!where_.count(name) || &files_[where_[name]] != &file)
        throw EngineError("invalid_index",
                          file.path().string() + ": tensor " + name + " is not in the index as such",
                          "Index and shards come from different models.");
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : where_) all.push_back(name);
  return all;
}

const SafetensorsFile* SafetensorsFolder::find(const std::string& name) const {
  const auto found = where_.find(name);
  return found == where_.end() ? nullptr : &files_[found->second];
}

const SafetensorsFile& SafetensorsFolder::file_of(const std::string& name) const {
  if (const SafetensorsFile* file = find(name)) return *file;
  throw EngineError("missing_tensor",
                    files_[0].path().parent_path().string() + ": there is no tensor " + name);
}

TensorSource tensor_source(std::string name, DType type, std::vector<i64> shape, const void* data) {
  TensorSource source{std::move(name), std::string(dtype_name(type)), std::move(shape), {}};
  size_t bytes = dtype_bytes(type);
  for (const i64 extent : source.shape) bytes *= static_cast<size_t>(extent);
  source.produce = [data, bytes](const auto& write) { write(data, bytes); };
  return source;
}

void write_safetensors(const fs::path& path, const std::vector<TensorSource>& tensors,
                       const std::string& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = nlohmann::ordered_json::parse(metadata);
  size_t offset = 0;
  std::vector<size_t> sizes;
  for (const TensorSource& t : tensors) {
    size_t bytes = element_bytes(t.dtype);
    for (const i64 extent : t.shape) bytes *= static_cast<size_t>(extent);
    header[t.name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
    sizes.push_back(bytes);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  AtomicFile file(path);
  file.write(&length, 8);
  file.write(text.data(), text.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t written = 0;
    tensors[i].produce([&](const void* data, size_t bytes) {
      file.write(data, bytes);
      written += bytes;
    });
    if (written != sizes[i])
      throw EngineError("internal_error", path.string() + ": tensor " + tensors[i].name + " produced " +
                                              std::to_string(written) + " of " + std::to_string(sizes[i]) +
                                              " bytes");
  }
  file.commit();
}

}  // namespace tessera
