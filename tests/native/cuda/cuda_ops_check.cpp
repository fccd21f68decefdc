// Compares every CUDA operation with the CPU backend's on bf16-rounded inputs (engine.md 8, levels 2 and 3):
// outputs are NaN before each call, each call is made twice and must give the same bits. Prints one table;
// exits 1 on a failure. Usage: cuda_ops_check [--device N] [NAME...]: only the groups named (norm, linear,
// gdn, attention, mlp, head, optimizer)
#include <iostream>
#include <set>

#include "ops_check_mixers.h"
#include "ops_check_step.h"

namespace tessera::check {

void OpsCheck::norms() {
  for (i64 H : {128, 1024, 2560, 4096, 5120}) {
    const i64 rows = 515;
    const std::string name = "H=" + std::to_string(H);
    Tensor x = twin_.act(rows * H), w = twin_.f32(H, 0.3f), dy = twin_.act(rows * H),
           dres = twin_.act(rows * H);
    Tensor y = twin_.out(rows * H), dx = twin_.out(rows * H), dw = twin_.accumulator(H),
           dx2 = twin_.out(rows * H);
    check("rmsnorm_fwd " + name, {{"y", &y, 4e-3}},
          [&](Backend& e, bool g) { e.rmsnorm_fwd(at(y, g), at(x, g), f32_at(w, g), rows, H, 1e-6f); });
    check("rmsnorm_bwd " + name, {{"dx", &dx, 4e-3}, {"dw", &dw, 1e-3}}, [&](Backend& e, bool g) {
      e.rmsnorm_bwd(at(dx, g), f32_at(dw, g), at(dy, g), at(x, g), f32_at(w, g), at(dres, g), rows, H, 1e-6f);
    });
    check("rmsnorm_bwd no residual " + name, {{"dx", &dx2, 4e-3}}, [&](Backend& e, bool g) {
      e.rmsnorm_bwd(at(dx2, g), f32_at(dw, g), at(dy, g), at(x, g), f32_at(w, g), nullptr, rows, H, 1e-6f);
    });
    twin_.clear();
  }
}

void OpsCheck::products(const std::string& kernel) {
  for (auto [T, N, K] :
       {std::array<i64, 3>{512, 1030, 128}, {512, 768, 128}, {448, 8224, 1024}, {1024, 1024, 3584}}) {
    const std::string name =
        kernel + " " + std::to_string(T) + "x" + std::to_string(N) + "x" + std::to_string(K);
    Tensor x = twin_.act(T * K), w = twin_.act(N * K, 0.05f), res = twin_.act(T * N), dy = twin_.act(T * N);
    Tensor y = twin_.out(T * N), y2 = twin_.out(T * N), dx = twin_.out(T * K);
    Tensor dw = twin_.out(N * K, DType::f32), dwb = twin_.out(N * K);
    check("linear_fwd " + name, {{"y", &y, 5e-3}},
          [&](Backend& e, bool g) { e.linear_fwd(at(y, g), at(x, g), at(w, g), nullptr, T, N, K); });
    check("linear_fwd residual " + name, {{"y", &y2, 5e-3}},
          [&](Backend& e, bool g) { e.linear_fwd(at(y2, g), at(x, g), at(w, g), at(res, g), T, N, K); });
    check("linear_bwd_data " + name, {{"dx", &dx, 5e-3}},
          [&](Backend& e, bool g) { e.linear_bwd_data(at(dx, g), at(dy, g), at(w, g), T, N, K); });
    check("linear_bwd_weight = " + name, {{"dw f32", &dw, 1e-3}}, [&](Backend& e, bool g) {
      e.linear_bwd_weight(at(dw, g), DType::f32, at(dy, g), at(x, g), T, N, K, false);
    });
    check("linear_bwd_weight += " + name, {{"dw f32", &dw, 1e-3}}, [&](Backend& e, bool g) {
      e.linear_bwd_weight(at(dw, g), DType::f32, at(dy, g), at(x, g), T, N, K, true);
    });
    check("linear_bwd_weight = " + name, {{"dw bf16", &dwb, 5e-3}}, [&](Backend& e, bool g) {
      e.linear_bwd_weight(at(dwb, g), g ? DType::bf16 : DType::f32, at(dy, g), at(x, g), T, N, K, false);
    });
    twin_.clear();
  }
}

void OpsCheck::mlp() {
  for (i64 I : {256, 3584}) {
    const i64 T = 515;
    const std::string name = "I=" + std::to_string(I);
    Tensor gu = twin_.act(T * 2 * I, 2.0f), act = twin_.out(T * I), dact = twin_.act(T * I);
    Tensor dgu = twin_.out(T * 2 * I), again = twin_.out(T * I);
    check("swiglu_fwd " + name, {{"act", &act, 4e-3}},
          [&](Backend& e, bool g) { e.swiglu_fwd(at(act, g), at(gu, g), T, I); });
    check("swiglu_bwd " + name, {{"dgu", &dgu, 4e-3}, {"act", &again, 4e-3}},
          [&](Backend& e, bool g) { e.swiglu_bwd(at(dgu, g), at(again, g), at(dact, g), at(gu, g), T, I); });
    check("swiglu_bwd, act kept " + name, {{"dgu", &dgu, 4e-3}},
          [&](Backend& e, bool g) { e.swiglu_bwd(at(dgu, g), nullptr, at(dact, g), at(gu, g), T, I); });
    check("swiglu_bwd in place " + name, {{"dgu", &gu, 4e-3}, {"act", &dact, 4e-3}},
          [&](Backend& e, bool g) { e.swiglu_bwd(at(gu, g), at(dact, g), at(dact, g), at(gu, g), T, I); });
    twin_.clear();
  }
}

// Sizes that no kernel serves are refused by name, never computed wrongly.
void OpsCheck::refusals() {
  const TwinBatch b = make_batch(twin_, kMixed, 100);
  const GdnShape small{1, 2, 16, 16, 4};
  Tensor x = twin_.act(b.cpu.T * small.proj_dim()), y = twin_.out(b.cpu.T * small.conv_dim()),
         w = twin_.f32(4096);
  const auto refused = [&](const char* name, const std::function<void()>& call) {
    try {
      call();
      report_.verdict(name, false, "was accepted");
    } catch (const EngineError& error) {
      report_.verdict(name, error.code() == "unsupported_size", error.what());
    }
  };
  refused("heads of 16 are refused",
          [&] { twin_.gpu().gdn_prep_fwd(y.gpu, x.gpu, static_cast<float*>(w.gpu), b.gpu, small); });
  refused("hidden size 100 is refused",
          [&] { twin_.gpu().rmsnorm_fwd(y.gpu, x.gpu, static_cast<float*>(w.gpu), 4, 100, 1e-6f); });
  twin_.clear();
}

}  // namespace tessera::check

