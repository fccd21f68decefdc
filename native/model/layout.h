// Where every tensor of the model lives in the engine's flat buffers.
//
// Big bucket (weight_dtype): units embed | layer 0 … L-1 | head, each unit's matrices back to back:
//   linear attention  W_in [qkv | z | b | a, H]   W_out [H, VD]      W_gate_up [gate | up, H]   W_down [H, I]
//   full attention    W_in [q | k | v, H]         W_out [H, NH*D]    the same
// Small bucket (fp32, read by the kernels as it is): norms, conv taps, A_log, dt_bias of the whole model.
// Gradients, master copies and optimizer state have the same layout, so that a shard is a plain range.
// Every Hugging Face tensor is one contiguous run of one bucket.
#pragma once

#include <string>
#include <vector>

#include "core/safetensors.h"
#include "model/config.h"

namespace tessera {

enum class Bucket : u8 { big, small };

struct TensorEntry {
  std::string name;        // Hugging Face name
  std::vector<i64> shape;  // Hugging Face shape
  Bucket bucket;
  i64 offset;  // elements, from the start of the bucket
  i64 count;
  i32 layer;  // -1 where it belongs to none
};

struct LayerOffsets {
  i64 w_in, w_out, w_gate_up, w_down;                    // big
  i64 input_norm, post_norm;                             // small, both kinds
  i64 conv = 0, a_log = 0, dt_bias = 0, gated_norm = 0;  // small, linear attention
  i64 q_norm = 0, k_norm = 0;                            // small, full attention
};

struct Unit {
  i64 begin, count;  // elements of the big bucket; multiples of kUnitAlign
};
inline constexpr i64 kUnitAlign = 256;

struct Layout {
  std::vector<TensorEntry> tensors;
  std::vector<LayerOffsets> layers;
  std::vector<Unit> units;
  i64 embed = 0, head = 0;  // big; the same offset when tied
  i64 final_norm = 0;       // small
  i64 big_count = 0, small_count = 0;
  i64 count(Bucket b) const { return b == Bucket::big ? big_count : small_count; }
  const TensorEntry* find(const std::string& name) const;
};

// prefix: "model." of text-only checkpoints or "model.language_model." of multimodal ones.
Layout make_layout(const ModelConfig& config, const std::string& prefix);
std::string tensor_prefix(const SafetensorsFolder& files);

// Compares the files with the layout before anything is allocated. Throws EngineError listing every
// missing_tensor, wrong_shape, wrong_dtype or unknown_tensor.
void check_tensors(const Layout& layout, const SafetensorsFolder& files, const std::string& prefix,
                   bool tied);

}  // namespace tessera
