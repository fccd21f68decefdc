// The step executor: same gradients whatever the policy, the threads and the split into micro-batches.
#include "model/executor.h"

#include <cmath>

#include "core/dtype.h"
#include "model/profiled_backend.h"
#include "support.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::Packed;
using testing::SmallRun;

std::vector<float> gradients(ExecutorOptions options, int threads, const Packed& packed) {
  SmallRun run(options, threads);
  run.executor->run_micro_batch(packed.sequences(), true);
  return run.all(Field::gradient);
}

TEST(Executor, GradientsDoNotDependOnWhatIsComputedAgain) {
  const Packed packed({5, 64, 1, 130, 65});
  const auto full = gradients({.policy = RecomputePolicy::full}, 1, packed);
  double sum = 0;
  for (const float g : full) sum += std::abs(g);
  ASSERT_GT(sum, 1.0);
  for (const auto policy : {RecomputePolicy::p1, RecomputePolicy::p2, RecomputePolicy::p0})
    EXPECT_EQ(gradients({.policy = policy}, 1, packed), full) << static_cast<int>(policy);
  EXPECT_EQ(gradients({.policy = RecomputePolicy::p0, .keep_all = false}, 1, packed), full);
}

TEST(Executor, GradientsDoNotDependOnThreads) {
  const Packed packed({5, 64, 1, 130, 65});
  EXPECT_EQ(gradients({}, 1, packed), gradients({}, 2, packed));
}

TEST(Executor, PoliciesTradeMemory) {
  const auto activations = [](RecomputePolicy policy, bool keep_all = true) {
    const ModelConfig config = parse_config(testing::small_config(), "small");
    const Layout layout = make_layout(config, "model.");
    const auto backend = make_cpu_backend({});
    return Executor(*backend, config, layout, {.policy = policy, .keep_all = keep_all, .batch = {400, 16}})
        .plan()
        .activations;
  };
  EXPECT_LT(activations(RecomputePolicy::full), activations(RecomputePolicy::p1));
  EXPECT_LT(activations(RecomputePolicy::p1), activations(RecomputePolicy::p2));
  EXPECT_LT(activations(RecomputePolicy::p2), activations(RecomputePolicy::p0, false));
  EXPECT_LT(activations(RecomputePolicy::p0, false), activations(RecomputePolicy::p0));
}

