#include "model/layout.h"

#include <algorithm>

#include "core/error.h"

namespace tessera {
namespace {

constexpr i64 kSmallAlign = 64;
i64 align_up(i64 n, i64 to) { return (n + to - 1) / to * to; }

class Builder {
 public:
  explicit Builder(Layout* layout) : out_(layout) {}

  // Starts a matrix or vector of the engine, aligned; the tensors that follow fill it row by row.
  i64 begin_big() { return out_->big_count = align_up(out_->big_count, kUnitAlign); }
  i64 begin_small() { return out_->small_count = align_up(out_->small_count, kSmallAlign); }
  void add(const std::string& name, std::vector<i64> shape, Bucket bucket, i32 layer) {
    i64 count = 1;
    for (const i64 extent : shape) count *= extent;
    i64& used = bucket == Bucket::big ? out_->big_count : out_->small_count;
    out_->tensors.push_back({name, std::move(shape), bucket, used, count, layer});
    used += count;
  }
  i64 small(const std::string& name, std::vector<i64> shape, i32 layer) {
    const i64 offset = begin_small();
    add(name, std::move(shape), Bucket::small, layer);
    return offset;
  }
  void end_unit(i64 begin) { out_->units.push_back({begin, begin_big() - begin}); }

 private:
  Layout* out_;
};

void add_mixer(Builder& b, const ModelConfig& c, const std::string& p, i32 layer, LayerOffsets* at) {
  const i64 H = c.hidden;
  at->w_in = b.begin_big();
  if (c.layers[static_cast<size_t>(layer)] == LayerKind::linear_attention) {
    const GdnShape& s = c.gdn;
    const std::string q = p + "linear_attn.";
    b.add(q + "in_proj_qkv.weight", {s.conv_dim(), H}, Bucket::big, layer);
    b.add(q + "in_proj_z.weight", {s.values(), H}, Bucket::big, layer);
    b.add(q + "in_proj_b.weight", {s.value_heads, H}, Bucket::big, layer);
    b.add(q + "in_proj_a.weight", {s.value_heads, H}, Bucket::big, layer);
    at->w_out = b.begin_big();
    b.add(q + "out_proj.weight", {H, s.values()}, Bucket::big, layer);
    at->conv = b.small(q + "conv1d.weight", {s.conv_dim(), 1, s.conv_taps}, layer);
    at->a_log = b.small(q + "A_log", {s.value_heads}, layer);
    at->dt_bias = b.small(q + "dt_bias", {s.value_heads}, layer);
    at->gated_norm = b.small(q + "norm.weight", {s.value_dim}, layer);
    return;
  }
  const i64 D = c.attn.head_dim;
  const std::string q = p + "self_attn.";
  b.add(q + "q_proj.weight", {2 * c.attn.heads * D, H}, Bucket::big, layer);
  b.add(q + "k_proj.weight", {c.attn.kv_heads * D, H}, Bucket::big, layer);
  b.add(q + "v_proj.weight", {c.attn.kv_heads * D, H}, Bucket::big, layer);
  at->w_out = b.begin_big();
  b.add(q + "o_proj.weight", {H, c.attn.heads * D}, Bucket::big, layer);
  at->q_norm = b.small(q + "q_norm.weight", {D}, layer);
  at->k_norm = b.small(q + "k_norm.weight", {D}, layer);
}

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size() && i < 20; ++i) text += (i ? ", " : "") + items[i];
  if (items.size() > 20) text += " and " + std::to_string(items.size() - 20) + " more";
  return text;
}

}  // namespace

const TensorEntry* Layout::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorEntry& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Layout make_layout(const ModelConfig& c, const std::string& prefix) {
  Layout out;
  Builder b(&out);
  out.embed = b.begin_big();
  b.add(prefix + "embed_tokens.weight", {c.vocab, c.hidden}, Bucket::big, -1);
  b.end_unit(out.embed);
  for (i32 l = 0; l < c.num_layers(); ++l) {
    const std::string p = prefix + "layers." + std::to_string(l) + ".";
    LayerOffsets at{};
    const i64 begin = b.begin_big();
    add_mixer(b, c, p, l, &at);
    at.w_gate_up = b.begin_big();
    b.add(p + "mlp.gate_proj.weight", {c.intermediate, c.hidden}, Bucket::big, l);
    b.add(p + "mlp.up_proj.weight", {c.intermediate, c.hidden}, Bucket::big, l);
    at.w_down = b.begin_big();
    b.add(p + "mlp.down_proj.weight", {c.hidden, c.intermediate}, Bucket::big, l);
    at.input_norm = b.small(p + "input_layernorm.weight", {c.hidden}, l);
    at.post_norm = b.small(p + "post_attention_layernorm.weight", {c.hidden}, l);
    b.end_unit(begin);
    out.layers.push_back(at);
  }
  out.final_norm = b.small(prefix + "norm.weight", {c.hidden}, -1);
  out.head = out.embed;
  if (!c.tied) {
    out.head = b.begin_big();
    b.add("lm_head.weight", {c.vocab, c.hidden}, Bucket::big, -1);
    b.end_unit(out.head);
  }
  b.begin_small();
  return out;
}

std::string tensor_prefix(const SafetensorsFolder& files) {
  for (const std::string& name : files.names())
    if (name.rfind("model.language_model.", 0) == 0) return "model.language_model.";
  return "model.";
}

void check_tensors(const Layout& layout, const SafetensorsFolder& files, const std::string& prefix,
                   bool tied) {
  const std::string where = files.files()[0].path().parent_path().string();
  std::vector<std::string> missing, misshaped, mistyped, unknown;
  for (const TensorEntry& t : layout.tensors) {
    const SafetensorsFile* file = files.find(t.name);
    if (!file) {
      missing.push_back(t.name);
      continue;
    }
    const TensorInfo& info = file->info(t.name);
    const auto type = dtype_from_safetensors(info.dtype);
    if (info.shape != t.shape)
      misshaped.push_back(t.name + " is " + shape_text(info.shape) + ", the config asks for " +
                          shape_text(t.shape));
    else if (!type || !is_float(*type))
      mistyped.push_back(t.name + " is " + info.dtype);
  }
  // Anything else inside the trained layers would take part in a computation that the engine does not do.
  for (const std::string& name : files.names()) {
    const bool inside = name.rfind(prefix + "layers.", 0) == 0 || (!tied && name.rfind("lm_head.", 0) == 0);
    const bool derived = name.size() > 8 && name.compare(name.size() - 8, 8, "inv_freq") == 0;
    if (inside && !derived && !layout.find(name)) unknown.push_back(name);
  }
  if (!missing.empty())
    throw EngineError("missing_tensor", where + ": tensors are missing: " + join(missing),
                      "config.json and the weights do not belong together, or a file is incomplete.");
  if (!misshaped.empty())
    throw EngineError("wrong_shape", where + ": " + join(misshaped),
                      "config.json and the weights do not belong together.");
  if (!mistyped.empty())
    throw EngineError("wrong_dtype", where + ": expected F32, BF16 or F16, but " + join(mistyped),
                      "Quantized weights cannot be trained: use the original checkpoint.");
  if (!unknown.empty())
    throw EngineError("unknown_tensor",
                      where + ": tensors that this architecture does not have: " + join(unknown),
                      "The model is of another architecture than its config says.");
}

}  // namespace tessera
