#include "protocol/nvml.h"

#include "core/dynamic_library.h"
#include "core/json.h"

namespace tessera {
namespace {

constexpr int kGone = 15;  // NVML_ERROR_GPU_IS_LOST

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
  int status = a.by_index ? a.by_index(static_cast<unsigned>(index), &device) : kGone;
  if (status == 0 && a.memory) status = a.memory(device, &memory) == kGone ? kGone : 0;
  if (status != 0) {
    gpu["lost"] = true;
    return gpu;
  }
  if (a.utilization && a.utilization(device, &use) == 0) gpu["utilization"] = use.gpu;
  if (a.memory && a.memory(device, &memory) == 0) {
    gpu["memoryBytes"] = memory.used;
    gpu["memoryTotalBytes"] = memory.total;
  }
  if (a.power && a.power(device, &value) == 0) gpu["powerW"] = value / 1000.0;
  if (a.power_limit && a.power_limit(device, &value) == 0) gpu["powerLimitW"] = value / 1000.0;
  if (a.energy && a.energy(device, &wide) == 0) gpu["energyJ"] = static_cast<double>(wide) / 1000.0;
  if (a.temperature && a.temperature(device, 0, &value) == 0) gpu["temperatureC"] = value;
  if (a.clock && a.clock(device, 1, &value) == 0) gpu["smClockMHz"] = value;
  if (a.clock && a.clock(device, 2, &value) == 0) gpu["memoryClockMHz"] = value;
  if (a.throttle && a.throttle(device, &wide) == 0) gpu["throttleReasons"] = wide;
  gpu.update(slow_[static_cast<size_t>(index)]);
  return gpu;
}

// Each traffic counter is a sum over 20 ms that the call waits for: one of one GPU at a time.
void Nvml::read_slow(int turn) {
  const Api& a = *api_;
  if (count_ == 0) return;
  const int index = turn % count_;
  Json& values = slow_[static_cast<size_t>(index)];
  values = Json::object();
  void* device = nullptr;
  if (!a.by_index || a.by_index(static_cast<unsigned>(index), &device) != 0) return;
  unsigned kilobytes = 0;
  unsigned long long errors = 0;
  if (a.pcie && a.pcie(device, 0, &kilobytes) == 0) values["pcieSentBytesPerSecond"] = kilobytes * 1e3;
  if (a.pcie && a.pcie(device, 1, &kilobytes) == 0) values["pcieReceivedBytesPerSecond"] = kilobytes * 1e3;
  if (a.ecc && a.ecc(device, 0, 0, &errors) == 0) values["eccCorrected"] = errors;
  if (a.ecc && a.ecc(device, 1, 0, &errors) == 0) values["eccUncorrected"] = errors;
}

Json Nvml::read_all() const {
  Json gpus = Json::array();
  for (int i = 0; i < count_; ++i) gpus.push_back(read(i));
  return gpus;
}

}  // namespace tessera