double relative(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

TEST(Executor, CompactionAndLogitChunksChangeNothingButTheOrderOfSums) {
  const Packed packed({5, 64, 1, 130, 65});
  const auto plain = gradients({.compaction = false}, 1, packed);
  EXPECT_LT(relative(gradients({.compaction = true}, 1, packed), plain), 1e-6);
  EXPECT_LT(relative(gradients({.head_rows = 37, .compaction = true}, 1, packed), plain), 1e-6);
  EXPECT_LT(relative(gradients({.head_rows = 37, .compaction = false}, 1, packed), plain), 1e-6);
}

// Sums 6 over 3 tokens and 6 over 1 token make a loss of 3.0, not the mean of 2.0 and 6.0.
TEST(Executor, AccumulationDividesBySupervisedTokensOfTheWholeStep) {
  const Packed packed({40, 9, 100, 3});
  SmallRun together, apart({.accumulates = true});
  together.executor->run_micro_batch(packed.sequences(), true);
  apart.executor->run_micro_batch(packed.sequences(0, 1), true);
  apart.executor->run_micro_batch(packed.sequences(1, 3), false);
  ASSERT_NE(packed.targets(0, 1), packed.targets(1, 3));
  const auto scalars = SmallRun::scalars(packed.targets());
  const StepResult one = together.executor->result(together.executor->measure(scalars));
  const StepResult two = apart.executor->result(apart.executor->measure(scalars));
  EXPECT_NEAR(one.loss_sum / two.loss_sum, 1.0, 1e-6);
  EXPECT_NEAR(one.grad_norm / two.grad_norm, 1.0, 1e-5);
  EXPECT_LT(relative(apart.all(Field::gradient), together.all(Field::gradient)), 1e-5);
  // The first micro-batch of the next step starts afresh.
  apart.executor->run_micro_batch(packed.sequences(), true);
  EXPECT_EQ(apart.all(Field::gradient), together.all(Field::gradient));
}

TEST(Executor, PaddingOfAPlacementIsComputedButTeachesNothing) {
  const Packed packed({40, 9});
  SmallRun plain, padded;
  plain.executor->run_micro_batch(packed.sequences(), true);
  auto sequences = packed.sequences();
  sequences[1].computed = 40;
  padded.executor->run_micro_batch(sequences, true);
  EXPECT_LT(relative(padded.all(Field::gradient), plain.all(Field::gradient)), 1e-6);
}

TEST(Executor, ANanGradientChangesNothingAndIsLocated) {
  const Packed packed({40, 9});
  SmallRun run;
  const TensorEntry& bad = *run.layout.find("model.layers.1.mlp.down_proj.weight");
  auto values = run.executor->parameters().read(bad, Field::weight);
  values[3] = std::nanf("");
  run.executor->parameters().write(bad, Field::weight, values.data());
  const auto bits = [&](Field field) {
    std::vector<std::uint32_t> out;
    for (const float v : run.all(field)) out.push_back(std::bit_cast<std::uint32_t>(v));
    return out;
  };
  const auto weights = bits(Field::weight), m = bits(Field::m), v = bits(Field::v);
  const StepResult result = run.executor->result(
      run.executor->run_last_micro_batch(packed.sequences(), true, SmallRun::scalars(packed.targets())));
  EXPECT_EQ(result.finite, 0);
  EXPECT_EQ(bits(Field::weight), weights);
  EXPECT_EQ(bits(Field::m), m);
  EXPECT_EQ(bits(Field::v), v);
  EXPECT_EQ(run.executor->find_non_finite(), "the forward pass of layer 1");
}

TEST(Executor, LearnsAndAGlobalNormIsClipped) {
  const Packed packed({40, 60});
  SmallRun run;
  double first = 0, last = 0;
  for (i32 step = 1; step <= 30; ++step) {
    const StepResult r = run.executor->result(run.executor->run_last_micro_batch(
        packed.sequences(), true, SmallRun::scalars(packed.targets(), step)));
    last = r.loss_sum / static_cast<double>(packed.targets());
    if (step == 1) {
      first = last;
      EXPECT_NEAR(r.scale * static_cast<float>(packed.targets()),
                  std::min(1.0f, 1.0f / (r.grad_norm + 1e-6f)), 1e-5);
    }
  }
  EXPECT_LT(last, 0.3 * first);
}

// Gradients of matrices rounded to bf16, as where the CUDA backend keeps them so.
class NarrowGradients : public ProfiledBackend {
 public:
  using ProfiledBackend::ProfiledBackend;
  void linear_bwd_weight(void* dw, DType grad, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                         bool accumulate) override {
    inner_.linear_bwd_weight(dw, grad, dy, x, T, N, K, accumulate);
    std::vector<std::uint16_t> narrow(static_cast<size_t>(N * K));
    from_f32(narrow.data(), DType::bf16, static_cast<const float*>(dw), N * K);
    to_f32(static_cast<float*>(dw), narrow.data(), DType::bf16, N * K);
  }
};

TEST(Executor, LearnsAlikeFromGradientsInBf16) {
  const Packed packed({5, 64, 1, 130, 65});
  SmallRun wide;
  NarrowGradients backend(*wide.backend);
  Executor narrow(backend, wide.config, wide.layout, wide.executor->options());
  narrow.allocate();
  for (const TensorEntry& t : wide.layout.tensors)
    narrow.parameters().write(t, Field::weight, wide.executor->parameters().read(t, Field::weight).data());
  double first = 0, last = 0, apart = 0;
  for (i32 step = 1; step <= 40; ++step) {
    const auto loss = [&](Executor& e) {
      return e.result(
                  e.run_last_micro_batch(packed.sequences(), true, SmallRun::scalars(packed.targets(), step)))
                 .loss_sum /
             static_cast<double>(packed.targets());
    };
    last = loss(*wide.executor);
    if (step == 1) first = last;
    apart = std::max(apart, std::abs(loss(narrow) - last));
  }
  EXPECT_GT(first - last, 3);  // 3.79 to 0.03
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, 0.05 * (first - last));  // 0.066, in the steepest part
}

