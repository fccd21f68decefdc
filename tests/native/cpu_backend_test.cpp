// The CPU backend as the step uses it, through its interface: results do not depend on threads, on the
// sequences beside one or on its place in the stream; both instruction sets and both algorithms agree; bad
// input is named.
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "core/error.h"
#include "ops/linear/product_choices.h"
#include "ops_testing.h"
#include "support.h"

namespace tessera {
namespace {

using namespace testing;

constexpr i64 kHidden = 40, kMlp = 56, kVocab = 97;
constexpr float kEps = 1e-6f;
const GdnShape kGdn{.key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 24, .conv_taps = 4};
const AttnShape kAttn{.heads = 4, .kv_heads = 2, .head_dim = 32, .rotary_dim = 8};

// Inputs that belong to positions; weights are the same for every run.
struct Inputs {
  explicit Inputs(i64 T) {
    add("x", kHidden, T);
    add("dx", kHidden, T);
    add("gu", 2 * kMlp, T);
    add("dact", kMlp, T);
    add("gdn_proj", kGdn.proj_dim(), T);
    add("d_o", kGdn.values(), T);
    add("attn_proj", kAttn.proj_dim(), T);
    add("dy", i64{kAttn.heads} * kAttn.head_dim, T);
    add("logits", kVocab, T);
  }
  void add(const std::string& name, i64 width, i64 T) {
    widths[name] = width;
    arrays[name] = random_array<float>(T * width, unsigned(arrays.size()) + 100);
  }
  const float* operator[](const std::string& name) const { return arrays.at(name).data(); }
  Inputs rows(i64 begin, i64 end) const {
    Inputs part = *this;
    for (auto& [name, values] : part.arrays) {
      const i64 width = widths.at(name);
      values = Array<float>(values.begin() + begin * width, values.begin() + end * width);
    }
    return part;
  }
  std::map<std::string, i64> widths;
  std::map<std::string, Array<float>> arrays;
};

struct Output {
  std::string name;
  i64 width;  // per position; 0: a sum over positions
  Array<float> values;
};

// Runs every operation on one packed batch, each output poisoned first.
class Runner {
 public:
  Runner(const CpuOptions& options, const PackedBatch& packed, const Inputs& inputs)
      : backend_(make_cpu_backend(options)),
        packed_(packed),
        b_(packed.view()),
        in_(inputs),
        T_(packed.T()) {}

  std::vector<Output> run() {
    linear_and_norm();
    mlp_and_loss();
    delta_net();
    attention();
    for (const Output& out : outputs_) EXPECT_TRUE(all_finite(out.values)) << out.name;
    return outputs_;
  }

 private:
  float* out(const std::string& name, i64 width) {
    outputs_.push_back({name, width, poisoned<float>(T_ * width)});
    return outputs_.back().values.data();
  }
  float* sum(const std::string& name, i64 count) {
    outputs_.push_back({name, 0, Array<float>(size_t(count), 0.0f)});
    return outputs_.back().values.data();
  }
  float* scratch(i64 count) {
    scratch_.push_back(poisoned<float>(count));
    return scratch_.back().data();
  }
  const float* weight(i64 count, double scale = 0.3) {
    scratch_.push_back(random_array<float>(count, unsigned(count), scale));
    return scratch_.back().data();
  }

  void linear_and_norm() {
    const float* w = weight(kMlp * kHidden);
    const float* norm = weight(kHidden);
    backend_->embedding_fwd(out("embedding", kHidden), weight(50 * kHidden), b_, kHidden);
    backend_->embedding_bwd(sum("d_table", 50 * kHidden), DType::f32, in_["dx"], b_, kHidden);
    backend_->rmsnorm_fwd(out("rmsnorm", kHidden), in_["x"], norm, T_, kHidden, kEps);
    float* dx = out("rmsnorm_dx", kHidden);
    backend_->rmsnorm_bwd(dx, sum("rmsnorm_dw", kHidden), in_["dx"], in_["x"], norm, in_["dx"], T_, kHidden,
                          kEps);
    backend_->linear_fwd(out("linear", kMlp), in_["x"], w, in_["dact"], T_, kMlp, kHidden);
    backend_->linear_bwd_data(out("linear_dx", kHidden), in_["dact"], w, T_, kMlp, kHidden);
    backend_->linear_bwd_weight(sum("linear_dw", kMlp * kHidden), DType::f32, in_["dact"], in_["x"], T_, kMlp,
                                kHidden, true);
  }