int main(int argc, char** argv) {
  using namespace tessera;
  try {
    CudaOptions options;
    std::set<std::string> wanted;
    for (int i = 1; i < argc; ++i) {
      if (std::string(argv[i]) == "--device" && i + 1 < argc)
        options.device = std::stoi(argv[++i]);
      else
        wanted.insert(argv[i]);
    }
    const auto cpu = make_cpu_backend({});
    const auto gpu = make_cuda_backend(options);
    for (const KernelInfo& k : gpu->kernels({16, 32, 128, 128, 4}, {16, 4, 256, 64})) {
      std::printf("%-18s %-14s %-12s %s\n", k.layer_kind.c_str(), k.operation.c_str(), k.tier.c_str(),
                  k.reason.c_str());
    }
    check::OpsCheck checks(*cpu, *gpu);
    const auto group = [&](const char* name, void (check::OpsCheck::*run)()) {
      if (wanted.empty() || wanted.count(name)) (checks.*run)();
    };
    group("norm", &check::OpsCheck::norms);
    group("gdn", &check::OpsCheck::delta_net);
    group("attention", &check::OpsCheck::attention);
    group("mlp", &check::OpsCheck::mlp);
    group("head", &check::OpsCheck::head);
    group("optimizer", &check::OpsCheck::optimizer);
    group("refusals", &check::OpsCheck::refusals);
    if (wanted.empty() || wanted.count("linear")) {
      checks.products("cublaslt");
      options.library = false;
      const auto plain = make_cuda_backend(options);
      check::OpsCheck plain_checks(*cpu, *plain);
      plain_checks.products("reference");
      return checks.finish() | plain_checks.finish();
    }
    return checks.finish();
  } catch (const EngineError& error) {
    std::cerr << error.code() << ": " << error.what() << " " << error.hint() << "\n";
    return 1;
  }
}
