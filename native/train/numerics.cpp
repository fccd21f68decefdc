#include "train/numerics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "core/dtype.h"
#include "core/error.h"
#include "core/json.h"
#include "model/batch.h"
#include "ops/cpu/adam_rates.h"
#include "ops/cpu/ops.inc"

namespace tessera {
namespace {

using Values = std::vector<double>;

// Largest ||kernel - fp64|| / ||fp64||. Sums in fp32 over a few hundred terms; bf16 keeps 8 bits of every
// activation, and the backward passes round several of them on the way.
struct Tolerance {
  double forward, backward, sums;
};
constexpr Tolerance kF32{1e-5, 5e-5, 5e-5}, kBf16Tolerance{1.5e-2, 3e-2, 1e-2};
constexpr i64 kColumns = 192, kVocabulary = 1024;
constexpr float kEps = 1e-6f;

AttnShape one_group(AttnShape s) {
  s.heads = std::max(1, s.heads / std::max(1, s.kv_heads));
  s.kv_heads = 1;
  return s;
}
GdnShape one_group(GdnShape s) {
  s.value_heads = s.group();
  s.key_heads = 1;
  return s;
}

class SelfTest {
 public:
  SelfTest(Backend& backend, const ModelConfig& config)
      : backend_(backend),
        gdn_(one_group(config.gdn)),
        attn_(one_group(config.attn)),
        H_(config.hidden),
        tolerance_(backend.act_dtype() == DType::f32 ? kF32 : kBf16Tolerance),
        random_(5) {
    make_batch();
    const size_t bytes = backend.workspace_bytes(gdn_, attn_, batch_.T, H_, kColumns, kVocabulary);
    backend.set_workspace(allocate(std::max<size_t>(bytes, 64)), bytes);
  }
  ~SelfTest() {
    backend_.synchronize();
    backend_.set_workspace(nullptr, 0);
    for (void* p : memory_) backend_.release(p);
  }
  SelfTest(const SelfTest&) = delete;
  SelfTest& operator=(const SelfTest&) = delete;

  Json run() {
    const auto began = std::chrono::steady_clock::now();
    test_norm();
    test_linear();
    test_delta_rule();
    test_gated_norm();
    test_attention();
    test_mlp();
    test_embedding();
    test_cross_entropy();
    test_adamw();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return {{"ok", failures_.empty()}, {"device", backend_.name()}, {"kernels", rows_},
            {"failures", failures_},   {"message", message()},      {"seconds", seconds}};
  }

 private:
  // A random array on the device, and the same values, as rounded there, on the host.
  struct Array {
    void* device;
    Values host;
    float* f32() const { return static_cast<float*>(device); }
  };

  void make_batch() {
    const std::vector<i64> lengths = {1, 63, 64, 65, 3, 60};  // around the edges of a chunk
    std::vector<i32> ids;
    for (const i64 n : lengths)
      for (i64 t = 0; t < n; ++t) ids.push_back(static_cast<i32>(random_() % kVocabulary));
    const std::vector<i32> labels(ids.size(), 1);
    std::vector<Sequence> sequences;
    size_t at = 0;
    for (const i64 n : lengths) {
      const auto count = static_cast<size_t>(n);
      sequences.push_back({std::span(ids).subspan(at, count), std::span(labels).subspan(at, count), n});
      at += count;
    }
    const BatchLayout layout{static_cast<i64>(ids.size()), static_cast<i64>(lengths.size())};
    host_blob_.resize(layout.bytes() + 64);
    const BatchShape shape =
        fill_batch(layout, {.fixed_shapes = false, .compaction = false, .vocab = kVocabulary}, sequences,
                   host_blob_.data());
    void* blob = allocate(layout.bytes());
    backend_.copy_in(blob, host_blob_.data(), layout.bytes());
    batch_ = layout.view(blob, shape, false);
    host_batch_ = layout.view(host_blob_.data(), shape, false);
  }

  void* allocate(size_t bytes) {
    memory_.push_back(backend_.allocate(bytes));
    return memory_.back();
  }

