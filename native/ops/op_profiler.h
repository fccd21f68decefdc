// Device time per operation: by CUPTI's record of each kernel where that was asked for and may be used, else
// by events recorded around each operation, as nodes inside a captured graph or in the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "ops/cupti_trace.h"
#include "ops/op_cost.h"

namespace tessera {

class OpProfiler {
 public:
  struct Span {
    std::string op, phase;
    int layer;
    OpCost cost;
    cudaEvent_t begin, end;           // null where CUPTI times it
    std::array<int, 3> activities{};  // of a graph, by ActivityKind: how many are this operation's
  };
  ~OpProfiler();

  void use_cupti() { trace_ = CuptiTrace::open(&no_trace_); }
  std::string source() const;  // "events", "cupti 130001 (…)" or "events: why not cupti"

  // Around one operation's launches; capturing: into the graph being captured.
  void begin(const char* op, const std::string& phase, int layer, OpCost cost, cudaStream_t stream,
             bool capturing);
  void end(cudaStream_t stream, bool capturing);

  // Forgets what was measured; times of op_spans() count from here.
  void restart(cudaStream_t stream);
  std::vector<Span> take_spans();                // those recorded since the last call
  void collect(const std::vector<Span>& spans);  // adds their times; the stream has been synchronized
  std::vector<OpTime> times(const DeviceRoof& roof) const;     // the longest first
  const std::vector<OpSpan>& spans() const { return spans_; }  // in the order that they were collected

 private:
  const char* keep(const std::string& name);  // as long as this object lives
  void add(const Span& span, double begin_ms, double ms);
  void collect_activities(const std::vector<Span>& spans);

  std::unique_ptr<CuptiTrace> trace_;
  std::string no_trace_;                      // why there is none, or what it missed
  std::array<int, 3> nodes_{};                // of the graph being captured, before the open operation
  std::array<std::deque<Activity>, 3> left_;  // records not yet dealt to operations, by ActivityKind
  std::uint64_t first_ns_ = 0;                // the first record's begin
  std::vector<cudaEvent_t> events_;
  cudaEvent_t origin_ = nullptr;
  std::vector<Span> open_;
  std::vector<OpTime> totals_;
  std::vector<OpSpan> spans_;
  std::set<std::string> names_;
};

}  // namespace tessera
