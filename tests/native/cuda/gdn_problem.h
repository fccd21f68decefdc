// The gated delta rule's problem for the checks and the times: random inputs in several regimes, and what the
// recurrence gives, written out in double precision.
#pragma once

#include <utility>

#include "check.h"
#include "ops/gdn/gdn_cuda.h"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::check {

enum class Regime { normal, slow, fast, beta_one, beta_zero, same_keys, zeros_and_large };

inline const char* name_of(Regime r) {
  switch (r) {
    case Regime::normal:
      return "normal";
    case Regime::slow:
      return "decay 1e-6";
    case Regime::fast:
      return "decay 20 a token";
    case Regime::beta_one:
      return "beta 1";
    case Regime::beta_zero:
      return "beta 0";
    case Regime::same_keys:
      return "identical keys";
    case Regime::zeros_and_large:
      return "zero q, k, v; |v| 1e3";
  }
  return "";
}

struct Problem {
  Problem(const std::vector<int>& lengths, GdnShape s, Regime regime, std::uint64_t seed)
      : batch(lengths),
        shape(s),
        T(batch.tokens()),
        slots(static_cast<size_t>(batch.num_chunk()) * s.value_heads),
        qkv(T * s.conv_dim()),
        proj(T * s.proj_dim()),
        a_log(s.value_heads),
        dt_bias(s.value_heads),
        d_o(T * s.values()),
        g(slots * kChunk),
        beta(slots * kChunk),
        d_gamma(slots * kChunk),
        d_beta(slots * kChunk),
        ar(slots * kChunk * kChunk),
        state(slots * s.key_dim * s.value_dim),
        ds(slots * s.key_dim * s.value_dim),
        o(T * s.values()),
        dv(T * s.values()),
        du(T * s.values()),
        dq(static_cast<size_t>(T) * s.value_heads * s.key_dim),
        dk(static_cast<size_t>(T) * s.value_heads * s.key_dim) {
    fill(regime, seed);
  }

  void fill(Regime regime, std::uint64_t seed) {
    Random shared(seed);
    const int K = shape.key_dim;
    for (int h = 0; h < shape.value_heads; ++h) {
      const double dt = 0.001 + 0.099 * shared.uniform();
      a_log.host[h] = static_cast<float>(std::log(1.0 + 15.0 * shared.uniform()));
      dt_bias.host[h] = static_cast<float>(std::log(std::expm1(dt)));
      if (regime == Regime::slow) dt_bias.host[h] = -14.0f;
      if (regime == Regime::fast) a_log.host[h] = std::log(16.0f), dt_bias.host[h] = 1.0f;
      if (regime == Regime::same_keys) a_log.host[h] = 0.0f, dt_bias.host[h] = -4.0f;
    }
    std::vector<double> shared_key(shape.keys());
    for (double& x : shared_key) x = shared.normal();
    parallel_for(T, [&](int t) {
      Random random(seed * 1000003 + t);
      std::vector<double> row;
      const bool zero = regime == Regime::zeros_and_large && t % 7 == 3;
      for (i64 block = 0; block < 2 * shape.key_heads; ++block) {
        row.assign(K, 0.0);
        double norm = 1e-6;
        for (int d = 0; d < K; ++d) {
          row[d] = random.normal();
          if (regime == Regime::same_keys && block >= shape.key_heads)
            row[d] = shared_key[(block - shape.key_heads) * K + d] + 0.02 * row[d];
          if (zero) row[d] = 0.0;
          norm += row[d] * row[d];
        }
        for (int d = 0; d < K; ++d)
          qkv.host[t * shape.conv_dim() + block * K + d] =
              to_bf16(static_cast<float>(row[d] / std::sqrt(norm)));
      }
      const double size = regime == Regime::zeros_and_large ? (t % 5 == 0 ? 1000.0 : 1.0) : 1.0;
      for (i64 i = 0; i < shape.values(); ++i) {
        qkv.host[t * shape.conv_dim() + 2 * shape.keys() + i] =
            to_bf16(static_cast<float>(zero ? 0.0 : size * random.normal()));
        d_o.host[t * shape.values() + i] = to_bf16(static_cast<float>(random.normal()));
      }
      for (int h = 0; h < shape.value_heads; ++h) {
        double b = 1.5 * random.normal(), a = 0.5 * random.normal();
        if (regime == Regime::beta_one) b = 12.0 + b;
        if (regime == Regime::beta_zero) b = t % 3 == 0 ? -100.0 : -10.0 + b;
        proj.host[t * shape.proj_dim() + shape.b_offset() + h] = to_bf16(static_cast<float>(b));
        proj.host[t * shape.proj_dim() + shape.a_offset() + h] = to_bf16(static_cast<float>(a));
      }
    });
    upload();
  }