  Array random(i64 count, DType type, double scale = 1.0, double mean = 0.0) {
    std::normal_distribution<double> draw(mean, scale);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = static_cast<float>(draw(random_));
    return upload(values, type);
  }
  Array upload(std::vector<float> values, DType type) {
    const auto count = static_cast<i64>(values.size());
    std::vector<char> raw(values.size() * dtype_bytes(type));
    from_f32(raw.data(), type, values.data(), count);
    to_f32(values.data(), raw.data(), type, count);
    Array a{allocate(raw.size()), {values.begin(), values.end()}};
    backend_.copy_in(a.device, raw.data(), raw.size());
    return a;
  }
  Array act(i64 count, double scale = 1.0) { return random(count, backend_.act_dtype(), scale); }
  Array small(i64 count, double scale = 0.3) { return random(count, DType::f32, scale); }
  // Poisoned: a kernel must write every element that is compared.
  Array output(i64 count, DType type) {
    return upload(std::vector<float>(static_cast<size_t>(count), std::numeric_limits<float>::quiet_NaN()),
                  type);
  }
  Array act_output(i64 count) { return output(count, backend_.act_dtype()); }
  Array sums(i64 count) { return upload(std::vector<float>(static_cast<size_t>(count), 0.0f), DType::f32); }
  static Values zeros(i64 count) { return Values(static_cast<size_t>(count), 0.0); }
  Values rounded(const Values& values) {  // and what the device would keep of them
    return upload({values.begin(), values.end()}, backend_.act_dtype()).host;
  }

  // Columns from .. from + width of rows of `stride`; everything where width is 0.
  void compare(const char* operation, const char* what, const Array& got, DType type, const Values& want,
               double tolerance, i64 stride = 0, i64 from = 0, i64 width = 0) {
    const auto count = static_cast<i64>(want.size());
    std::vector<char> raw(want.size() * dtype_bytes(type));
    backend_.copy_out(raw.data(), got.device, raw.size());
    std::vector<float> values(want.size());
    to_f32(values.data(), raw.data(), type, count);
    double difference = 0, norm = 0;
    for (i64 i = 0; i < count; ++i) {
      if (width > 0 && (i % stride < from || i % stride >= from + width)) continue;
      const double d = values[static_cast<size_t>(i)] - want[static_cast<size_t>(i)];
      difference += d * d;
      norm += want[static_cast<size_t>(i)] * want[static_cast<size_t>(i)];
    }
    const double error = std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
    const bool ok = error <= tolerance;
    rows_.push_back({{"operation", operation},
                     {"output", what},
                     {"relativeError", std::isfinite(error) ? Json(error) : Json("not a number")},
                     {"tolerance", tolerance},
                     {"ok", ok}});
    if (!ok) {
      char text[160];
      std::snprintf(text, sizeof text, "%s computes %s wrong here: relative error %.2g, allowed %.2g",
                    operation, what, error, tolerance);
      failures_.push_back(text);
    }
    if (ok && tolerance > 0) worst_ = std::max(worst_, error / tolerance);
  }
  void compare_act(const char* operation, const char* what, const Array& got, const Values& want,
                   double tolerance, i64 stride = 0, i64 from = 0, i64 width = 0) {
    compare(operation, what, got, backend_.act_dtype(), want, tolerance, stride, from, width);
  }

  void test_norm() {
    const i64 T = batch_.T;
    const Array x = act(T * H_), w = small(H_), dy = act(T * H_);
    Array y = act_output(T * H_), dx = act_output(T * H_), dw = sums(H_);
    Values y64 = zeros(T * H_), dx64 = zeros(T * H_), dw64 = zeros(H_);
    backend_.rmsnorm_fwd(y.device, x.device, w.f32(), T, H_, kEps);
    backend_.rmsnorm_bwd(dx.device, dw.f32(), dy.device, x.device, w.f32(), nullptr, T, H_, kEps);
    baseline::rmsnorm_fwd<double>(1, y64.data(), x.host.data(), w.host.data(), T, H_, kEps);
    baseline::rmsnorm_bwd<double>(1, dx64.data(), dw64.data(), dy.host.data(), x.host.data(), w.host.data(),
                                  nullptr, T, H_, kEps);
    compare_act("rmsnorm", "the normalised rows", y, y64, tolerance_.forward);
    compare_act("rmsnorm", "their gradient", dx, dx64, tolerance_.backward);
    compare("rmsnorm", "the weight's gradient", dw, DType::f32, dw64, tolerance_.sums);
  }