  void mlp_and_loss() {
    backend_->swiglu_fwd(out("swiglu", kMlp), in_["gu"], T_, kMlp);
    float* dgu = out("swiglu_dgu", 2 * kMlp);
    backend_->swiglu_bwd(dgu, out("swiglu_act", kMlp), in_["dact"], in_["gu"], T_, kMlp);
    float* z = out("dz", kVocab);
    std::memcpy(z, in_["logits"], size_t(T_ * kVocab) * sizeof(float));
    backend_->cross_entropy(z, out("nll", 1), b_.label, T_, kVocab, true);
  }

  void delta_net() {
    const GdnShape& s = kGdn;
    const i64 lines = i64{b_.num_chunk} * s.value_heads * kChunk;
    const float *proj = in_["gdn_proj"], *conv = weight(s.conv_dim() * s.conv_taps, 0.5),
                *norm = weight(s.value_dim);
    const float *a_log = weight(s.value_heads), *dt_bias = weight(s.value_heads);
    float *g = scratch(lines), *beta = scratch(lines), *ar = scratch(lines * kChunk);
    float* state = scratch(i64{b_.num_chunk} * s.value_heads * s.key_dim * s.value_dim);
    float *qkv = out("qkv", s.conv_dim()), *o = out("gdn_o", s.values());
    backend_->gdn_prep_fwd(qkv, proj, conv, b_, s);
    backend_->gdn_kkt_fwd(g, beta, ar, qkv, proj, a_log, dt_bias, b_, s);
    backend_->gdn_fwd(o, state, qkv, g, beta, ar, b_, s);
    backend_->gated_norm_fwd(out("gated_norm", s.values()), o, proj, norm, T_, s, kEps);
    float *d_o = out("gdn_do", s.values()), *dproj = out("gdn_dproj", s.proj_dim());
    backend_->gated_norm_bwd(d_o, dproj, sum("gated_norm_dw", s.value_dim), in_["d_o"], o, proj, norm, T_, s,
                             kEps);
    float *dq = out("gdn_dq", s.value_heads * s.key_dim), *dk = out("gdn_dk", s.value_heads * s.key_dim);
    float *dv = out("gdn_dv", s.values()), *d_gamma = scratch(lines), *d_beta = scratch(lines);
    backend_->gdn_bwd(dq, dk, dv, d_gamma, d_beta, nullptr, nullptr, d_o, qkv, g, beta, ar, state, b_, s);
    float *d_conv = sum("d_conv_w", s.conv_dim() * s.conv_taps), *d_a = sum("d_a_log", s.value_heads);
    backend_->gdn_prep_bwd(dproj, d_conv, d_a, sum("d_dt_bias", s.value_heads), dq, dk, dv, d_gamma, d_beta,
                           proj, qkv, beta, conv, a_log, dt_bias, b_, s);
  }

  void attention() {
    const AttnShape& s = kAttn;
    const i64 queries = i64{s.heads} * s.head_dim, keys = i64{s.kv_heads} * s.head_dim;
    const float *proj = in_["attn_proj"], *wq = weight(s.head_dim), *wk = weight(s.head_dim);
    const float* rope = weight(200 * s.rotary_dim, 0.7);
    float *q = out("q", queries), *k = out("k", keys), *o = out("attn_o", queries),
          *lse = scratch(s.heads * T_);
    backend_->qk_norm_rope_fwd(q, k, proj, wq, wk, rope, b_, s, kEps);
    backend_->attention_fwd(out("attn_y", queries), o, lse, q, k, proj, b_, s);
    float *dq = out("attn_dq", queries), *dk = out("attn_dk", keys), *dproj = out("attn_dproj", s.proj_dim());
    backend_->attention_bwd(dq, dk, dproj, scratch(T_ * queries), scratch(s.heads * T_), in_["dy"], o, lse, q,
                            k, proj, b_, s);
    float* dwq = sum("dwq", s.head_dim);
    backend_->qk_norm_rope_bwd(dproj, dwq, sum("dwk", s.head_dim), dq, dk, proj, wq, wk, rope, b_, s, kEps);
  }

