// The model's weights, gradients and optimizer state in a backend's memory, reached by Hugging Face name.
#pragma once

#include <functional>
#include <vector>

#include "model/arena.h"
#include "model/layout.h"
#include "ops/backend.h"

namespace tessera {

struct OptimizerOptions {
  OptimizerMode mode = OptimizerMode::master32;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  float weight_decay = 0.0f;
  bool decay_small = false;  // decay norms, conv taps, A_log and dt_bias too
};

// What a run keeps of each parameter.
enum class Field : u8 { weight, master, gradient, m, v };

class Parameters {
 public:
  // gradients: the type of the big bucket's gradients (fp32, or bf16 with bf16sr and a single micro-batch a
  // step).
  Parameters(Backend& backend, const Layout& layout, const OptimizerOptions& options, DType gradients,
             Arena* arena);
  void bind(const Arena& arena);  // takes the addresses; zeroes gradients and state

  const Layout& layout() const { return layout_; }
  bool has_master() const { return has_master_; }
  DType type(Field field, Bucket bucket) const;
  void* big(Field field, i64 offset) const;  // element offset into the big bucket
  float* small(Field field, i64 offset) const;

  // Copies one tensor, as fp32, to or from the backend. Writing weights also sets the master copy.
  void write(const TensorEntry& tensor, Field field, const float* values) const;
  std::vector<float> read(const TensorEntry& tensor, Field field) const;
  // The exact value of a weight: the master copy where there is one. Hands out pieces so that a large table
  // is never held twice.
  void read_exact(const TensorEntry& tensor, const std::function<void(const float*, i64)>& piece) const;

  void zero_small_gradients() const;
  std::vector<AdamSegment> segments(const OptimizerOptions& options) const;

 private:
  void* address(Field field, Bucket bucket) const;
  void read_piece(const TensorEntry& tensor, Field field, i64 begin, i64 count,
                  std::vector<float>* values) const;

  Backend& backend_;
  const Layout& layout_;
  bool has_master_;
  DType weight_type_, gradient_type_, state_type_;
  int item_[5][2];  // arena items by field and bucket, -1 where there is none
  void* base_[5][2] = {};
};

// Every tensor of the layout from the files. check_tensors() has passed.
void load_weights(const Parameters& parameters, const SafetensorsFolder& files);

}  // namespace tessera
