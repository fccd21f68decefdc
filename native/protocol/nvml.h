// GPU telemetry and topology through NVML, loaded at run time. A field that a GPU does not report is absent,
// never 0.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  const std::string& reason() const { return reason_; }  // why there are no GPUs, or ""
  int count() const { return count_; }
  // {index, device?, name?, pciBusId?, lost?, utilization?, memoryBytes?, memoryTotalBytes?, powerW?,
  // powerLimitW?,
  //  energyJ?, temperatureC?, smClockMHz?, memoryClockMHz?, throttleReasons?, pcieSentBytesPerSecond?,
  //  pcieReceivedBytesPerSecond?, eccCorrected?, eccUncorrected?}. A GPU that does not answer any more is
  //  lost.
  // `device` is CUDA's name of it, absent where CUDA does not show it to this process.
  Json read(int index) const;
  Json read_device(int cuda_number) const;  // of cuda:N; empty where there is none
  // Reads what takes long (PCIe traffic, ECC errors since the driver's start) of one GPU, in turns; read()
  // hands out the newest.
  void read_slow(int turn);
  Json read_all() const;
  // What each GPU is and how it is joined to the others: [{index, device?, name?, pciBusId?, driver?,
  // cudaDriver?,
  //  computeCapability?, memoryBytes?, powerLimitW?, pcieGeneration?, pcieWidth?, pcieMaxGeneration?,
  //  pcieMaxWidth?, nvlinks?, nvlinkVersion?, nvlinkBytesPerSecond? (a link, one way), peers: [{index, path?,
  //  nvlinks?}]}]; path: the nearest thing that two GPUs share: board | PCIe switch | PCIe switches | host
  //  bridge | NUMA node | system.
  Json describe_all() const;

 private:
  Json describe(int index) const;
  Json links(int index) const;
  // What was read last of a GPU's PCIe traffic, sent and received, and of its energy.
  struct Traffic {
    bool counted = false;
    std::chrono::steady_clock::time_point at;
    unsigned long long bytes[2] = {0, 0};
    double measured[2] = {-1, -1};
    double joules = -1;
  };
  void read_traffic(void* device, int turn, Traffic* last, Json* values) const;
  struct Api;
  std::unique_ptr<Api> api_;
  std::string reason_;
  int count_ = 0;
  std::vector<Json> named_, slow_;  // by index
  std::vector<Traffic> traffic_;
  std::vector<int> cuda_numbers_;  // by index
};

}  // namespace tessera
