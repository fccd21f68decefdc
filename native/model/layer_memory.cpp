#include "model/layer_memory.h"

#include <algorithm>

#include "core/error.h"

namespace tessera {
namespace {

// Times of the schedule. Layers of one kind share their scratch, so one window serves them all.
//   forward: kind*20 + 0..10   head: 50..58   backward: 60 + kind*40 + 0..30
constexpr int kForwardWindow = 20, kHead = 50, kBackward = 60, kBackwardWindow = 40, kEnd = 139;

struct TensorRow {
  Span forward;       // lifetime within forward of its layer
  int last_backward;  // its last use within backward; -1: not needed there
  bool mixer;  // recomputed with the mixer: at 0 under `full`, else after the MLP; otherwise with the MLP
};
constexpr Span kNever{-1, -1};
constexpr int kMlpTime = 7, kMixerLate = 15;

// In the order of LayerMemory::Tensor and LayerMemory::Grad.
constexpr TensorRow kRows[] = {
    {{0, 1}, 28, true},    // xn1
    {{1, 6}, 26, true},    // proj
    {{3, 6}, 25, true},    // o
    {{3, 6}, 23, true},    // y
    {{6, 10}, 14, true},   // xm
    {{7, 8}, 13, false},   // xn2
    {{8, 9}, 13, false},   // gu
    {{9, 10}, -1, false},  // act
    {{2, 4}, 26, true},    // qkv
    {{3, 4}, 25, true},    // ar
    {kNever, 25, true},    // state
    {{3, 4}, 25, true},    // g
    {{3, 4}, 26, true},    // beta
    {{2, 3}, 25, true},    // q
    {{2, 3}, 25, true},    // k
    {{3, 3}, 25, true},    // lse
};
constexpr Span kGradSpans[] = {
    {9, 11},  {12, 14}, {22, 25}, {24, 28}, {27, 29},            // dact dxn2 dy dproj dxn1
    {24, 25}, {25, 26}, {25, 26}, {25, 26}, {25, 25}, {25, 25},  // do dq dk dv du ds
    {25, 26}, {25, 26}, {25, 25}, {25, 25},                      // dgamma dbeta sdo sdelta
};

}  // namespace

RecomputePolicy parse_policy(const std::string& name) {
  if (name == "full") return RecomputePolicy::full;
  if (name == "P1" || name == "p1") return RecomputePolicy::p1;
  if (name == "P2" || name == "p2") return RecomputePolicy::p2;
  if (name == "P0" || name == "p0") return RecomputePolicy::p0;
  throw EngineError("invalid_recipe", "recompute \"" + name + "\" is unknown", "Use full, P1, P2 or P0.");
}

const char* policy_name(RecomputePolicy policy) {
  constexpr const char* kNames[] = {"full", "P1", "P2", "P0"};
  return kNames[static_cast<size_t>(policy)];
}

bool LayerMemory::keeps(Tensor t) const {
  switch (t) {
    case kXm:
      return kept_.policy != RecomputePolicy::full;
    case kProj:
      return kept_.policy == RecomputePolicy::p2 || kept_.policy == RecomputePolicy::p0;
    case kXn1:
    case kXn2:
    case kAct:
      return kept_.policy == RecomputePolicy::p0 && kept_.all;
    default:
      return kept_.policy == RecomputePolicy::p0;
  }
}

// Bytes of every buffer by layer kind; 0 where the kind has none.
struct LayerMemory::Sizes {
  const ModelConfig& config;
  const i64 T, NC;
  const size_t element;

  size_t acts(i64 n) const { return static_cast<size_t>(n) * element; }
  static size_t floats(i64 n) { return static_cast<size_t>(n) * sizeof(float); }
  i64 heads() const { return i64{config.attn.heads} * config.attn.head_dim; }
  i64 kv() const { return i64{config.attn.kv_heads} * config.attn.head_dim; }
  i64 mixer_width(bool linear) const { return linear ? config.gdn.values() : heads(); }
  i64 proj_width(bool linear) const { return linear ? config.gdn.proj_dim() : config.attn.proj_dim(); }
  i64 states() const { return NC * config.gdn.value_heads * config.gdn.key_dim * config.gdn.value_dim; }
  i64 gates() const { return NC * config.gdn.value_heads * kChunk; }