  void test_linear() {
    const i64 T = batch_.T, N = kColumns;
    const Array x = act(T * H_), dy = act(T * N);
    const Array w = random(N * H_, backend_.weight_dtype(), 1.0 / std::sqrt(double(H_)));
    Array y = act_output(T * N), dx = act_output(T * H_), dw = output(N * H_, DType::f32);
    Values y64 = zeros(T * N), dx64 = zeros(T * H_), dw64 = zeros(N * H_);
    backend_.linear_fwd(y.device, x.device, w.device, nullptr, T, N, H_);
    backend_.linear_bwd_data(dx.device, dy.device, w.device, T, N, H_);
    backend_.linear_bwd_weight(dw.device, DType::f32, dy.device, x.device, T, N, H_, false);
    baseline::linear_fwd<double>(1, y64.data(), x.host.data(), w.host.data(), nullptr, T, N, H_);
    baseline::linear_bwd_data<double>(1, dx64.data(), dy.host.data(), w.host.data(), T, N, H_);
    baseline::linear_bwd_weight<double>(1, dw64.data(), dy.host.data(), x.host.data(), T, N, H_, false);
    compare_act("linear", "the product", y, y64, tolerance_.forward);
    compare_act("linear", "the input's gradient", dx, dx64, tolerance_.backward);
    compare("linear", "the weight's gradient", dw, DType::f32, dw64, tolerance_.sums);
  }

  void test_delta_rule() {
    const GdnShape& s = gdn_;
    const i64 T = batch_.T, NC = batch_.num_chunk, HV = s.value_heads, K = s.key_dim, V = s.value_dim;
    const Array proj = act(T * s.proj_dim()), conv = small(s.conv_dim() * s.conv_taps);
    const Array a_log = small(HV), dt_bias = small(HV), d_o = act(T * s.values());
    Array prepared = act_output(T * s.conv_dim());
    Values prepared64 = zeros(T * s.conv_dim());
    backend_.gdn_prep_fwd(prepared.device, proj.device, conv.f32(), batch_, s);
    baseline::gdn_prep_fwd<double>(1, prepared64.data(), proj.host.data(), conv.host.data(), host_batch_, s);
    compare_act("conv_silu_l2norm", "queries, keys and values", prepared, prepared64, tolerance_.forward);

    const Array qkv = upload({prepared64.begin(), prepared64.end()}, backend_.act_dtype());
    Array g = output(NC * HV * kChunk, DType::f32), beta = output(NC * HV * kChunk, DType::f32);
    Array ar = act_output(NC * HV * kChunk * kChunk), o = act_output(T * s.values());
    Array state = act_output(NC * HV * K * V);
    Values g64 = zeros(NC * HV * kChunk), beta64 = g64, o64 = zeros(T * s.values());
    Values state64 = zeros(NC * HV * K * V);
    backend_.gdn_kkt_fwd(g.f32(), beta.f32(), ar.device, qkv.device, proj.device, a_log.f32(), dt_bias.f32(),
                         batch_, s);
    backend_.gdn_fwd(o.device, state.device, qkv.device, g.f32(), beta.f32(), ar.device, batch_, s);
    baseline::gdn_gates_fwd<double>(1, g64.data(), beta64.data(), proj.host.data(), a_log.host.data(),
                                    dt_bias.host.data(), host_batch_, s);
    baseline::gdn_fwd_recurrent<double>(1, o64.data(), state64.data(), qkv.host.data(), g64.data(),
                                        beta64.data(), host_batch_, s);
    compare("gated_delta_rule", "the gates", g, DType::f32, g64, tolerance_.forward);
    compare_act("gated_delta_rule", "its output", o, o64, tolerance_.forward);

    Array dq = act_output(T * HV * K), dk = act_output(T * HV * K), dv = act_output(T * s.values());
    Array d_gamma = output(NC * HV * kChunk, DType::f32), d_beta = output(NC * HV * kChunk, DType::f32);
    Array du = act_output(T * s.values()), ds = act_output(NC * HV * K * V);
    Values dq64 = zeros(T * HV * K), dk64 = dq64, dv64 = zeros(T * s.values());
    Values d_gamma64 = g64, d_beta64 = g64;
    backend_.gdn_bwd(dq.device, dk.device, dv.device, d_gamma.f32(), d_beta.f32(), du.device, ds.device,
                     d_o.device, qkv.device, g.f32(), beta.f32(), ar.device, state.device, batch_, s);
    baseline::gdn_bwd_recurrent<double>(1, dq64.data(), dk64.data(), dv64.data(), d_gamma64.data(),
                                        d_beta64.data(), d_o.host.data(), qkv.host.data(), g64.data(),
                                        beta64.data(), state64.data(), host_batch_, s);
    compare_act("gated_delta_rule", "the queries' gradient", dq, dq64, tolerance_.backward);
    compare_act("gated_delta_rule", "the keys' gradient", dk, dk64, tolerance_.backward);
    compare_act("gated_delta_rule", "the values' gradient", dv, dv64, tolerance_.backward);
  }

