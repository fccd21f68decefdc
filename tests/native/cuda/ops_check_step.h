// cuda_ops_check's groups head and optimizer: embedding, loss, norm of the gradients, AdamW.
#pragma once

#include "ops/optimizer/stochastic_rounding.h"
#include "ops_check.h"

namespace tessera::check {

inline void OpsCheck::head() {
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

  for (i64 V : {768, 4096, 4104, 16384, 16392, 151936, 248320}) {
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
inline void OpsCheck::large_logits() {
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
inline void OpsCheck::adamw_case(OptimizerMode mode) {
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
inline void OpsCheck::rounding_bias() {
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

inline void OpsCheck::optimizer() {
  adamw_case(OptimizerMode::master32);
  adamw_case(OptimizerMode::bf16sr);
  rounding_bias();
}

}  // namespace tessera::check
