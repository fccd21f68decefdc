#include "protocol/nvml.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/dynamic_library.h"
#include "core/json.h"
#include "protocol/cuda_order.h"

namespace tessera {
namespace {

constexpr int kNotSupported = 3, kGone = 15;  // NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_GPU_IS_LOST

// Only what is read here; 0 is success for every function. Layouts as in nvml.h.
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, status;
  union {
    double real;
    unsigned word;
    unsigned long long wide;
  } value;
};
constexpr unsigned kNvlinkSpeed = 90;                     // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
constexpr unsigned kPcieSent = 197, kPcieReceived = 198;  // NVML_FI_DEV_PCIE_COUNT_TX_BYTES, _RX_BYTES
constexpr unsigned kPowerNow = 186;                       // NVML_FI_DEV_POWER_INSTANT, milliwatts
// Traffic of GPUs without counters is measured for 20 ms a direction, in which the driver spins: each tenth
// turn.
constexpr int kSpinningTurns = 10;
constexpr int kEnergyTurns = 3;
constexpr unsigned kMostNvlinks = 18;
constexpr int kRemoteSwitch = 2;

// By NVML's type of it; 0 for one that is no unsigned number.
unsigned long long whole_number(const FieldValue& f) {
  return f.type == 1 ? f.value.word : f.type == 2 || f.type == 3 ? f.value.wide : 0;
}

const char* path_name(int level) {
  return level == 0    ? "board"
         : level == 10 ? "PCIe switch"
         : level == 20 ? "PCIe switches"
         : level == 30 ? "host bridge"
         : level == 40 ? "NUMA node"
                       : "system";
}

}  // namespace

struct Nvml::Api {
  std::unique_ptr<DynamicLibrary> library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, void**) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*pci)(void*, PciInfo*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*energy)(void*, unsigned long long*) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*throttle)(void*, unsigned long long*) = nullptr;
  int (*power_limit)(void*, unsigned*) = nullptr;
  int (*ecc)(void*, int, int, unsigned long long*) = nullptr;
  int (*pcie)(void*, int, unsigned*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*cuda_driver)(int*) = nullptr;
  int (*capability)(void*, int*, int*) = nullptr;
  int (*pcie_generation)(void*, unsigned*) = nullptr;
  int (*pcie_max_generation)(void*, unsigned*) = nullptr;
  int (*pcie_width)(void*, unsigned*) = nullptr;
  int (*pcie_max_width)(void*, unsigned*) = nullptr;
  int (*nvlink_state)(void*, unsigned, int*) = nullptr;
  int (*nvlink_version)(void*, unsigned, unsigned*) = nullptr;
  int (*nvlink_remote)(void*, unsigned, PciInfo*) = nullptr;
  int (*nvlink_remote_type)(void*, unsigned, int*) = nullptr;
  int (*fields)(void*, int, FieldValue*) = nullptr;
  int (*ancestor)(void*, void*, int*) = nullptr;

  template <class F>
  void load(F*& function, const char* symbol) {
    function = reinterpret_cast<F*>(library->symbol(symbol));
  }
};

