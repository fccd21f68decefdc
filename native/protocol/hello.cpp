#include "protocol/hello.h"

#include <unistd.h>

#include <thread>

#include "core/dynamic_library.h"
#include "core/json.h"
#include "protocol/channel.h"
#include "protocol/nvml.h"

namespace tessera {
namespace {

Json cpu_device() {
  const auto pages = [](int what) {
    return static_cast<std::int64_t>(::sysconf(what)) * ::sysconf(_SC_PAGESIZE);
  };
  return {{"device", "cpu"},
          {"name", "CPU"},
          {"threads", std::thread::hardware_concurrency()},
          {"memoryBytes", pages(_SC_PHYS_PAGES)},
          {"freeBytes", pages(_SC_AVPHYS_PAGES)}};
}

// {nvml: {found, path?}, cublasLt: …}: used where they are found, never required.
Json libraries() {
  const std::vector<std::pair<const char*, std::vector<std::string>>> wanted = {
      {"nvml", {"libnvidia-ml.so.1"}},
      {"cublasLt", {"libcublasLt.so.13", "libcublasLt.so.12"}},
      {"nccl", {"libnccl.so.2"}},
      {"cupti", {"libcupti.so.13", "libcupti.so.12"}}};
  Json all = Json::object();
  for (const auto& [name, files] : wanted) {
    const auto library = DynamicLibrary::open(files);
    all[name] = {{"found", library != nullptr}};
    if (library) all[name]["path"] = library->path();
  }
  return all;
}

}  // namespace

Json hello_event(const Json& kernels) {
  Json devices = Json::array({cpu_device()}), backends = Json::array({"cpu"});
  const Nvml nvml;
#ifdef TESSERA_WITH_CUDA
  backends.push_back("cuda");
  for (int n = 0; n < nvml.count(); ++n) {
    const Json gpu = nvml.read_device(n);
    if (gpu.empty()) continue;
    Json device = {{"device", gpu["device"]}};
    if (gpu.contains("name")) device["name"] = gpu["name"];
    if (gpu.contains("memoryTotalBytes")) {
      device["memoryBytes"] = gpu["memoryTotalBytes"];
      device["freeBytes"] =
          gpu["memoryTotalBytes"].get<std::int64_t>() - gpu["memoryBytes"].get<std::int64_t>();
    }
    devices.push_back(device);
  }
#endif
  return {{"event", "hello"},     {"protocol", kProtocolVersion}, {"version", TESSERA_VERSION},
          {"backends", backends}, {"devices", devices},           {"libraries", libraries()},
          {"kernels", kernels},   {"gpus", nvml.describe_all()}};
}

}  // namespace tessera
