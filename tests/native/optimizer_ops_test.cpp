// Gradient norm and AdamW of the CPU backend against the formulas in double.
#include "core/error.h"
#include "ops_testing.h"

namespace tessera {
namespace {

using namespace testing;

struct Model {
  explicit Model(i64 count) : count(count) {
    param = random_array<float>(count, 1);
    m.assign(param.size(), 0.0f);
    v.assign(param.size(), 0.0f);
    grad.assign(param.size(), 0.0f);
  }
  AdamSegment segment(float weight_decay) {
    AdamSegment s{};
    s.param = param.data();
    s.grad = grad.data();
    s.m = m.data();
    s.v = v.data();
    s.count = count;
    s.param_dtype = s.grad_dtype = s.state_dtype = DType::f32;
    s.weight_decay = weight_decay;
    return s;
  }
  i64 count;
  Array<float> param, m, v, grad;
};

const AdamConfig kConfig{.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .mode = OptimizerMode::master32};

TEST(AdamW, FollowsTorchOverAHundredSteps) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  Model decayed(40000), plain(33);
  Array<double> p = cast<double>(decayed.param), m(p.size(), 0.0), v(p.size(), 0.0);
  const double lr = 1e-3, decay = 0.1, tokens = 50;
  for (i32 step = 1; step <= 100; ++step) {
    decayed.grad = random_array<float>(decayed.count, 100u + unsigned(step), 3.0);
    plain.grad = random_array<float>(plain.count, 300u + unsigned(step), 3.0);
    StepScalars scalars{};
    scalars.lr = float(lr);
    scalars.bias1 = float(1 - std::pow(0.9, step));
    scalars.bias2 = float(1 - std::pow(0.999, step));
    scalars.inv_tokens = float(1 / tokens);
    scalars.clip = 1.0f;
    scalars.step = step;
    StepResult result{};
    const std::vector<AdamSegment> segments = {decayed.segment(float(decay)), plain.segment(0)};
    backend->grad_norm(&result, segments, &scalars);
    backend->adamw(segments, kConfig, &scalars, &result);

    double sum = 0;
    for (const Array<float>* grad : {&decayed.grad, &plain.grad}) {
      for (const float g : *grad) sum += double(g) * double(g);
    }
    const double norm = std::sqrt(sum) / tokens, scale = std::min(1.0, 1.0 / (norm + 1e-6)) / tokens;
    EXPECT_NEAR(result.grad_norm, norm, 1e-6 * norm);
    EXPECT_NEAR(result.scale, scale, 1e-6 * scale);
    EXPECT_EQ(result.finite, 1);
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = decayed.grad[i] * scale;
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      p[i] -= lr * decay * p[i];
      p[i] -= lr / (1 - std::pow(0.9, step)) * m[i] / (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-8);
    }
  }
  EXPECT_LT(relative_error(decayed.param, p), 1e-6);
  EXPECT_LT(relative_error(decayed.m, m), 1e-5);
  EXPECT_LT(relative_error(decayed.v, v), 1e-5);
}

TEST(AdamW, NothingChangesWhereAGradientOrTheLossIsNotFinite) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf, 0.0f}) {
    Model model(20000);
    model.grad = random_array<float>(model.count, 9);
    StepResult result{};
    if (bad == 0.0f) {
      result.loss_sum = nan;
    } else {
      model.grad[17000] = bad;
    }
    const Model before = model;
    StepScalars scalars{};
    scalars.lr = scalars.bias1 = scalars.bias2 = scalars.inv_tokens = scalars.clip = 1.0f;
    const std::vector<AdamSegment> segments = {model.segment(0.1f)};
    backend->grad_norm(&result, segments, &scalars);
    EXPECT_EQ(result.finite, 0);
    backend->adamw(segments, kConfig, &scalars, &result);
    EXPECT_EQ(model.param, before.param);
    EXPECT_EQ(model.m, before.m);
    EXPECT_EQ(model.v, before.v);
    // A step submitted behind it, before anyone knew, is refused too, however good its own gradients are.
    const std::vector<float> good = random_array<float>(model.count, 9);
    std::copy(good.begin(), good.end(), model.grad.begin());  // in place: the segment points there
    result.loss_sum = 1.0;
    backend->grad_norm(&result, segments, &scalars);
    EXPECT_EQ(result.finite, 0);
    backend->adamw(segments, kConfig, &scalars, &result);
    EXPECT_EQ(model.param, before.param);
  }
}

TEST(AdamW, NoClippingWhereTheLimitIsZero) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  Model model(2);
  model.grad = {3, 4};
  StepScalars scalars{};
  scalars.inv_tokens = 0.5f;
  StepResult result{};
  backend->grad_norm(&result, {model.segment(0)}, &scalars);
  EXPECT_FLOAT_EQ(result.grad_norm, 2.5f);
  EXPECT_FLOAT_EQ(result.scale, 0.5f);
}

TEST(AdamW, RefusesStochasticRoundingAndHalfPrecision) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  Model model(2);
  StepScalars scalars{};
  StepResult result{};
  result.finite = 1;
  AdamConfig rounding = kConfig;
  rounding.mode = OptimizerMode::bf16sr;
  EXPECT_THROW(backend->adamw({model.segment(0)}, rounding, &scalars, &result), EngineError);
  AdamSegment half = model.segment(0);
  half.grad_dtype = DType::bf16;
  EXPECT_THROW(backend->grad_norm(&result, {half}, &scalars), EngineError);
}

}  // namespace
}  // namespace tessera
