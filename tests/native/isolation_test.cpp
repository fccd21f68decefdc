// The proof that packed examples do not see each other, and that it finds those that do; the kernels'
// self-test.
#include "train/isolation.h"

#include <algorithm>

#include "model/profiled_backend.h"
#include "support.h"
#include "train/numerics.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::TempFolder;

// A small model, a cache of pseudo-random examples and a plan that packs them `per_bin` at a time.
class Data {
 public:
  Data(const std::vector<i64>& lengths, size_t per_bin, i64 pad_to = 0,
       const Json& config = testing::small_config())
      : data_(lengths) {
    testing::write_small_model(folder_ / "model", config, DType::bf16);
    fs::create_directory(folder_ / "cache");
    std::vector<i32> ids, example, length, positions;
    std::vector<u8> supervised;
    std::vector<i64> offsets = {0}, bins = {0}, start(lengths.size(), 0);
    for (size_t n = 0; n < lengths.size(); ++n) {
      ids.insert(ids.end(), data_.ids[n].begin(), data_.ids[n].end());
      for (size_t t = 0; t < data_.ids[n].size(); ++t)
        supervised.push_back(t > 0 && data_.labels[n][t - 1] != kIgnoreLabel);
      offsets.push_back(static_cast<i64>(ids.size()));
      example.push_back(static_cast<i32>(n));
      length.push_back(static_cast<i32>(lengths[n]));
      positions.push_back(static_cast<i32>(std::max(pad_to, lengths[n])));
      if ((n + 1) % per_bin == 0 || n + 1 == lengths.size()) bins.push_back(static_cast<i64>(n) + 1);
    }
    const auto N = static_cast<i64>(ids.size()), count = static_cast<i64>(lengths.size());
    write_safetensors(folder_ / "cache" / "shard-00000.safetensors",
                      {tensor_source("input_ids", DType::i32, {N}, ids.data()),
                       tensor_source("supervised", DType::u8, {N}, supervised.data()),
                       tensor_source("offsets", DType::i64, {count + 1}, offsets.data())},
                      "");
    write_safetensors(
        folder_ / "plan.safetensors",
        {tensor_source("example", DType::i32, {count}, example.data()),
         tensor_source("start", DType::i64, {count}, start.data()),
         tensor_source("length", DType::i32, {count}, length.data()),
         tensor_source("positions", DType::i32, {count}, positions.data()),
         tensor_source("bin_offsets", DType::i64, {static_cast<i64>(bins.size())}, bins.data())},
        "");
  }
  IsolationOptions options() const {
    return {.model = folder_ / "model", .cache = folder_ / "cache", .plan = folder_ / "plan.safetensors"};
  }

 private:
  testing::Packed data_;
  TempFolder folder_;
};

const std::vector<i64> kLengths = {70, 12, 25, 40, 9, 64, 33, 21};

std::string first_failure(const Json& report) {
  return report["failures"].empty() ? "" : report["failures"][0];
}

TEST(Isolation, HoldsForTheEnginesOwnKernels) {
  const Data data(kLengths, 4);
  for (const RecomputePolicy policy : {RecomputePolicy::p1, RecomputePolicy::full, RecomputePolicy::p0}) {
    const auto backend = make_cpu_backend({.threads = 2});
    auto options = data.options();
    options.policy = policy;
    const Json report = prove_isolation(*backend, options);
    EXPECT_TRUE(report["ok"]) << report.dump(1);
    EXPECT_EQ(report["examples"], Json({0, 1, 2, 3}));
    EXPECT_EQ(report["changed"], Json({2, 0}));
    EXPECT_EQ(report["positions"], 147);
    EXPECT_GT(report["weightGradients"].get<int>(), 20);
    EXPECT_LE(report["alone"]["relativeError"].get<double>(), 1e-4);
  }
}

TEST(Isolation, HoldsForPaddedBins) {
  const Data data(kLengths, 4, 80);
  const auto backend = make_cpu_backend({.threads = 2});
  const Json report = prove_isolation(*backend, data.options());
  EXPECT_TRUE(report["ok"]) << report.dump(1);
  EXPECT_EQ(report["positions"], 320);
}