  void test_gated_norm() {
    const GdnShape& s = gdn_;
    const i64 T = batch_.T, V = s.values(), P = s.proj_dim();
    const Array o = act(T * V), proj = act(T * P), w = small(s.value_dim), dy = act(T * V);
    Array y = act_output(T * V), d_o = act_output(T * V), dproj = act_output(T * P), dw = sums(s.value_dim);
    Values y64 = zeros(T * V), d_o64 = y64, dproj64 = zeros(T * P), dw64 = zeros(s.value_dim);
    backend_.gated_norm_fwd(y.device, o.device, proj.device, w.f32(), T, s, kEps);
    backend_.gated_norm_bwd(d_o.device, dproj.device, dw.f32(), dy.device, o.device, proj.device, w.f32(), T,
                            s, kEps);
    baseline::gated_norm_fwd<double>(1, y64.data(), o.host.data(), proj.host.data(), w.host.data(), T, s,
                                     kEps);
    baseline::gated_norm_bwd<double>(1, d_o64.data(), dproj64.data(), dw64.data(), dy.host.data(),
                                     o.host.data(), proj.host.data(), w.host.data(), T, s, kEps);
    compare_act("gated_norm", "its output", y, y64, tolerance_.forward);
    compare_act("gated_norm", "the input's gradient", d_o, d_o64, tolerance_.backward);
    compare_act("gated_norm", "the gate's gradient", dproj, dproj64, tolerance_.backward, P, s.z_offset(), V);
  }