Nvml::Nvml() : api_(std::make_unique<Api>()) {
  Api& a = *api_;
  a.library = DynamicLibrary::open({"libnvidia-ml.so.1"});
  if (!a.library) {
    reason_ = "libnvidia-ml.so.1 was not found: no NVIDIA driver on this machine";
    return;
  }
  a.load(a.init, "nvmlInit_v2");
  a.load(a.shutdown, "nvmlShutdown");
  a.load(a.count, "nvmlDeviceGetCount_v2");
  a.load(a.by_index, "nvmlDeviceGetHandleByIndex_v2");
  a.load(a.name, "nvmlDeviceGetName");
  a.load(a.pci, "nvmlDeviceGetPciInfo_v3");
  a.load(a.power, "nvmlDeviceGetPowerUsage");
  a.load(a.energy, "nvmlDeviceGetTotalEnergyConsumption");
  a.load(a.utilization, "nvmlDeviceGetUtilizationRates");
  a.load(a.memory, "nvmlDeviceGetMemoryInfo");
  a.load(a.temperature, "nvmlDeviceGetTemperature");
  a.load(a.clock, "nvmlDeviceGetClockInfo");
  a.load(a.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  a.load(a.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  a.load(a.ecc, "nvmlDeviceGetTotalEccErrors");
  a.load(a.pcie, "nvmlDeviceGetPcieThroughput");
  a.load(a.driver, "nvmlSystemGetDriverVersion");
  a.load(a.cuda_driver, "nvmlSystemGetCudaDriverVersion_v2");
  a.load(a.capability, "nvmlDeviceGetCudaComputeCapability");
  a.load(a.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  a.load(a.pcie_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  a.load(a.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  a.load(a.pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth");
  a.load(a.nvlink_state, "nvmlDeviceGetNvLinkState");
  a.load(a.nvlink_version, "nvmlDeviceGetNvLinkVersion");
  a.load(a.nvlink_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  a.load(a.nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  a.load(a.fields, "nvmlDeviceGetFieldValues");
  a.load(a.ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  const int status = a.init ? a.init() : -1;
  unsigned count = 0;
  if (status != 0) {
    a.shutdown = nullptr;
    reason_ =
        "NVML could not be started (status " + std::to_string(status) + "): the driver is missing or too old";
  } else if (!a.count || !a.by_index || a.count(&count) != 0 || count == 0) {
    reason_ = "NVML reports no GPU";
  }
  count_ = static_cast<int>(count);
  slow_.assign(count, Json::object());
  traffic_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    Json named = Json::object();
    void* device = nullptr;
    char name[96] = "";
    PciInfo pci{};
    if (a.by_index(i, &device) == 0) {
      if (a.name && a.name(device, name, sizeof name) == 0) named["name"] = name;
      if (a.pci && a.pci(device, &pci) == 0) named["pciBusId"] = pci.bus_id;
    }
    named_.push_back(named);
  }
  std::vector<std::string> names, bus_ids;
  for (const Json& named : named_) {
    names.push_back(named.value("name", std::string()));
    bus_ids.push_back(named.value("pciBusId", std::string()));
  }
  cuda_numbers_ = cuda_numbers(names, bus_ids);
  for (size_t n = 0; n < named_.size(); ++n)
    if (cuda_numbers_[n] >= 0) named_[n]["device"] = "cuda:" + std::to_string(cuda_numbers_[n]);
}

Json Nvml::read_device(int cuda_number) const {
  for (int n = 0; cuda_number >= 0 && n < count_; ++n)
    if (cuda_numbers_[static_cast<size_t>(n)] == cuda_number) return read(n);
  return Json::object();
}

Nvml::~Nvml() {
  if (api_->shutdown) api_->shutdown();
}

Json Nvml::read(int index) const {
  const Api& a = *api_;
  Json gpu = {{"index", index}};
  gpu.update(named_[static_cast<size_t>(index)]);
  void* device = nullptr;
  unsigned value = 0;
  unsigned long long wide = 0;
  Utilization use{};
  Memory memory{};
  // A GPU that fell off the bus, was reset or is held by somebody else: it stays in the list, with nothing to
  // say.
  const bool is_there = a.by_index && a.by_index(static_cast<unsigned>(index), &device) == 0;
  const int has_memory = is_there && a.memory ? a.memory(device, &memory) : kNotSupported;
  if (!is_there || has_memory == kGone) {
    gpu["lost"] = true;
    return gpu;
  }
  if (a.utilization && a.utilization(device, &use) == 0) gpu["utilization"] = use.gpu;
  if (has_memory == 0) {
    gpu["memoryBytes"] = memory.used;
    gpu["memoryTotalBytes"] = memory.total;
  }
  // Now, where the driver says so; else its mean over the last second.
  FieldValue now{};
  now.field = kPowerNow;
  if (a.fields && a.fields(device, 1, &now) == 0 && now.status == 0 && now.type == 1)
    gpu["powerW"] = now.value.word / 1000.0;
  else if (a.power && a.power(device, &value) == 0)
    gpu["powerW"] = value / 1000.0;
  if (a.power_limit && a.power_limit(device, &value) == 0) gpu["powerLimitW"] = value / 1000.0;
  if (a.temperature && a.temperature(device, 0, &value) == 0) gpu["temperatureC"] = value;
  if (a.clock && a.clock(device, 1, &value) == 0) gpu["smClockMHz"] = value;
  if (a.clock && a.clock(device, 2, &value) == 0) gpu["memoryClockMHz"] = value;
  if (a.throttle && a.throttle(device, &wide) == 0) gpu["throttleReasons"] = wide;
  gpu.update(slow_[static_cast<size_t>(index)]);
  return gpu;
}

// Bytes a second since the counters were read before, one GPU at a time; without counters by a measurement of
// 20 ms.
void Nvml::read_traffic(void* device, int turn, Traffic* last, Json* values) const {
  const Api& a = *api_;
  FieldValue counters[2] = {};
  counters[0].field = kPcieSent;
  counters[1].field = kPcieReceived;
  const char* names[2] = {"pcieSentBytesPerSecond", "pcieReceivedBytesPerSecond"};
  if (a.fields && a.fields(device, 2, counters) == 0 && counters[0].status == 0 && counters[1].status == 0) {
    const auto at = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(at - last->at).count();
    for (int n = 0; n < 2; ++n) {
      const auto bytes = whole_number(counters[n]);
      auto moved = bytes - last->bytes[n];
      if (counters[n].type == 1) moved &= 0xffffffffu;  // 32 bits, which wrap
      if (last->counted && seconds > 0)
        (*values)[names[n]] = std::round(static_cast<double>(moved) / seconds);
      last->bytes[n] = bytes;
    }
    last->counted = true;
    last->at = at;
    return;
  }
  const int own_turn = turn / count_;
  for (int n = 0; n < 2; ++n) {
    unsigned kilobytes = 0;
    if (own_turn % kSpinningTurns == 0 && a.pcie)
      last->measured[n] = a.pcie(device, n, &kilobytes) == 0 ? kilobytes * 1e3 : -1;
    if (last->measured[n] >= 0) (*values)[names[n]] = last->measured[n];
  }
}

void Nvml::read_slow(int turn) {
  const Api& a = *api_;
  if (count_ == 0) return;
  const int index = turn % count_;
  Json& values = slow_[static_cast<size_t>(index)];
  values = Json::object();
  void* device = nullptr;
  if (!a.by_index || a.by_index(static_cast<unsigned>(index), &device) != 0) return;
  unsigned long long errors = 0, wide = 0;
  Traffic& last = traffic_[static_cast<size_t>(index)];
  read_traffic(device, turn, &last, &values);
  // Takes the driver 3 ms of a processor.
  if (turn / count_ % kEnergyTurns == 0)
    last.joules = a.energy && a.energy(device, &wide) == 0 ? static_cast<double>(wide) / 1000.0 : -1;
  if (last.joules >= 0) values["energyJ"] = last.joules;
  if (a.ecc && a.ecc(device, 0, 0, &errors) == 0) values["eccCorrected"] = errors;
  if (a.ecc && a.ecc(device, 1, 0, &errors) == 0) values["eccUncorrected"] = errors;
}

Json Nvml::describe_all() const {
  Json gpus = Json::array();
  for (int i = 0; i < count_; ++i) {
    Json gpu = describe(i);
    gpu.update(links(i));
    gpus.push_back(gpu);
  }
  return gpus;
}

Json Nvml::describe(int index) const {
  const Api& a = *api_;
  Json gpu = {{"index", index}};
  gpu.update(named_[static_cast<size_t>(index)]);
  char driver[96] = "";
  int cuda = 0, major = 0, minor = 0;
  unsigned value = 0;
  Memory memory{};
  void* device = nullptr;
  if (a.driver && a.driver(driver, sizeof driver) == 0) gpu["driver"] = driver;
  if (a.cuda_driver && a.cuda_driver(&cuda) == 0)
    gpu["cudaDriver"] = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  if (!a.by_index || a.by_index(static_cast<unsigned>(index), &device) != 0) {
    gpu["lost"] = true;
    return gpu;
  }
  if (a.capability && a.capability(device, &major, &minor) == 0)
    gpu["computeCapability"] = std::to_string(major) + "." + std::to_string(minor);
  if (a.memory && a.memory(device, &memory) == 0) gpu["memoryBytes"] = memory.total;
  if (a.power_limit && a.power_limit(device, &value) == 0) gpu["powerLimitW"] = value / 1000.0;
  const auto number = [&](const char* key, int (*read)(void*, unsigned*)) {
    if (read && read(device, &value) == 0) gpu[key] = value;
  };
  number("pcieGeneration", a.pcie_generation);
  number("pcieWidth", a.pcie_width);
  number("pcieMaxGeneration", a.pcie_max_generation);
  number("pcieMaxWidth", a.pcie_max_width);
  return gpu;
}

// NVLinks end at another GPU or at a switch that joins all of them.
Json Nvml::links(int index) const {
  const Api& a = *api_;
  Json found = {{"peers", Json::array()}};
  void* device = nullptr;
  if (!a.by_index || a.by_index(static_cast<unsigned>(index), &device) != 0) return found;
  int active = 0, switched = 0;
  bool known = false;
  std::map<std::string, int> ends;  // links by the bus id of the GPU that they lead to
  for (unsigned link = 0; link < kMostNvlinks; ++link) {
    int is_active = 0, kind = 0;
    unsigned version = 0;
    PciInfo pci{};
    if (!a.nvlink_state || a.nvlink_state(device, link, &is_active) != 0) continue;
    known = true;
    if (!is_active) continue;
    ++active;
    if (a.nvlink_version && a.nvlink_version(device, link, &version) == 0) found["nvlinkVersion"] = version;
    if (a.nvlink_remote_type && a.nvlink_remote_type(device, link, &kind) == 0 && kind == kRemoteSwitch)
      ++switched;
    else if (a.nvlink_remote && a.nvlink_remote(device, link, &pci) == 0)
      ++ends[pci.bus_id];
  }
  if (known) found["nvlinks"] = active;
  FieldValue speed{};
  speed.field = kNvlinkSpeed;
  if (active > 0 && a.fields && a.fields(device, 1, &speed) == 0 && speed.status == 0)
    found["nvlinkBytesPerSecond"] = speed.value.word * 1e6;
  for (int other = 0; other < count_; ++other) {
    if (other == index) continue;
    Json peer = {{"index", other}};
    void* end = nullptr;
    int level = 0;
    if (a.by_index(static_cast<unsigned>(other), &end) == 0 && a.ancestor &&
        a.ancestor(device, end, &level) == 0)
      peer["path"] = path_name(level);
    if (known)
      peer["nvlinks"] = switched + ends[named_[static_cast<size_t>(other)].value("pciBusId", std::string())];
    found["peers"].push_back(peer);
  }
  return found;
}

Json Nvml::read_all() const {
  Json gpus = Json::array();
  for (int i = 0; i < count_; ++i) gpus.push_back(read(i));
  return gpus;
}

}  // namespace tessera