// Other head counts and sizes, layers of one kind only, tied and untied: the proof holds for each, and finds
// a boundary that is lost in it.
TEST(Isolation, HoldsAndFindsLeaksInModelsOfOtherShapes) {
  const Json shapes[] = {
      {{"layer_types", {"linear_attention", "linear_attention"}}, {"num_hidden_layers", 2}},
      {{"layer_types", {"full_attention", "full_attention"}}, {"num_hidden_layers", 2}},
      {{"layer_types", {"full_attention"}}, {"num_hidden_layers", 1}, {"tie_word_embeddings", false}},
      {{"layer_types", {"linear_attention"}}, {"num_hidden_layers", 1}, {"tie_word_embeddings", false}},
      {{"num_attention_heads", 6},
       {"num_key_value_heads", 3},
       {"linear_num_key_heads", 2},
       {"linear_num_value_heads", 6},
       {"hidden_size", 40}},
      {{"num_attention_heads", 5},
       {"num_key_value_heads", 5},
       {"head_dim", 8},
       {"linear_num_key_heads", 3},
       {"linear_num_value_heads", 3},
       {"linear_key_head_dim", 12},
       {"linear_value_head_dim", 4}},
  };
  for (const Json& shape : shapes) {
    Json config = testing::small_config();
    config.update(shape);
    const Data data(kLengths, 4, 0, config);
    const auto backend = make_cpu_backend({.threads = 2});
    auto options = data.options();
    const Json report = prove_isolation(*backend, options);
    EXPECT_TRUE(report["ok"]) << shape.dump() << report.dump(1);
    EXPECT_EQ(report["layers"], report["modelLayers"]);
    options.arrangement = joined_at(1);
    EXPECT_FALSE(prove_isolation(*backend, options)["ok"]) << shape.dump();
    EXPECT_TRUE(test_numerics(*backend, read_config(options.model))["ok"]) << shape.dump();
  }
}

TEST(Isolation, FindsALostBoundaryWhereverItIs) {
  const Data data(kLengths, 4);
  for (const size_t lost : {0, 1, 2}) {
    const auto backend = make_cpu_backend({.threads = 2});
    auto options = data.options();
    options.arrangement = joined_at(lost);
    const Json report = prove_isolation(*backend, options);
    EXPECT_FALSE(report["ok"]) << "boundary " << lost;
    EXPECT_NE(first_failure(report).find("example"), std::string::npos) << report.dump(1);
  }
}

// One operation that runs with the boundaries of a single long sequence.
enum class Leak { convolution, state, attention, attention_gradient };
class LeakyBackend : public ProfiledBackend {
 public:
  LeakyBackend(Backend& inner, Leak leak) : ProfiledBackend(inner), leak_(leak) {}
  void gdn_prep_fwd(Act* qkv, const Act* proj, const float* w, const Batch& b, const GdnShape& s) override {
    ProfiledBackend::gdn_prep_fwd(qkv, proj, w, leak_ == Leak::convolution ? joined(b) : b, s);
  }
  void gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
               const Batch& b, const GdnShape& s) override {
    ProfiledBackend::gdn_fwd(o, state, qkv, g, beta, ar, leak_ == Leak::state ? joined(b) : b, s);
  }
  void attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override {
    ProfiledBackend::attention_fwd(y, o, lse, q, k, proj, leak_ == Leak::attention ? joined(b) : b, s);
  }
  void attention_bwd(Act* dq, Act* dk, Act* dproj, Act* d_o, float* delta, const Act* dy, const Act* o,
                     const float* lse, const Act* q, const Act* k, const Act* proj, const Batch& b,
                     const AttnShape& s) override {
    ProfiledBackend::attention_bwd(dq, dk, dproj, d_o, delta, dy, o, lse, q, k, proj,
                                   leak_ == Leak::attention_gradient ? joined(b) : b, s);
  }

 private:
  Batch joined(Batch b) {
    const auto T = static_cast<size_t>(b.T);
    cu_ = {0, b.T};
    position_.resize(T);
    for (size_t t = 0; t < T; ++t) position_[t] = static_cast<i32>(t);
    end_.assign(T, b.T);
    chunks_.assign(b.chunk, b.chunk + b.num_chunk);
    for (size_t c = 0; c < chunks_.size(); ++c) {
      chunks_[c].seq = 0;
      chunks_[c].flags = (c == 0 ? 1 : 0) | (c + 1 == chunks_.size() ? 2 : 0);
    }
    range_ = {0, b.num_chunk};
    b.num_seq = 1;
    b.cu = cu_.data();
    b.pos = position_.data();
    b.seq_end = end_.data();
    b.chunk = chunks_.data();
    b.seq_chunk = &range_;
    return b;
  }
  Leak leak_;
  std::vector<i32> cu_, position_, end_;
  std::vector<Chunk> chunks_;
  ChunkRange range_{};
};

