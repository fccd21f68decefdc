// GPU telemetry through NVML, loaded at run time. A field that a GPU does not report is absent, never 0.
#pragma once

#include <memory>
#include <string>

#include "core/json_fwd.h"

namespace tessera {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  const std::string& reason() const { return reason_; }  // why there are no GPUs, or ""
  int count() const { return count_; }
  // {index, name?, pciBusId?, utilization?, memoryBytes?, memoryTotalBytes?, powerW?, energyJ?,
  // temperatureC?,
  //  smClockMHz?, memoryClockMHz?, throttleReasons?}
  Json read(int index) const;
  Json read_all() const;

 private:
  struct Api;
  std::unique_ptr<Api> api_;
  std::string reason_;
  int count_ = 0;
};

}  // namespace tessera
