#include "model/layer_memory.h"

#include "core/error.h"

namespace tessera {
namespace {

// Times of the schedule. Layers of one kind share their scratch, so one window serves them all.
//   forward: kind*20 + 0..10   head: 50..58   backward: 60 + kind*40 + 0..30
constexpr int kForwardWindow = 20, kHead = 50, kBackward = 60, kBackwardWindow = 40, kEnd = 139;

struct Span {
  int first, last;
};
constexpr Span kNever{-1, -1};

// Lifetimes within one layer. mixer: when backward computes the mixer again (0 under `full`, else after the
// MLP).
struct TensorRow {
  Span forward;
  int last_backward;  // from its recomputation on; -1: not needed
  bool mixer;         // recomputed with the mixer; otherwise at time 7
};
constexpr int kMixerLate = 15;

}  // namespace

RecomputePolicy parse_policy(const std::string& name) {
  if (name == "full") return RecomputePolicy::full;
  if (name == "P1" || name == "p1" || name == "auto") return RecomputePolicy::p1;
  if (name == "P2" || name == "p2") return RecomputePolicy::p2;
  if (name == "P0" || name == "p0") return RecomputePolicy::p0;
  throw EngineError("invalid_recipe", "recompute \"" + name + "\" is unknown",
                    "Use full, P1, P2, P0 or auto.");
}

bool LayerMemory::keeps(Tensor t) const {
  switch (t) {
    case kXm:
      return policy_ != RecomputePolicy::full;
    case kProj:
      return policy_ == RecomputePolicy::p2 || policy_ == RecomputePolicy::p0;
    case kXn1:
    case kXn2:
    case kAct:
      return false;
    default:
      return policy_ == RecomputePolicy::p0;
  }
}

LayerMemory::LayerMemory(const ModelConfig& c, const BatchLayout& batch, DType act, RecomputePolicy policy,
                         i64 head_rows, bool compaction, Arena* arena)
    : policy_(policy), kinds_(c.layers) {
  // times by tensor, in the order of the enum: forward lifetime, last use in backward, recomputed with the
  // mixer
  static constexpr std::array<TensorRow, kNumTensors> kRows = {{
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
  }};
  static constexpr std::array<Span, kNumGrads> kGradSpans = {{
      {9, 11},
      {12, 14},
      {22, 25},
      {24, 28},
      {27, 29},  // dact dxn2 dy dproj dxn1
      {24, 25},
      {25, 26},
      {25, 26},
      {25, 26},
      {25, 25},
      {25, 25},  // do dq dk dv du ds
      {25, 26},
      {25, 26},
      {25, 25},
      {25, 25},  // dgamma dbeta sdo sdelta
  }};

  const i64 T = batch.tokens, NC = batch.chunks(), H = c.hidden, I = c.intermediate;
  const GdnShape& g = c.gdn;
  const AttnShape& s = c.attn;
  const size_t e = dtype_bytes(act);
  const auto acts = [e](i64 n) { return static_cast<size_t>(n) * e; };
  const auto floats = [](i64 n) { return static_cast<size_t>(n) * sizeof(float); };
  const i64 heads = i64{s.heads} * s.head_dim, kv = i64{s.kv_heads} * s.head_dim;

  // bytes by layer kind (linear, full); 0: the kind has none
  const auto bytes = [&](Tensor t, bool linear) -> size_t {
    switch (t) {
      case kXn1:
      case kXm:
      case kXn2:
        return acts(T * H);
      case kProj:
        return acts(T * (linear ? g.proj_dim() : s.proj_dim()));
      case kO:
      case kY:
        return acts(T * (linear ? g.values() : heads));
      case kGu:
        return acts(2 * T * I);
      case kAct:
        return acts(T * I);
      case kQkv:
        return linear ? acts(T * g.conv_dim()) : 0;
      case kAr:
        return linear ? acts(NC * g.value_heads * kChunk * kChunk) : 0;
      case kState:
        return linear ? acts(NC * g.value_heads * g.key_dim * g.value_dim) : 0;
      case kG:
      case kBeta:
        return linear ? floats(NC * g.value_heads * kChunk) : 0;
      case kQ:
        return linear ? 0 : acts(T * heads);
      case kK:
        return linear ? 0 : acts(T * kv);
      case kLse:
        return linear ? 0 : floats(T * s.heads);
      default:
        return 0;
    }
  };
  const auto grad_bytes = [&](Grad t, bool linear) -> size_t {
    switch (t) {
      case kDact:
        return acts(T * I);
      case kDxn2:
      case kDxn1:
        return acts(T * H);
      case kDy:
        return acts(T * (linear ? g.values() : heads));
      case kDproj:
        return acts(T * (linear ? g.proj_dim() : s.proj_dim()));
      case kDo:
      case kDv:
      case kDu:
        return linear ? acts(T * g.values()) : 0;
      case kDq:
        return acts(T * (linear ? i64{g.value_heads} * g.key_dim : heads));
      case kDk:
        return acts(T * (linear ? i64{g.value_heads} * g.key_dim : kv));
      case kDs:
        return linear ? acts(NC * g.value_heads * g.key_dim * g.value_dim) : 0;
      case kDgamma:
      case kDbeta:
        return linear ? floats(NC * g.value_heads * kChunk) : 0;
      case kSdo:
        return linear ? 0 : acts(T * heads);
      case kSdelta:
        return linear ? 0 : floats(T * s.heads);
      default:
        return 0;
    }
  };
  const auto add = [&](size_t size, Span span, int base) {
    return size == 0 || span.first < 0
               ? -1
               : arena->add(MemoryPart::activations, size, base + span.first, base + span.last);
  };

  for (i64 l = 0; l <= c.num_layers(); ++l)
    x_.push_back(arena->add(MemoryPart::activations, acts(T * H), 0, kEnd));
  d_ = arena->add(MemoryPart::activations, acts(T * H), kHead, kEnd);

  const int mixer_time = policy == RecomputePolicy::full ? 0 : kMixerLate;
  std::array<Items, 2> scratch_forward, scratch_backward;
  for (int kind = 0; kind < 2; ++kind) {
    const bool linear = kind == 0;
    const int forward_base = kind * kForwardWindow, backward_base = kBackward + kind * kBackwardWindow;
    for (int t = 0; t < kNumTensors; ++t) {
      const TensorRow& row = kRows[static_cast<size_t>(t)];
      const bool shared = !keeps(static_cast<Tensor>(t));
      const size_t size = shared ? bytes(static_cast<Tensor>(t), linear) : 0;
      const Span again = row.last_backward < 0 ? kNever : Span{row.mixer ? mixer_time : 7, row.last_backward};
      scratch_forward[static_cast<size_t>(kind)][static_cast<size_t>(t)] =
          add(size, row.forward, forward_base);
      scratch_backward[static_cast<size_t>(kind)][static_cast<size_t>(t)] = add(size, again, backward_base);
    }
    for (int t = 0; t < kNumGrads; ++t)
      grads_[static_cast<size_t>(kind)][static_cast<size_t>(t)] =
          add(grad_bytes(static_cast<Grad>(t), linear), kGradSpans[static_cast<size_t>(t)], backward_base);
  }
  for (const LayerKind kind : kinds_) {
    const size_t k = kind == LayerKind::linear_attention ? 0 : 1;
    Items forward = scratch_forward[k], again = scratch_backward[k];
    for (int t = 0; t < kNumTensors; ++t)
      if (keeps(static_cast<Tensor>(t)))
        forward[static_cast<size_t>(t)] = again[static_cast<size_t>(t)] =
            add(bytes(static_cast<Tensor>(t), k == 0), {0, kEnd}, 0);
    forward_.push_back(forward);
    recomputed_.push_back(again);
  }

  const i64 rows = std::max(T, kLossRowStep);
  head_ = {add(acts(T * H), {1, 8}, kHead),                                // xf
           compaction ? add(acts(rows * H), {2, 7}, kHead) : -1,           // compact
           add(acts(std::min(head_rows, rows) * c.vocab), {3, 6}, kHead),  // z
           compaction ? add(acts(rows * H), {5, 7}, kHead) : -1,           // d_compact
           add(acts(T * H), {5, 8}, kHead),                                // dxf
           arena->add(MemoryPart::activations, floats(rows), 0, kEnd)};    // nll
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