  void upload() {
    qkv.upload();
    proj.upload();
    a_log.upload();
    dt_bias.upload();
    d_o.upload();
  }

  void run(KernelTier tier) {
    for (FloatBuffer* b : {&g, &beta, &d_gamma, &d_beta}) b->poison();
    for (Bf16Buffer* b : {&ar, &state, &ds, &o, &dv, &du, &dq, &dk}) b->poison();
    kkt(tier);
    forward(tier);
    launch_gdn_bwd(dq.device(), dk.device(), dv.device(), d_gamma.device(), d_beta.device(), du.device(),
                   ds.device(), d_o.device(), qkv.device(), g.device(), beta.device(), ar.device(),
                   state.device(), batch.view(), shape, tier, nullptr);
    require(cudaDeviceSynchronize(), "gated delta rule");
    for (FloatBuffer* b : {&g, &beta, &d_gamma, &d_beta}) b->download();
    for (Bf16Buffer* b : {&ar, &state, &o, &dv, &dq, &dk}) b->download();
  }
  void kkt(KernelTier tier) {
    launch_gdn_kkt_fwd(g.device(), beta.device(), ar.device(), qkv.device(), proj.device(), a_log.device(),
                       dt_bias.device(), batch.view(), shape, tier, nullptr);
  }
  void forward(KernelTier tier, bool keep_state = true) {
    launch_gdn_fwd(o.device(), keep_state ? state.device() : nullptr, qkv.device(), g.device(), beta.device(),
                   ar.device(), batch.view(), shape, tier, nullptr);
  }

  PackedBatch batch;
  GdnShape shape;
  int T;
  size_t slots;
  Bf16Buffer qkv, proj;
  FloatBuffer a_log, dt_bias;
  Bf16Buffer d_o;
  FloatBuffer g, beta, d_gamma, d_beta;
  Bf16Buffer ar, state, ds, o, dv, du, dq, dk;
};

// Everything the kernels produce, per token and value head, in double precision.
struct Reference {
  explicit Reference(const Problem& p) : p(p), s(p.shape) {
    const size_t rows = static_cast<size_t>(p.T) * s.value_heads;
    gamma.resize(rows);
    beta.resize(rows);
    o.resize(rows * s.value_dim);
    dq.resize(rows * s.key_dim);
    dk.resize(rows * s.key_dim);
    dv.resize(rows * s.value_dim);
    d_gamma.resize(rows);
    d_beta.resize(rows);
    parallel_for(p.batch.num_sequences() * s.value_heads,
                 [&](int i) { run_head(i / s.value_heads, i % s.value_heads); });
  }