  void test_attention() {
    const AttnShape& s = attn_;
    const i64 T = batch_.T, Q = i64{s.heads} * s.head_dim, KV = i64{s.kv_heads} * s.head_dim;
    const Array proj = act(T * s.proj_dim()), wq = small(s.head_dim), wk = small(s.head_dim);
    std::vector<float> angles;
    for (i64 t = 0; t < T; ++t)
      for (i64 part = 0; part < 2; ++part)
        for (i64 i = 0; i < s.rotary_dim / 2; ++i) {
          const double angle = double(t) * std::pow(1e4, -2.0 * double(i) / s.rotary_dim);
          angles.push_back(static_cast<float>(part == 0 ? std::cos(angle) : std::sin(angle)));
        }
    const Array rope = upload(angles, DType::f32);
    Array q = act_output(T * Q), k = act_output(T * KV);
    Values q64 = zeros(T * Q), k64 = zeros(T * KV);
    backend_.qk_norm_rope_fwd(q.device, k.device, proj.device, wq.f32(), wk.f32(), rope.f32(), batch_, s,
                              kEps);
    baseline::qk_norm_rope_fwd<double>(1, q64.data(), k64.data(), proj.host.data(), wq.host.data(),
                                       wk.host.data(), rope.host.data(), host_batch_, s, kEps);
    compare_act("qk_norm_rope", "the queries", q, q64, tolerance_.forward);
    compare_act("qk_norm_rope", "the keys", k, k64, tolerance_.forward);

    const Array q_in = upload({q64.begin(), q64.end()}, backend_.act_dtype());
    const Array k_in = upload({k64.begin(), k64.end()}, backend_.act_dtype());
    const Array dy = act(T * Q);
    Array y = act_output(T * Q), o = act_output(T * Q), lse = output(s.heads * T, DType::f32);
    Values y64 = zeros(T * Q), o64 = y64, lse64 = zeros(s.heads * T);
    backend_.attention_fwd(y.device, o.device, lse.f32(), q_in.device, k_in.device, proj.device, batch_, s);
    baseline::attention_fwd<double>(1, y64.data(), o64.data(), lse64.data(), q_in.host.data(),
                                    k_in.host.data(), proj.host.data(), host_batch_, s);
    compare_act("attention", "its output", y, y64, tolerance_.forward);

    Array dq = act_output(T * Q), dk = act_output(T * KV), dproj = act_output(T * s.proj_dim());
    Array scratch = act_output(T * Q), delta = output(s.heads * T, DType::f32);
    Values dq64 = zeros(T * Q), dk64 = zeros(T * KV), dproj64 = zeros(T * s.proj_dim());
    Values scratch64 = zeros(T * Q), delta64 = zeros(s.heads * T);
    backend_.attention_bwd(dq.device, dk.device, dproj.device, scratch.device, delta.f32(), dy.device,
                           o.device, lse.f32(), q_in.device, k_in.device, proj.device, batch_, s);
    baseline::attention_bwd<double>(1, dq64.data(), dk64.data(), dproj64.data(), scratch64.data(),
                                    delta64.data(), dy.host.data(), o64.data(), lse64.data(),
                                    q_in.host.data(), k_in.host.data(), proj.host.data(), host_batch_, s);
    compare_act("attention", "the queries' gradient", dq, dq64, tolerance_.backward);
    compare_act("attention", "the keys' gradient", dk, dk64, tolerance_.backward);
    compare_act("attention", "the values' gradient", dproj, dproj64, tolerance_.backward, s.proj_dim(),
                s.v_offset(), KV);
  }

  void test_mlp() {
    const i64 T = batch_.T, I = kColumns;
    const Array gu = act(T * 2 * I), dact = act(T * I);
    Array y = act_output(T * I), dgu = act_output(T * 2 * I), again = act_output(T * I);
    Values y64 = zeros(T * I), dgu64 = zeros(T * 2 * I), again64 = y64;
    backend_.swiglu_fwd(y.device, gu.device, T, I);
    backend_.swiglu_bwd(dgu.device, again.device, dact.device, gu.device, T, I);
    baseline::swiglu_fwd<double>(1, y64.data(), gu.host.data(), T, I);
    baseline::swiglu_bwd<double>(1, dgu64.data(), again64.data(), dact.host.data(), gu.host.data(), T, I);
    compare_act("swiglu", "its output", y, y64, tolerance_.forward);
    compare_act("swiglu", "the input's gradient", dgu, dgu64, tolerance_.backward);
  }

  void test_embedding() {
    const i64 T = batch_.T;
    const Array table = random(kVocabulary * H_, backend_.weight_dtype()), dx = act(T * H_);
    Array x = act_output(T * H_), d_table = sums(kVocabulary * H_);
    Values x64 = zeros(T * H_), d_table64 = zeros(kVocabulary * H_);
    backend_.embedding_fwd(x.device, table.device, batch_, H_);
    backend_.embedding_bwd(d_table.device, DType::f32, dx.device, batch_, H_);
    baseline::embedding_fwd<double>(1, x64.data(), table.host.data(), host_batch_, H_);
    baseline::embedding_bwd<double>(1, d_table64.data(), dx.host.data(), host_batch_, H_);
    compare_act("embedding", "the rows", x, x64, tolerance_.forward);
    compare("embedding", "the table's gradient", d_table, DType::f32, d_table64, tolerance_.sums);
  }

