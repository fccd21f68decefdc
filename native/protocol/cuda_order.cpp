#include "protocol/cuda_order.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "core/dynamic_library.h"

namespace tessera {
namespace {

// The driver writes 0000:01:00.0, NVML 00000000:01:00.0.
std::optional<unsigned long long> address(const std::string& bus_id) {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(bus_id.c_str(), "%x:%x:%x", &domain, &bus, &device) != 3) return std::nullopt;
  return static_cast<unsigned long long>(domain) << 16 | bus << 8 | device;
}

// By CUDA's number; nothing where the driver cannot be asked.
std::optional<std::vector<std::string>> visible_bus_ids() {
  const auto library = DynamicLibrary::open({"libcuda.so.1"});
  if (!library) return std::nullopt;
  const auto init = reinterpret_cast<int (*)(unsigned)>(library->symbol("cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(library->symbol("cuDeviceGetCount"));
  const auto bus_id = reinterpret_cast<int (*)(char*, int, int)>(library->symbol("cuDeviceGetPCIBusId"));
  constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE: none is visible
  std::vector<std::string> ids;
  if (!init || !count || !bus_id) return std::nullopt;
  if (const int status = init(0); status != 0) return status == kNoDevice ? std::optional(ids) : std::nullopt;
  int devices = 0;
  if (count(&devices) != 0) return std::nullopt;
  for (int n = 0; n < devices; ++n) {
    char text[32] = "";
    ids.push_back(bus_id(text, sizeof text, n) == 0 ? text : "");
  }
  return ids;
}

bool may_differ(const std::vector<std::string>& names) {
  return std::getenv("CUDA_VISIBLE_DEVICES") || std::getenv("CUDA_DEVICE_ORDER") ||
         std::adjacent_find(names.begin(), names.end(), std::not_equal_to<>()) != names.end();
}

}  // namespace

std::vector<int> cuda_numbers(const std::vector<std::string>& names,
                              const std::vector<std::string>& bus_ids) {
  std::vector<int> numbers(bus_ids.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  if (!may_differ(names)) return numbers;
  const auto visible = visible_bus_ids();
  if (!visible) return numbers;
  for (size_t n = 0; n < bus_ids.size(); ++n) {
    const auto mine = address(bus_ids[n]);
    if (!mine) continue;
    const auto found = std::find_if(visible->begin(), visible->end(),
                                    [&](const std::string& id) { return address(id) == mine; });
    numbers[n] = found == visible->end() ? -1 : static_cast<int>(found - visible->begin());
  }
  return numbers;
}

}  // namespace tessera