  void run_head(int seq, int head) {
    const int K = s.key_dim, V = s.value_dim, begin = p.batch.begin(seq), n = p.batch.length(seq);
    const double scale = 1.0 / std::sqrt(static_cast<double>(K));
    const size_t size = static_cast<size_t>(K) * V;
    std::vector<double> S(size, 0.0), dS(size, 0.0), starts, inside, q(K), k(K), error(V), d_delta(V);
    const auto load = [&](int t) {
      const std::uint16_t* row = p.qkv.host.data() + t * s.conv_dim() + head / s.group() * K;
      for (int d = 0; d < K; ++d) {
        q[d] = from_bf16(row[d]);
        k[d] = from_bf16(row[s.keys() + d]);
      }
      const size_t at = static_cast<size_t>(t) * s.value_heads + head;
      const std::uint16_t* gate = p.proj.host.data() + t * s.proj_dim();
      const double a = from_bf16(gate[s.a_offset() + head]) + static_cast<double>(p.dt_bias.host[head]);
      beta[at] = 1.0 / (1.0 + std::exp(-static_cast<double>(from_bf16(gate[s.b_offset() + head]))));
      gamma[at] =
          -std::exp(static_cast<double>(p.a_log.host[head])) * (a > 20.0 ? a : std::log1p(std::exp(a)));
      return at;
    };
    // S becomes e^gamma S, `error` v - S^T k, then S += beta k error^T.
    const auto step = [&](int t) {
      const size_t at = load(t);
      const double alpha = std::exp(gamma[at]);
      const std::uint16_t* v = p.qkv.host.data() + t * s.conv_dim() + 2 * s.keys() + head * V;
      for (int j = 0; j < V; ++j) error[j] = from_bf16(v[j]);
      for (int d = 0; d < K; ++d)
        for (int j = 0; j < V; ++j) error[j] -= (S[d * V + j] *= alpha) * k[d];
      for (int d = 0; d < K; ++d)
        for (int j = 0; j < V; ++j) S[d * V + j] += beta[at] * k[d] * error[j];
      return at;
    };
    for (int i = 0; i < n; ++i) {
      if (i % kChunk == 0) starts.insert(starts.end(), S.begin(), S.end());
      const size_t at = step(begin + i);
      for (int d = 0; d < K; ++d)
        for (int j = 0; j < V; ++j) o[at * V + j] += scale * q[d] * S[d * V + j];
    }
    for (int first = (n - 1) / kChunk * kChunk; n > 0 && first >= 0; first -= kChunk) {
      const int last = std::min(n, first + kChunk);
      std::copy_n(starts.begin() + static_cast<long>(first / kChunk * size), size, S.begin());
      inside.assign(S.begin(), S.end());
      for (int i = first; i < last; ++i) {
        step(begin + i);
        inside.insert(inside.end(), S.begin(), S.end());
      }
      for (int i = last - 1; i >= first; --i) {
        const double *after = inside.data() + (i - first + 1) * size,
                     *before = inside.data() + (i - first) * size;
        std::copy_n(before, size, S.begin());
        const size_t at = step(begin + i);
        const double alpha = std::exp(gamma[at]);
        const std::uint16_t* grad = p.d_o.host.data() + (begin + i) * s.values() + head * V;
        std::fill(d_delta.begin(), d_delta.end(), 0.0);
        for (int d = 0; d < K; ++d) {
          for (int j = 0; j < V; ++j) {
            const double dout = scale * from_bf16(grad[j]);
            dq[at * K + d] += after[d * V + j] * dout;
            dS[d * V + j] += q[d] * dout;
            d_delta[j] += dS[d * V + j] * k[d];
          }
        }
        for (int j = 0; j < V; ++j) {
          d_beta[at] += d_delta[j] * error[j];
          dv[at * V + j] = beta[at] * d_delta[j];
        }
        for (int d = 0; d < K; ++d) {
          for (int j = 0; j < V; ++j) {
            const double decayed = alpha * before[d * V + j], dx = dv[at * V + j];
            dk[at * K + d] += dS[d * V + j] * beta[at] * error[j] - decayed * dx;
            dS[d * V + j] -= k[d] * dx;
            d_gamma[at] += dS[d * V + j] * decayed;
            dS[d * V + j] *= alpha;
          }
        }
      }
    }
  }

  const Problem& p;
  const GdnShape s;
  std::vector<double> gamma, beta, o, dq, dk, dv, d_gamma, d_beta;
};

inline const char* name_of(KernelTier tier) {
  return tier == KernelTier::hopper ? "hopper" : tier == KernelTier::portable ? "portable" : "reference";
}

}  // namespace tessera::check
