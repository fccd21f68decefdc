// Random initial weights as transformers draws them for this family.
#pragma once

#include <vector>

#include "model/layout.h"

namespace tessera {

// Matrices and conv taps: normal(0, initializer_range). Zero-centred norms 0, the gated norm 1, dt_bias 1,
// A_log = log of uniform(0, 16). Each tensor has its own stream, so values depend on seed and name only.
std::vector<float> initial_values(const TensorEntry& tensor, const ModelConfig& config, std::uint64_t seed);

// Writes a model folder for a config file: config.json and model.safetensors. Matrices in dtype; A_log and
// the gated norm always in F32. Throws invalid_config | io_error.
void write_initial_model(const fs::path& config_file, std::uint64_t seed, DType dtype,
                         const fs::path& folder);

}  // namespace tessera
