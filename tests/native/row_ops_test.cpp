// Operations that work row by row: matrix products, norms, SwiGLU, embedding, row selection, cross-entropy.
#include "ops/cpu/ops.inc"
#include "ops_testing.h"

namespace tessera {
namespace {

using namespace testing;
namespace op = baseline;

constexpr double kEps = 1e-6;

TEST(Linear, MatchesPlainSumsAtEveryEdge) {
  for (const auto& [T, N, K] : std::vector<std::array<i64, 3>>{{1, 1, 1},
                                                               {5, 7, 3},
                                                               {97, 33, 257},
                                                               {200, 300, 600},
                                                               {1600, 5, 7},
                                                               {5, 1600, 7},
                                                               {5, 7, 2500},
                                                               {2500, 5, 7}}) {
    const Array<double> x = random_array(T * K, 1), w = random_array(N * K, 2), dy = random_array(T * N, 3);
    Array<double> y = poisoned(T * N), dx = poisoned(T * K), dw = poisoned(N * K);
    op::linear_fwd<double>(2, y.data(), x.data(), w.data(), nullptr, T, N, K);
    op::linear_bwd_data(2, dx.data(), dy.data(), w.data(), T, N, K);
    op::linear_bwd_weight(2, dw.data(), dy.data(), x.data(), T, N, K, false);
    Array<double> ey(y.size(), 0.0), edx(dx.size(), 0.0), edw(dw.size(), 0.0);
    for (i64 t = 0; t < T; ++t) {
      for (i64 n = 0; n < N; ++n) {
        for (i64 k = 0; k < K; ++k) {
          ey[size_t(t * N + n)] += x[size_t(t * K + k)] * w[size_t(n * K + k)];
          edx[size_t(t * K + k)] += dy[size_t(t * N + n)] * w[size_t(n * K + k)];
          edw[size_t(n * K + k)] += dy[size_t(t * N + n)] * x[size_t(t * K + k)];
        }
      }
    }
    EXPECT_LT(relative_error(y, ey), 1e-14);
    EXPECT_LT(relative_error(dx, edx), 1e-14);
    EXPECT_LT(relative_error(dw, edw), 1e-14);
    const Array<double> residual = random_array(T * N, 4);
    Array<double> with_residual = poisoned(T * N), twice = dw;
    op::linear_fwd(2, with_residual.data(), x.data(), w.data(), residual.data(), T, N, K);
    for (size_t i = 0; i < ey.size(); ++i) ey[i] += residual[i];
    EXPECT_LT(relative_error(with_residual, ey), 1e-14);
    op::linear_bwd_weight(2, twice.data(), dy.data(), x.data(), T, N, K, true);
    for (double& g : edw) g *= 2;
    EXPECT_LT(relative_error(twice, edw), 1e-14);
  }
}

TEST(RmsNorm, GradientsMatchFiniteDifferences) {
  const i64 rows = 131, H = 24;
  Array<double> x = random_array(rows * H, 1), w = random_array(H, 2, 0.3);
  const Array<double> dy = random_array(rows * H, 3), dres = random_array(rows * H, 4);
  const auto forward = [&] {
    Array<double> y = poisoned(rows * H);
    op::rmsnorm_fwd(1, y.data(), x.data(), w.data(), rows, H, kEps);
    return y;
  };
  const Array<double> y = forward();
  for (i64 t = 0; t < rows; ++t) {
    double sum = 0;
    for (i64 j = 0; j < H; ++j) sum += x[size_t(t * H + j)] * x[size_t(t * H + j)];
    const double scale = 1 / std::sqrt(sum / double(H) + kEps);
    for (i64 j = 0; j < H; ++j)
      ASSERT_NEAR(y[size_t(t * H + j)], x[size_t(t * H + j)] * scale * (1 + w[size_t(j)]), 1e-13);
  }
  Array<double> dx = poisoned(rows * H), dw(size_t(H), 0.0);
  op::rmsnorm_bwd<double>(1, dx.data(), dw.data(), dy.data(), x.data(), w.data(), nullptr, rows, H, kEps);
  const auto loss = [&] { return inner(forward(), dy); };
  expect_gradient("x", x, dx, loss);
  expect_gradient("w", w, dw, loss);
  Array<double> in_place = dres, more(size_t(H), 1.0);  // dres may be dx; dw adds
  op::rmsnorm_bwd(1, in_place.data(), more.data(), dy.data(), x.data(), w.data(), in_place.data(), rows, H,
                  kEps);
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(in_place[i], dx[i] + dres[i], 1e-13);
  for (size_t i = 0; i < dw.size(); ++i) ASSERT_NEAR(more[i], dw[i] + 1, 1e-12);
}

TEST(GatedNorm, GradientsMatchFiniteDifferences) {
  const GdnShape s{.key_heads = 1, .value_heads = 3, .key_dim = 4, .value_dim = 10, .conv_taps = 4};
  const i64 T = 70;
  Array<double> o = random_array(T * s.values(), 1), proj = random_array(T * s.proj_dim(), 2);
  Array<double> w = random_array(s.value_dim, 3);
  const Array<double> dy = random_array(T * s.values(), 4);
  const auto forward = [&] {
    Array<double> y = poisoned(T * s.values());
    op::gated_norm_fwd(1, y.data(), o.data(), proj.data(), w.data(), T, s, kEps);
    return y;
  };
  const Array<double> y = forward();
  double sum = 0;
  for (i64 j = 0; j < s.value_dim; ++j) sum += o[size_t(s.value_dim + j)] * o[size_t(s.value_dim + j)];
  const double z = proj[size_t(s.z_offset() + s.value_dim)];
  EXPECT_NEAR(
      y[size_t(s.value_dim)],
      w[0] * o[size_t(s.value_dim)] / std::sqrt(sum / double(s.value_dim) + kEps) * z / (1 + std::exp(-z)),
      1e-13);
  Array<double> d_o = poisoned(T * s.values()), dproj = poisoned(T * s.proj_dim()),
                dw(size_t(s.value_dim), 0.0);
  op::gated_norm_bwd(1, d_o.data(), dproj.data(), dw.data(), dy.data(), o.data(), proj.data(), w.data(), T, s,
                     kEps);
  for (i64 t = 0; t < T; ++t) {
    for (i64 j = 0; j < s.proj_dim(); ++j) {
      double& value = dproj[size_t(t * s.proj_dim() + j)];
      const bool gate = j >= s.z_offset() && j < s.b_offset();
      ASSERT_EQ(std::isnan(value), !gate) << "only the z slice is written";
      if (!gate) value = 0;
    }
  }
  const auto loss = [&] { return inner(forward(), dy); };
  expect_gradient("o", o, d_o, loss);
  expect_gradient("proj", proj, dproj, loss, 32);
  expect_gradient("w", w, dw, loss, 8);
}

TEST(SwiGlu, GradientsMatchFiniteDifferencesInPlaceToo) {
  const i64 T = 19, I = 21;
  Array<double> gu = random_array(T * 2 * I, 1);
  const Array<double> dact = random_array(T * I, 2);
  const auto forward = [&] {
    Array<double> act = poisoned(T * I);
    op::swiglu_fwd(1, act.data(), gu.data(), T, I);
    return act;
  };
  Array<double> dgu = poisoned(T * 2 * I), act = poisoned(T * I);
  op::swiglu_bwd(1, dgu.data(), act.data(), dact.data(), gu.data(), T, I);
  EXPECT_LT(relative_error(act, forward()), 1e-15);
  const double gate = gu[3], up = gu[size_t(I + 3)];
  EXPECT_NEAR(act[3], gate / (1 + std::exp(-gate)) * up, 1e-14);
  expect_gradient("gu", gu, dgu, [&] { return inner(forward(), dact); });
  Array<double> dgu_alone = poisoned(T * 2 * I);
  op::swiglu_bwd<double>(1, dgu_alone.data(), nullptr, dact.data(), gu.data(), T, I);
  EXPECT_EQ(dgu_alone, dgu);
  Array<double> gu_in_place = gu, dact_in_place = dact;
  op::swiglu_bwd(2, gu_in_place.data(), dact_in_place.data(), dact_in_place.data(), gu_in_place.data(), T, I);
  EXPECT_EQ(gu_in_place, dgu);
  EXPECT_EQ(dact_in_place, act);
}

TEST(Embedding, GathersAndAddsByToken) {
  const PackedBatch batch(kEdgeLengths, 20);
  const i64 H = 12, T = batch.T();
  const Array<double> table = random_array(20 * H, 1), dx = random_array(T * H, 2);
  Array<double> x = poisoned(T * H), d_table(table.size(), 0.25), expected(table.size(), 0.25);
  op::embedding_fwd(2, x.data(), table.data(), batch.view(), H);
  op::embedding_bwd(2, d_table.data(), dx.data(), batch.view(), H);
  for (i64 t = 0; t < T; ++t) {
    for (i64 j = 0; j < H; ++j) {
      ASSERT_EQ(x[size_t(t * H + j)], table[size_t(batch.tok[size_t(t)] * H + j)]);
      expected[size_t(batch.tok[size_t(t)] * H + j)] += dx[size_t(t * H + j)];
    }
  }
  EXPECT_LT(relative_error(d_table, expected), 1e-14);
}

TEST(Rows, GatherAndScatter) {
  const i64 H = 5, T = 6;
  const Array<double> src = random_array(T * H, 1);
  const std::vector<i32> row = {4, -1, 0, 5};
  Array<double> picked = poisoned(4 * H), back = poisoned(T * H);
  op::gather_rows(2, picked.data(), src.data(), row.data(), 4, H);
  op::scatter_rows(2, back.data(), picked.data(), row.data(), 4, T, H);
  for (i64 j = 0; j < H; ++j) {
    EXPECT_EQ(picked[size_t(j)], src[size_t(4 * H + j)]);
    EXPECT_EQ(picked[size_t(H + j)], 0);
    for (const i64 kept : {0, 4, 5}) EXPECT_EQ(back[size_t(kept * H + j)], src[size_t(kept * H + j)]);
    for (const i64 cleared : {1, 2, 3}) EXPECT_EQ(back[size_t(cleared * H + j)], 0);
  }
}

TEST(CrossEntropy, GradientsMatchFiniteDifferences) {
  const i64 rows = 11, V = 37;
  std::vector<i32> label;
  for (i64 t = 0; t < rows; ++t) label.push_back(t == 3 ? kIgnoreLabel : static_cast<i32>(t * 5 % V));
  for (const double scale : {1.0, 200.0}) {
    Array<double> z = random_array(rows * V, 1, scale);
    const auto nll = [&] {
      Array<double> logits = z, losses = poisoned(rows);
      op::cross_entropy(1, logits.data(), losses.data(), label.data(), rows, V, false);
      EXPECT_EQ(logits, z) << "without gradients the logits stay";
      return losses;
    };
    const Array<double> losses = nll();
    EXPECT_EQ(losses[3], 0);
    double sum = 0, high = -1e300;
    for (i64 v = 0; v < V; ++v) high = std::max(high, z[size_t(v)]);
    for (i64 v = 0; v < V; ++v) sum += std::exp(z[size_t(v)] - high);
    EXPECT_NEAR(losses[0], high + std::log(sum) - z[size_t(label[0])], 1e-12 * scale);
    Array<double> dz = z, again = poisoned(rows);
    op::cross_entropy(2, dz.data(), again.data(), label.data(), rows, V, true);
    EXPECT_EQ(again, losses);
    for (i64 v = 0; v < V; ++v) EXPECT_EQ(dz[size_t(3 * V + v)], 0);
    const Array<double> ones(size_t(rows), 1.0);
    if (scale == 1.0)
      expect_gradient(
          "z", z, dz, [&] { return inner(nll(), ones); }, 32);
  }
}

}  // namespace
}  // namespace tessera
