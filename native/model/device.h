// Backends by device name.
#pragma once

#include <memory>
#include <string>

#include "core/json_fwd.h"
#include "model/config.h"
#include "ops/backend.h"

namespace tessera {

struct DeviceOptions {
  int threads = 0;      // cpu: 0 is all cores
  std::string profile;  // cuda: "", "events", "cupti"
  bool graphs = true;   // cuda: false submits operation by operation
  // Not empty takes the plain kernels that the fast ones are checked against, and says why. cpu: the delta
  // rule token by token, on the instruction set that every x86-64 has; cuda: every operation but the
  // products.
  std::string reference{};
  bool portable = false;           // cuda: as on a GPU of the oldest architecture that is served
  std::string precision = "auto";  // auto: bf16 on cuda, fp32 on cpu; else fp32 | bf16
};
// device: "cpu", "cuda:N" or "auto" (cuda:0 where one is usable, else cpu).
// Throws EngineError invalid_device | no_cuda.
std::unique_ptr<Backend> make_backend(const std::string& device, const DeviceOptions& options = {});

// Why the backend's fast kernels do not serve the model's sizes; "" where they do.
std::string why_unserved(const Backend& backend, const ModelConfig& config);

// Throws slow_kernel naming the first of the model's kernels that is slow.
void refuse_slow_kernels(const Backend& backend, const ModelConfig& config);

// The same for a model: where the fast CUDA kernels do not serve its sizes, the reference kernels if they are
// accepted. Throws unsupported_head_size (naming the sizes that are served) where they are not, and
// slow_kernel where a kernel is slow for another reason, such as a missing library.
std::unique_ptr<Backend> make_model_backend(const std::string& device, const ModelConfig& config,
                                            bool accept_slow, const DeviceOptions& options = {});

// How the kernels of a backend are listed in hello and doctor.
Json kernels_json(const std::vector<KernelInfo>& kernels);

// [{<key>: op, phase, calls, totalMs, averageUs, percentOfRoof, couldSaveMs}]; couldSaveMs: above the
// operation's floor.
Json op_times_json(const std::vector<OpTime>& times, const char* key);

}  // namespace tessera
