// Which GPU is cuda:N: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER number them otherwise than NVML does.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// For each GPU, by NVML's number, its CUDA number; -1: CUDA does not show it here. Asks the driver only where
// the two may differ: one of those variables is set, or the GPUs (by `names`) are not all alike, of which
// CUDA puts the fastest first. A GPU whose bus id is unknown ("") keeps NVML's number.
std::vector<int> cuda_numbers(const std::vector<std::string>& names, const std::vector<std::string>& bus_ids);

}  // namespace tessera