// Its graphs are what the CPU recorded; what it launches is counted.
class WithGraphs : public ProfiledBackend {
 public:
  using ProfiledBackend::ProfiledBackend;
  bool fixed_shapes() const override { return true; }
  void launch(int graph) override {
    ++launches;
    inner_.launch(graph);
  }
  i64 launches = 0;
};

TEST(Executor, AStepIsOneLaunchAMicroBatch) {
  const Packed packed({40, 9, 20});
  SmallRun eager({.batch = {128, 4}, .accumulates = true});
  WithGraphs backend(*eager.backend);
  Executor graphs(backend, eager.config, eager.layout, eager.executor->options());
  graphs.allocate();
  for (const TensorEntry& t : eager.layout.tensors)
    graphs.parameters().write(t, Field::weight, eager.executor->parameters().read(t, Field::weight).data());
  for (i32 step = 1; step <= 8; ++step) {
    const bool two = step > 4;  // micro-batches; the first step of either kind is eager
    const auto take = [&](Executor& e) {
      if (two) e.run_micro_batch(packed.sequences(0, 1), true);
      return e.result(e.run_last_micro_batch(two ? packed.sequences(1, 2) : packed.sequences(), !two,
                                             SmallRun::scalars(packed.targets(), step)));
    };
    const i64 before = backend.launches;
    const StepResult got = take(graphs), want = take(*eager.executor);
    EXPECT_EQ(backend.launches - before, step == 1 || step == 5 ? 0 : two ? 2 : 1) << "step " << step;
    EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-4 * want.loss_sum) << "step " << step;
    EXPECT_NEAR(got.grad_norm, want.grad_norm, 1e-4 * want.grad_norm) << "step " << step;
  }
}

TEST(Executor, EvaluationLeavesParametersAndAgreesWithTraining) {
  const Packed packed({40, 9, 100});
  SmallRun run;
  const auto before = run.all(Field::weight);
  const double evaluated = run.executor->result(run.executor->evaluate(packed.sequences())).loss_sum;
  run.executor->run_micro_batch(packed.sequences(), true);
  EXPECT_EQ(run.executor->result(run.executor->measure(SmallRun::scalars(1))).loss_sum, evaluated);
  EXPECT_EQ(run.all(Field::weight), before);
}

TEST(Batch, RefusesWhatDoesNotFit) {
  SmallRun run({.batch = {64, 2}});
  expect_error("batch_too_large", "65 tokens", [&] {
    run.executor->run_micro_batch(Packed({40, 25}).sequences(), true);
  });
  expect_error("batch_too_large", "3 sequences", [&] {
    run.executor->run_micro_batch(Packed({5, 5, 5}).sequences(), true);
  });
  expect_error("invalid_token", "position 1: id 99", [&] {
    const std::vector<i32> ids = {1, 99}, labels = {kIgnoreLabel, kIgnoreLabel};
    const std::vector<Sequence> sequences = {{ids, labels, 2}};
    run.executor->run_micro_batch(sequences, true);
  });
}

