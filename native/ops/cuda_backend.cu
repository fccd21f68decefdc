#include <algorithm>
#include <cstdio>
#include <utility>

#include "ops/cuda_backend.h"
#include "ops/cuda_common.cuh"
#include "ops/linear/linear_cuda.h"
#include "ops/reference/reference_backend.h"

// Memory, graphs and the profiler. The operations are in cuda_backend_ops.cu.
namespace tessera {
namespace {

constexpr size_t kLibraryWorkspace = size_t{64} << 20;
// Measured as device memory in use less the arena, after 30 steps of three shapes: 534 to 535 MiB on an H200
// (CUDA 13.0, driver 580). Other GPUs differ by tens of MiB.
constexpr size_t kContextBytes = size_t{535} << 20;
constexpr int kOldestArchitecture = 80;

// The device's properties, or the reason why it cannot be used.
cudaDeviceProp inspect_device(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    throw EngineError(
        "no_cuda", "cuda:" + std::to_string(device) + ": the NVIDIA driver is older than this engine needs",
        "Install a driver for CUDA 13 or later, or use the cpu device.");
  }
  if (status != cudaSuccess || count == 0) {
    throw EngineError("no_cuda",
                      "cuda:" + std::to_string(device) + ": no NVIDIA GPU is usable (" +
                          (count == 0 && status == cudaSuccess ? "none found" : cudaGetErrorString(status)) +
                          ")",
                      "Check nvidia-smi, or use the cpu device.");
  }
  if (device < 0 || device >= count) {
    throw EngineError("no_cuda",
                      "cuda:" + std::to_string(device) + " does not exist: this machine has " +
                          std::to_string(count) + " GPU(s)",
                      "Choose a device from cuda:0 to cuda:" + std::to_string(count - 1) + ".");
  }
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, device), "device properties");
  return properties;
}

__global__ void probe_kernel() {}

}  // namespace

CudaBackend::CudaBackend(const CudaOptions& options)
    : device_(options.device), use_graphs_(options.graphs), profiling_(!options.profile.empty()) {
  const cudaDeviceProp properties = inspect_device(device_);
  gpu_name_ = properties.name;
  compute_capability_ = properties.major * 10 + properties.minor;
  check_cuda(cudaSetDevice(device_), "cudaSetDevice");
  cudaFuncAttributes attributes;
  const cudaError_t probed = cudaFuncGetAttributes(&attributes, probe_kernel);
  // What others leave of the GPU says nothing of this engine's code for it.
  if (probed == cudaErrorMemoryAllocation || probed == cudaErrorDevicesUnavailable)
    check_cuda(probed, name().c_str());
  if (compute_capability_ < kOldestArchitecture || probed != cudaSuccess) {
    throw EngineError(
        "unsupported_architecture",
        name() + " (" + gpu_name_ + ", compute capability " + std::to_string(properties.major) + "." +
            std::to_string(properties.minor) + "): this engine holds no code for it",
        "Use a GPU of compute capability 8.0 or later that the build names, or the cpu device.");
  }
  if (options.portable) compute_capability_ = kOldestArchitecture;
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check_cuda(cudaStreamCreateWithFlags(&copy_stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check_cuda(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "upload");
  for (cudaEvent_t& event : marks_)
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "marks");
  if (options.library)
    library_ = CublasLt::open(gpu_name_, &library_absent_);
  else
    library_absent_ = "turned off";
  if (options.profile == "cupti") profiler_.use_cupti();
}

CudaBackend::~CudaBackend() {
  cudaStreamSynchronize(stream_);
  for (Graph& graph : graphs_) {
    if (graph.exec) cudaGraphExecDestroy(graph.exec);
    if (graph.timed) cudaGraphExecDestroy(graph.timed);
  }
  for (cudaEvent_t event : marks_) cudaEventDestroy(event);
  for (const auto& [staging, event] : staging_free_) cudaEventDestroy(event);
  cudaEventDestroy(arrived_);
  if (beside_stream_) {
    cudaEventDestroy(ready_);
    for (cudaEvent_t event : done_) cudaEventDestroy(event);
    cudaStreamDestroy(beside_stream_);
  }
  library_.reset();
  cudaStreamDestroy(copy_stream_);
  cudaStreamDestroy(stream_);
}

std::string CudaBackend::name() const { return "cuda:" + std::to_string(device_); }

void* CudaBackend::allocate(size_t bytes) {
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    const auto gib = [](size_t n) { return std::to_string(n / double(1 << 30)).substr(0, 6) + " GiB"; };
    throw EngineError("out_of_memory",
                      name() + ": " + gib(bytes) + " wanted, " + gib(free) + " of " + gib(total) + " free",
                      "Lower the token budget, choose a recompute policy that saves less, or free the GPU.");
  }
  check_cuda(status, "cudaMalloc");
  return p;
}

