#include <algorithm>

#include "ops/cuda_common.cuh"
#include "ops/op_profiler.h"

namespace tessera {
namespace {

// Nodes by ActivityKind of the graph that the stream is being captured into.
std::array<int, 3> captured_nodes(cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr),
             "profiler");
  std::array<int, 3> count{};
  if (!graph) return count;
  size_t n = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &n), "profiler");
  std::vector<cudaGraphNode_t> nodes(n);
  check_cuda(cudaGraphGetNodes(graph, nodes.data(), &n), "profiler");
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check_cuda(cudaGraphNodeGetType(node, &type), "profiler");
    if (type == cudaGraphNodeTypeKernel) ++count[0];
    if (type == cudaGraphNodeTypeMemcpy) ++count[1];
    if (type == cudaGraphNodeTypeMemset) ++count[2];
  }
  return count;
}

}  // namespace

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
    nodes_ = captured_nodes(stream);
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
  if (Span& span = open_.back(); !span.end) {
    const std::array<int, 3> now = captured_nodes(stream);
    for (size_t kind = 0; kind < now.size(); ++kind) span.activities[kind] = now[kind] - nodes_[kind];
    return;
  }
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
  for (auto& records : left_) records.clear();
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
  if (trace_ && !spans.empty() && !spans.front().end) return collect_activities(spans);
  for (const Span& span : spans) {
    float ms = 0.0f, begin_ms = 0.0f;
    check_cuda(cudaEventElapsedTime(&ms, span.begin, span.end), "profiler");
    if (origin_) check_cuda(cudaEventElapsedTime(&begin_ms, origin_, span.begin), "profiler");
    add(span, begin_ms, ms);
  }
}

// A graph captured from one stream runs its nodes in the order of their capture, and graphs are collected in
// the order of their launch, so records are dealt out in order.
void OpProfiler::collect_activities(const std::vector<Span>& spans) {
  for (const Activity& a : trace_->take()) {
    if (first_ns_ == 0) first_ns_ = a.begin;
    left_[static_cast<size_t>(a.kind)].push_back(a);
  }
  for (size_t kind = 0; kind < left_.size(); ++kind) {
    size_t wanted = 0;
    for (const Span& span : spans) wanted += static_cast<size_t>(span.activities[kind]);
    if (left_[kind].size() >= wanted) continue;
    // Dealt out, they would go to the wrong operations.
    no_trace_ = std::to_string(wanted - left_[kind].size()) + " records of a graph are missing";
    for (auto& records : left_) records.clear();
    return;
  }
  for (const Span& span : spans) {
    std::uint64_t begin = ~std::uint64_t{0}, ns = 0;
    for (size_t kind = 0; kind < left_.size(); ++kind) {
      for (int i = 0; i < span.activities[kind]; ++i) {
        const Activity a = left_[kind].front();
        left_[kind].pop_front();
        begin = std::min(begin, a.begin);
        ns += a.end - a.begin;
      }
    }
    if (ns > 0) add(span, static_cast<double>(begin - first_ns_) * 1e-6, static_cast<double>(ns) * 1e-6);
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
