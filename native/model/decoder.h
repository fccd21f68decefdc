// Token by token inference on the CPU in fp32, by the recurrent form of each layer: a window of the
// convolution, the delta state, and a key/value cache. Written for the tuned model's first words, not for
// serving.
#pragma once

#include <functional>
#include <vector>

#include "model/layout.h"
#include "model/parameters.h"

namespace tessera {

class Decoder {
 public:
  // Reads the whole model into memory as fp32. Throws as check_tensors() does.
  explicit Decoder(const fs::path& model_folder);
  // Copies weights that are being trained, at their exact values.
  Decoder(const ModelConfig& config, const Parameters& parameters);
  // Takes the next token; returns the logits [V] of the one after it. Valid until the next call.
  const std::vector<float>& step(i32 id);
  const ModelConfig& config() const { return config_; }

 private:
  struct LayerState {
    std::vector<float> conv;          // [taps - 1, CQ], oldest first
    std::vector<float> delta;         // [HV, K, Vh]
    std::vector<float> keys, values;  // [position, NKV * D]
  };
  void make_states();
  void linear_attention(size_t l, const std::vector<float>& proj, std::vector<float>* y);
  void full_attention(size_t l, const std::vector<float>& proj, std::vector<float>* y);
  const float* big(i64 offset) const { return big_.data() + offset; }
  const float* small(i64 offset) const { return small_.data() + offset; }

  ModelConfig config_;
  Layout layout_;
  std::vector<float> big_, small_;
  std::vector<LayerState> states_;
  i64 position_ = 0;
  std::vector<float> logits_;
};

struct SamplingOptions {
  i64 tokens = 64;         // at most so many new ones
  double temperature = 0;  // 0: the likeliest token
  std::uint64_t seed = 0;
  std::vector<i32> stop;  // ends the answer and is not part of it
};

// Continues a prompt; on_token is called with each new token. Throws invalid_token for ids outside the
// vocabulary.
std::vector<i32> generate(Decoder& decoder, const std::vector<i32>& prompt, const SamplingOptions& options,
                          const std::function<void(i32)>& on_token);

}  // namespace tessera
