// Ranges that a viewer (Nsight Systems) shows over the host's timeline: one for each layer and phase, in it
// one for each operation. A graph's are those of its capture, an eager step's those of its submissions.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace tessera {

class NvtxRanges {
 public:
  NvtxRanges() = default;
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;
  ~NvtxRanges() { leave(); }

  // Between operations: "forward 3", or "forward" outside the layers (-1); ends the one before.
  void enter(const std::string& phase, int layer) {
    leave();
    nvtxRangePushA(layer < 0 ? phase.c_str() : (phase + " " + std::to_string(layer)).c_str());
    open_ = true;
  }
  void leave() {
    if (open_) nvtxRangePop();
    open_ = false;
  }

  // One operation's, ended by an exception too.
  struct Operation {
    explicit Operation(const char* name) { nvtxRangePushA(name); }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    ~Operation() { nvtxRangePop(); }
  };

 private:
  bool open_ = false;
};

}  // namespace tessera