// Under fixed shapes every array is filled to its capacity, and the tail is unsupervised sequences of its
// own.
TEST(Batch, FillsTheTailUnderFixedShapes) {
  const BatchLayout layout{9000, 6};
  std::vector<char> blob(layout.bytes());
  const Packed packed({70, 30});
  const BatchShape shape = fill_batch(layout, {true, true, 40}, packed.sequences(), blob.data());
  EXPECT_EQ(shape.T, 9000);
  EXPECT_EQ(shape.num_seq, 6);
  EXPECT_EQ(shape.num_chunk, layout.chunks());
  EXPECT_EQ(shape.num_loss, 512);
  const Batch b = layout.view(blob.data(), shape, true);
  EXPECT_EQ(std::vector<i32>(b.cu, b.cu + 7), (std::vector<i32>{0, 70, 100, 4196, 8292, 9000, 9000}));
  EXPECT_EQ(b.pos[100], 0);
  EXPECT_EQ(b.seq_end[4195], 4196);
  EXPECT_EQ(b.chunk[0].flags, 1);
  EXPECT_EQ(b.chunk[1].count, 6);
  EXPECT_EQ(b.chunk[1].flags, 2);
  EXPECT_EQ(b.seq_chunk[5].begin, b.seq_chunk[5].end);
  // The longest first: two of 4,096 positions, the rest of the tail, then the sequences of 70 and 30.
  for (i32 n = 0; n + 1 < 6; ++n)
    EXPECT_GE(b.seq_chunk[n].end - b.seq_chunk[n].begin, b.seq_chunk[n + 1].end - b.seq_chunk[n + 1].begin);
  EXPECT_EQ(b.seq_chunk[3].begin, 0);
  EXPECT_EQ(b.seq_chunk[3].end, 2);
  for (i32 t = 100; t < 9000; ++t) ASSERT_EQ(b.label[t], kIgnoreLabel);
  EXPECT_EQ(b.loss_row[packed.targets()], -1);
  // Each position stands under its id exactly once, in ascending order.
  i64 seen = 0;
  for (i32 u = 0; u < shape.num_unique; ++u)
    for (i32 i = b.unique_ptr[u]; i < b.unique_ptr[u + 1]; ++i, ++seen) {
      ASSERT_EQ(b.tok[b.unique_pos[i]], b.unique_id[u]);
      ASSERT_TRUE(i == b.unique_ptr[u] || b.unique_pos[i - 1] < b.unique_pos[i]);
    }
  EXPECT_EQ(seen, 9000);
}

// Tensors that are alive together never share an address; some that are not, do.
TEST(Arena, SharesMemoryOnlyOverTime) {
  Arena arena;
  const std::vector<std::array<int, 3>> wanted = {
      {5000, 0, 1}, {3000, 1, 2}, {5000, 2, 3}, {2000, 0, 3}, {4000, 3, 4}};
  const int fixed = arena.add(MemoryPart::weights, 1000);
  std::vector<int> items;
  for (const auto& [bytes, first, last] : wanted)
    items.push_back(arena.add(MemoryPart::activations, static_cast<size_t>(bytes), first, last));
  arena.plan();
  std::vector<char> memory(arena.size());
  arena.bind(memory.data());
  const auto begin = [&](int item) { return static_cast<char*>(arena.at(item)) - memory.data(); };
  for (size_t a = 0; a < items.size(); ++a) {
    EXPECT_GE(begin(items[a]), begin(fixed) + 1000);
    EXPECT_LE(begin(items[a]) + wanted[a][0], static_cast<long>(memory.size()));
    for (size_t b = 0; b < a; ++b) {
      const bool together = wanted[a][1] <= wanted[b][2] && wanted[b][1] <= wanted[a][2];
      const bool apart = begin(items[a]) + wanted[a][0] <= begin(items[b]) ||
                         begin(items[b]) + wanted[b][0] <= begin(items[a]);
      EXPECT_TRUE(!together || apart) << a << " and " << b;
    }
  }
  EXPECT_LT(arena.size(), 1000u + 19000u);
}

}  // namespace
}  // namespace tessera
