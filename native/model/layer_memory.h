// The activations of a step: which are kept from forward to backward, and which share memory.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/arena.h"
#include "model/batch.h"
#include "model/config.h"

namespace tessera {

// What forward keeps for backward; the rest is computed again.
//   full  x of each layer                       p1  x and x' (the residual after the mixer)
//   p2    p1 and the in-projection              p0  everything; the outputs of norms and activation only
//                                                   where told so
enum class RecomputePolicy : u8 { full, p1, p2, p0 };
RecomputePolicy parse_policy(const std::string& name);  // "full", "P1", "P2", "P0"; throws invalid_recipe
const char* policy_name(RecomputePolicy policy);

// Shapes as in ops/backend.h. Fields of the other layer kind are null.
struct LayerBuffers {
  Act *xn1, *proj, *o, *y, *xm, *xn2, *gu, *act;  // both kinds; act: forward only, unless kept
  Act *qkv, *ar, *state;                          // linear attention
  float *g, *beta;
  Act *q, *k;  // full attention
  float* lse;
  // kept from forward (fields of the forward and backward set agree)
  bool keeps_norms, keeps_act, keeps_proj, keeps_core, keeps_xm, keeps_gu;
};
struct BackwardBuffers {
  Act *dact, *dxn2, *dy, *dproj, *dxn1;               // both kinds
  Act *d_o, *dq, *dk, *dv, *scratch_du, *scratch_ds;  // linear attention
  float *d_gamma, *d_beta;
  Act* scratch_do;  // full attention (dq, dk shared)
  float* scratch_delta;
};
struct HeadBuffers {
  Act *xf, *compact, *z, *d_compact, *dxf;
  float* nll;
};

// Times of a tensor's first and last use.
struct Span {
  int first, last;
};

struct Kept {
  RecomputePolicy policy;
  bool all;  // with p0: also what is cheap to compute again
};

class LayerMemory {
 public:
  LayerMemory(const ModelConfig& config, const BatchLayout& batch, DType act, Kept kept, i64 head_rows,
              bool compaction, Arena* arena);
  // The residual stream entering a layer, [T, H]; x(L) leaves the last.
  Act* x(const Arena& a, i64 layer) const { return a.at(x_[static_cast<size_t>(layer)]); }
  Act* d(const Arena& a) const { return a.at(d_); }  // the gradient that walks down the layers, [T, H]
  LayerBuffers forward(const Arena& a, i64 layer) const;
  LayerBuffers recomputed(const Arena& a, i64 layer) const;
  BackwardBuffers backward(const Arena& a, i64 layer) const;
  HeadBuffers head(const Arena& a) const;

 private:
  enum Tensor {
    kXn1,
    kProj,
    kO,
    kY,
    kXm,
    kXn2,
    kGu,
    kAct,
    kQkv,
    kAr,
    kState,
    kG,
    kBeta,
    kQ,
    kK,
    kLse,
    kNumTensors
  };
  enum Grad {
    kDact,
    kDxn2,
    kDy,
    kDproj,
    kDxn1,
    kDo,
    kDq,
    kDk,
    kDv,
    kDu,
    kDs,
    kDgamma,
    kDbeta,
    kSdo,
    kSdelta,
    kNumGrads
  };
  using Items = std::array<int, kNumTensors>;

  struct Sizes;

  bool keeps(Tensor t) const;
  static int add(size_t bytes, Span span, int base, Arena* arena);
  void add_scratch(const Sizes& sizes, size_t kind, Items* forward, Items* again, Arena* arena);
  LayerBuffers buffers(const Arena& a, const Items& items) const;

  Kept kept_;
  std::vector<LayerKind> kinds_;
  std::vector<int> x_;
  int d_;
  std::vector<Items> forward_, recomputed_;  // by layer; shared scratch has the same item in many layers
  std::array<std::array<int, kNumGrads>, 2> grads_;  // by layer kind
  std::array<int, 6> head_;
};

}  // namespace tessera
