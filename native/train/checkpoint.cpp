#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/error.h"

namespace tessera {
namespace {

constexpr const char* kPrefix = "checkpoint-";
constexpr const char* kDamaged = "damaged_checkpoint";

Field exact_field(const Parameters& parameters, const TensorEntry& t) {
  return t.bucket == Bucket::big && parameters.has_master() ? Field::master : Field::weight;
}

// The model file keeps fewer bits than the training state: bf16 weights beside fp32 masters or an fp32
// backend.
bool narrower(const Parameters& parameters, const TensorEntry& t, const SafetensorsFolder& model) {
  const Field exact = exact_field(parameters, t);
  const auto file = dtype_from_safetensors(model.file_of(t.name).info(t.name).dtype);
  return dtype_bytes(*file) < dtype_bytes(parameters.type(exact, t.bucket));
}

TensorSource state_tensor(const Parameters& parameters, const TensorEntry& t, Field field,
                          const char* prefix) {
  const DType type = parameters.type(field, t.bucket);
  return {prefix + t.name, std::string(dtype_name(type)), t.shape,
          [&parameters, &t, field, type](const auto& write) {
            const auto values = parameters.read(t, field);
            std::vector<char> raw(values.size() * dtype_bytes(type));
            from_f32(raw.data(), type, values.data(), static_cast<i64>(values.size()));
            write(raw.data(), raw.size());
          }};
}

void write_optimizer(const CheckpointSource& source, const fs::path& folder) {
  std::vector<TensorSource> tensors;
  const Parameters& parameters = source.parameters;
  for (const TensorEntry& t : parameters.layout().tensors) {
    tensors.push_back(state_tensor(parameters, t, Field::m, "m."));
    tensors.push_back(state_tensor(parameters, t, Field::v, "v."));
    if (narrower(parameters, t, source.model))
      tensors.push_back(state_tensor(parameters, t, exact_field(parameters, t), "master."));
  }
  write_safetensors(folder / "optimizer.safetensors", tensors, "");
}

Json state_json(const RunState& s) {
  Json json = {{"step", s.step},
               {"nextBin", s.next_bin},
               {"seed", s.seed},
               {"recipe", s.recipe},
               {"recipeHash", text_checksum(s.recipe.dump())},
               {"data", s.data},
               {"binsPerStep", s.bins_per_step},
               {"totals",
                {{"supervisedTokens", s.supervised_tokens},
                 {"realTokens", s.real_tokens},
                 {"positions", s.positions},
                 {"milliseconds", s.milliseconds}}}};
  if (!s.account.is_null()) json["account"] = s.account;
  json["recentSteps"] = s.recent;
  json["recentEvaluations"] = s.recent_evaluations;
  json["recentSamples"] = s.recent_samples;
  if (s.best_eval) {
    json["bestEval"] = *s.best_eval;
    json["bestStep"] = s.best_step;
  }
  return json;
}

std::string size_text(std::uintmax_t bytes) {
  char text[64];
  const double mib = static_cast<double>(bytes) / (1 << 20);
  std::snprintf(text, sizeof text, "%.1f %s (%ju bytes)", mib < 1024 ? mib : mib / 1024,
                mib < 1024 ? "MiB" : "GiB", bytes);
  return text;
}

constexpr const char* kSpaceHint =
    "Free some space on this disk, delete other runs, or lower checkpoint.keep; the last checkpoint stays.";

// What kept the checkpoint from being written, with what it needs and what there is.
[[noreturn]] void fail_checkpoint(const CheckpointSource& source, const fs::path& run, bool full,
                                  const std::string& why, const std::string& hint) {
  std::error_code ignored;
  const auto space = fs::space(run, ignored);
  throw EngineError(full ? "disk_full" : "io_error",
                    "the checkpoint could not be written: " + why + "; it takes " +
                        size_text(checkpoint_bytes(source)) +
                        (ignored ? "" : ", free are " + size_text(space.available)),
                    full ? kSpaceHint : hint);
}

// Whatever was begun and not finished, also by an engine that was killed.
void clear_partial(const fs::path& run) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(std::string(".") + kPrefix, 0) == 0 && entry.path().extension() == ".partial")
      found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path, ignored);
}

void write_files(const CheckpointSource& source, const RunState& state, const fs::path& partial) {
  fs::create_directory(partial);
  write_side_files(source.side_files, partial);
  save_weights(source.parameters, source.model, source.tied, partial);
  write_optimizer(source, partial);
  write_file(partial / "state.json", state_json(state).dump(1));
  write_manifest(partial);
  sync_folder(partial);
  check_manifest(partial);
}