TEST(Isolation, FindsOneKernelThatIgnoresBoundaries) {
  const Data data(kLengths, 4);
  for (const Leak leak : {Leak::convolution, Leak::state, Leak::attention, Leak::attention_gradient}) {
    const auto cpu = make_cpu_backend({.threads = 1});
    LeakyBackend backend(*cpu, leak);
    const Json report = prove_isolation(backend, data.options());
    EXPECT_FALSE(report["ok"]) << static_cast<int>(leak);
  }
}

TEST(Isolation, FindsAPackOnItsWayThroughAwkwardPlans) {
  const auto examples = [](const Data& data) {
    const auto backend = make_cpu_backend({.threads = 2});
    const Json report = prove_isolation(*backend, data.options());
    EXPECT_TRUE(report["ok"]) << report.dump(1);
    return report["examples"];
  };
  EXPECT_EQ(examples(Data({300, 290, 310, 280}, 1)), Json({0, 1, 2}));  // one in each bin: pieces of several
  EXPECT_EQ(examples(Data({50}, 1)), Json({0, 0}));                     // one at all: twice
  EXPECT_EQ(examples(Data({4000, 3990}, 2)), Json({0, 1}));             // both larger than the pack
}

TEST(Isolation, RefusesDataWithNothingToLearn) {
  const Data data({1, 1, 1}, 3);
  const auto backend = make_cpu_backend({.threads = 1});
  expect_error("no_supervised_tokens", "0 supervised tokens",
               [&] { prove_isolation(*backend, data.options()); });
}

TEST(Numerics, HoldOnTheCpuInBothForms) {
  const ModelConfig config = parse_config(testing::small_config(), "small");
  for (const GdnAlgorithm gdn : {GdnAlgorithm::chunked, GdnAlgorithm::recurrent}) {
    const auto backend = make_cpu_backend({.gdn = gdn, .threads = 2});
    const Json report = test_numerics(*backend, config);
    EXPECT_TRUE(report["ok"]) << report.dump(1);
    EXPECT_GE(report["kernels"].size(), 25u);
    // No kernel goes unproved; the chunk's inverse shows in the delta rule's output.
    const std::string proved = report["kernels"].dump();
    for (const KernelInfo& kernel : backend->kernels(config.gdn, config.attn)) {
      if (kernel.operation == "chunk_inverse") continue;
      EXPECT_NE(proved.find('"' + kernel.operation + '"'), std::string::npos) << kernel.operation;
    }
  }
}

// A kernel whose result is off by one part in a thousand.
class InexactBackend : public ProfiledBackend {
 public:
  InexactBackend(Backend& inner) : ProfiledBackend(inner) {}
  void swiglu_fwd(Act* act, const Act* gu, i64 T, i64 I) override {
    ProfiledBackend::swiglu_fwd(act, gu, T, I);
    for (i64 i = 0; i < T * I; ++i) static_cast<float*>(act)[i] *= 1.001f;
  }
};

TEST(Numerics, NameTheKernelThatIsWrong) {
  const auto cpu = make_cpu_backend({.threads = 1});
  InexactBackend backend(*cpu);
  const Json report = test_numerics(backend, parse_config(testing::small_config(), "small"));
  EXPECT_FALSE(report["ok"]);
  ASSERT_EQ(report["failures"].size(), 1u) << report.dump(1);
  EXPECT_NE(first_failure(report).find("swiglu"), std::string::npos);
}

}  // namespace
}  // namespace tessera
