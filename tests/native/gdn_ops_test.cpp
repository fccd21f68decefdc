// The gated delta rule with what stands before and after it: values against the plain recurrence, chunked
// against recurrent, gradients against finite differences in double, and gates at their extremes.
#include <functional>

#include "ops/cpu/ops.inc"
#include "ops_testing.h"

namespace tessera {
namespace {

using namespace testing;
namespace op = baseline;

const GdnShape kShape{.key_heads = 2, .value_heads = 6, .key_dim = 8, .value_dim = 12, .conv_taps = 4};

// Inputs of the rule itself: q, k, v packed as qkv, log decay and write strength per token and head.
struct Rule {
  Rule(const GdnShape& shape, const std::vector<i32>& lengths, double decay, unsigned seed)
      : s(shape), batch(lengths), qkv(random_array(batch.T() * s.conv_dim(), seed)) {
    gamma = random_array(i64{batch.T()} * s.value_heads, seed + 1, decay);
    strength = random_array(i64{batch.T()} * s.value_heads, seed + 2);
    for (double& x : gamma) x = -std::abs(x);
    for (double& x : strength) x = 1 / (1 + std::exp(-x));
    normalise_keys();
  }
  void normalise_keys() {
    for (i64 head = 0; head < i64{batch.T()} * 2 * s.key_heads; ++head) {
      const i64 t = head / (2 * s.key_heads), h = head % (2 * s.key_heads);
      double* x = qkv.data() + t * s.conv_dim() + h * s.key_dim;
      double sum = 1e-6;
      for (i64 j = 0; j < s.key_dim; ++j) sum += x[j] * x[j];
      for (i64 j = 0; j < s.key_dim; ++j) x[j] /= std::sqrt(sum);
    }
  }
  i64 T() const { return batch.T(); }
  i64 lines() const { return i64{batch.num_chunk()} * s.value_heads * kChunk; }