void CudaBackend::release(void* p) { cudaFree(p); }

void CudaBackend::zero(void* p, size_t bytes) {
  run("zero", {0.0, double(bytes)}, [&] { check_cuda(cudaMemsetAsync(p, 0, bytes, stream_), "zero"); });
}

void CudaBackend::copy_in(void* dst, const void* host, size_t bytes) {
  check_cuda(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, stream_), "copy_in");
  synchronize();
}

void CudaBackend::copy_out(void* host, const void* src, size_t bytes) {
  check_cuda(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, stream_), "copy_out");
  synchronize();
}

void CudaBackend::copy(void* dst, const void* src, size_t bytes) {
  run("copy", {0.0, 2.0 * bytes},
      [&] { check_cuda(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream_), "copy"); });
}

void CudaBackend::synchronize() {
  check_cuda(cudaStreamSynchronize(stream_), "an operation submitted earlier");
}

void* CudaBackend::allocate_host(size_t bytes) {
  void* p = nullptr;
  check_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocDefault), "pinned memory");
  return p;
}

void CudaBackend::release_host(void* p) { cudaFreeHost(p); }

void CudaBackend::upload(void* dst, const void* host, size_t bytes) {
  if (mode_ == Mode::rehearsing) return;
  check_cuda(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, stream_), "upload");
}

// Not part of a graph: the copy stream runs beside the one that computes.
void CudaBackend::upload_ahead(void* dst, void* staging, const void* host, size_t bytes) {
  if (mode_ == Mode::rehearsing) return;
  cudaEvent_t& free = staging_free_[staging];
  if (free)
    check_cuda(cudaStreamWaitEvent(copy_stream_, free), "upload");
  else
    check_cuda(cudaEventCreateWithFlags(&free, cudaEventDisableTiming), "upload");
  check_cuda(cudaMemcpyAsync(staging, host, bytes, cudaMemcpyHostToDevice, copy_stream_), "upload");
  check_cuda(cudaEventRecord(arrived_, copy_stream_), "upload");
  check_cuda(cudaStreamWaitEvent(stream_, arrived_), "upload");
  check_cuda(cudaMemcpyAsync(dst, staging, bytes, cudaMemcpyDeviceToDevice, stream_), "upload");
  check_cuda(cudaEventRecord(free, stream_), "upload");
}

void CudaBackend::download(void* host, const void* src, size_t bytes) {
  if (mode_ == Mode::rehearsing) return;
  check_cuda(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, stream_), "download");
}

// A mark's event is taken again 64 marks later; waiting for the older one then waits for the newer.
i64 CudaBackend::mark() {
  check_cuda(cudaEventRecord(marks_[next_mark_ % marks_.size()], stream_), "mark");
  return next_mark_++;
}

void CudaBackend::wait(i64 mark) {
  check_cuda(cudaEventSynchronize(marks_[mark % marks_.size()]), "an operation submitted earlier");
}

void CudaBackend::set_workspace(void* p, size_t bytes) {
  workspace_ = p;
  workspace_bytes_ = bytes;
  if (library_) library_->set_workspace(p, std::min(bytes, kLibraryWorkspace));
}

size_t CudaBackend::context_bytes() const { return kContextBytes; }