std::optional<i64> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string(), prefix = kPrefix;
  if (name.rfind(prefix, 0) != 0) return std::nullopt;
  i64 step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && rest == end ? std::optional(step) : std::nullopt;
}

}  // namespace

fs::path checkpoint_path(const fs::path& run, i64 step) {
  char name[32];
  std::snprintf(name, sizeof name, "%s%08lld", kPrefix, static_cast<long long>(step));
  return run / name;
}

fs::path write_checkpoint(const CheckpointSource& source, const RunState& state, const fs::path& run) {
  const fs::path final_path = checkpoint_path(run, state.step),
                 partial = run / ("." + final_path.filename().string() + ".partial");
  try {
    fs::create_directories(run);
    clear_partial(run);
    require_space(run, checkpoint_bytes(source));
    write_files(source, state, partial);
    // The same step again (a checkpoint on request, then one by schedule) holds the same state.
    fs::remove_all(final_path);
    fs::rename(partial, final_path);
    sync_folder(run);
  } catch (const fs::filesystem_error& error) {
    clear_partial(run);
    const bool full = error.code() == std::errc::no_space_on_device;
    fail_checkpoint(source, run, full, error.what(), "Check the disk.");
  } catch (const EngineError& error) {
    clear_partial(run);
    if (error.code() != "disk_full" && error.code() != "io_error") throw;
    fail_checkpoint(source, run, error.code() == "disk_full", error.what(), error.hint());
  }
  return final_path;
}

std::uintmax_t checkpoint_bytes(const CheckpointSource& source) {
  const Parameters& parameters = source.parameters;
  // Headers, the manifest and the state: a few hundred bytes a tensor.
  constexpr std::uintmax_t kPerTensor = 1024, kBeside = 256 << 10;
  std::uintmax_t sum = kBeside;
  for (const SafetensorsFile& file : source.model.files())
    for (const auto& [name, info] : file.tensors())
      if (!(source.tied && name == "lm_head.weight")) sum += info.end - info.begin + kPerTensor;
  for (const TensorEntry& t : parameters.layout().tensors) {
    const auto bytes = [&](Field field) {
      return static_cast<std::uintmax_t>(t.count) * dtype_bytes(parameters.type(field, t.bucket));
    };
    sum += bytes(Field::m) + bytes(Field::v) + kPerTensor;
    if (narrower(parameters, t, source.model)) sum += bytes(exact_field(parameters, t));
  }
  for (const SideFile& file : source.side_files) sum += file.bytes.size();
  return sum;
}

void require_space(const fs::path& folder, std::uintmax_t bytes) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (error || space.available >= bytes) return;
  throw EngineError("disk_full", folder.string() + ": the disk is full", kSpaceHint);
}

std::vector<fs::path> list_checkpoints(const fs::path& run) {
  std::vector<std::pair<i64, fs::path>> found;
  if (fs::is_directory(run))
    for (const auto& entry : fs::directory_iterator(run))
      if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

void prune_checkpoints(const fs::path& run, i64 keep, const std::vector<fs::path>& spare) {
  const auto all = list_checkpoints(run);
  for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i)
    if (std::find(spare.begin(), spare.end(), all[i]) == spare.end()) {
      std::error_code ignored;  // one that cannot be removed costs space, not the run
      fs::remove_all(all[i], ignored);
    }
}

void write_manifest(const fs::path& checkpoint) {
  const char* own = "manifest.json";
  Json files = Json::array();
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint))
    if (entry.is_regular_file() && entry.path().filename() != own)
      files.push_back({{"name", entry.path().lexically_relative(checkpoint).generic_string()},
                       {"size", entry.file_size()},
                       {"xxh3", file_checksum(entry.path())}});
  std::sort(files.begin(), files.end(), [](const Json& a, const Json& b) { return a["name"] < b["name"]; });
  write_file(checkpoint / own, Json{{"files", files}}.dump(1));
}

