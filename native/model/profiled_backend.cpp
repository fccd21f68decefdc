#include "model/profiled_backend.h"

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

double milliseconds(std::chrono::nanoseconds t) { return static_cast<double>(t.count()) / 1e6; }

}  // namespace

void ProfiledBackend::enable(bool on) {
  enabled_ = on;
  tracing_ = false;
}

void ProfiledBackend::trace(bool on) {
  tracing_ = on;
  if (!on) return;
  spans_.clear();
  origin_ = Clock::now();
}

void ProfiledBackend::clear() {
  tallies_.clear();
  spans_.clear();
}

void ProfiledBackend::record(const char* operation, OpCost cost, Clock::time_point begin,
                             Clock::time_point end, i64 idle, Clock::duration within) {
  // Names are literals of this class and of the executor: their addresses tell most of them apart at once.
  auto tally = std::find_if(tallies_.begin(), tallies_.end(), [&](const Tally& t) {
    return t.layered == (layer_ >= 0) && (t.operation == operation || !std::strcmp(t.operation, operation)) &&
           (t.phase == phase_ || !std::strcmp(t.phase, phase_));
  });
  if (tally == tallies_.end()) tally = tallies_.insert(tally, Tally{operation, phase_, layer_ >= 0});
  ++tally->calls;
  tally->total += end - begin - within;
  tally->longest = std::max<std::chrono::nanoseconds>(tally->longest, end - begin - within);
  tally->idle += idle;
  tally->flops += cost.flops;
  tally->bytes += cost.bytes;
  if (tracing_)
    spans_.push_back({operation, phase_, layer_, milliseconds(begin - origin_), milliseconds(end - begin)});
}

OpCost ProfiledBackend::segment_cost(const std::vector<AdamSegment>& segments, bool updates) {
  double bytes = 0;
  for (const AdamSegment& s : segments) {
    const auto size = [](DType t) { return static_cast<double>(dtype_bytes(t)); };
    const double param = s.master ? size(s.param_dtype) + 8.0 : 2.0 * size(s.param_dtype);
    bytes += static_cast<double>(s.count) *
             (size(s.grad_dtype) + (updates ? param + 4.0 * size(s.state_dtype) : 0.0));
  }
  return {0, bytes};
}

std::vector<ProfiledBackend::Row> ProfiledBackend::rows() const {
  std::vector<Row> rows;
  for (const Tally& t : tallies_)
    rows.push_back({t.operation, t.phase, t.layered, t.calls, milliseconds(t.total), t.flops, t.bytes,
                    milliseconds(t.longest), t.idle});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ms > b.ms; });
  return rows;
}

}  // namespace tessera
