// Times of single kernels, copies and fills inside a graph, by CUPTI's activity records. The library is
// opened at run time; where it is absent, older than the header or not permitted, the reason is said and
// operations are timed by events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dynamic_library.h"

namespace tessera {

struct Activity {
  const char* name;          // of the kernel, readable; "copy" or "fill"; kept by the trace for good
  std::uint64_t begin, end;  // nanoseconds
};

class CuptiTrace {
 public:
  // Null where it cannot be used; `why` then says so. One at a time: the records are the process's.
  static std::unique_ptr<CuptiTrace> open(std::string* why);
  ~CuptiTrace();
  CuptiTrace(const CuptiTrace&) = delete;
  CuptiTrace& operator=(const CuptiTrace&) = delete;

  // Those that graphs have run since the last call, by their begin. The device has been synchronized.
  std::vector<Activity> take();
  std::string description() const;  // "cupti 130001 (/path/libcupti.so.13)"

 private:
  struct Functions;
  CuptiTrace(std::unique_ptr<DynamicLibrary> library, std::unique_ptr<Functions> api, std::uint32_t version);
  std::unique_ptr<DynamicLibrary> library_;
  std::unique_ptr<Functions> api_;
  std::uint32_t version_;
};

}  // namespace tessera
