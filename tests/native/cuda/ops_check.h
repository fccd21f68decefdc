// What every group of cuda_ops_check compares with: both backends, one table, each call twice.
#pragma once

#include <functional>

#include "core/error.h"
#include "twin.h"

namespace tessera::check {

// Outputs of one call: which tensor, under what name, how close (relative Frobenius), and whether it is
// accumulated into.
struct Output {
  const char* name;
  Tensor* tensor;
  double tolerance;
};

class OpsCheck {
 public:
  OpsCheck(Backend& cpu, Backend& gpu) : twin_(cpu, gpu) {
    GdnShape widest{16, 64, 128, 128, 4};
    AttnShape attention{2, 1, 256, 64};
    const size_t bytes = gpu.workspace_bytes(widest, attention, 8192, 8192, 8192, 8192);
    workspace_ = gpu.allocate(bytes);
    gpu.set_workspace(workspace_, bytes);
    const size_t cpu_bytes = cpu.workspace_bytes(widest, attention, 8192, 8192, 8192, 8192);
    if (cpu_bytes > 0) cpu.set_workspace(cpu.allocate(cpu_bytes), cpu_bytes);
  }

  // Runs `call` on both backends (the argument says which side's pointers to take), the GPU twice from the
  // same state.
  void check(const std::string& name, std::vector<Output> outputs,
             const std::function<void(Backend&, bool gpu)>& call) {
    try {
      std::vector<std::vector<std::uint8_t>> before, first;
      for (const Output& o : outputs) before.push_back(twin_.gpu_bytes(*o.tensor));
      call(twin_.gpu(), true);
      twin_.gpu().synchronize();
      for (size_t i = 0; i < outputs.size(); ++i) {
        first.push_back(twin_.gpu_bytes(*outputs[i].tensor));
        twin_.gpu().copy_in(outputs[i].tensor->gpu, before[i].data(), before[i].size());
      }
      call(twin_.gpu(), true);
      call(twin_.cpu(), false);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::string full = name + " " + outputs[i].name;
        report_.compare(twin_, full, *outputs[i].tensor, outputs[i].tolerance);
        if (twin_.gpu_bytes(*outputs[i].tensor) != first[i]) report_.verdict(full, false, "two runs differ");
      }
    } catch (const EngineError& error) {
      report_.verdict(name, false, error.code() + ": " + error.what());
    }
  }

  void norms();
  void products(const std::string& kernel);
  void delta_net();
  void attention();
  void mlp();
  void head();
  void optimizer();
  void refusals();
  int finish() { return report_.finish(); }

 private:
  void delta_net_case(const std::string& name, const TwinBatch& b, const GdnShape& s, float gate_scale);
  void attention_case(const std::string& name, const TwinBatch& b, const AttnShape& s);
  void adamw_case(OptimizerMode mode);
  void rounding_bias();
  void large_logits();

  Twin twin_;
  Report report_;
  void* workspace_;
};

inline const std::vector<i32> kMixed = {1, 2, 3, 4, 5, 63, 64, 65, 0, 127, 129, 0};
inline const std::vector<i32> kLong = {4096, 1, 0, 65};

// Picks the side's pointer of a tensor.
inline void* at(const Tensor& t, bool gpu) { return gpu ? t.gpu : t.cpu; }
inline float* f32_at(const Tensor& t, bool gpu) { return static_cast<float*>(at(t, gpu)); }

}  // namespace tessera::check
