// Device time per operation, by events recorded around each one: as nodes inside a captured graph, or in the
// stream. Where CUPTI was asked for and may be used, graphs carry no events, and the rows are their kernels.
#pragma once

#include <cuda_runtime_api.h>

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
    cudaEvent_t begin, end;  // null in a graph that CUPTI times
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
  void collect_activities();

  std::unique_ptr<CuptiTrace> trace_;
  std::string no_trace_;        // why there is none
  std::uint64_t first_ns_ = 0;  // the first record's begin
  std::vector<cudaEvent_t> events_;
  cudaEvent_t origin_ = nullptr;
  std::vector<Span> open_;
  std::vector<OpTime> totals_;
  std::vector<OpSpan> spans_;
  std::set<std::string> names_;
};

}  // namespace tessera
