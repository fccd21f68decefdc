// Checkpoints: a folder "checkpoint-<step>" that is a loadable model and all that a run needs to go on from
// it.
//
//   model files              weights under their Hugging Face names, as in the source model; config,
//   tokenizer, … optimizer.safetensors    m.<name>, v.<name>, and master.<name> where the model file is
//   narrower than the state state.json               step, position in the data, seed, recipe and its hash,
//   totals manifest.json            size and XXH3 of every file
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/safetensors.h"
#include "model/parameters.h"
#include "model/save.h"

namespace tessera {

struct RunState {
  i64 step = 0;      // steps taken
  i64 next_bin = 0;  // position in the plan
  i64 seed = 0;
  Json recipe;  // the fields that bind a continuation, see Recipe::binding
  Json data;    // fingerprints of cache and plan
  // Over all ranks; 0 in checkpoints of older versions.
  i64 bins_per_step = 0;
  i64 supervised_tokens = 0, real_tokens = 0, positions = 0;  // totals
  double milliseconds = 0;
  // Lowest held-out loss after a step, and that step: its checkpoint is kept where checkpoint.best asks for
  // it.
  std::optional<double> best_eval;
  i64 best_step = 0;
  // The newest step, evaluation and sample events: whoever listened may have died before it kept them.
  Json recent = Json::array();
  Json recent_evaluations = Json::array();
  Json recent_samples = Json::array();
  Json account;  // where the time went up to this step, see Account; null in checkpoints of older versions
};

// What a checkpoint is made of, besides the state.
struct CheckpointSource {
  const Parameters& parameters;
  const SafetensorsFolder& model;  // names, dtypes and untrained tensors
  const std::vector<SideFile>& side_files;
  bool tied;
};

fs::path checkpoint_path(const fs::path& run, i64 step);
// Bytes that a checkpoint takes on disk, known before there are values to write.
std::uintmax_t checkpoint_bytes(const CheckpointSource& source);
// Throws disk_full, with the bytes that are needed and free, where a folder's disk has no room for so many.
void require_space(const fs::path& folder, std::uintmax_t bytes);
// Writes to a temporary folder, syncs, reads it back by its manifest, renames. Where that cannot be done
// nothing is left of it and what was there before stays. Throws disk_full | io_error | damaged_checkpoint,
// naming the file.
fs::path write_checkpoint(const CheckpointSource& source, const RunState& state, const fs::path& run);
// Removes all but the newest `keep` checkpoints, and those in `spare`.
void prune_checkpoints(const fs::path& run, i64 keep, const std::vector<fs::path>& spare);
// Checkpoint folders of a run, newest first.
std::vector<fs::path> list_checkpoints(const fs::path& run);

// Of the folder's files as they are.
void write_manifest(const fs::path& checkpoint);
// Throws damaged_checkpoint naming the file that differs from the manifest.
void check_manifest(const fs::path& checkpoint);
// The named checkpoint if it is whole, else the newest whole one before it in the same run; *warning says so.
// Throws damaged_checkpoint where none is left.
fs::path choose_checkpoint(const fs::path& wanted, std::string* warning);

RunState read_state(const fs::path& checkpoint);
// Weights, masters and optimizer state by name. Throws missing_tensor | wrong_shape.
void restore(const Parameters& parameters, const fs::path& checkpoint);
// Throws recipe_changed naming every field that differs.
void check_binding(const Json& saved, const Json& wanted, const std::string& what);

}  // namespace tessera