size_t CudaBackend::memory_used() const {
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

int CudaBackend::capture(const std::function<void()>& enqueue) {
  communicates_ = false;
  mode_ = Mode::rehearsing;
  enqueue();
  mode_ = Mode::eager;
  Graph graph;
  graph.enqueue = enqueue;
  // Ranks capture at different steps (their shapes differ, rank 0 alone profiles), and what NCCL does of a
  // capture with the others is not known to be safe then. Operation by operation costs 1 %
  // (native/bench/ranks.md).
  if (use_graphs_ && !communicates_) {
    const bool profiling = std::exchange(profiling_, false);
    graph.exec = instantiate(enqueue, &graph.kernels);
    profiling_ = profiling;
  }
  graphs_.push_back(std::move(graph));
  return static_cast<int>(graphs_.size()) - 1;
}

cudaGraphExec_t CudaBackend::instantiate(const std::function<void()>& enqueue, i64* kernels) {
  synchronize();
  mode_ = Mode::capturing;
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin of a graph");
  cudaGraph_t captured = nullptr;
  try {
    enqueue();
  } catch (...) {
    mode_ = Mode::eager;
    cudaStreamEndCapture(stream_, &captured);
    if (captured) cudaGraphDestroy(captured);
    throw;
  }
  mode_ = Mode::eager;
  check_cuda(cudaStreamEndCapture(stream_, &captured), "end of a graph");
  size_t count = 0;
  check_cuda(cudaGraphGetNodes(captured, nullptr, &count), "nodes of a graph");
  std::vector<cudaGraphNode_t> nodes(count);
  check_cuda(cudaGraphGetNodes(captured, nodes.data(), &count), "nodes of a graph");
  *kernels = 0;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check_cuda(cudaGraphNodeGetType(node, &type), "nodes of a graph");
    *kernels += type == cudaGraphNodeTypeKernel;
  }
  cudaGraphExec_t exec = nullptr;
  check_cuda(cudaGraphInstantiate(&exec, captured, 0), "instantiation of a graph");
  check_cuda(cudaGraphDestroy(captured), "a graph");
  check_cuda(cudaGraphUpload(exec, stream_), "upload of a graph");
  return exec;
}

void CudaBackend::launch(int index) {
  Graph& graph = graphs_.at(index);
  idle_launches_ += cudaStreamQuery(stream_) == cudaSuccess;
  if (!graph.exec) {
    graph.enqueue();
  } else if (profiling_) {
    launch_timed(graph);
  } else {
    ++submissions_;
    check_cuda(cudaGraphLaunch(graph.exec, stream_), "launch of a graph");
  }
}

void CudaBackend::launch_timed(Graph& graph) {
  if (!graph.timed || graph.uncollected) collect_times();
  if (!graph.timed) {
    i64 kernels = 0;
    graph.timed = instantiate(graph.enqueue, &kernels);
    graph.spans = profiler_.take_spans();
  }
  ++submissions_;
  check_cuda(cudaGraphLaunch(graph.timed, stream_), "launch of a graph");
  graph.uncollected = true;
}

void CudaBackend::collect_times() {
  synchronize();
  profiler_.collect(profiler_.take_spans());
  for (Graph& graph : graphs_) {
    if (!graph.uncollected) continue;
    profiler_.collect(graph.spans);
    graph.uncollected = false;
  }
}

void CudaBackend::profile(bool on) {
  if (on) {
    collect_times();
    profiler_.restart(stream_);
  }
  profiling_ = on;
}

i64 CudaBackend::kernels(int graph) const { return graphs_.at(graph).kernels; }

void CudaBackend::begin_op(const char* op, OpCost cost, cudaStream_t stream) {
  submissions_ += mode_ == Mode::eager;
  if (profiling_)
    profiler_.begin(op, phase_, layer_, cost, stream ? stream : stream_, mode_ == Mode::capturing);
}

void CudaBackend::end_op(cudaStream_t stream) {
  if (profiling_) profiler_.end(stream ? stream : stream_, mode_ == Mode::capturing);
}

