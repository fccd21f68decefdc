#include "train/profile.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/json.h"

namespace tessera {
namespace {

constexpr size_t kMostSpans = 6000;

double rounded(double ms) { return std::round(ms * 1e4) / 1e4; }

Json row_json(const std::string& op, const std::string& phase, bool layered, i64 calls, double ms,
              double flops, double bytes) {
  return {{"operation", op},
          {"phase", phase},
          {"where", layered ? "layers" : "outside"},
          {"calls", calls},
          {"averageUs", calls > 0 ? ms * 1e3 / static_cast<double>(calls) : 0.0},
          {"totalMs", ms},
          {"flops", flops},
          {"bytes", bytes}};
}

i64 index_of(std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) names.emplace_back(name);
  return found - names.begin();
}

}  // namespace

Json host_rows(const std::vector<ProfiledBackend::Row>& rows, const DeviceRoof& roof) {
  Json list = Json::array();
  for (const auto& r : rows) {
    list.push_back(row_json(r.operation, r.phase, r.layered, r.calls, r.ms, r.flops, r.bytes));
    list.back()["longestUs"] = r.longest_ms * 1e3;
    if (r.operation == "launch") list.back()["deviceWaited"] = r.idle;
    if (roof.flops_per_second <= 0 || roof.bytes_per_second <= 0 || r.ms <= 0 || r.flops + r.bytes <= 0)
      continue;
    const double floor = 1e3 * std::max(r.flops / roof.flops_per_second, r.bytes / roof.bytes_per_second);
    list.back()["percentOfRoof"] = std::min(100.0, 100.0 * floor / r.ms);
    list.back()["couldSaveMs"] = std::max(0.0, r.ms - floor);
  }
  return list;
}

Json device_rows(const std::vector<OpTime>& rows) {
  Json list = Json::array();
  for (const OpTime& t : rows) {
    list.push_back(row_json(t.op, t.phase, t.layered, t.calls, t.total_ms, t.flops, t.bytes));
    if (t.percent_of_roof <= 0) continue;
    list.back()["percentOfRoof"] = std::min(100.0, t.percent_of_roof);
    list.back()["couldSaveMs"] = t.total_ms * std::max(0.0, 1.0 - t.percent_of_roof / 100.0);
  }
  return list;
}

std::vector<ProfiledBackend::Row> as_rows(const std::vector<OpTime>& rows) {
  std::vector<ProfiledBackend::Row> out;
  for (const OpTime& t : rows)
    out.push_back({t.op, t.phase, t.layered, t.calls, t.total_ms, t.flops, t.bytes});
  return out;
}

Json timeline_json(const std::vector<OpSpan>& spans) {
  std::vector<std::string> names, phases;
  size_t from = 0;
  if (spans.size() > kMostSpans)
    for (size_t i = 0; i < spans.size(); ++i)
      if (std::string_view(spans[i].op) == "embedding_fwd") from = i;
  Json list = Json::array();
  for (size_t i = from; i < spans.size(); ++i) {
    const OpSpan& s = spans[i];
    list.push_back({index_of(names, s.op), index_of(phases, s.phase), s.layer,
                    rounded(s.begin_ms - spans[from].begin_ms), rounded(s.ms)});
  }
  return {{"names", names}, {"phases", phases}, {"spans", list}};
}

double span_ms(const std::vector<OpSpan>& spans) {
  if (spans.empty()) return 0;
  double end = 0;
  for (const OpSpan& s : spans) end = std::max(end, s.begin_ms + s.ms);
  return end - spans.front().begin_ms;
}

}  // namespace tessera
