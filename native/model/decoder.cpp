#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "core/error.h"

namespace tessera {
namespace {

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float silu(float x) { return x * sigmoid(x); }
float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

float dot(const float* a, const float* b, i64 n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (i64 i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// y[N] = w[N,K] x[K]
void multiply(std::vector<float>* y, const float* w, const std::vector<float>& x, i64 N) {
  const auto K = static_cast<i64>(x.size());
  y->resize(static_cast<size_t>(N));
#pragma omp parallel for schedule(static) if (N * K > 1 << 16)
  for (i64 n = 0; n < N; ++n) (*y)[static_cast<size_t>(n)] = dot(w + n * K, x.data(), K);
}

// x * rsqrt(mean(x^2) + eps) * (base + w); base 1 where the weight is zero-centred
void norm(float* y, const float* x, const float* w, i64 n, float eps, float base) {
  const float r = 1.0f / std::sqrt(dot(x, x, n) / static_cast<float>(n) + eps);
  for (i64 i = 0; i < n; ++i) y[i] = x[i] * r * (base + w[i]);
}

void rotate(float* x, i64 position, i64 rotary, double theta) {
  const i64 half = rotary / 2;
  for (i64 i = 0; i < half; ++i) {
    const double angle =
        static_cast<double>(position) * std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
    const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
    const float a = x[i], b = x[half + i];
    x[i] = a * c - b * s;
    x[half + i] = b * c + a * s;
  }
}

}  // namespace

Decoder::Decoder(const fs::path& folder) : config_(read_config(folder)) {
  const SafetensorsFolder files(folder);
  const std::string prefix = tensor_prefix(files);
  layout_ = make_layout(config_, prefix);
  check_tensors(layout_, files, prefix, config_.tied);
  big_.resize(static_cast<size_t>(layout_.big_count));
  small_.resize(static_cast<size_t>(layout_.small_count));
  for (const TensorEntry& t : layout_.tensors) {
    const SafetensorsFile& file = files.file_of(t.name);
    float* to = (t.bucket == Bucket::big ? big_ : small_).data() + t.offset;
    to_f32(to, file.data(t.name), *dtype_from_safetensors(file.info(t.name).dtype), t.count);
  }
  make_states();
}

Decoder::Decoder(const ModelConfig& config, const Parameters& parameters)
    : config_(config), layout_(parameters.layout()) {
  big_.resize(static_cast<size_t>(layout_.big_count));
  small_.resize(static_cast<size_t>(layout_.small_count));
  for (const TensorEntry& t : layout_.tensors) {
    float* to = (t.bucket == Bucket::big ? big_ : small_).data() + t.offset;
    parameters.read_exact(t, [&](const float* values, i64 count) { to = std::copy_n(values, count, to); });
  }
  make_states();
}

void Decoder::make_states() {
  states_.resize(config_.layers.size());
  for (size_t l = 0; l < states_.size(); ++l)
    if (config_.layers[l] == LayerKind::linear_attention) {
      const GdnShape& g = config_.gdn;
      states_[l].conv.resize(static_cast<size_t>((g.conv_taps - 1) * g.conv_dim()));
      states_[l].delta.resize(static_cast<size_t>(i64{g.value_heads} * g.key_dim * g.value_dim));
    }
}

const std::vector<float>& Decoder::step(i32 id) {
  if (id < 0 || id >= config_.vocab)
    throw EngineError(
        "invalid_token",
        "token " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(config_.vocab),
        "Tokenise the prompt with this model's own tokenizer.");
  if (position_ >= config_.max_positions)
    throw EngineError("too_long",
                      "the text exceeds the model's " + std::to_string(config_.max_positions) + " positions");
  const i64 H = config_.hidden, I = config_.intermediate;
  const auto width = static_cast<size_t>(H);
  const float* row = big(layout_.embed + id * H);
  std::vector<float> x(row, row + H), xn(width), proj, y, out, gu, act(static_cast<size_t>(I));
  for (size_t l = 0; l < states_.size(); ++l) {
    const LayerOffsets& o = layout_.layers[l];
    const bool linear = config_.layers[l] == LayerKind::linear_attention;
    norm(xn.data(), x.data(), small(o.input_norm), H, config_.norm_eps, 1.0f);
    multiply(&proj, big(o.w_in), xn, linear ? config_.gdn.proj_dim() : config_.attn.proj_dim());
    linear ? linear_attention(l, proj, &y) : full_attention(l, proj, &y);
    multiply(&out, big(o.w_out), y, H);
    for (size_t i = 0; i < width; ++i) x[i] += out[i];
    norm(xn.data(), x.data(), small(o.post_norm), H, config_.norm_eps, 1.0f);
    multiply(&gu, big(o.w_gate_up), xn, 2 * I);
    for (size_t i = 0; i < act.size(); ++i) act[i] = silu(gu[i]) * gu[act.size() + i];
    multiply(&out, big(o.w_down), act, H);
    for (size_t i = 0; i < width; ++i) x[i] += out[i];
  }
  norm(xn.data(), x.data(), small(layout_.final_norm), H, config_.norm_eps, 1.0f);
  multiply(&logits_, big(layout_.head), xn, config_.vocab);
  ++position_;
  return logits_;
}

void Decoder::linear_attention(size_t l, const std::vector<float>& proj, std::vector<float>* y) {
  const GdnShape& g = config_.gdn;
  const LayerOffsets& o = layout_.layers[l];
  LayerState& state = states_[l];
  const i64 CQ = g.conv_dim(), K = g.key_dim, V = g.value_dim, past = g.conv_taps - 1;
  std::vector<float> qkv(static_cast<size_t>(CQ));
  for (i64 c = 0; c < CQ; ++c) {
    const float* taps = small(o.conv) + c * g.conv_taps;
    float p = taps[past] * proj[static_cast<size_t>(c)];
    for (i64 j = 0; j < past; ++j) p += taps[j] * state.conv[static_cast<size_t>(j * CQ + c)];
    qkv[static_cast<size_t>(c)] = silu(p);
  }
  std::copy(state.conv.begin() + CQ, state.conv.end(), state.conv.begin());
  std::copy(proj.begin(), proj.begin() + CQ, state.conv.end() - CQ);
  for (i64 h = 0; h < 2 * g.key_heads; ++h) {
    float* head = qkv.data() + h * K;
    const float r = 1.0f / std::sqrt(dot(head, head, K) + 1e-6f);
    for (i64 i = 0; i < K; ++i) head[i] *= r;
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(K));
  y->resize(static_cast<size_t>(g.values()));
#pragma omp parallel for schedule(static)
  for (i64 h = 0; h < g.value_heads; ++h) {
    const float* q = qkv.data() + h / g.group() * K;
    const float* k = q + g.keys();
    const float* v = qkv.data() + 2 * g.keys() + h * V;
    const float beta = sigmoid(proj[static_cast<size_t>(g.b_offset() + h)]);
    const float a = proj[static_cast<size_t>(g.a_offset() + h)] + small(o.dt_bias)[h];
    const float decay = std::exp(-std::exp(small(o.a_log)[h]) * softplus(a));
    float* S = state.delta.data() + h * K * V;
    std::vector<float> delta(v, v + V), read(static_cast<size_t>(V), 0.0f);
    for (i64 i = 0; i < K * V; ++i) S[i] *= decay;
    for (i64 i = 0; i < K; ++i)
      for (i64 j = 0; j < V; ++j) delta[static_cast<size_t>(j)] -= S[i * V + j] * k[i];
    for (i64 i = 0; i < K; ++i)
      for (i64 j = 0; j < V; ++j) {
        S[i * V + j] += k[i] * beta * delta[static_cast<size_t>(j)];
        read[static_cast<size_t>(j)] += S[i * V + j] * q[i] * scale;
      }
    float* out = y->data() + h * V;
    const float* z = proj.data() + g.z_offset() + h * V;
    norm(out, read.data(), small(o.gated_norm), V, config_.norm_eps, 0.0f);
    for (i64 j = 0; j < V; ++j) out[j] *= silu(z[j]);
  }
}

void Decoder::full_attention(size_t l, const std::vector<float>& proj, std::vector<float>* y) {
  const AttnShape& s = config_.attn;
  const LayerOffsets& o = layout_.layers[l];
  LayerState& state = states_[l];
  const i64 D = s.head_dim, row = i64{s.kv_heads} * D;
  state.keys.resize(static_cast<size_t>((position_ + 1) * row));
  state.values.insert(state.values.end(), proj.begin() + s.v_offset(), proj.begin() + s.v_offset() + row);
  for (i64 h = 0; h < s.kv_heads; ++h) {
    float* k = state.keys.data() + position_ * row + h * D;
    norm(k, proj.data() + s.k_offset() + h * D, small(o.k_norm), D, config_.norm_eps, 1.0f);
    rotate(k, position_, s.rotary_dim, config_.rope_theta);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(D));
  y->assign(static_cast<size_t>(i64{s.heads} * D), 0.0f);
#pragma omp parallel for schedule(static)
  for (i64 h = 0; h < s.heads; ++h) {
    const i64 kv = h / (s.heads / s.kv_heads) * D;
    std::vector<float> q(static_cast<size_t>(D)), weight(static_cast<size_t>(position_ + 1));
    norm(q.data(), proj.data() + 2 * h * D, small(o.q_norm), D, config_.norm_eps, 1.0f);
    rotate(q.data(), position_, s.rotary_dim, config_.rope_theta);
    for (i64 t = 0; t <= position_; ++t)
      weight[static_cast<size_t>(t)] = dot(q.data(), state.keys.data() + t * row + kv, D) * scale;
    const float most = *std::max_element(weight.begin(), weight.end());
    float sum = 0;
    for (float& w : weight) sum += w = std::exp(w - most);
    float* out = y->data() + h * D;
    for (i64 t = 0; t <= position_; ++t)
      for (i64 i = 0; i < D; ++i)
        out[i] += weight[static_cast<size_t>(t)] / sum * state.values[static_cast<size_t>(t * row + kv + i)];
    const float* gate = proj.data() + (2 * h + 1) * D;
    for (i64 i = 0; i < D; ++i) out[i] *= sigmoid(gate[i]);
  }
}

std::vector<i32> generate(Decoder& decoder, const std::vector<i32>& prompt, const SamplingOptions& options,
                          const std::function<void(i32)>& on_token) {
  if (prompt.empty()) throw EngineError("invalid_token", "the prompt has no tokens", "Give at least one.");
  std::mt19937_64 random(options.seed);
  std::vector<i32> answer;
  const std::vector<float>* logits = nullptr;
  for (const i32 id : prompt) logits = &decoder.step(id);
  while (static_cast<i64>(answer.size()) < options.tokens) {
    const auto likeliest = std::max_element(logits->begin(), logits->end());
    auto id = static_cast<i32>(likeliest - logits->begin());
    if (options.temperature > 0) {
      std::vector<double> cumulative(logits->size());
      double sum = 0;
      for (size_t i = 0; i < cumulative.size(); ++i)
        cumulative[i] = sum += std::exp((double{(*logits)[i]} - *likeliest) / options.temperature);
      // A draw of our own: the standard distributions differ between libraries.
      const double point = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
      id = static_cast<i32>(std::upper_bound(cumulative.begin(), cumulative.end(), point) -
                            cumulative.begin());
      id = std::min(id, static_cast<i32>(cumulative.size()) - 1);
    }
    if (std::find(options.stop.begin(), options.stop.end(), id) != options.stop.end()) break;
    answer.push_back(id);
    on_token(id);
    if (static_cast<i64>(answer.size()) < options.tokens) logits = &decoder.step(id);
  }
  return answer;
}

}  // namespace tessera