  GdnShape s;
  PackedBatch batch;
  Array<double> qkv, gamma, strength;
};

// Gates in the operations' layout [NC,HV,64]; unused chunks stay poisoned.
template <class Real>
void to_lines(const Rule& r, Array<Real>& g, Array<Real>& beta) {
  g = poisoned<Real>(r.lines());
  beta = poisoned<Real>(r.lines());
  for (i64 c = 0; c < r.batch.num_chunk(); ++c) {
    const Chunk chunk = r.batch.chunk[size_t(c)];
    for (i64 h = 0; chunk.count > 0 && h < r.s.value_heads; ++h) {
      double sum = 0;
      for (i64 i = 0; i < kChunk; ++i) {
        const size_t line = size_t((c * r.s.value_heads + h) * kChunk + i);
        const size_t token = size_t((chunk.begin + i) * r.s.value_heads + h);
        if (i < chunk.count) sum += r.gamma[token];
        g[line] = Real(sum);
        beta[line] = i < chunk.count ? Real(r.strength[token]) : Real(0);
      }
    }
  }
}

Array<double> from_lines(const Rule& r, const Array<double>& lines) {
  Array<double> tokens = poisoned(r.T() * r.s.value_heads);
  for (i64 c = 0; c < r.batch.num_chunk(); ++c) {
    const Chunk chunk = r.batch.chunk[size_t(c)];
    for (i64 h = 0; h < r.s.value_heads; ++h) {
      for (i64 i = 0; i < chunk.count; ++i) {
        tokens[size_t((chunk.begin + i) * r.s.value_heads + h)] =
            lines[size_t((c * r.s.value_heads + h) * kChunk + i)];
      }
    }
  }
  return tokens;
}

template <class Real>
struct Outputs {
  Array<Real> o, dq, dk, dv, d_gamma, d_beta;
};

// Forward, and backward from d_o where it is given.
template <class Real>
Outputs<Real> run(const Rule& r, GdnAlgorithm algorithm, const Array<double>& d_o64 = {}) {
  const int threads = 1;
  const bool backward = !d_o64.empty();
  const GdnShape& s = r.s;
  const Batch b = r.batch.view();
  Array<Real> g, beta;
  to_lines(r, g, beta);
  const Array<Real> qkv = cast<Real>(r.qkv), d_o = cast<Real>(d_o64);
  Array<Real> ar = poisoned<Real>(r.lines() * kChunk);
  Array<Real> state = poisoned<Real>(i64{b.num_chunk} * s.value_heads * s.key_dim * s.value_dim);
  Outputs<Real> out{poisoned<Real>(r.T() * s.values()),
                    poisoned<Real>(r.T() * s.value_heads * s.key_dim),
                    poisoned<Real>(r.T() * s.value_heads * s.key_dim),
                    poisoned<Real>(r.T() * s.values()),
                    poisoned<Real>(r.lines()),
                    poisoned<Real>(r.lines())};
  if (algorithm == GdnAlgorithm::chunked) {
    op::gdn_kkt_fwd(threads, ar.data(), qkv.data(), beta.data(), b, s);
    op::gdn_fwd_chunked(threads, out.o.data(), state.data(), qkv.data(), g.data(), beta.data(), ar.data(), b,
                        s);
    if (!backward) return out;
    op::gdn_bwd_chunked(threads, out.dq.data(), out.dk.data(), out.dv.data(), out.d_gamma.data(),
                        out.d_beta.data(), d_o.data(), qkv.data(), g.data(), beta.data(), ar.data(),
                        state.data(), b, s);
  } else {
    op::gdn_fwd_recurrent(threads, out.o.data(), state.data(), qkv.data(), g.data(), beta.data(), b, s);
    if (!backward) return out;
    op::gdn_bwd_recurrent(threads, out.dq.data(), out.dk.data(), out.dv.data(), out.d_gamma.data(),
                          out.d_beta.data(), d_o.data(), qkv.data(), g.data(), beta.data(), state.data(), b,
                          s);
  }
  for (Array<Real>* lines : {&out.d_gamma, &out.d_beta}) {  // unused chunks must have stayed untouched
    for (i64 i = 0; i < 3 * s.value_heads * kChunk; ++i) {
      Real& spare = (*lines)[lines->size() - 1 - size_t(i)];
      EXPECT_TRUE(std::isnan(spare));
      spare = 0;
    }
  }
  return out;
}

// S_t = e^gamma S + k delta^T, delta = beta (v - (e^gamma S)^T k), o = S^T q / sqrt(K), written out plainly.
Array<double> plain_recurrence(const Rule& r) {
  const GdnShape& s = r.s;
  Array<double> o(size_t(r.T() * s.values()));
  for (size_t n = 0; n + 1 < r.batch.cu.size(); ++n) {
    for (i64 h = 0; h < s.value_heads; ++h) {
      Array<double> S(size_t(s.key_dim * s.value_dim), 0.0);
      for (i64 t = r.batch.cu[n]; t < r.batch.cu[n + 1]; ++t) {
        const double* q = r.qkv.data() + t * s.conv_dim() + h / s.group() * s.key_dim;
        const double* k = q + s.keys();
        const double* v = r.qkv.data() + t * s.conv_dim() + 2 * s.keys() + h * s.value_dim;
        const size_t token = size_t(t * s.value_heads + h);
        for (double& x : S) x *= std::exp(r.gamma[token]);
        for (i64 j = 0; j < s.value_dim; ++j) {
          double read = 0;
          for (i64 i = 0; i < s.key_dim; ++i) read += S[size_t(i * s.value_dim + j)] * k[i];
          const double delta = r.strength[token] * (v[j] - read);
          double value = 0;
          for (i64 i = 0; i < s.key_dim; ++i) {
            S[size_t(i * s.value_dim + j)] += k[i] * delta;
            value += S[size_t(i * s.value_dim + j)] * q[i];
          }
          o[size_t(t * s.values() + h * s.value_dim + j)] = value / std::sqrt(double(s.key_dim));
        }
      }
    }
  }
  return o;
}

void expect_close(const Outputs<double>& a, const Outputs<double>& b, double tolerance) {
  EXPECT_LT(relative_error(a.o, b.o), tolerance);
  EXPECT_LT(relative_error(a.dq, b.dq), tolerance);
  EXPECT_LT(relative_error(a.dk, b.dk), tolerance);
  EXPECT_LT(relative_error(a.dv, b.dv), tolerance);
  EXPECT_LT(relative_error(a.d_gamma, b.d_gamma), tolerance);
  EXPECT_LT(relative_error(a.d_beta, b.d_beta), tolerance);
}

Outputs<double> widen(const Outputs<float>& x) {
  return {cast<double>(x.o),  cast<double>(x.dq),      cast<double>(x.dk),
          cast<double>(x.dv), cast<double>(x.d_gamma), cast<double>(x.d_beta)};
}

void expect_algorithms_agree(const Rule& r, double tolerance32 = 1e-5) {
  const Array<double> d_o = random_array(r.T() * r.s.values(), 77);
  const Outputs<double> recurrent = run<double>(r, GdnAlgorithm::recurrent, d_o);
  ASSERT_TRUE(all_finite(recurrent.o) && all_finite(recurrent.dk) && all_finite(recurrent.d_gamma));
  EXPECT_LT(relative_error(recurrent.o, plain_recurrence(r)), 1e-12);
  expect_close(run<double>(r, GdnAlgorithm::chunked, d_o), recurrent, 1e-12);
  expect_close(widen(run<float>(r, GdnAlgorithm::chunked, d_o)), recurrent, tolerance32);
  expect_close(widen(run<float>(r, GdnAlgorithm::recurrent, d_o)), recurrent, tolerance32);
}

TEST(GatedDeltaRule, ChunkedEqualsRecurrentEqualsDefinition) {
  expect_algorithms_agree(Rule(kShape, kEdgeLengths, 0.5, 3));
  expect_algorithms_agree(Rule({1, 1, 16, 16, 4}, {200}, 0.05, 4));
  expect_algorithms_agree(Rule({2, 2, 128, 128, 4}, {70, 5}, 0.1, 5));
}

TEST(GatedDeltaRule, GradientsMatchFiniteDifferences) {
  Rule r(kShape, kEdgeLengths, 0.5, 11);
  const Array<double> d_o = random_array(r.T() * r.s.values(), 12);
  for (const GdnAlgorithm algorithm : {GdnAlgorithm::chunked, GdnAlgorithm::recurrent}) {
    const Outputs<double> out = run<double>(r, algorithm, d_o);
    const auto loss = [&] { return inner(run<double>(r, algorithm).o, d_o); };
    Array<double> d_qkv(r.qkv.size(), 0.0);
    const i64 HV = r.s.value_heads, K = r.s.key_dim, CQ = r.s.conv_dim();
    for (i64 t = 0; t < r.T(); ++t) {
      for (i64 h = 0; h < HV; ++h) {
        for (i64 j = 0; j < K; ++j) {
          d_qkv[size_t(t * CQ + h / r.s.group() * K + j)] += out.dq[size_t((t * HV + h) * K + j)];
          d_qkv[size_t(t * CQ + r.s.keys() + h / r.s.group() * K + j)] +=
              out.dk[size_t((t * HV + h) * K + j)];
        }
      }
      for (i64 j = 0; j < r.s.values(); ++j) {
        d_qkv[size_t(t * CQ + 2 * r.s.keys() + j)] = out.dv[size_t(t * r.s.values() + j)];
      }
    }
    expect_gradient("qkv", r.qkv, d_qkv, loss, 24);
    expect_gradient("gamma", r.gamma, from_lines(r, out.d_gamma), loss);
    expect_gradient("beta", r.strength, from_lines(r, out.d_beta), loss);
  }
}

TEST(GatedDeltaRule, GatesAtTheirExtremes) {
  for (const double decay : {-20.0, -1e-6}) {
    for (const double strength : {0.0, 1.0, 0.5}) {
      Rule r(kShape, kEdgeLengths, 0.5, 21);
      for (double& x : r.gamma) x = decay;
      for (double& x : r.strength) x = strength;
      SCOPED_TRACE(::testing::Message() << "decay " << decay << " strength " << strength);
      expect_algorithms_agree(r, 3e-5);
    }
  }
}

TEST(GatedDeltaRule, IdenticalKeysAndZeroVectors) {
  Rule same(kShape, kEdgeLengths, 1e-3, 31);
  for (i64 t = 1; t < same.T(); ++t) {
    for (i64 j = 0; j < same.s.keys(); ++j) {
      same.qkv[size_t(t * same.s.conv_dim() + same.s.keys() + j)] = same.qkv[size_t(same.s.keys() + j)];
    }
  }
  for (double& x : same.strength)
    x = 0.9;  // at 1 the true d_gamma is 0 and no relative error is left to compare
  expect_algorithms_agree(same, 1e-4);
  Rule zero(kShape, kEdgeLengths, 0.5, 32);
  for (i64 t = 0; t < zero.T(); t += 3) {
    for (i64 j = 0; j < 2 * zero.s.keys(); ++j) zero.qkv[size_t(t * zero.s.conv_dim() + j)] = 0;
  }
  expect_algorithms_agree(zero);
}

// The layer's part from proj to o, as the step runs it.
struct Layer {
  explicit Layer(const std::vector<i32>& lengths)
      : batch(lengths),
        proj(random_array(batch.T() * s.proj_dim(), 41)),
        conv_w(random_array(s.conv_dim() * s.conv_taps, 42, 0.5)),
        a_log(random_array(s.value_heads, 43, 0.5)),
        dt_bias(random_array(s.value_heads, 44, 0.5)) {}
  i64 lines() const { return i64{batch.num_chunk()} * s.value_heads * kChunk; }

