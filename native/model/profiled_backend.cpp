#include "model/profiled_backend.h"

#include <algorithm>

#include "core/json.h"

namespace tessera {

Json ProfiledBackend::take_report() {
  std::vector<std::pair<std::pair<std::string, std::string>, Tally>> rows(tallies_.begin(), tallies_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  Json list = Json::array();
  for (const auto& [key, tally] : rows) {
    const double us = static_cast<double>(tally.total.count()) / 1e3;
    list.push_back({{"operation", key.first},
                    {"phase", key.second},
                    {"calls", tally.calls},
                    {"averageUs", us / static_cast<double>(tally.calls)},
                    {"totalMs", us / 1e3}});
  }
  tallies_.clear();
  return list;
}

}  // namespace tessera