  size_t tensor(Tensor t, bool linear) const {
    switch (t) {
      case kXn1:
      case kXm:
      case kXn2:
        return acts(T * config.hidden);
      case kProj:
        return acts(T * proj_width(linear));
      case kO:
      case kY:
        return acts(T * mixer_width(linear));
      case kGu:
        return acts(2 * T * config.intermediate);
      case kAct:
        return acts(T * config.intermediate);
      case kQkv:
        return linear ? acts(T * config.gdn.conv_dim()) : 0;
      case kAr:
        return linear ? acts(gates() * kChunk) : 0;
      case kState:
        return linear ? acts(states()) : 0;
      case kG:
      case kBeta:
        return linear ? floats(gates()) : 0;
      case kQ:
        return linear ? 0 : acts(T * heads());
      case kK:
        return linear ? 0 : acts(T * kv());
      case kLse:
        return linear ? 0 : floats(T * config.attn.heads);
      default:
        return 0;
    }
  }

  size_t grad(Grad t, bool linear) const {
    const i64 keys = i64{config.gdn.value_heads} * config.gdn.key_dim;  // dq, dk come per value head
    switch (t) {
      case kDact:
        return acts(T * config.intermediate);
      case kDxn2:
      case kDxn1:
        return acts(T * config.hidden);
      case kDy:
        return acts(T * mixer_width(linear));
      case kDproj:
        return acts(T * proj_width(linear));
      case kDo:
      case kDv:
      case kDu:
        return linear ? acts(T * config.gdn.values()) : 0;
      case kDq:
        return acts(T * (linear ? keys : heads()));
      case kDk:
        return acts(T * (linear ? keys : kv()));
      case kDs:
        return linear ? acts(states()) : 0;
      case kDgamma:
      case kDbeta:
        return linear ? floats(gates()) : 0;
      case kSdo:
        return linear ? 0 : acts(T * heads());
      case kSdelta:
        return linear ? 0 : floats(T * config.attn.heads);
      default:
        return 0;
    }
  }
};

LayerMemory::LayerMemory(const ModelConfig& c, const BatchLayout& batch, DType act, Kept kept, i64 head_rows,
                         bool compaction, Arena* arena)
    : kept_(kept), kinds_(c.layers) {
  const Sizes sizes{c, batch.tokens, batch.chunks(), dtype_bytes(act)};
  const size_t stream = sizes.acts(batch.tokens * c.hidden);
  for (i64 l = 0; l <= c.num_layers(); ++l)
    x_.push_back(arena->add(MemoryPart::activations, stream, 0, kEnd));
  d_ = arena->add(MemoryPart::activations, stream, kHead, kEnd);

  std::array<Items, 2> scratch_forward, scratch_backward;
  for (const size_t kind : {0, 1})
    add_scratch(sizes, kind, &scratch_forward[kind], &scratch_backward[kind], arena);
  for (const LayerKind layer : kinds_) {
    const size_t kind = layer == LayerKind::linear_attention ? 0 : 1;
    Items forward = scratch_forward[kind], again = scratch_backward[kind];
    for (size_t t = 0; t < kNumTensors; ++t)
      if (keeps(static_cast<Tensor>(t)))
        forward[t] = again[t] = add(sizes.tensor(static_cast<Tensor>(t), kind == 0), {0, kEnd}, 0, arena);
    forward_.push_back(forward);
    recomputed_.push_back(again);
  }

  const i64 rows = std::max(batch.tokens, kLossRowStep);
  const size_t compact = compaction ? sizes.acts(rows * c.hidden) : 0;
  head_ = {add(stream, {1, 8}, kHead, arena),                                           // xf
           add(compact, {2, 7}, kHead, arena),                                          // compact
           add(sizes.acts(std::min(head_rows, rows) * c.vocab), {3, 6}, kHead, arena),  // z
           add(compact, {5, 7}, kHead, arena),                                          // d_compact
           add(stream, {5, 8}, kHead, arena),                                           // dxf
           arena->add(MemoryPart::activations, Sizes::floats(rows), 0, kEnd)};          // nll
}

int LayerMemory::add(size_t bytes, Span span, int base, Arena* arena) {
  if (bytes == 0 || span.first < 0) return -1;
  return arena->add(MemoryPart::activations, bytes, base + span.first, base + span.last);
}

// What all layers of one kind share.
void LayerMemory::add_scratch(const Sizes& sizes, size_t kind, Items* forward, Items* again, Arena* arena) {
  const int forward_base = static_cast<int>(kind) * kForwardWindow;
  const int backward_base = kBackward + static_cast<int>(kind) * kBackwardWindow;
  const int mixer_time = kept_.policy == RecomputePolicy::full ? 0 : kMixerLate;
  for (size_t t = 0; t < kNumTensors; ++t) {
    const TensorRow& row = kRows[t];
    const size_t bytes = keeps(static_cast<Tensor>(t)) ? 0 : sizes.tensor(static_cast<Tensor>(t), kind == 0);
    const Span recomputed =
        row.last_backward < 0 ? kNever : Span{row.mixer ? mixer_time : kMlpTime, row.last_backward};
    (*forward)[t] = add(bytes, row.forward, forward_base, arena);
    (*again)[t] = add(bytes, recomputed, backward_base, arena);
  }
  for (size_t t = 0; t < kNumGrads; ++t)
    grads_[kind][t] = add(sizes.grad(static_cast<Grad>(t), kind == 0), kGradSpans[t], backward_base, arena);
}

LayerBuffers LayerMemory::buffers(const Arena& a, const Items& items) const {
  const auto act = [&](Tensor t) -> Act* { return items[t] < 0 ? nullptr : a.at(items[t]); };
  const auto f32 = [&](Tensor t) { return static_cast<float*>(act(t)); };
  return {.xn1 = act(kXn1),
          .proj = act(kProj),
          .o = act(kO),
          .y = act(kY),
          .xm = act(kXm),
          .xn2 = act(kXn2),
          .gu = act(kGu),
          .act = act(kAct),
          .qkv = act(kQkv),
          .ar = act(kAr),
          .state = act(kState),
          .g = f32(kG),
          .beta = f32(kBeta),
          .q = act(kQ),
          .k = act(kK),
          .lse = f32(kLse),
          .keeps_norms = keeps(kXn1),
          .keeps_act = keeps(kAct),
          .keeps_proj = keeps(kProj),
          .keeps_core = keeps(kO),
          .keeps_xm = keeps(kXm),
          .keeps_gu = keeps(kGu)};
}

LayerBuffers LayerMemory::forward(const Arena& a, i64 layer) const {
  return buffers(a, forward_[static_cast<size_t>(layer)]);
}
LayerBuffers LayerMemory::recomputed(const Arena& a, i64 layer) const {
  return buffers(a, recomputed_[static_cast<size_t>(layer)]);
}

BackwardBuffers LayerMemory::backward(const Arena& a, i64 layer) const {
  const auto& items = grads_[kinds_[static_cast<size_t>(layer)] == LayerKind::linear_attention ? 0 : 1];
  const auto act = [&](Grad t) -> Act* { return items[t] < 0 ? nullptr : a.at(items[t]); };
  const auto f32 = [&](Grad t) { return static_cast<float*>(act(t)); };
  return {.dact = act(kDact),
          .dxn2 = act(kDxn2),
          .dy = act(kDy),
          .dproj = act(kDproj),
          .dxn1 = act(kDxn1),
          .d_o = act(kDo),
          .dq = act(kDq),
          .dk = act(kDk),
          .dv = act(kDv),
          .scratch_du = act(kDu),
          .scratch_ds = act(kDs),
          .d_gamma = f32(kDgamma),
          .d_beta = f32(kDbeta),
          .scratch_do = act(kSdo),
          .scratch_delta = f32(kSdelta)};
}

HeadBuffers LayerMemory::head(const Arena& a) const {
  const auto act = [&](size_t i) -> Act* { return head_[i] < 0 ? nullptr : a.at(head_[i]); };
  return {.xf = act(0),
          .compact = act(1),
          .z = act(2),
          .d_compact = act(3),
          .dxf = act(4),
          .nll = static_cast<float*>(act(5))};
}

}  // namespace tessera
