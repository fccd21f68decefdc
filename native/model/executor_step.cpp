// Forward and backward of the executor: only what is enqueued, in order. Times in brackets are those of
// layer_memory.cpp's lifetimes.
#include <algorithm>
#include <cstddef>

#include "model/executor.h"

namespace tessera {

// ---- forward

void Executor::forward(const Batch& b) {
  backend_.scope("forward", -1);
  walk_forward([&] { backend_.embedding_fwd(memory_.x(arena_, 0), w(layout_.embed), b, config_.hidden); },
               [&](i64 l) { forward_layer(l, b); });
}

void Executor::forward_layer(i64 l, const Batch& b) {
  LayerBuffers s = memory_.forward(arena_, l);
  if (!s.keeps_core && !linear_layer(l)) s.o = nullptr;
  backend_.scope("forward", static_cast<int>(l));
  mixer_input(l, s, b.T);                                       // [0]
  in_projection(l, s, b.T);                                     // [1]
  mixer_core(l, s, b);                                          // [2..5]
  mixer_output(l, s, b.T);                                      // [6]
  mlp_input(l, s, b.T);                                         // [7]
  gate_up(l, s, b.T);                                           // [8]
  backend_.swiglu_fwd(s.act, s.gu, b.T, config_.intermediate);  // [9]
  backend_.linear_fwd(memory_.x(arena_, l + 1), s.act, w(at(l).w_down), s.xm, b.T, config_.hidden,
                      config_.intermediate);  // [10]
}

void Executor::mixer_input(i64 l, const LayerBuffers& s, i64 T) {
  backend_.rmsnorm_fwd(s.xn1, memory_.x(arena_, l), p(at(l).input_norm), T, config_.hidden, config_.norm_eps);
}

void Executor::in_projection(i64 l, const LayerBuffers& s, i64 T) {
  const i64 N = linear_layer(l) ? config_.gdn.proj_dim() : config_.attn.proj_dim();
  backend_.linear_fwd(s.proj, s.xn1, w(at(l).w_in), nullptr, T, N, config_.hidden);
}

void Executor::mixer_core(i64 l, const LayerBuffers& s, const Batch& b) {
  const LayerOffsets& o = at(l);
  if (linear_layer(l)) {
    const GdnShape& g = config_.gdn;
    backend_.gdn_prep_fwd(s.qkv, s.proj, p(o.conv), b, g);
    backend_.gdn_kkt_fwd(s.g, s.beta, s.ar, s.qkv, s.proj, p(o.a_log), p(o.dt_bias), b, g);
    backend_.gdn_fwd(s.o, s.state, s.qkv, s.g, s.beta, s.ar, b, g);
    backend_.gated_norm_fwd(s.y, s.o, s.proj, p(o.gated_norm), b.T, g, config_.norm_eps);
  } else {
    backend_.qk_norm_rope_fwd(s.q, s.k, s.proj, p(o.q_norm), p(o.k_norm), rope_, b, config_.attn,
                              config_.norm_eps);
    backend_.attention_fwd(s.y, s.o, s.lse, s.q, s.k, s.proj, b, config_.attn);
  }
}

void Executor::mixer_output(i64 l, const LayerBuffers& s, i64 T) {
  const i64 K = linear_layer(l) ? config_.gdn.values() : i64{config_.attn.heads} * config_.attn.head_dim;
  backend_.linear_fwd(s.xm, s.y, w(at(l).w_out), memory_.x(arena_, l), T, config_.hidden, K);
}

void Executor::mlp_input(i64 l, const LayerBuffers& s, i64 T) {
  backend_.rmsnorm_fwd(s.xn2, s.xm, p(at(l).post_norm), T, config_.hidden, config_.norm_eps);
}

void Executor::gate_up(i64 l, const LayerBuffers& s, i64 T) {
  backend_.linear_fwd(s.gu, s.xn2, w(at(l).w_gate_up), nullptr, T, 2 * config_.intermediate, config_.hidden);
}

// ---- head and loss

// Logits exist for head_rows rows at a time. Gradients are those of the un-normalised loss sum: the division
// by the step's supervised tokens is applied once, in the update.
void Executor::head(const Batch& b, bool train, bool accumulate, bool sums) {
  const i64 H = config_.hidden, V = config_.vocab, rows = b.num_loss;
  const Act* x = memory_.x(arena_, config_.num_layers());
  const size_t e = dtype_bytes(backend_.act_dtype());
  backend_.scope("forward", -1);
  backend_.rmsnorm_fwd(head_.xf, x, p(layout_.final_norm), b.T, H, config_.norm_eps);  // [1]
  need_unit(head_unit());
  if (train) claim_gradients(head_unit());
  const bool compacted = b.loss_row != nullptr;
  if (compacted) backend_.gather_rows(head_.compact, head_.xf, b.loss_row, rows, H);  // [2]
  const char* in = static_cast<const char*>(compacted ? head_.compact : head_.xf);
  char* d_in = static_cast<char*>(compacted ? head_.d_compact : head_.dxf);
  for (i64 row = 0; row < rows; row += options_.head_rows) {
    const i64 n = std::min(options_.head_rows, rows - row);
    const auto at = static_cast<size_t>(row * H) * e;
    backend_.scope("forward", -1);
    backend_.linear_fwd(head_.z, in + at, w(layout_.head), nullptr, n, V, H);
    backend_.cross_entropy(head_.z, head_.nll + row, b.loss_label + row, n, V, train);
    if (!train) continue;
    backend_.scope("backward", -1);
    backend_.linear_bwd_data(d_in + at, head_.z, w(layout_.head), n, V, H);
    weight_gradient(layout_.head, head_.z, in + at, n, V, H, accumulate || row > 0);
  }
  backend_.loss_sum(result_, head_.nll, rows);
  if (!train) return;
  if (sums && !config_.tied) sum_unit(head_unit());
  if (compacted) backend_.scatter_rows(head_.dxf, head_.d_compact, b.loss_row, rows, b.T, H);  // [7]
  backend_.rmsnorm_bwd(memory_.d(arena_), dp(layout_.final_norm), head_.dxf, x, p(layout_.final_norm),
                       nullptr, b.T, H,
                       config_.norm_eps);  // [8]
}

// ---- backward

void Executor::weight_gradient(i64 offset, const Act* dy, const Act* x, i64 T, i64 N, i64 K,
                               bool accumulate) {
  backend_.linear_bwd_weight(dw(offset), dw_type(), dy, x, T, N, K, accumulate);
}

void Executor::backward(const Batch& b, bool first, bool sums) {
  walk_backward(
      sums, [&](i64 l) { backward_layer(l, b, !first); },
      [&] {
        backend_.scope("backward", -1);
        void* d_table = dw(layout_.embed);
        // A tied table already holds the head's gradient of this micro-batch.
        if (first && !config_.tied)
          backend_.zero(d_table,
                        static_cast<size_t>(config_.vocab * config_.hidden) * dtype_bytes(dw_type()));
        backend_.embedding_bwd(d_table, dw_type(), memory_.d(arena_), b, config_.hidden);
      });
}

// ---- optimizer

void Executor::norm() {
  backend_.scope("optimizer", -1);
  if (options_.rank.world > 1)
    share_norm();
  else
    backend_.grad_norm(result_, segments_, scalars_);
}

void Executor::update() {
  const OptimizerOptions& o = options_.optimizer;
  norm();
  backend_.adamw(segments_, {o.beta1, o.beta2, o.eps, o.mode}, scalars_, result_);
  if (options_.rank.world > 1) gather_weights();
}

void Executor::backward_layer(i64 l, const Batch& b, bool accumulate) {
  const LayerBuffers s = memory_.recomputed(arena_, l);
  if (!s.keeps_xm) recompute_mixer(l, s, b);  // [0]
  backward_mlp(l, s, b.T, accumulate);
  if (s.keeps_xm) recompute_mixer(l, s, b);  // [15]
  backward_mixer(l, s, b, accumulate);
}

void Executor::recompute_mixer(i64 l, const LayerBuffers& s, const Batch& b) {
  backend_.scope("recompute", static_cast<int>(l));
  if (!s.keeps_norms) mixer_input(l, s, b.T);
  if (!s.keeps_proj) in_projection(l, s, b.T);
  if (!s.keeps_core) mixer_core(l, s, b);
  if (!s.keeps_xm) mixer_output(l, s, b.T);
}

void Executor::backward_mlp(i64 l, const LayerBuffers& s, i64 T, bool accumulate) {
  const BackwardBuffers g = memory_.backward(arena_, l);
  const LayerOffsets& o = at(l);
  const i64 H = config_.hidden, I = config_.intermediate;
  Act* d = memory_.d(arena_);
  const int layer = static_cast<int>(l);
  backend_.scope("recompute", layer);
  if (!s.keeps_norms) mlp_input(l, s, T);  // [7]
  if (!s.keeps_gu) gate_up(l, s, T);       // [8]
  backend_.scope("backward", layer);
  backend_.linear_bwd_data(g.dact, d, w(o.w_down), T, H, I);  // [9]
  // gu becomes dgu, and dact becomes act where act is gone.
  backend_.swiglu_bwd(s.gu, s.keeps_act ? nullptr : g.dact, g.dact, s.gu, T, I);                      // [10]
  weight_gradient(o.w_down, d, s.keeps_act ? s.act : g.dact, T, H, I, accumulate);                    // [11]
  backend_.linear_bwd_data(g.dxn2, s.gu, w(o.w_gate_up), T, 2 * I, H);                                // [12]
  weight_gradient(o.w_gate_up, s.gu, s.xn2, T, 2 * I, H, accumulate);                                 // [13]
  backend_.rmsnorm_bwd(d, dp(o.post_norm), g.dxn2, s.xm, p(o.post_norm), d, T, H, config_.norm_eps);  // [14]
}

void Executor::backward_mixer(i64 l, const LayerBuffers& s, const Batch& b, bool accumulate) {
  const BackwardBuffers g = memory_.backward(arena_, l);
  const LayerOffsets& o = at(l);
  const bool linear = linear_layer(l);
  const GdnShape& gs = config_.gdn;
  const AttnShape& as = config_.attn;
  const i64 T = b.T, H = config_.hidden, K = linear ? gs.values() : i64{as.heads} * as.head_dim;
  const i64 N = linear ? gs.proj_dim() : as.proj_dim();
  const float eps = config_.norm_eps;
  Act* d = memory_.d(arena_);
  backend_.scope("backward", static_cast<int>(l));
  backend_.linear_bwd_data(g.dy, d, w(o.w_out), T, H, K);  // [22]
  weight_gradient(o.w_out, d, s.y, T, H, K, accumulate);   // [23]
  if (linear) {
    backend_.gated_norm_bwd(g.d_o, g.dproj, dp(o.gated_norm), g.dy, s.o, s.proj, p(o.gated_norm), T, gs,
                            eps);  // [24]
    backend_.gdn_bwd(g.dq, g.dk, g.dv, g.d_gamma, g.d_beta, g.scratch_du, g.scratch_ds, g.d_o, s.qkv, s.g,
                     s.beta, s.ar, s.state, b, gs);  // [25]
    backend_.gdn_prep_bwd(g.dproj, dp(o.conv), dp(o.a_log), dp(o.dt_bias), g.dq, g.dk, g.dv, g.d_gamma,
                          g.d_beta, s.proj, s.qkv, s.beta, p(o.conv), p(o.a_log), p(o.dt_bias), b,
                          gs);  // [26]
  } else {
    backend_.attention_bwd(g.dq, g.dk, g.dproj, g.scratch_do, g.scratch_delta, g.dy, s.o, s.lse, s.q, s.k,
                           s.proj, b,
                           as);  // [25]
    backend_.qk_norm_rope_bwd(g.dproj, dp(o.q_norm), dp(o.k_norm), g.dq, g.dk, s.proj, p(o.q_norm),
                              p(o.k_norm), rope_, b, as, eps);  // [26]
  }
  backend_.linear_bwd_data(g.dxn1, g.dproj, w(o.w_in), T, N, H);  // [27]
  weight_gradient(o.w_in, g.dproj, s.xn1, T, N, H, accumulate);   // [28]
  backend_.rmsnorm_bwd(d, dp(o.input_norm), g.dxn1, memory_.x(arena_, l), p(o.input_norm), d, T, H,
                       eps);  // [29]
}

}  // namespace tessera