void check_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  const auto refuse = [&](const std::string& why) {
    throw EngineError(kDamaged, checkpoint.string() + ": " + why, "Resume from an earlier checkpoint.");
  };
  Json manifest;
  try {
    manifest = read_json(path);
  } catch (const EngineError& error) {
    refuse(error.what());
  }
  for (const Json& file : require_field<Json>(manifest, "files", path.string(), kDamaged)) {
    const auto name = require_field<std::string>(file, "name", path.string(), kDamaged);
    std::error_code error;
    const auto size = fs::file_size(checkpoint / name, error);
    if (error) refuse(name + " is missing");
    if (size != require_field<std::uintmax_t>(file, "size", path.string(), kDamaged))
      refuse(name + " has " + std::to_string(size) + " bytes, not those of the manifest");
    if (file_checksum(checkpoint / name) != require_field<std::string>(file, "xxh3", path.string(), kDamaged))
      refuse(name + " differs from its checksum");
  }
}

fs::path choose_checkpoint(const fs::path& wanted, std::string* warning) {
  const fs::path given = fs::absolute(wanted).lexically_normal();
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (!fs::is_directory(path))
    throw EngineError("missing_file", wanted.string() + ": there is no such checkpoint",
                      "Name a checkpoint-<step> folder of the run.");
  std::string first_problem;
  std::vector<fs::path> candidates = {path};
  const auto own_step = step_of(path);
  for (const fs::path& other : list_checkpoints(path.parent_path()))
    if (own_step && *step_of(other) < *own_step) candidates.push_back(other);
  for (const fs::path& candidate : candidates) {
    try {
      check_manifest(candidate);
      if (!first_problem.empty())
        *warning = first_problem + "; going on from " + candidate.filename().string();
      return candidate;
    } catch (const EngineError& error) {
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  throw EngineError(kDamaged, first_problem + ", and no earlier checkpoint is whole", "Start the run again.");
}

RunState read_state(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "state.json";
  const std::string where = path.string();
  const Json json = read_json(path), totals = require_field<Json>(json, "totals", where, kDamaged);
  const auto total = [&](const char* key) { return require_field<i64>(totals, key, where, kDamaged); };
  RunState s{.step = require_field<i64>(json, "step", where, kDamaged),
             .next_bin = require_field<i64>(json, "nextBin", where, kDamaged),
             .seed = require_field<i64>(json, "seed", where, kDamaged),
             .recipe = require_field<Json>(json, "recipe", where, kDamaged),
             .data = require_field<Json>(json, "data", where, kDamaged),
             .bins_per_step = optional_field<i64>(json, "binsPerStep", 0, where, kDamaged),
             .supervised_tokens = total("supervisedTokens"),
             .real_tokens = total("realTokens"),
             .positions = total("positions"),
             .milliseconds = require_field<double>(totals, "milliseconds", where, kDamaged),
             .best_eval = std::nullopt,
             .recent = Json::array(),
             .recent_evaluations = Json::array(),
             .recent_samples = Json::array(),
             .account = optional_field<Json>(json, "account", nullptr, where, kDamaged)};
  if (json.contains("bestEval")) {
    s.best_eval = require_field<double>(json, "bestEval", where, kDamaged);
    s.best_step = optional_field<i64>(json, "bestStep", 0, where, kDamaged);
  }
  return s;
}

void restore(const Parameters& parameters, const fs::path& checkpoint) {
  const SafetensorsFolder model(checkpoint);
  const SafetensorsFile optimizer(checkpoint / "optimizer.safetensors");
  for (const TensorEntry& t : parameters.layout().tensors) {
    const auto take = [&](const SafetensorsFile& file, const std::string& name, Field field) {
      if (file.info(name).shape != t.shape)
        throw EngineError("wrong_shape", file.path().string() + ": " + name + " is " +
                                             shape_text(file.info(name).shape) + ", the model has " +
                                             shape_text(t.shape));
      parameters.write(t, field, file.floats(name).data());
    };
    take(model.file_of(t.name), t.name, Field::weight);
    if (optimizer.contains("master." + t.name)) take(optimizer, "master." + t.name, Field::weight);
    take(optimizer, "m." + t.name, Field::m);
    take(optimizer, "v." + t.name, Field::v);
  }
}

void check_binding(const Json& saved, const Json& wanted, const std::string& what) {
  std::string changed;
  for (const auto& [field, value] : wanted.items())
    if (!saved.contains(field) || saved[field] != value)
      changed += (changed.empty() ? "" : ", ") + field + " (" +
                 (saved.contains(field) ? saved[field].dump() : "unset") + " → " + value.dump() + ")";
  if (!changed.empty())
    throw EngineError("recipe_changed", "this run cannot be resumed with another " + what + ": " + changed,
                      "Resume with what it was started with, or start a new run.");
}

}  // namespace tessera