  std::unique_ptr<Backend> backend_;
  const PackedBatch& packed_;
  Batch b_;
  const Inputs& in_;
  i64 T_;
  std::vector<Output> outputs_;
  std::vector<Array<float>> scratch_;
};

std::vector<Output> run(const PackedBatch& packed, const Inputs& inputs, const CpuOptions& options = {}) {
  return Runner(options, packed, inputs).run();
}

// Runs the body with TESSERA_CPU set, for both instruction sets.
template <class Body>
void with_each_isa(const Body& body) {
  for (const char* isa : {"baseline", "avx2"}) {
    if (std::string(isa) == "avx2" && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
      continue;
    SCOPED_TRACE(isa);
    setenv("TESSERA_CPU", isa, 1);
    body();
    unsetenv("TESSERA_CPU");
  }
}

TEST(CpuBackend, ResultsDoNotDependOnThreads) {
  const PackedBatch packed(kEdgeLengths);
  const Inputs inputs(packed.T());
  with_each_isa([&] {
    for (const GdnAlgorithm gdn : {GdnAlgorithm::chunked, GdnAlgorithm::recurrent}) {
      const std::vector<Output> one = run(packed, inputs, {gdn, 1});
      for (const int threads : {2, 3}) {
        const std::vector<Output> more = run(packed, inputs, {gdn, threads});
        for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].values == more[i].values) << one[i].name;
      }
    }
  });
}

TEST(CpuBackend, InstructionSetsAndAlgorithmsAgree) {
  const PackedBatch packed(kEdgeLengths);
  const Inputs inputs(packed.T());
  setenv("TESSERA_CPU", "baseline", 1);
  const std::vector<Output> baseline = run(packed, inputs);
  unsetenv("TESSERA_CPU");
  const std::vector<Output> best = run(packed, inputs);
  const std::vector<Output> recurrent = run(packed, inputs, {GdnAlgorithm::recurrent, 0});
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_LT(relative_error(best[i].values, baseline[i].values), 1e-5) << best[i].name;
    EXPECT_LT(relative_error(recurrent[i].values, baseline[i].values), 1e-5) << best[i].name;
  }
}

TEST(CpuBackend, SequencesDoNotTouchEachOther) {
  const PackedBatch packed({5, 7, 64, 1, 66});
  const Inputs inputs(packed.T());
  with_each_isa([&] {
    const std::vector<Output> kept = run(packed, inputs);
    for (size_t n = 0; n < 5; ++n) {
      Inputs changed = inputs;
      for (auto& [name, values] : changed.arrays) {
        const i64 width = inputs.widths.at(name);
        for (i64 i = packed.cu[n] * width; i < packed.cu[n + 1] * width; ++i) values[size_t(i)] *= -1.5f;
      }
      const std::vector<Output> after = run(packed, changed);
      for (size_t i = 0; i < kept.size(); ++i) {
        bool same_inside = true;
        for (i64 j = 0; j < packed.T() * kept[i].width; ++j) {
          const i64 t = j / kept[i].width;
          const bool inside = t >= packed.cu[n] && t < packed.cu[n + 1];
          const bool same = kept[i].values[size_t(j)] == after[i].values[size_t(j)];
          if (inside) same_inside = same_inside && same;
          ASSERT_TRUE(same || inside)
              << kept[i].name << " at position " << t << ", sequence " << n << " changed";
        }
        // What a single token attends to is itself: there, gradients of the scores are zero before and after.
        const bool follows = packed.seq_end[size_t(packed.cu[n])] - packed.cu[n] > 1 && kept[i].width > 1 &&
                             kept[i].name != "embedding" && kept[i].name != "dz";
        EXPECT_FALSE(follows && same_inside) << kept[i].name;
      }
    }
  });
}

TEST(CpuBackend, ASequenceComputesInAPackWhatItComputesAlone) {
  const std::vector<i32> lengths = {3, 70, 129, 64};
  const PackedBatch packed(lengths);
  const Inputs inputs(packed.T());
  with_each_isa([&] {
    const std::vector<Output> together = run(packed, inputs);
    for (size_t n = 0; n < lengths.size(); ++n) {
      const i64 begin = packed.cu[n], end = packed.cu[n + 1];
      PackedBatch alone({lengths[n]});
      for (i64 t = begin; t < end; ++t) {
        alone.tok[size_t(t - begin)] = packed.tok[size_t(t)];
        alone.label[size_t(t - begin)] = packed.label[size_t(t)];
      }
      const Inputs part = inputs.rows(begin, end);
      const std::vector<Output> single = run(alone, part);
      for (size_t i = 0; i < together.size(); ++i) {
        const i64 width = together[i].width;
        const Array<float> slice(together[i].values.begin() + begin * width,
                                 together[i].values.begin() + end * width);
        EXPECT_TRUE(width == 0 || slice == single[i].values) << together[i].name << " of sequence " << n;
      }
    }
  });
}

