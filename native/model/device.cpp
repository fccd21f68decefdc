#include "model/device.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/json.h"

namespace tessera {
namespace {

std::unique_ptr<Backend> cuda(int index, const DeviceOptions& options) {
#ifdef TESSERA_WITH_CUDA
  return make_cuda_backend({.device = index,
                            .profile = options.profile,
                            .graphs = options.graphs,
                            .reference = options.reference,
                            .fp32 = options.precision == "fp32",
                            .portable = options.portable});
#else
  throw EngineError("no_cuda",
                    "device cuda:" + std::to_string(index) + ": this engine was built without CUDA",
                    "Build on a machine with nvcc (TESSERA_CUDA=1), or use device cpu.");
#endif
}

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& device, const DeviceOptions& options) {
  if (options.precision != "auto" && options.precision != "fp32" && options.precision != "bf16")
    throw EngineError("invalid_recipe", "precision \"" + options.precision + "\" is unknown",
                      "Use auto, fp32 or bf16.");
  if (device == "cpu") {
    if (options.precision == "bf16")
      throw EngineError("unsupported_precision", "the cpu device computes in fp32 only",
                        "Use precision auto or fp32, or a CUDA device.");
    const bool plain = !options.reference.empty();
    return make_cpu_backend({.gdn = plain ? GdnAlgorithm::recurrent : GdnAlgorithm::chunked,
                             .threads = options.threads,
                             .baseline = plain});
  }
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
  if (device.find(',') != std::string::npos)
    throw EngineError("unsupported_device", "device \"" + device + "\": this needs a single device",
                      "Name one, such as cuda:0; train and bench take several.");
  throw EngineError("invalid_device", "device \"" + device + "\" is unknown",
                    "Use cpu, cuda:0, cuda:1, … or auto.");
}

std::string why_unserved(const Backend& backend, const ModelConfig& config) {
  for (const KernelInfo& k : backend.kernels(config.gdn, config.attn))
    if (k.tier == "unsupported") return k.reason;
  if (backend.name() == "cpu" ||
      (config.hidden % 8 == 0 && config.intermediate % 8 == 0 && config.vocab % 8 == 0))
    return "";
  return "the model has hidden_size " + std::to_string(config.hidden) + ", intermediate_size " +
         std::to_string(config.intermediate) + " and vocab_size " + std::to_string(config.vocab) +
         "; the fast CUDA kernels serve multiples of 8";
}

void refuse_slow_kernels(const Backend& backend, const ModelConfig& config) {
  for (const KernelInfo& k : backend.kernels(config.gdn, config.attn))
    if (k.slow)
      throw EngineError("slow_kernel",
                        backend.name() + ": " + k.operation + " would run by the slow kernel " + k.forward +
                            ": " + k.reason,
                        "Accept the slow kernels (acceptSlow: true, --accept-slow), or use the cpu device.");
}

std::unique_ptr<Backend> make_model_backend(const std::string& device, const ModelConfig& config,
                                            bool accept_slow, const DeviceOptions& options) {
  auto backend = make_backend(device, options);
  const bool fast = options.precision != "fp32" && options.reference.empty();
  const std::string why = fast ? why_unserved(*backend, config) : "";
  if (why.empty()) {
    if (fast && !accept_slow) refuse_slow_kernels(*backend, config);
    return backend;
  }
  if (!accept_slow)
    throw EngineError("unsupported_head_size", backend->name() + ": " + why,
                      "Accept the slow reference kernels (acceptSlow: true, --accept-slow), or use the cpu "
                      "device for this model.");
  DeviceOptions plain = options;
  plain.reference = why;
  const std::string name = backend->name();
  backend.reset();
  return make_backend(name, plain);
}

Json kernels_json(const std::vector<KernelInfo>& kernels) {
  Json list = Json::array();
  for (const KernelInfo& k : kernels)
    list.push_back({{"layerKind", k.layer_kind},
                    {"operation", k.operation},
                    {"forward", k.forward},
                    {"backward", k.backward},
                    {"tier", k.tier},
                    {"reason", k.reason},
                    {"slow", k.slow}});
  return list;
}

Json op_times_json(const std::vector<OpTime>& times, const char* key) {
  Json list = Json::array();
  for (const OpTime& t : times) {
    Json row = {{key, t.op},
                {"phase", t.phase},
                {"calls", t.calls},
                {"totalMs", t.total_ms},
                {"averageUs", t.calls > 0 ? t.total_ms * 1e3 / static_cast<double>(t.calls) : 0.0}};
    if (t.percent_of_roof > 0) {
      row["percentOfRoof"] = t.percent_of_roof;
      row["couldSaveMs"] = t.total_ms * std::max(0.0, 1.0 - t.percent_of_roof / 100.0);
    }
    list.push_back(row);
  }
  return list;
}

}  // namespace tessera