  void test_cross_entropy() {
    const i64 rows = 64, V = kVocabulary;
    std::vector<i32> labels;
    for (i64 i = 0; i < rows; ++i)
      labels.push_back(i % 5 == 0 ? kIgnoreLabel : static_cast<i32>(random_() % kVocabulary));
    void* device_labels = allocate(labels.size() * sizeof(i32));
    backend_.copy_in(device_labels, labels.data(), labels.size() * sizeof(i32));
    Array z = act(rows * V, 2.0), nll = output(rows, DType::f32);
    Values z64 = z.host, nll64 = zeros(rows);
    backend_.cross_entropy(z.device, nll.f32(), static_cast<const i32*>(device_labels), rows, V, true);
    baseline::cross_entropy<double>(1, z64.data(), nll64.data(), labels.data(), rows, V, true);
    compare("cross_entropy", "the losses", nll, DType::f32, nll64, tolerance_.forward);
    compare_act("cross_entropy", "the logits' gradient", z, z64, tolerance_.backward);
  }

  void test_adamw() {
    const i64 count = 4096;
    const Array w = random(count, DType::f32), grad = random(count, DType::f32, 0.1);
    const Array m = random(count, DType::f32, 0.05), v = random(count, DType::f32, 0.001, 0.01);
    const StepScalars scalars{
        .lr = 1e-2f, .bias1 = 0.19f, .bias2 = 0.0975f, .inv_tokens = 1, .clip = 0, .seed = 0, .step = 2};
    const StepResult result{
        .loss_sum = 0, .squares = 0, .grad_norm = 1, .scale = 1, .finite = 1, .refused = 0};
    void* device_scalars = allocate(sizeof scalars);
    void* device_result = allocate(sizeof result);
    backend_.copy_in(device_scalars, &scalars, sizeof scalars);
    backend_.copy_in(device_result, &result, sizeof result);
    const AdamSegment segment{.param = w.device,
                              .master = nullptr,
                              .grad = grad.device,
                              .m = m.device,
                              .v = v.device,
                              .count = count,
                              .param_dtype = DType::f32,
                              .grad_dtype = DType::f32,
                              .state_dtype = DType::f32,
                              .weight_decay = 0.1f,
                              .rng_offset = 0};
    backend_.adamw({segment}, {0.9, 0.95, 1e-8, OptimizerMode::master32},
                   static_cast<const StepScalars*>(device_scalars),
                   static_cast<const StepResult*>(device_result));
    Values w64 = w.host;
    for (size_t i = 0; i < w64.size(); ++i) {
      const double m1 = 0.9 * m.host[i] + 0.1 * grad.host[i];
      const double v1 = 0.95 * v.host[i] + 0.05 * grad.host[i] * grad.host[i];
      const double step =
          double{scalars.lr} / scalars.bias1 * m1 / (std::sqrt(v1) / std::sqrt(double{scalars.bias2}) + 1e-8);
      w64[i] -= double{scalars.lr} * double{segment.weight_decay} * w64[i] + step;
    }
    compare("adamw", "the updated weights", w, DType::f32, w64, kF32.forward);
  }

  std::string message() const {
    if (!failures_.empty()) return failures_.front();
    char text[160];
    std::snprintf(text, sizeof text,
                  "%zu outputs of %s agree with fp64; the least exact takes %.0f %% of its tolerance",
                  rows_.size(), backend_.name().c_str(), worst_ * 100);
    return text;
  }

  Backend& backend_;
  const GdnShape gdn_;
  const AttnShape attn_;
  const i64 H_;
  const Tolerance tolerance_;
  std::mt19937_64 random_;
  std::vector<void*> memory_;
  std::vector<char> host_blob_;
  Batch batch_{}, host_batch_{};
  Json rows_ = Json::array();
  std::vector<std::string> failures_;
  double worst_ = 0;
};

}  // namespace

Json test_numerics(Backend& backend, const ModelConfig& config) { return SelfTest(backend, config).run(); }

}  // namespace tessera