i64 CudaBackend::beside(const char* op, double bytes, const std::function<void(void*)>& work) {
  communicates_ = true;
  if (mode_ == Mode::rehearsing) return 0;
  if (!beside_stream_) {
    check_cuda(cudaStreamCreateWithFlags(&beside_stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check_cuda(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "communication");
    for (cudaEvent_t& event : done_)
      check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "communication");
  }
  check_cuda(cudaEventRecord(ready_, stream_), "communication");
  check_cuda(cudaStreamWaitEvent(beside_stream_, ready_), "communication");
  const NvtxRanges::Operation range(op);
  begin_op(op, {0.0, bytes}, beside_stream_);
  work(beside_stream_);
  end_op(beside_stream_);
  check_cuda(cudaEventRecord(done_[next_beside_ % done_.size()], beside_stream_), "communication");
  return next_beside_++;
}

void CudaBackend::meet() { meet(next_beside_ - 1); }

// A ticket's event is taken again by a later submission; waiting for that one waits for both.
void CudaBackend::meet(i64 ticket) {
  if (mode_ == Mode::rehearsing || !beside_stream_ || ticket < 0) return;
  check_cuda(cudaStreamWaitEvent(stream_, done_[ticket % done_.size()]), "communication");
}

void CudaBackend::scope(const char* phase, int layer) {
  phase_ = phase;
  layer_ = layer;
  if (mode_ != Mode::rehearsing) ranges_.enter(phase_, layer);
}

std::vector<OpTime> CudaBackend::op_times() {
  if (!profiling_) return {};
  collect_times();
  return profiler_.times(roof());
}

std::vector<OpSpan> CudaBackend::op_spans() {
  if (!profiling_) return {};
  collect_times();
  std::vector<OpSpan> spans = profiler_.spans();
  std::stable_sort(spans.begin(), spans.end(),
                   [](const OpSpan& a, const OpSpan& b) { return a.begin_ms < b.begin_ms; });
  return spans;
}

DeviceRoof CudaBackend::roof() {
  if (roof_.bytes_per_second == 0.0) measure_roof();
  return roof_;
}

// The two ceilings of METHOD: a large copy (bytes read plus written) and a large product on random values.
void CudaBackend::measure_roof() {
  constexpr i64 kSide = 8192;
  constexpr size_t kMatrix = kSide * kSide * sizeof(bf16);
  void* memory = nullptr;
  if (cudaMalloc(&memory, 3 * kMatrix + kLibraryWorkspace) != cudaSuccess) {
    cudaGetLastError();
    return;  // the percentages stay unknown
  }
  bf16* a = static_cast<bf16*>(memory);
  launch_fill_random(a, 2 * kSide, kSide, kSide, stream_);
  cudaEvent_t begin, end;
  check_cuda(cudaEventCreate(&begin), "roof");
  check_cuda(cudaEventCreate(&end), "roof");
  const auto best_ms = [&](const std::function<void()>& work) {
    float best = 1e9f;
    for (int turn = 0; turn < 8; ++turn) {
      check_cuda(cudaEventRecord(begin, stream_), "roof");
      work();
      check_cuda(cudaEventRecord(end, stream_), "roof");
      check_cuda(cudaEventSynchronize(end), "roof");
      float ms = 0.0f;
      check_cuda(cudaEventElapsedTime(&ms, begin, end), "roof");
      best = std::min(best, ms);
    }
    return best;
  };
  roof_.bytes_per_second =
      2.0 * kMatrix / best_ms([&] {
        check_cuda(cudaMemcpyAsync(a + 2 * kSide * kSide, a, kMatrix, cudaMemcpyDeviceToDevice, stream_),
                   "roof");
      }) *
      1e3;
  if (library_) {
    const MatrixProduct product{kSide,
                                kSide,
                                kSide,
                                true,
                                false,
                                a,
                                kSide,
                                a + kSide * kSide,
                                kSide,
                                nullptr,
                                a + 2 * kSide * kSide,
                                kSide,
                                DType::bf16};
    library_->set_workspace(static_cast<char*>(memory) + 3 * kMatrix, kLibraryWorkspace);
    roof_.flops_per_second =
        2.0 * kSide * kSide * kSide / best_ms([&] { library_->multiply(product, stream_); }) * 1e3;
    library_->set_workspace(workspace_, std::min(workspace_bytes_, kLibraryWorkspace));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFree(memory);
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  if (options.fp32) {
    const std::string why = options.reference.empty() ? "fp32 was asked for" : options.reference;
    return std::make_unique<CudaReferenceBackend<float>>(options, why);
  }
  if (!options.reference.empty())
    return std::make_unique<CudaReferenceBackend<bf16>>(options, options.reference);
  return std::make_unique<CudaBackend>(options);
}

}  // namespace tessera
