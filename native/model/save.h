// Writing a model back as it was found: names, shapes, dtypes, shards.
#pragma once

#include <string>
#include <vector>

#include "core/safetensors.h"
#include "model/parameters.h"

namespace tessera {

// Writes the weights into `folder` with the source's file names, sharding, dtypes and metadata. Tensors that
// were not trained (vision, mtp) are copied byte for byte; a tied model writes no lm_head. Throws io_error.
void save_weights(const Parameters& parameters, const SafetensorsFolder& source, bool tied,
                  const fs::path& folder);

// What else belongs to a model folder: config, tokenizer, chat template, generation settings. Read before a
// run begins: the folder may be gone or be another when the run saves.
struct SideFile {
  fs::path name;  // in the folder; a named chat template has a folder of its own in it
  std::string bytes;
};
std::vector<SideFile> read_side_files(const fs::path& folder);
void write_side_files(const std::vector<SideFile>& files, const fs::path& folder);

}  // namespace tessera
