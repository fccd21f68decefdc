// Compares every CUDA operation with the CPU backend's on bf16-rounded inputs (engine.md 8, levels 2 and 3):
// outputs are NaN before each call, each call is made twice and must give the same bits. Prints one table;
// exits 1 on a failure. Usage: cuda_ops_check [--device N] [NAME...]: only the groups named (norm, linear,
// gdn, attention, mlp, head, optimizer)
#include <functional>
#include <iostream>
#include <set>

#include "core/error.h"
#include "ops/optimizer/stochastic_rounding.h"
#include "twin.h"

namespace tessera::check {
namespace {

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

const std::vector<i32> kMixed = {1, 2, 3, 4, 5, 63, 64, 65, 0, 127, 129, 0};
const std::vector<i32> kLong = {4096, 1, 0, 65};

// Picks the side's pointer of a tensor.
void* at(const Tensor& t, bool gpu) { return gpu ? t.gpu : t.cpu; }
float* f32_at(const Tensor& t, bool gpu) { return static_cast<float*>(at(t, gpu)); }

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

void OpsCheck::delta_net_case(const std::string& name, const TwinBatch& b, const GdnShape& s,
                              float gate_scale) {
  const i64 T = b.cpu.T, P = s.proj_dim(), HV = s.value_heads, NC = b.cpu.num_chunk;
  std::vector<float> proj = twin_.normal(T * P, 1.0f);
  for (i64 t = 0; t < T; ++t) {
    for (i64 c = s.b_offset(); c < P; ++c) proj[t * P + c] *= gate_scale;
  }
  Tensor pj = twin_.act(proj), conv = twin_.f32(s.conv_dim() * s.conv_taps, 0.4f);
  Tensor a_log = twin_.f32(HV, 0.7f, gate_scale > 1.0f ? 1.0f : 0.0f), dt = twin_.f32(HV, 0.5f);
  Tensor qkv = twin_.out(T * s.conv_dim());
  check("gdn_prep_fwd " + name, {{"qkv", &qkv, 4e-3}}, [&](Backend& e, bool g) {
    e.gdn_prep_fwd(at(qkv, g), at(pj, g), f32_at(conv, g), g ? b.gpu : b.cpu, s);
  });
  twin_.share(qkv);

  // Slots of chunks that are not used may hold anything: zeros on both sides before, and not looked at.
  Tensor g_out = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor beta = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor ar = twin_.act(std::vector<float>(NC * HV * kChunk * kChunk, 0.0f));
  check("gdn_kkt_fwd " + name, {{"g", &g_out, 1e-3}, {"beta", &beta, 1e-3}, {"ar", &ar, 1.5e-2}},
        [&](Backend& e, bool g) {
          e.gdn_kkt_fwd(f32_at(g_out, g), f32_at(beta, g), at(ar, g), at(qkv, g), at(pj, g), f32_at(a_log, g),
                        f32_at(dt, g), g ? b.gpu : b.cpu, s);
        });
  twin_.share(g_out), twin_.share(beta), twin_.share(ar);

  Tensor o = twin_.out(T * s.values());
  Tensor state = twin_.act(std::vector<float>(NC * HV * s.key_dim * s.value_dim, 0.0f));
  // A state is in an order of the backend's own: gdn_bwd shows whether it is right.
  check("gdn_fwd " + name, {{"o", &o, 1.5e-2}}, [&](Backend& e, bool g) {
    e.gdn_fwd(at(o, g), at(state, g), at(qkv, g), f32_at(g_out, g), f32_at(beta, g), at(ar, g),
              g ? b.gpu : b.cpu, s);
  });
  twin_.share(o);

  Tensor d_o = twin_.act(T * s.values());
  Tensor dq = twin_.out(T * HV * s.key_dim), dk = twin_.out(T * HV * s.key_dim),
         dv = twin_.out(T * s.values());
  Tensor d_gamma = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor d_beta = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor du = twin_.out(T * s.values()), ds = twin_.out(NC * HV * s.key_dim * s.value_dim);
  check("gdn_bwd " + name,
        {{"dq", &dq, 1.5e-2},
         {"dk", &dk, 1.5e-2},
         {"dv", &dv, 1.5e-2},
         {"d_gamma", &d_gamma, 1.5e-2},
         {"d_beta", &d_beta, 1.5e-2}},
        [&](Backend& e, bool g) {
          e.gdn_bwd(at(dq, g), at(dk, g), at(dv, g), f32_at(d_gamma, g), f32_at(d_beta, g), at(du, g),
                    at(ds, g), at(d_o, g), at(qkv, g), f32_at(g_out, g), f32_at(beta, g), at(ar, g),
                    at(state, g), g ? b.gpu : b.cpu, s);
        });
  twin_.share(dq), twin_.share(dk), twin_.share(dv), twin_.share(d_gamma), twin_.share(d_beta);

  Tensor dproj = twin_.out(T * P);
  Tensor d_conv = twin_.accumulator(s.conv_dim() * s.conv_taps), d_a = twin_.accumulator(HV),
         d_dt = twin_.accumulator(HV);
  check("gdn_prep_bwd " + name,
        {{"dproj", &dproj, 4e-3},
         {"d_conv_w", &d_conv, 1e-3},
         {"d_a_log", &d_a, 1e-3},
         {"d_dt_bias", &d_dt, 1e-3}},
        [&](Backend& e, bool g) {
          e.gdn_prep_bwd(at(dproj, g), f32_at(d_conv, g), f32_at(d_a, g), f32_at(d_dt, g), at(dq, g),
                         at(dk, g), at(dv, g), f32_at(d_gamma, g), f32_at(d_beta, g), at(pj, g), at(qkv, g),
                         f32_at(beta, g), f32_at(conv, g), f32_at(a_log, g), f32_at(dt, g), g ? b.gpu : b.cpu,
                         s);
        });

  Tensor w = twin_.f32(s.value_dim, 0.3f, 1.0f), y = twin_.out(T * s.values()),
         dy = twin_.act(T * s.values());
  Tensor d_o2 = twin_.out(T * s.values()), dz = twin_.out(T * P), dw = twin_.accumulator(s.value_dim);
  check("gated_norm_fwd " + name, {{"y", &y, 4e-3}}, [&](Backend& e, bool g) {
    e.gated_norm_fwd(at(y, g), at(o, g), at(pj, g), f32_at(w, g), T, s, 1e-6f);
  });
  check("gated_norm_bwd " + name, {{"d_o", &d_o2, 4e-3}, {"dproj.z", &dz, 4e-3}, {"dw", &dw, 1e-3}},
        [&](Backend& e, bool g) {
          e.gated_norm_bwd(at(d_o2, g), at(dz, g), f32_at(dw, g), at(dy, g), at(o, g), at(pj, g),
                           f32_at(w, g), T, s, 1e-6f);
        });
  twin_.clear();
}

void OpsCheck::delta_net() {
  const auto run = [&](const char* name, const std::vector<i32>& lengths, GdnShape s, float gates) {
    delta_net_case(name, make_batch(twin_, lengths, 100), s, gates);
  };
  run("HK=1 HV=3", kMixed, {1, 3, 128, 128, 4}, 1.0f);
  run("HK=2 HV=2", kMixed, {2, 2, 128, 128, 4}, 1.0f);
  run("HK=16 HV=32", kMixed, {16, 32, 128, 128, 4}, 1.0f);
  run("long HK=2 HV=4", kLong, {2, 4, 128, 128, 4}, 1.0f);
  run("extreme gates HK=2 HV=4", kMixed, {2, 4, 128, 128, 4}, 15.0f);
}

void OpsCheck::attention_case(const std::string& name, const TwinBatch& b, const AttnShape& s) {
  const i64 T = b.cpu.T, P = s.proj_dim(), D = s.head_dim;
  Tensor pj = twin_.act(T * P), wq = twin_.f32(D, 0.2f), wk = twin_.f32(D, 0.2f);
  std::vector<float> table(4096 * s.rotary_dim);
  for (i64 p = 0; p < 4096; ++p) {
    for (i64 i = 0; i < s.rotary_dim / 2; ++i) {
      const double angle = p * std::pow(1e7, -2.0 * i / s.rotary_dim);
      table[p * s.rotary_dim + i] = static_cast<float>(std::cos(angle));
      table[p * s.rotary_dim + s.rotary_dim / 2 + i] = static_cast<float>(std::sin(angle));
    }
  }
  Tensor rope = twin_.f32(table);
  Tensor q = twin_.out(T * s.heads * D), k = twin_.out(T * s.kv_heads * D);
  check("qk_norm_rope_fwd " + name, {{"q", &q, 4e-3}, {"k", &k, 4e-3}}, [&](Backend& e, bool g) {
    e.qk_norm_rope_fwd(at(q, g), at(k, g), at(pj, g), f32_at(wq, g), f32_at(wk, g), f32_at(rope, g),
                       g ? b.gpu : b.cpu, s, 1e-6f);
  });
  twin_.share(q), twin_.share(k);
  Tensor y = twin_.out(T * s.heads * D), o = twin_.out(T * s.heads * D),
         lse = twin_.out(s.heads * T, DType::f32);
  check("attention_fwd " + name, {{"y", &y, 5e-3}, {"o", &o, 5e-3}, {"lse", &lse, 1e-3}},
        [&](Backend& e, bool g) {
          e.attention_fwd(at(y, g), at(o, g), f32_at(lse, g), at(q, g), at(k, g), at(pj, g),
                          g ? b.gpu : b.cpu, s);
        });
  twin_.share(o), twin_.share(lse);
  Tensor dy = twin_.act(T * s.heads * D), dq = twin_.out(T * s.heads * D), dk = twin_.out(T * s.kv_heads * D);
  Tensor dproj = twin_.out(T * P), sdo = twin_.out(T * s.heads * D),
         sdelta = twin_.out(s.heads * T, DType::f32);
  check("attention_bwd " + name, {{"dq", &dq, 1e-2}, {"dk", &dk, 1e-2}, {"dproj gate, v", &dproj, 1e-2}},
        [&](Backend& e, bool g) {
          e.attention_bwd(at(dq, g), at(dk, g), at(dproj, g), at(sdo, g), f32_at(sdelta, g), at(dy, g),
                          at(o, g), f32_at(lse, g), at(q, g), at(k, g), at(pj, g), g ? b.gpu : b.cpu, s);
        });
  twin_.share(dq), twin_.share(dk);
  Tensor dproj2 = twin_.out(T * P), dwq = twin_.accumulator(D), dwk = twin_.accumulator(D);
  check("qk_norm_rope_bwd " + name, {{"dproj q, k", &dproj2, 4e-3}, {"dwq", &dwq, 1e-3}, {"dwk", &dwk, 1e-3}},
        [&](Backend& e, bool g) {
          e.qk_norm_rope_bwd(at(dproj2, g), f32_at(dwq, g), f32_at(dwk, g), at(dq, g), at(dk, g), at(pj, g),
                             f32_at(wq, g), f32_at(wk, g), f32_at(rope, g), g ? b.gpu : b.cpu, s, 1e-6f);
        });
  twin_.clear();
}

void OpsCheck::attention() {
  attention_case("NH=2 NKV=1", make_batch(twin_, kMixed, 100), {2, 1, 256, 64});
  attention_case("NH=8 NKV=2", make_batch(twin_, kMixed, 100), {8, 2, 256, 64});
  attention_case("long NH=4 NKV=2", make_batch(twin_, kLong, 100), {4, 2, 256, 64});
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
    check("swiglu_bwd in place " + name, {{"dgu", &gu, 4e-3}, {"act", &dact, 4e-3}},
          [&](Backend& e, bool g) { e.swiglu_bwd(at(gu, g), at(dact, g), at(dact, g), at(gu, g), T, I); });
    twin_.clear();
  }
}

void OpsCheck::head() {
  const i64 H = 128;
  const TwinBatch b = make_batch(twin_, kLong, 500);
  Tensor table = twin_.act(500 * H), x = twin_.out(b.cpu.T * H), dx = twin_.act(b.cpu.T * H);
  Tensor d32 = twin_.accumulator(500 * H), d16 = twin_.accumulator(500 * H, DType::bf16);
  check("embedding_fwd", {{"x", &x, 0.0}},
        [&](Backend& e, bool g) { e.embedding_fwd(at(x, g), at(table, g), g ? b.gpu : b.cpu, H); });
  check("embedding_bwd", {{"d_table f32", &d32, 1e-3}}, [&](Backend& e, bool g) {
    e.embedding_bwd(at(d32, g), DType::f32, at(dx, g), g ? b.gpu : b.cpu, H);
  });
  check("embedding_bwd", {{"d_table bf16", &d16, 4e-3}}, [&](Backend& e, bool g) {
    e.embedding_bwd(at(d16, g), g ? DType::bf16 : DType::f32, at(dx, g), g ? b.gpu : b.cpu, H);
  });

  const std::vector<i32> rows = {5, -1, 0, 4159, 77, -1};
  const i32* rows_gpu = nullptr;
  const i32* rows_cpu = twin_.both<i32>(rows, &rows_gpu);
  Tensor picked = twin_.out(6 * H), spread = twin_.out(b.cpu.T * H);
  check("gather_rows", {{"dst", &picked, 0.0}},
        [&](Backend& e, bool g) { e.gather_rows(at(picked, g), at(dx, g), g ? rows_gpu : rows_cpu, 6, H); });
  check("scatter_rows", {{"dst", &spread, 0.0}}, [&](Backend& e, bool g) {
    e.scatter_rows(at(spread, g), at(picked, g), g ? rows_gpu : rows_cpu, 6, b.cpu.T, H);
  });
  twin_.clear();

  for (i64 V : {768, 151936, 248320}) {
    const i64 count = 19;
    std::vector<i32> label(count);
    for (i64 r = 0; r < count; ++r) label[r] = r % 4 == 3 ? kIgnoreLabel : static_cast<i32>((r * 7919) % V);
    label[1] = 0, label[2] = static_cast<i32>(V - 1);
    const i32* label_gpu = nullptr;
    const i32* label_cpu = twin_.both<i32>(label, &label_gpu);
    std::vector<float> logits = twin_.normal(count * V, 3.0f);
    logits[0] = 1000.0f;                                       // one row with a logit far above the others
    for (i64 v = 0; v < V; ++v) logits[4 * V + v] = -1000.0f;  // one row of equal, very low logits
    Tensor z = twin_.act(logits), z2 = twin_.act(logits);
    Tensor nll = twin_.out(count, DType::f32), nll2 = twin_.out(count, DType::f32);
    const std::string name = "cross_entropy V=" + std::to_string(V);
    check(name, {{"dz", &z, 5e-3}, {"nll", &nll, 1e-5}}, [&](Backend& e, bool g) {
      e.cross_entropy(at(z, g), f32_at(nll, g), g ? label_gpu : label_cpu, count, V, true);
    });
    check(name + " loss only", {{"nll", &nll2, 1e-5}, {"z kept", &z2, 0.0}}, [&](Backend& e, bool g) {
      e.cross_entropy(at(z2, g), f32_at(nll2, g), g ? label_gpu : label_cpu, count, V, false);
    });
    twin_.clear();
  }
  large_logits();

  const i64 rows_summed = 8192;
  Tensor nll = twin_.f32(rows_summed);
  StepResult results[2] = {};
  results[0].loss_sum = results[1].loss_sum = 3.25;
  for (int side = 0; side < 2; ++side) {
    Backend& e = side ? twin_.gpu() : twin_.cpu();
    auto* result = static_cast<StepResult*>(e.allocate(sizeof(StepResult)));
    e.copy_in(result, &results[side], sizeof(StepResult));
    e.loss_sum(result, f32_at(nll, side), rows_summed);
    e.copy_out(&results[side], result, sizeof(StepResult));
    e.release(result);
  }
  const double error = std::abs(results[1].loss_sum - results[0].loss_sum);
  report_.verdict("loss_sum", error < 1e-9, "difference " + std::to_string(error));
  twin_.clear();
}

// More than 2^31 logits: the last rows must be found.
void OpsCheck::large_logits() {
  const i64 V = 248320, rows = 8704;
  Backend& gpu = twin_.gpu();
  auto* z = static_cast<std::uint16_t*>(gpu.allocate(rows * V * 2));
  auto* nll = static_cast<float*>(gpu.allocate(rows * sizeof(float)));
  std::vector<i32> label(rows, kIgnoreLabel);
  label[rows - 1] = 12345;
  auto* label_gpu = static_cast<i32*>(gpu.allocate(rows * sizeof(i32)));
  gpu.copy_in(label_gpu, label.data(), rows * sizeof(i32));
  const std::vector<float> logits = twin_.normal(V, 2.0f);
  std::vector<std::uint16_t> raw(V);
  double sum = 0.0;
  for (i64 v = 0; v < V; ++v) raw[v] = f32_to_bf16(logits[v]), sum += std::exp(double(bf16_to_f32(raw[v])));
  gpu.copy_in(z + (rows - 1) * V, raw.data(), V * 2);
  gpu.cross_entropy(z, nll, label_gpu, rows, V, true);
  std::vector<float> got_nll(rows);
  std::vector<std::uint16_t> unsupervised(V), gradient(V);
  gpu.copy_out(got_nll.data(), nll, rows * sizeof(float));
  gpu.copy_out(unsupervised.data(), z + (rows - 2) * V, V * 2);
  gpu.copy_out(gradient.data(), z + (rows - 1) * V, V * 2);
  std::vector<float> got(V), want(V);
  for (i64 v = 0; v < V; ++v) {
    got[v] = bf16_to_f32(gradient[v]);
    want[v] = static_cast<float>(std::exp(double(bf16_to_f32(raw[v]))) / sum - (v == 12345));
  }
  report_.line("cross_entropy past 2^31 elements dz", got, want, 5e-3);
  const double loss_error = std::abs(got_nll[rows - 1] - (std::log(sum) - bf16_to_f32(raw[12345])));
  const bool zeros =
      std::all_of(unsupervised.begin(), unsupervised.end(), [](std::uint16_t v) { return v == 0; });
  report_.verdict("cross_entropy past 2^31 elements", loss_error < 1e-4 && zeros && got_nll[rows - 2] == 0.0f,
                  "nll off by " + std::to_string(loss_error));
  for (void* p : {static_cast<void*>(z), static_cast<void*>(nll), static_cast<void*>(label_gpu)})
    gpu.release(p);
}

// 100 steps against AdamW in double; bf16sr against its own arithmetic in fp32 with the same random bits.
void OpsCheck::adamw_case(OptimizerMode mode) {
  const i64 count = 8192 + 1027;  // more than a block, and a tail that no vector covers
  const bool stochastic = mode == OptimizerMode::bf16sr;
  Backend& gpu = twin_.gpu();
  const DType state_type = stochastic ? DType::bf16 : DType::f32;
  Tensor p = twin_.act(count, 0.5f), master = twin_.f32(twin_.gpu_values(p));
  Tensor m =
      stochastic ? twin_.act(std::vector<float>(count, 0.0f)) : twin_.f32(std::vector<float>(count, 0.0f));
  Tensor v =
      stochastic ? twin_.act(std::vector<float>(count, 0.0f)) : twin_.f32(std::vector<float>(count, 0.0f));
  Tensor grad = twin_.f32(count, 3.0f);
  const i64 small = 131;  // an fp32 parameter, at an address that no vector fits
  Tensor sp = twin_.f32(small + 1), sm = twin_.f32(std::vector<float>(small + 1, 0.0f)),
         sv = twin_.f32(std::vector<float>(small + 1, 0.0f)), sg = twin_.f32(small + 1, 2.0f);
  const auto offset = [](const Tensor& t) { return static_cast<float*>(t.gpu) + 1; };
  const std::vector<AdamSegment> segments = {
      {p.gpu, stochastic ? nullptr : static_cast<float*>(master.gpu), grad.gpu, m.gpu, v.gpu, count,
       DType::bf16, DType::f32, state_type, 0.01f, 1000},
      {offset(sp), nullptr, offset(sg), offset(sm), offset(sv), small, DType::f32, DType::f32, DType::f32,
       0.0f, 50000}};
  const AdamConfig config{0.9, 0.999, 1e-8, mode};
  auto* scalars = static_cast<StepScalars*>(gpu.allocate(sizeof(StepScalars)));
  auto* result = static_cast<StepResult*>(gpu.allocate(sizeof(StepResult)));

  std::vector<double> wp, wm(count), wv(count);
  std::vector<double> wsp, wsm(small), wsv(small);
  for (float x : twin_.gpu_values(p)) wp.push_back(x);
  const std::vector<float> sp0 = twin_.gpu_values(sp);
  for (i64 i = 0; i < small; ++i) wsp.push_back(sp0[i + 1]);

  const int steps = stochastic ? 3 : 100;
  double norm_error = 0.0;
  i64 apart = 0;
  for (int step = 1; step <= steps; ++step) {
    StepScalars host{1e-3f,
                     static_cast<float>(1 - std::pow(0.9, step)),
                     static_cast<float>(1 - std::pow(0.999, step)),
                     1.0f / 37,
                     1.0f,
                     99,
                     step};
    const StepResult zero{};
    gpu.copy_in(scalars, &host, sizeof host);
    gpu.copy_in(result, &zero, sizeof zero);
    const std::vector<float> g = twin_.normal(count, 3.0f), g_small = twin_.normal(small + 1, 2.0f);
    twin_.set_gpu(grad, g);
    twin_.set_gpu(sg, g_small);
    double square = 0.0;
    for (double x : g) square += x * x;
    for (i64 i = 0; i < small; ++i) square += double(g_small[i + 1]) * g_small[i + 1];
    const std::vector<float> before_p = twin_.gpu_values(p), before_m = twin_.gpu_values(m),
                             before_v = twin_.gpu_values(v);
    gpu.grad_norm(result, segments, scalars);
    gpu.adamw(segments, config, scalars, result);
    StepResult got;
    gpu.copy_out(&got, result, sizeof got);
    const double norm = std::sqrt(square) / 37, scale = std::min(1.0, 1.0 / (norm + 1e-6)) / 37;
    norm_error =
        std::max(norm_error, std::abs(got.grad_norm - norm) / norm + std::abs(got.scale - scale) / scale);
    const auto update = [&](double& pp, double& mm, double& vv, double gg, double decay) {
      mm = 0.9 * mm + 0.1 * gg * scale;
      vv = 0.999 * vv + 0.001 * gg * scale * gg * scale;
      pp = pp * (1 - 1e-3 * decay) -
           1e-3 * (mm / (1 - std::pow(0.9, step))) / (std::sqrt(vv / (1 - std::pow(0.999, step))) + 1e-8);
    };
    for (i64 i = 0; i < small; ++i) update(wsp[i], wsm[i], wsv[i], g_small[i + 1], 0.0);
    if (!stochastic) {
      for (i64 i = 0; i < count; ++i) update(wp[i], wm[i], wv[i], g[i], 0.01);
      continue;
    }
    const std::vector<float> after = twin_.gpu_values(p);
    for (i64 i = 0; i < count; ++i) {
      double pp = before_p[i], mm = before_m[i], vv = before_v[i];
      update(pp, mm, vv, g[i], 0.01);
      const std::uint32_t bits = rounding_bits(rounding_key(99, step), 1000 + i);
      apart += bf16_to_f32(round_stochastic(static_cast<float>(pp), bits)) != after[i];
    }
  }
  const std::string name = stochastic ? "adamw bf16sr" : "adamw master32";
  report_.verdict("grad_norm " + name, norm_error < 1e-5, "relative error " + std::to_string(norm_error));
  if (stochastic) {
    report_.verdict(
        name + " parameters", apart < count * steps / 500,
        std::to_string(apart) + " of " + std::to_string(count * steps) + " rounded to the other neighbour");
  } else {
    std::vector<float> want(wp.begin(), wp.end());
    report_.line(name + " master after 100 steps", twin_.gpu_values(master), want, 1e-6);
    report_.line(name + " bf16 parameter", twin_.gpu_values(p), want, 4e-3);
  }
  const std::vector<float> got_small = twin_.gpu_values(sp);
  report_.line(name + " fp32 parameter, unaligned", {got_small.begin() + 1, got_small.end()},
               {wsp.begin(), wsp.end()}, 1e-6);

  // A NaN in one gradient: the step says so and nothing changes.
  std::vector<float> poisoned = twin_.gpu_values(grad);
  poisoned[count - 1] = std::numeric_limits<float>::quiet_NaN();
  twin_.set_gpu(grad, poisoned);
  const auto before = twin_.gpu_bytes(p), before_v = twin_.gpu_bytes(v);
  gpu.grad_norm(result, segments, scalars);
  gpu.adamw(segments, config, scalars, result);
  StepResult got;
  gpu.copy_out(&got, result, sizeof got);
  report_.verdict(name + " with a NaN gradient",
                  got.finite == 0 && twin_.gpu_bytes(p) == before && twin_.gpu_bytes(v) == before_v,
                  got.finite == 0 ? "refused, nothing changed" : "not noticed");
  gpu.release(scalars);
  gpu.release(result);
  twin_.clear();
}

// Mean of a million roundings of one value within three standard errors of it.
void OpsCheck::rounding_bias() {
  const float value = 1.0f + 0.3f / 128;  // three tenths of the way between two neighbours
  double sum = 0.0;
  const int draws = 1000000;
  for (int i = 0; i < draws; ++i) {
    sum += bf16_to_f32(round_stochastic(value, rounding_bits(rounding_key(7, 3), i)));
  }
  const double share = (sum / draws - 1.0) * 128, sigma = std::sqrt(0.3 * 0.7 / draws);
  report_.verdict("stochastic rounding is unbiased", std::abs(share - 0.3) < 3 * sigma,
                  "rounded up " + std::to_string(share) + " of the time, 0.3 wanted");
}

void OpsCheck::optimizer() {
  adamw_case(OptimizerMode::master32);
  adamw_case(OptimizerMode::bf16sr);
  rounding_bias();
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

}  // namespace
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