TEST(CpuBackend, NamesALabelOutsideTheVocabulary) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  Array<float> z(20, 0.0f), nll(2);
  const i32 label[] = {3, 10};
  try {
    backend->cross_entropy(z.data(), nll.data(), label, 2, 10, true);
    FAIL() << "the label was accepted";
  } catch (const EngineError& error) {
    EXPECT_STREQ(error.what(), "the label at position 1 is 10, outside the vocabulary of 10");
  }
}

TEST(CpuBackend, RefusesAnUnknownInstructionSet) {
  setenv("TESSERA_CPU", "sse9", 1);
  EXPECT_THROW(make_cpu_backend({}), EngineError);
  unsetenv("TESSERA_CPU");
}

TEST(CpuBackend, ListsAKernelForEveryLayerKind) {
  for (const GdnAlgorithm gdn : {GdnAlgorithm::chunked, GdnAlgorithm::recurrent}) {
    std::map<std::string, int> kinds;
    for (const KernelInfo& kernel : make_cpu_backend({gdn, 1})->kernels(kGdn, kAttn)) {
      ++kinds[kernel.layer_kind];
      EXPECT_EQ(kernel.tier, "reference");
      if (kernel.operation == "gated_delta_rule") {
        EXPECT_EQ(kernel.forward,
                  gdn == GdnAlgorithm::chunked ? "gdn_fwd_chunked_cpu" : "gdn_fwd_recurrent_cpu");
      }
    }
    EXPECT_EQ(kinds.size(), 7u);
  }
}

TEST(CpuBackend, ReplaysWhatWasCaptured) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  float value = 1, copied = 0;
  const int graph = backend->capture([&] { backend->copy(&copied, &value, sizeof value); });
  EXPECT_EQ(copied, 0) << "capture records, launch runs";
  value = 2;
  backend->launch(graph);
  EXPECT_EQ(copied, 2);
}

// Engines that start at the same moment choose algorithms for the same products.
TEST(ProductChoices, WhatWasWrittenFirstHoldsForAll) {
  const TempFolder folder;
  const std::string file = (folder.path() / "of" / "gemm.txt").string();
  ProductChoices one, other;
  one.open(file);
  other.open(file);
  EXPECT_EQ(one.find("a"), "");
  EXPECT_EQ(one.settle("a", "1"), "1");
  EXPECT_EQ(other.settle("a", "2"), "1") << "chosen in ignorance of the first";
  EXPECT_EQ(other.settle("b", "3"), "3");
  EXPECT_EQ(one.settle("c", "4"), "4");
  ProductChoices later;
  later.open(file);
  EXPECT_EQ(later.find("a") + later.find("b") + later.find("c"), "134") << "none was lost";
}

TEST(ProductChoices, ProcessesAtOnceLoseNothing) {
  const TempFolder folder;
  const std::string file = (folder.path() / "gemm.txt").string();
  constexpr int kWriters = 4, kProducts = 6;
  std::vector<std::map<std::string, std::string>> held(kWriters);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([&, w] {
      ProductChoices choices;
      choices.open(file);
      for (int p = 0; p < kProducts; ++p) {
        const std::string shared = "p" + std::to_string(p), own = shared + " of " + std::to_string(w);
        held[w][shared] = choices.settle(shared, std::to_string(w));
        held[w][own] = choices.settle(own, "x");
      }
    });
  for (std::thread& writer : writers) writer.join();
  ProductChoices after;
  after.open(file);
  for (const auto& mine : held)
    for (const auto& [product, algorithm] : mine) EXPECT_EQ(after.find(product), algorithm) << product;
}

TEST(ProductChoices, ServeWithoutAFileToWriteTo) {
  ProductChoices choices;
  choices.open("/proc/none/gemm.txt");
  EXPECT_EQ(choices.settle("a", "1"), "1");
  EXPECT_EQ(choices.settle("a", "2"), "1");
}

}  // namespace
}  // namespace tessera
