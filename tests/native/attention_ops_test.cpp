// Attention with what stands before it, from proj to y: values against plain softmax, gradients against
// finite differences in double.
#include "ops/cpu/ops.inc"
#include "ops_testing.h"

namespace tessera {
namespace {

using namespace testing;
namespace op = baseline;

const AttnShape kShape{.heads = 4, .kv_heads = 2, .head_dim = 16, .rotary_dim = 4};
constexpr double kEps = 1e-6;

Array<double> rope_table(i64 max_pos, const AttnShape& s) {
  const i64 half = s.rotary_dim / 2;
  Array<double> table(size_t(max_pos * s.rotary_dim));
  for (i64 p = 0; p < max_pos; ++p) {
    for (i64 j = 0; j < half; ++j) {
      const double angle = double(p) * std::pow(10.0, -2.0 * double(j) / s.rotary_dim);
      table[size_t(p * s.rotary_dim + j)] = std::cos(angle);
      table[size_t(p * s.rotary_dim + half + j)] = std::sin(angle);
    }
  }
  return table;
}

struct Layer {
  explicit Layer(const std::vector<i32>& lengths, double scale = 1.0)
      : batch(lengths),
        rope(rope_table(200, s)),
        proj(random_array(batch.T() * s.proj_dim(), 1, scale)),
        wq(random_array(s.head_dim, 2, 0.3)),
        wk(random_array(s.head_dim, 3, 0.3)) {}

  Array<double> forward(bool keep_o = true) {
    const i64 T = batch.T();
    q = poisoned(T * s.heads * s.head_dim);
    k = poisoned(T * s.kv_heads * s.head_dim);
    o = poisoned(T * s.heads * s.head_dim);
    lse = poisoned(s.heads * T);
    Array<double> y = poisoned(T * s.heads * s.head_dim);
    op::qk_norm_rope_fwd(1, q.data(), k.data(), proj.data(), wq.data(), wk.data(), rope.data(), batch.view(),
                         s, kEps);
    op::attention_fwd(1, y.data(), keep_o ? o.data() : nullptr, lse.data(), q.data(), k.data(), proj.data(),
                      batch.view(), s);
    return y;
  }
  void backward(const Array<double>& dy) {
    const i64 T = batch.T();
    dq = poisoned(T * s.heads * s.head_dim);
    dk = poisoned(T * s.kv_heads * s.head_dim);
    dproj = poisoned(T * s.proj_dim());
    dwq.assign(wq.size(), 0.0);
    dwk.assign(wk.size(), 0.0);
    Array<double> d_o = poisoned(T * s.heads * s.head_dim), delta = poisoned(s.heads * T);
    op::attention_bwd(1, dq.data(), dk.data(), dproj.data(), d_o.data(), delta.data(), dy.data(), o.data(),
                      lse.data(), q.data(), k.data(), proj.data(), batch.view(), s);
    op::qk_norm_rope_bwd(1, dproj.data(), dwq.data(), dwk.data(), dq.data(), dk.data(), proj.data(),
                         wq.data(), wk.data(), rope.data(), batch.view(), s, kEps);
  }
  // o of one head at one position, from q, k and proj
  Array<double> plain(i64 t, i64 h, double& line) const {
    const i64 D = s.head_dim, kv = h / (s.heads / s.kv_heads), begin = t - batch.pos[size_t(t)];
    Array<double> scores, out(size_t(D), 0.0);
    double high = -1e300, sum = 0;
    for (i64 u = begin; u <= t; ++u) {
      double score = 0;
      for (i64 j = 0; j < D; ++j) {
        score += q[size_t((t * s.heads + h) * D + j)] * k[size_t((u * s.kv_heads + kv) * D + j)];
      }
      scores.push_back(score / std::sqrt(double(D)));
      high = std::max(high, scores.back());
    }
    for (const double x : scores) sum += std::exp(x - high);
    line = high + std::log(sum);
    for (i64 u = begin; u <= t; ++u) {
      for (i64 j = 0; j < D; ++j) {
        out[size_t(j)] += std::exp(scores[size_t(u - begin)] - line) *
                          proj[size_t(u * s.proj_dim() + s.v_offset() + kv * D + j)];
      }
    }
    return out;
  }

  AttnShape s = kShape;
  PackedBatch batch;
  Array<double> rope, proj, wq, wk, q, k, o, lse;
  Array<double> dq, dk, dproj, dwq, dwk;
};

TEST(Attention, MatchesPlainSoftmax) {
  for (const double scale : {1.0, 1e3}) {
    Layer layer(kEdgeLengths, scale);
    const Array<double> y = layer.forward();
    const i64 D = layer.s.head_dim;
    for (i64 t = 0; t < layer.batch.T(); ++t) {
      for (i64 h = 0; h < layer.s.heads; ++h) {
        double line = 0;
        const Array<double> o = layer.plain(t, h, line);
        ASSERT_NEAR(layer.lse[size_t(h * layer.batch.T() + t)], line, 1e-11);
        for (i64 j = 0; j < D; ++j) {
          const size_t at = size_t((t * layer.s.heads + h) * D + j);
          const double gate = layer.proj[size_t(t * layer.s.proj_dim() + (2 * h + 1) * D + j)];
          ASSERT_NEAR(layer.o[at], o[size_t(j)], 1e-11 * scale);
          ASSERT_NEAR(y[at], o[size_t(j)] / (1 + std::exp(-gate)), 1e-11 * scale);
        }
      }
    }
    EXPECT_EQ(layer.forward(false), y) << "without o";
  }
}

TEST(Attention, NormAndRotationMatchTheirDefinition) {
  Layer layer({70, 3});
  layer.forward();
  const AttnShape& s = layer.s;
  const i64 D = s.head_dim, half = s.rotary_dim / 2;
  for (i64 t = 0; t < layer.batch.T(); ++t) {
    for (i64 h = 0; h < s.kv_heads; ++h) {
      const double* x = layer.proj.data() + t * s.proj_dim() + s.k_offset() + h * D;
      double sum = 0;
      for (i64 j = 0; j < D; ++j) sum += x[j] * x[j];
      Array<double> n;
      for (i64 j = 0; j < D; ++j)
        n.push_back(x[j] / std::sqrt(sum / double(D) + kEps) * (1 + layer.wk[size_t(j)]));
      for (i64 j = 0; j < D; ++j) {
        double expected = n[size_t(j)];
        if (j < 2 * half) {
          const double angle =
              layer.batch.pos[size_t(t)] * std::pow(10.0, -2.0 * double(j % half) / s.rotary_dim);
          const double other = j < half ? -n[size_t(j + half)] : n[size_t(j - half)];
          expected = n[size_t(j)] * std::cos(angle) + other * std::sin(angle);
        }
        ASSERT_NEAR(layer.k[size_t((t * s.kv_heads + h) * D + j)], expected, 1e-12);
      }
    }
  }
}

TEST(Attention, GradientsMatchFiniteDifferences) {
  Layer layer(kEdgeLengths);
  const Array<double> dy = random_array(layer.batch.T() * layer.s.heads * layer.s.head_dim, 5);
  layer.forward();
  layer.backward(dy);
  const auto loss = [&] { return inner(layer.forward(), dy); };
  expect_gradient("proj", layer.proj, layer.dproj, loss, 48);
  expect_gradient("wq", layer.wq, layer.dwq, loss, 8);
  expect_gradient("wk", layer.wk, layer.dwk, loss, 8);
}

}  // namespace
}  // namespace tessera
