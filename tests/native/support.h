// What the native tests share: folders that vanish, errors by code, a small random model, packed sequences.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "model/executor.h"
#include "model/init.h"

namespace tessera::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "tessera-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// The call must throw this code, and its message must name `fragment`.
inline void expect_error(const std::string& code, const std::string& fragment,
                         const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected " << code;
  } catch (const EngineError& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

// Two linear layers with grouped heads and one full-attention layer, 40 tokens of vocabulary.
inline Json small_config() {
  return {{"model_type", "qwen3_5_text"},
          {"architectures", {"Qwen3_5ForCausalLM"}},
          {"vocab_size", 40},
          {"hidden_size", 24},
          {"intermediate_size", 40},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 16},
          {"linear_num_key_heads", 1},
          {"linear_num_value_heads", 2},
          {"linear_key_head_dim", 8},
          {"linear_value_head_dim", 8},
          {"linear_conv_kernel_dim", 4},
          {"layer_types", {"linear_attention", "linear_attention", "full_attention"}},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-6},
          {"tie_word_embeddings", true},
          {"max_position_embeddings", 4096},
          {"rope_parameters",
           {{"rope_theta", 10000.0}, {"partial_rotary_factor", 0.5}, {"rope_type", "default"}}}};
}

// A model folder with random fp32 weights.
inline void write_small_model(const fs::path& folder, const Json& config = small_config(),
                              DType dtype = DType::f32) {
  fs::create_directories(folder);
  write_file(folder / "source.json", config.dump());
  write_initial_model(folder / "source.json", 7, dtype, folder);
  fs::remove(folder / "source.json");
}

// Sequences of pseudo-random ids; the first third of each is unsupervised.
struct Packed {
  std::vector<std::vector<i32>> ids, labels;
  explicit Packed(const std::vector<i64>& lengths, i32 vocab = 40) {
    std::uint32_t state = 12345;
    for (const i64 n : lengths) {
      auto& id = ids.emplace_back();
      for (i64 t = 0; t < n; ++t)
        id.push_back(static_cast<i32>((state = state * 1664525u + 1013904223u) >> 16) % vocab);
      auto& label = labels.emplace_back(static_cast<size_t>(n), kIgnoreLabel);
      for (i64 t = n / 3; t + 1 < n; ++t) label[static_cast<size_t>(t)] = id[static_cast<size_t>(t) + 1];
    }
  }
  std::vector<Sequence> sequences(size_t first = 0, size_t count = SIZE_MAX) const {
    std::vector<Sequence> list;
    for (size_t n = first; n < ids.size() && n - first < count; ++n)
      list.push_back({ids[n], labels[n], static_cast<i64>(ids[n].size())});
    return list;
  }
  i64 targets(size_t first = 0, size_t count = SIZE_MAX) const {
    i64 sum = 0;
    for (size_t n = first; n < labels.size() && n - first < count; ++n)
      for (const i32 label : labels[n]) sum += label != kIgnoreLabel;
    return sum;
  }
};

// An executor over the small model on the CPU.
struct SmallRun {
  explicit SmallRun(ExecutorOptions options = {}, int threads = 1, const Json& json = small_config())
      : config(parse_config(json, "small")),
        layout(make_layout(config, "model.")),
        backend(make_cpu_backend({.threads = threads})) {
    if (options.batch.tokens == 0) options.batch = {400, 16};
    executor = std::make_unique<Executor>(*backend, config, layout, options);
    executor->allocate();
    for (const TensorEntry& t : layout.tensors) {
      auto values = initial_values(t, config, 7);
      for (float& v : values) v *= t.bucket == Bucket::big ? 5.0f : 1.0f;  // far from linear
      executor->parameters().write(t, Field::weight, values.data());
    }
  }
  // Every gradient or weight, in the order of the layout.
  std::vector<float> all(Field field) const {
    std::vector<float> values;
    for (const TensorEntry& t : layout.tensors) {
      const auto part = executor->parameters().read(t, field);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  static StepScalars scalars(i64 targets, i32 step = 1) {
    return {.lr = 1e-2f,
            .bias1 = 1.0f - std::pow(0.9f, static_cast<float>(step)),
            .bias2 = 1.0f - std::pow(0.95f, static_cast<float>(step)),
            .inv_tokens = 1.0f / static_cast<float>(targets),
            .clip = 1.0f,
            .seed = 1,
            .step = step};
  }
  ModelConfig config;
  Layout layout;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Executor> executor;
};

}  // namespace tessera::testing
