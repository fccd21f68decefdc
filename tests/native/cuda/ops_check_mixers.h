// cuda_ops_check's groups gdn and attention: each operation of the two token mixers from the CPU's inputs.
#pragma once

#include "ops_check.h"

namespace tessera::check {

inline void OpsCheck::delta_net_case(const std::string& name, const TwinBatch& b, const GdnShape& s,
                                     float gate_scale) {
  const i64 T = b.cpu.T, P = s.proj_dim(), HV = s.value_heads, NC = b.cpu.num_chunk;
  std::vector<float> proj = twin_.normal(T * P, 1.0f);
  for (i64 t = 0; t < T; ++t) {
    for (i64 c = s.b_offset(); c < P; ++c) proj[t * P + c] *= gate_scale;
  }
  Tensor pj = twin_.act(proj), conv = twin_.f32(s.conv_dim() * s.conv_taps, 0.4f);
  Tensor a_log = twin_.f32(HV, 0.7f, gate_scale > 1.0f ? 1.0f : 0.0f), dt = twin_.f32(HV, 0.5f);
  Tensor qkv = twin_.out(T * s.conv_dim());
  check("gdn_prep_fwd " + name, {{"qkv", &qkv, 4e-3}}, [&](Backend& e, bool g) {
    e.gdn_prep_fwd(at(qkv, g), at(pj, g), f32_at(conv, g), g ? b.gpu : b.cpu, s);
  });
  twin_.share(qkv);

  // Slots of chunks that are not used may hold anything: zeros on both sides before, and not looked at.
  Tensor g_out = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor beta = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor ar = twin_.act(std::vector<float>(NC * HV * kChunk * kChunk, 0.0f));
  check("gdn_kkt_fwd " + name, {{"g", &g_out, 1e-3}, {"beta", &beta, 1e-3}, {"ar", &ar, 1.5e-2}},
        [&](Backend& e, bool g) {
          e.gdn_kkt_fwd(f32_at(g_out, g), f32_at(beta, g), at(ar, g), at(qkv, g), at(pj, g), f32_at(a_log, g),
                        f32_at(dt, g), g ? b.gpu : b.cpu, s);
        });
  twin_.share(g_out), twin_.share(beta), twin_.share(ar);

  Tensor o = twin_.out(T * s.values());
  Tensor state = twin_.act(std::vector<float>(NC * HV * s.key_dim * s.value_dim, 0.0f));
  // A state is in an order of the backend's own: gdn_bwd shows whether it is right.
  check("gdn_fwd " + name, {{"o", &o, 1.5e-2}}, [&](Backend& e, bool g) {
    e.gdn_fwd(at(o, g), at(state, g), at(qkv, g), f32_at(g_out, g), f32_at(beta, g), at(ar, g),
              g ? b.gpu : b.cpu, s);
  });
  twin_.share(o);

  Tensor d_o = twin_.act(T * s.values());
  Tensor dq = twin_.out(T * HV * s.key_dim), dk = twin_.out(T * HV * s.key_dim),
         dv = twin_.out(T * s.values());
  Tensor d_gamma = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor d_beta = twin_.f32(std::vector<float>(NC * HV * kChunk, 0.0f));
  Tensor du = twin_.out(T * s.values()), ds = twin_.out(NC * HV * s.key_dim * s.value_dim);
  check("gdn_bwd " + name,
        {{"dq", &dq, 1.5e-2},
         {"dk", &dk, 1.5e-2},
         {"dv", &dv, 1.5e-2},
         {"d_gamma", &d_gamma, 1.5e-2},
         {"d_beta", &d_beta, 1.5e-2}},
        [&](Backend& e, bool g) {
          e.gdn_bwd(at(dq, g), at(dk, g), at(dv, g), f32_at(d_gamma, g), f32_at(d_beta, g), at(du, g),
                    at(ds, g), at(d_o, g), at(qkv, g), f32_at(g_out, g), f32_at(beta, g), at(ar, g),
                    at(state, g), g ? b.gpu : b.cpu, s);
        });
  twin_.share(dq), twin_.share(dk), twin_.share(dv), twin_.share(d_gamma), twin_.share(d_beta);

  Tensor dproj = twin_.out(T * P);
  Tensor d_conv = twin_.accumulator(s.conv_dim() * s.conv_taps), d_a = twin_.accumulator(HV),
         d_dt = twin_.accumulator(HV);
  check("gdn_prep_bwd " + name,
        {{"dproj", &dproj, 4e-3},
         {"d_conv_w", &d_conv, 1e-3},
         {"d_a_log", &d_a, 1e-3},
         {"d_dt_bias", &d_dt, 1e-3}},
        [&](Backend& e, bool g) {
          e.gdn_prep_bwd(at(dproj, g), f32_at(d_conv, g), f32_at(d_a, g), f32_at(d_dt, g), at(dq, g),
                         at(dk, g), at(dv, g), f32_at(d_gamma, g), f32_at(d_beta, g), at(pj, g), at(qkv, g),
                         f32_at(beta, g), f32_at(conv, g), f32_at(a_log, g), f32_at(dt, g), g ? b.gpu : b.cpu,
                         s);
        });

  Tensor w = twin_.f32(s.value_dim, 0.3f, 1.0f), y = twin_.out(T * s.values()),
         dy = twin_.act(T * s.values());
  Tensor d_o2 = twin_.out(T * s.values()), dz = twin_.out(T * P), dw = twin_.accumulator(s.value_dim);
  check("gated_norm_fwd " + name, {{"y", &y, 4e-3}}, [&](Backend& e, bool g) {
    e.gated_norm_fwd(at(y, g), at(o, g), at(pj, g), f32_at(w, g), T, s, 1e-6f);
  });
  check("gated_norm_bwd " + name, {{"d_o", &d_o2, 4e-3}, {"dproj.z", &dz, 4e-3}, {"dw", &dw, 1e-3}},
        [&](Backend& e, bool g) {
          e.gated_norm_bwd(at(d_o2, g), at(dz, g), f32_at(dw, g), at(dy, g), at(o, g), at(pj, g),
                           f32_at(w, g), T, s, 1e-6f);
        });
  twin_.clear();
}

inline void OpsCheck::delta_net() {
  const auto run = [&](const char* name, const std::vector<i32>& lengths, GdnShape s, float gates) {
    delta_net_case(name, make_batch(twin_, lengths, 100), s, gates);
  };
  run("HK=1 HV=3", kMixed, {1, 3, 128, 128, 4}, 1.0f);
  run("HK=2 HV=2", kMixed, {2, 2, 128, 128, 4}, 1.0f);
  run("HK=16 HV=32", kMixed, {16, 32, 128, 128, 4}, 1.0f);
  run("long HK=2 HV=4", kLong, {2, 4, 128, 128, 4}, 1.0f);
  run("extreme gates HK=2 HV=4", kMixed, {2, 4, 128, 128, 4}, 15.0f);
}

inline void OpsCheck::attention_case(const std::string& name, const TwinBatch& b, const AttnShape& s) {
  const i64 T = b.cpu.T, P = s.proj_dim(), D = s.head_dim;
  Tensor pj = twin_.act(T * P), wq = twin_.f32(D, 0.2f), wk = twin_.f32(D, 0.2f);
  std::vector<float> table(4096 * s.rotary_dim);
  for (i64 p = 0; p < 4096; ++p) {
    for (i64 i = 0; i < s.rotary_dim / 2; ++i) {
      const double angle = p * std::pow(1e7, -2.0 * i / s.rotary_dim);
      table[p * s.rotary_dim + i] = static_cast<float>(std::cos(angle));
      table[p * s.rotary_dim + s.rotary_dim / 2 + i] = static_cast<float>(std::sin(angle));
    }
  }
  Tensor rope = twin_.f32(table);
  Tensor q = twin_.out(T * s.heads * D), k = twin_.out(T * s.kv_heads * D);
  check("qk_norm_rope_fwd " + name, {{"q", &q, 4e-3}, {"k", &k, 4e-3}}, [&](Backend& e, bool g) {
    e.qk_norm_rope_fwd(at(q, g), at(k, g), at(pj, g), f32_at(wq, g), f32_at(wk, g), f32_at(rope, g),
                       g ? b.gpu : b.cpu, s, 1e-6f);
  });
  twin_.share(q), twin_.share(k);
  Tensor y = twin_.out(T * s.heads * D), o = twin_.out(T * s.heads * D),
         lse = twin_.out(s.heads * T, DType::f32);
  check("attention_fwd " + name, {{"y", &y, 5e-3}, {"o", &o, 5e-3}, {"lse", &lse, 1e-3}},
        [&](Backend& e, bool g) {
          e.attention_fwd(at(y, g), at(o, g), f32_at(lse, g), at(q, g), at(k, g), at(pj, g),
                          g ? b.gpu : b.cpu, s);
        });
  twin_.share(o), twin_.share(lse);
  Tensor dy = twin_.act(T * s.heads * D), dq = twin_.out(T * s.heads * D), dk = twin_.out(T * s.kv_heads * D);
  Tensor dproj = twin_.out(T * P), sdo = twin_.out(T * s.heads * D),
         sdelta = twin_.out(s.heads * T, DType::f32);
  check("attention_bwd " + name, {{"dq", &dq, 1e-2}, {"dk", &dk, 1e-2}, {"dproj gate, v", &dproj, 1e-2}},
        [&](Backend& e, bool g) {
          e.attention_bwd(at(dq, g), at(dk, g), at(dproj, g), at(sdo, g), f32_at(sdelta, g), at(dy, g),
                          at(o, g), f32_at(lse, g), at(q, g), at(k, g), at(pj, g), g ? b.gpu : b.cpu, s);
        });
  twin_.share(dq), twin_.share(dk);
  Tensor dproj2 = twin_.out(T * P), dwq = twin_.accumulator(D), dwk = twin_.accumulator(D);
  check("qk_norm_rope_bwd " + name, {{"dproj q, k", &dproj2, 4e-3}, {"dwq", &dwq, 1e-3}, {"dwk", &dwk, 1e-3}},
        [&](Backend& e, bool g) {
          e.qk_norm_rope_bwd(at(dproj2, g), f32_at(dwq, g), f32_at(dwk, g), at(dq, g), at(dk, g), at(pj, g),
                             f32_at(wq, g), f32_at(wk, g), f32_at(rope, g), g ? b.gpu : b.cpu, s, 1e-6f);
        });
  twin_.clear();
}

inline void OpsCheck::attention() {
  attention_case("NH=2 NKV=1", make_batch(twin_, kMixed, 100), {2, 1, 256, 64});
  attention_case("NH=8 NKV=2", make_batch(twin_, kMixed, 100), {8, 2, 256, 64});
  attention_case("long NH=4 NKV=2", make_batch(twin_, kLong, 100), {4, 2, 256, 64});
}

}  // namespace tessera::check
