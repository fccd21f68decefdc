// Times of the gated delta rule's kernels, one table a tier.
#pragma once

#include "gdn_problem.h"
#include "ops/gdn/gdn_prep_cuda.h"

namespace tessera::check {

// The convolution and the gates before the rule, forward and backward, on the problem's gradients.
class Preparation {
 public:
  explicit Preparation(Problem& p)
      : p_(p),
        conv_w_(p.shape.conv_dim() * p.shape.conv_taps),
        d_conv_w_(conv_w_.host.size()),
        d_gates_(2 * p.shape.value_heads),
        scratch_(gdn_prep_bwd_scratch_bytes(p.T, p.batch.num_chunk(), p.shape) / sizeof(float)),
        qkv_(p.qkv.host.size()),
        dproj_(p.proj.host.size()) {
    Random random(77);
    for (float& w : conv_w_.host) w = static_cast<float>(0.4 * random.normal());
    conv_w_.upload();
    parallel_for(p.T, [&](int t) {
      Random row(1000 + t);
      for (i64 c = 0; c < p.shape.conv_dim(); ++c)
        p.proj.host[t * p.shape.proj_dim() + c] = to_bf16(static_cast<float>(row.normal()));
    });
    p.proj.upload();
  }
  void forward() {
    launch_gdn_prep_fwd(as_bf16(qkv_), as_bf16(p_.proj), conv_w_.device(), p_.batch.view(), p_.shape,
                        nullptr);
  }
  void backward() {
    const GdnPrepBackward call{
        as_bf16(dproj_),    d_conv_w_.device(),  d_gates_.device(), d_gates_.device() + p_.shape.value_heads,
        as_bf16(p_.dq),     as_bf16(p_.dk),      as_bf16(p_.dv),    p_.d_gamma.device(),
        p_.d_beta.device(), as_bf16(p_.proj),    p_.beta.device(),  conv_w_.device(),
        p_.a_log.device(),  p_.dt_bias.device(), scratch_.device()};
    launch_gdn_prep_bwd(call, p_.batch.view(), p_.shape, nullptr);
  }

 private:
  static bf16* as_bf16(const Bf16Buffer& b) { return reinterpret_cast<bf16*>(b.device()); }

  Problem& p_;
  FloatBuffer conv_w_, d_conv_w_, d_gates_, scratch_;
  Bf16Buffer qkv_, dproj_;
};

inline void bench(KernelTier tier) {
  const bool hopper = tier == KernelTier::hopper;
  const std::vector<int> even(8, 1024), one = {8192},
                                        chat = {2600, 1700, 1100, 800, 600, 400, 300, 250, 180, 120, 80, 62};
  std::printf("\n%s\n", name_of(tier));
  std::printf("%-8s %-12s %9s %9s %9s %9s %9s | %9s %9s %9s %9s\n", "heads", "lengths", "kkt ms", "fwd ms",
              "kkt+fwd", "bwd state", "bwd chunk", "bwd ms", "fwd/keep", "prep fwd", "prep bwd");
  for (const auto& [hk, hv] : {std::pair{16, 48}, std::pair{16, 32}, std::pair{16, 16}}) {
    for (const auto& [what, lengths] :
         {std::pair{"8x1024", even}, std::pair{"1x8192", one}, std::pair{"chat 12", chat}}) {
      Problem p(lengths, GdnShape{hk, hv, 128, 128, 4}, Regime::normal, 3);
      p.run(tier);
      const Batch b = p.batch.view();
      const gdn::Args args =
          gdn::make_args<bf16>(p.qkv.device(), p.g.device(), p.beta.device(), p.ar.device(), b, p.shape);
      const gdn::Gradients out{reinterpret_cast<bf16*>(p.dq.device()),
                               reinterpret_cast<bf16*>(p.dk.device()),
                               reinterpret_cast<bf16*>(p.dv.device()),
                               p.d_gamma.device(),
                               p.d_beta.device(),
                               reinterpret_cast<bf16*>(p.du.device()),
                               reinterpret_cast<bf16*>(p.ds.device())};
      const auto* d_o = reinterpret_cast<const bf16*>(p.d_o.device());
      const auto* state = reinterpret_cast<const bf16*>(p.state.device());
      const double kkt = median_ms([&] { p.kkt(tier); });
      const double fwd = median_ms([&] { p.forward(tier, false); });
      const double keep = median_ms([&] { p.forward(tier, true); });
      const double bwd_state = median_ms([&] {
        (hopper ? gdn::run_bwd_state_wgmma : gdn::run_bwd_state)(args, out, d_o, b.num_seq, nullptr);
      });
      const double bwd_chunk = median_ms([&] {
        (hopper ? gdn::run_bwd_chunk_wgmma : gdn::run_bwd_chunk)(args, out, d_o, state, b.num_chunk, nullptr);
      });
      Preparation preparation(p);
      const double prep_fwd = median_ms([&] { preparation.forward(); });
      const double prep_bwd = median_ms([&] { preparation.backward(); });
      std::printf("%2d/%-5d %-12s %9.3f %9.3f %9.3f %9.3f %9.3f | %9.3f %9.3f %9.3f %9.3f\n", hk, hv, what,
                  kkt, fwd, kkt + fwd, bwd_state, bwd_chunk, bwd_state + bwd_chunk, keep, prep_fwd, prep_bwd);
    }
  }
}

}  // namespace tessera::check