  Array<double> forward() {
    const Batch b = batch.view();
    qkv = poisoned(batch.T() * s.conv_dim());
    g = poisoned(lines());
    beta = poisoned(lines());
    ar = poisoned(lines() * kChunk);
    state = poisoned(i64{b.num_chunk} * s.value_heads * s.key_dim * s.value_dim);
    Array<double> o = poisoned(batch.T() * s.values());
    op::gdn_prep_fwd(1, qkv.data(), proj.data(), conv_w.data(), b, s);
    op::gdn_gates_fwd(1, g.data(), beta.data(), proj.data(), a_log.data(), dt_bias.data(), b, s);
    op::gdn_kkt_fwd(1, ar.data(), qkv.data(), beta.data(), b, s);
    op::gdn_fwd_chunked(1, o.data(), state.data(), qkv.data(), g.data(), beta.data(), ar.data(), b, s);
    return o;
  }
  void backward(const Array<double>& d_o) {
    const Batch b = batch.view();
    Array<double> dq = poisoned(batch.T() * s.value_heads * s.key_dim), dk = dq,
                  dv = poisoned(batch.T() * s.values());
    Array<double> d_gamma = poisoned(lines()), d_beta = poisoned(lines());
    dproj = poisoned(batch.T() * s.proj_dim());
    d_conv_w.assign(conv_w.size(), 0.5);
    d_a_log.assign(a_log.size(), 0.5);
    d_dt_bias.assign(dt_bias.size(), 0.5);
    op::gdn_bwd_chunked(1, dq.data(), dk.data(), dv.data(), d_gamma.data(), d_beta.data(), d_o.data(),
                        qkv.data(), g.data(), beta.data(), ar.data(), state.data(), b, s);
    op::gdn_prep_bwd(1, dproj.data(), d_conv_w.data(), d_a_log.data(), d_dt_bias.data(), dq.data(), dk.data(),
                     dv.data(), d_gamma.data(), d_beta.data(), proj.data(), beta.data(), conv_w.data(),
                     a_log.data(), dt_bias.data(), b, s);
    for (Array<double>* sum : {&d_conv_w, &d_a_log, &d_dt_bias}) {  // they add to what was there
      for (double& x : *sum) x -= 0.5;
    }
  }

