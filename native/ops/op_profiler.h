// Device time per operation, by events recorded around each one: as nodes inside a captured graph, or in the
// stream.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "ops/backend.h"

namespace tessera {

// What an operation costs at least: floating-point operations on the matrix units, bytes through device
// memory.
struct OpCost {
  double flops = 0.0;
  double bytes = 0.0;
};

class OpProfiler {
 public:
  struct Span {
    std::string op, phase;
    OpCost cost;
    cudaEvent_t begin, end;
  };
  ~OpProfiler();

  // Around one operation's launches; capturing: into the graph being captured.
  void begin(const char* op, const std::string& phase, OpCost cost, cudaStream_t stream, bool capturing);
  void end(cudaStream_t stream, bool capturing);

  std::vector<Span> take_spans();                // those recorded since the last call
  void collect(const std::vector<Span>& spans);  // adds their times; the stream has been synchronized
  std::vector<OpTime> times(const DeviceRoof& roof) const;  // the longest first

 private:
  std::vector<cudaEvent_t> events_;
  std::vector<Span> open_;
  std::vector<OpTime> totals_;
};

}  // namespace tessera
