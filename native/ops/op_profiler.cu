#include <algorithm>

#include "ops/cuda_common.cuh"
#include "ops/op_profiler.h"

namespace tessera {
std::string OpProfiler::source() const {
  const std::string why = no_trace_.empty() ? "" : ": " + no_trace_;
  return (trace_ ? trace_->description() : "events") + why;
}

OpProfiler::~OpProfiler() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

void OpProfiler::begin(const char* op, const std::string& phase, int layer, OpCost cost, cudaStream_t stream,
                       bool capturing) {
  Span span{op, phase, layer, cost, nullptr, nullptr};
  if (trace_ && capturing) {
    open_.push_back(span);
    return;
  }
  for (cudaEvent_t* event : {&span.begin, &span.end}) {
    check_cuda(cudaEventCreate(event), "profiler");
    events_.push_back(*event);
  }
  check_cuda(cudaEventRecordWithFlags(span.begin, stream,
                                      capturing ? cudaEventRecordExternal : cudaEventRecordDefault),
             "profiler");
  open_.push_back(span);
}

void OpProfiler::end(cudaStream_t stream, bool capturing) {
  if (!open_.back().end) return;
  check_cuda(cudaEventRecordWithFlags(open_.back().end, stream,
                                      capturing ? cudaEventRecordExternal : cudaEventRecordDefault),
             "profiler");
}

std::vector<OpProfiler::Span> OpProfiler::take_spans() {
  std::vector<Span> taken;
  taken.swap(open_);
  return taken;
}

void OpProfiler::restart(cudaStream_t stream) {
  totals_.clear();
  spans_.clear();
  if (trace_) trace_->take();  // graphs of before
  first_ns_ = 0;
  if (!origin_) {
    check_cuda(cudaEventCreate(&origin_), "profiler");
    events_.push_back(origin_);
  }
  check_cuda(cudaEventRecord(origin_, stream), "profiler");
}

const char* OpProfiler::keep(const std::string& name) { return names_.insert(name).first->c_str(); }

void OpProfiler::add(const Span& span, double begin_ms, double ms) {
  spans_.push_back({keep(span.op), keep(span.phase), span.layer, begin_ms, ms});
  const bool layered = span.layer >= 0;
  auto total = std::find_if(totals_.begin(), totals_.end(), [&](const OpTime& t) {
    return t.op == span.op && t.phase == span.phase && t.layered == layered;
  });
  if (total == totals_.end())
    total = totals_.insert(totals_.end(), OpTime{span.op, span.phase, layered, 0, 0, 0, 0, 0});
  total->calls += 1;
  total->total_ms += ms;
  total->flops += span.cost.flops;
  total->bytes += span.cost.bytes;
}

void OpProfiler::collect(const std::vector<Span>& spans) {
  if (trace_ && !spans.empty() && !spans.front().end) return collect_activities();
  for (const Span& span : spans) {
    float ms = 0.0f, begin_ms = 0.0f;
    check_cuda(cudaEventElapsedTime(&ms, span.begin, span.end), "profiler");
    if (origin_) check_cuda(cudaEventElapsedTime(&begin_ms, origin_, span.begin), "profiler");
    add(span, begin_ms, ms);
  }
}

// By kernel, not by operation: a driver may run a node as more kernels than one, so that records cannot be
// dealt out to operations by their order.
void OpProfiler::collect_activities() {
  for (const Activity& a : trace_->take()) {
    if (first_ns_ == 0) first_ns_ = a.begin;
    add({a.name, "kernel", -1, {}, nullptr, nullptr}, static_cast<double>(a.begin - first_ns_) * 1e-6,
        static_cast<double>(a.end - a.begin) * 1e-6);
  }
}

std::vector<OpTime> OpProfiler::times(const DeviceRoof& roof) const {
  std::vector<OpTime> sorted = totals_;
  for (OpTime& t : sorted) {
    if (roof.flops_per_second <= 0.0 || roof.bytes_per_second <= 0.0 || t.total_ms <= 0.0) continue;
    const double floor_ms = 1e3 * std::max(t.flops / roof.flops_per_second, t.bytes / roof.bytes_per_second);
    t.percent_of_roof = 100.0 * floor_ms / t.total_ms;
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const OpTime& a, const OpTime& b) { return a.total_ms > b.total_ms; });
  return sorted;
}

}  // namespace tessera