  GdnShape s = kShape;
  PackedBatch batch;
  Array<double> proj, conv_w, a_log, dt_bias, qkv, g, beta, ar, state;
  Array<double> dproj, d_conv_w, d_a_log, d_dt_bias;
};

TEST(GdnLayer, GradientsMatchFiniteDifferences) {
  Layer layer(kEdgeLengths);
  const Array<double> d_o = random_array(layer.batch.T() * layer.s.values(), 45);
  layer.forward();
  layer.backward(d_o);
  for (i64 t = 0; t < layer.batch.T(); ++t) {  // the z slice belongs to the gated norm
    for (i64 j = layer.s.z_offset(); j < layer.s.b_offset(); ++j) {
      double& untouched = layer.dproj[size_t(t * layer.s.proj_dim() + j)];
      ASSERT_TRUE(std::isnan(untouched));
      untouched = 0;
    }
  }
  const auto loss = [&] { return inner(layer.forward(), d_o); };
  expect_gradient("proj", layer.proj, layer.dproj, loss, 48);
  expect_gradient("conv_w", layer.conv_w, layer.d_conv_w, loss, 24);
  expect_gradient("a_log", layer.a_log, layer.d_a_log, loss);
  expect_gradient("dt_bias", layer.dt_bias, layer.d_dt_bias, loss);
}

TEST(GdnLayer, ConvolutionAndNormMatchTheirDefinition) {
  Layer layer({5, 1, 70});
  layer.forward();
  const GdnShape& s = layer.s;
  for (i64 t = 0; t < layer.batch.T(); ++t) {
    Array<double> silu(size_t(s.conv_dim()));
    for (i64 c = 0; c < s.conv_dim(); ++c) {
      double p = 0;
      for (i64 j = 0; j < 4; ++j) {
        if (layer.batch.pos[size_t(t)] - (3 - j) < 0) continue;
        p += layer.conv_w[size_t(c * 4 + j)] * layer.proj[size_t((t - 3 + j) * s.proj_dim() + c)];
      }
      silu[size_t(c)] = p / (1 + std::exp(-p));
    }
    for (i64 c = 0; c < s.conv_dim(); ++c) {
      double scale = 1;
      if (c < 2 * s.keys()) {
        double sum = 1e-6;
        for (i64 j = c / s.key_dim * s.key_dim; j < (c / s.key_dim + 1) * s.key_dim; ++j) {
          sum += silu[size_t(j)] * silu[size_t(j)];
        }
        scale = 1 / std::sqrt(sum);
      }
      ASSERT_NEAR(layer.qkv[size_t(t * s.conv_dim() + c)], silu[size_t(c)] * scale, 1e-13);
    }
  }
}

// rsqrt(sum + 1e-6) at zero is 1000: a zero key gets a large, finite gradient.
TEST(GdnLayer, ZeroKeyHasFiniteGradient) {
  Layer layer({1});
  const GdnShape& s = layer.s;
  std::fill(layer.proj.begin(), layer.proj.end(), 0.0);
  layer.forward();
  const i64 HV = s.value_heads;
  Array<double> dq = random_array(HV * s.key_dim, 51), dk = random_array(HV * s.key_dim, 52);
  Array<double> dv(size_t(s.values()), 0.0), zeros(size_t(layer.lines()), 0.0);
  Array<double> dproj = poisoned(s.proj_dim()), d_conv(layer.conv_w.size(), 0.0), d_a(size_t(HV), 0.0),
                d_dt = d_a;
  op::gdn_prep_bwd(1, dproj.data(), d_conv.data(), d_a.data(), d_dt.data(), dq.data(), dk.data(), dv.data(),
                   zeros.data(), zeros.data(), layer.proj.data(), layer.beta.data(), layer.conv_w.data(),
                   layer.a_log.data(), layer.dt_bias.data(), layer.batch.view(), s);
  for (i64 c = 0; c < s.keys(); ++c) {
    double up = 0;
    for (i64 g = 0; g < s.group(); ++g)
      up += dk[size_t((c / s.key_dim * s.group() + g) * s.key_dim + c % s.key_dim)];
    const double expected = layer.conv_w[size_t((s.keys() + c) * 4 + 3)] * 0.5 * 1000 * up;
    EXPECT_NEAR(dproj[size_t(s.keys() + c)], expected, 1e-9 * std::abs(expected));
  }
}

}  // namespace
}  // namespace tessera
