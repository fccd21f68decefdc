#include "model/device.h"

#include <charconv>

#include "core/error.h"

namespace tessera {
namespace {

std::unique_ptr<Backend> cuda(int index, const DeviceOptions& options) {
#ifdef TESSERA_WITH_CUDA
  return make_cuda_backend({.device = index, .profile = options.profile});
#else
  throw EngineError("no_cuda", "device cuda:" + std::to_string(index) + ": this engine was built without CUDA",
                    "Build on a machine with nvcc (TESSERA_CUDA=1), or use device cpu.");
#endif
}

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& device, const DeviceOptions& options) {
  if (device == "cpu") return make_cpu_backend({.threads = options.threads});
  if (device == "auto") {
    try {
      return cuda(0, options);
    } catch (const EngineError& error) {
      if (error.code() != "no_cuda") throw;
      return make_backend("cpu", options);
    }
  }
  if (device == "cuda") return cuda(0, options);
  if (device.rfind("cuda:", 0) == 0) {
    int index = -1;
    const char* end = device.data() + device.size();
    const auto [rest, error] = std::from_chars(device.data() + 5, end, index);
    if (error == std::errc() && rest == end && index >= 0) return cuda(index, options);
  }
  throw EngineError("invalid_device", "device \"" + device + "\" is unknown", "Use cpu, cuda:0, cuda:1, … or auto.");
}

Json kernels_json(const std::vector<KernelInfo>& kernels) {
  Json list = Json::array();
  for (const KernelInfo& k : kernels)
    list.push_back({{"layerKind", k.layer_kind}, {"operation", k.operation}, {"forward", k.forward},
                    {"backward", k.backward}, {"tier", k.tier}, {"reason", k.reason}, {"slow", k.slow}});
  return list;
}

}  // namespace tessera
