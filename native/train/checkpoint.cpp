#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "model/save.h"

namespace tessera {
namespace {

constexpr const char* kPrefix = "checkpoint-";
constexpr const char* kBad = "damaged_checkpoint";

// The model file keeps fewer bits than the training state: bf16 weights beside fp32 masters or an fp32
// backend.
bool narrower(const Parameters& parameters, const TensorEntry& t, const SafetensorsFolder& model) {
  const Field exact = t.bucket == Bucket::big && parameters.has_master() ? Field::master : Field::weight;
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
    if (narrower(parameters, t, source.model)) {
      const Field exact = t.bucket == Bucket::big && parameters.has_master() ? Field::master : Field::weight;
      tensors.push_back(state_tensor(parameters, t, exact, "master."));
    }
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
               {"totals",
                {{"supervisedTokens", s.supervised_tokens},
                 {"realTokens", s.real_tokens},
                 {"positions", s.positions},
                 {"milliseconds", s.milliseconds}}}};
  if (s.best_eval) {
    json["bestEval"] = *s.best_eval;
    json["bestStep"] = s.best_step;
  }
  return json;
}

void write_manifest(const fs::path& folder) {
  Json files = Json::array();
  for (const auto& entry : fs::directory_iterator(folder))
    files.push_back({{"name", entry.path().filename().string()},
                     {"size", entry.file_size()},
                     {"xxh3", file_checksum(entry.path())}});
  std::sort(files.begin(), files.end(), [](const Json& a, const Json& b) { return a["name"] < b["name"]; });
  write_file(folder / "manifest.json", Json{{"files", files}}.dump(1));
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
    fs::remove_all(partial);
    fs::create_directory(partial);
    copy_side_files(source.model_folder, partial);
    save_weights(source.parameters, source.model, source.tied, partial);
    write_optimizer(source, partial);
    write_file(partial / "state.json", state_json(state).dump(1));
    write_manifest(partial);
    sync_folder(partial);
    // The same step again (a checkpoint on request, then one by schedule) holds the same state.
    fs::remove_all(final_path);
    fs::rename(partial, final_path);
    sync_folder(run);
  } catch (const fs::filesystem_error& error) {
    throw EngineError("io_error", std::string("cannot write the checkpoint: ") + error.what(),
                      "Check the disk and its free space.");
  }
  check_manifest(final_path);
  return final_path;
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

void check_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  const auto refuse = [&](const std::string& why) {
    throw EngineError(kBad, checkpoint.string() + ": " + why, "Resume from an earlier checkpoint.");
  };
  Json manifest;
  try {
    manifest = read_json(path);
  } catch (const EngineError& error) {
    refuse(error.what());
  }
  for (const Json& file : require_field<Json>(manifest, "files", path.string(), kBad)) {
    const auto name = require_field<std::string>(file, "name", path.string(), kBad);
    std::error_code error;
    const auto size = fs::file_size(checkpoint / name, error);
    if (error) refuse(name + " is missing");
    if (size != require_field<std::uintmax_t>(file, "size", path.string(), kBad))
      refuse(name + " has " + std::to_string(size) + " bytes, not those of the manifest");
    if (file_checksum(checkpoint / name) != require_field<std::string>(file, "xxh3", path.string(), kBad))
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
  throw EngineError(kBad, first_problem + ", and no earlier checkpoint is whole", "Start the run again.");
}

RunState read_state(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "state.json";
  const std::string where = path.string();
  const Json json = read_json(path), totals = require_field<Json>(json, "totals", where, kBad);
  const auto total = [&](const char* key) { return require_field<i64>(totals, key, where, kBad); };
  RunState s{.step = require_field<i64>(json, "step", where, kBad),
             .next_bin = require_field<i64>(json, "nextBin", where, kBad),
             .seed = require_field<i64>(json, "seed", where, kBad),
             .recipe = require_field<Json>(json, "recipe", where, kBad),
             .data = require_field<Json>(json, "data", where, kBad),
             .supervised_tokens = total("supervisedTokens"),
             .real_tokens = total("realTokens"),
             .positions = total("positions"),
             .milliseconds = require_field<double>(totals, "milliseconds", where, kBad),
             .best_eval = std::nullopt};
  if (json.contains("bestEval")) {
    s.best_eval = require_field<double>(json, "bestEval", where, kBad);
    s.best_step = optional_field<i64>(json, "bestStep", 0, where, kBad);
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
