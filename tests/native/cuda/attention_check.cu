// Checks and times packed causal attention on CUDA against the formulas written out in double precision.
//   attention_check          correctness: packed lengths, head groups, isolation, determinism; both tiers
//   attention_check --bench  the same, then times
//   attention_check --times  the times of the hopper tier alone, for a profiler
//   attention_check --quick | --quick-hopper  one small problem of that tier, for compute-sanitizer
// Exit code 0 only where every check passed.
#include "check.h"
#include "ops/attention/attention_cuda.h"
#include "ops/attention/attention_kernels.h"

namespace tessera::check {
namespace {

struct Problem {
  Problem(const std::vector<int>& lengths, AttnShape s, double sharpness, std::uint64_t seed)
      : batch(lengths),
        shape(s),
        T(batch.tokens()),
        q(static_cast<size_t>(T) * s.heads * s.head_dim),
        k(static_cast<size_t>(T) * s.kv_heads * s.head_dim),
        proj(T * s.proj_dim()),
        dy(q.host.size()),
        y(q.host.size()),
        o(q.host.size()),
        d_o(q.host.size()),
        dq(q.host.size()),
        dk(k.host.size()),
        dproj(proj.host.size()),
        lse(static_cast<size_t>(T) * s.heads),
        delta(lse.host.size()) {
    for (Bf16Buffer* b : {&q, &k, &proj, &dy}) {
      const std::uint64_t tensor = b == &q ? 0 : b == &k ? 1 : b == &proj ? 2 : 3;
      const size_t width = b->host.size() / std::max(T, 1);
      parallel_for(T, [&](int t) {
        Random random((seed * 4 + tensor) * 1000003 + t);
        for (size_t i = t * width; i < (t + 1) * width; ++i)
          b->host[i] = to_bf16(static_cast<float>((b == &q ? sharpness : 1.0) * random.normal()));
      });
    }
    upload();
  }
  void upload() {
    for (Bf16Buffer* b : {&q, &k, &proj, &dy}) b->upload();
  }
  void forward(KernelTier tier) {
    launch_attention_fwd(y.device(), o.device(), lse.device(), q.device(), k.device(), proj.device(),
                         batch.view(), shape, tier, nullptr);
  }
  void run(KernelTier tier) {
    for (Bf16Buffer* b : {&y, &o, &d_o, &dq, &dk, &dproj}) b->poison();
    lse.poison();
    delta.poison();
    forward(tier);
    launch_attention_bwd(dq.device(), dk.device(), dproj.device(), d_o.device(), delta.device(), dy.device(),
                         o.device(), lse.device(), q.device(), k.device(), proj.device(), batch.view(), shape,
                         tier, nullptr);
    require(cudaDeviceSynchronize(), "attention");
    for (Bf16Buffer* b : {&y, &o, &dq, &dk, &dproj}) b->download();
    lse.download();
  }
  const std::uint16_t* v_row(int t, int kv_head) const {
    return proj.host.data() + t * shape.proj_dim() + shape.v_offset() + kv_head * shape.head_dim;
  }
  const std::uint16_t* gate_row(int t, int head) const {
    return proj.host.data() + t * shape.proj_dim() + (2 * head + 1) * shape.head_dim;
  }

  PackedBatch batch;
  AttnShape shape;
  int T;
  Bf16Buffer q, k, proj, dy, y, o, d_o, dq, dk, dproj;
  FloatBuffer lse, delta;
};

struct Reference {
  explicit Reference(const Problem& p) : p(p), s(p.shape), D(s.head_dim) {
    for (auto* x : {&y, &o, &dq, &dgate, &q, &grad}) x->resize(p.q.host.size());
    for (auto* x : {&dk, &dv, &k, &v}) x->resize(p.k.host.size());
    for (auto* x : {&lse, &delta}) x->resize(p.lse.host.size());
    for (size_t i = 0; i < q.size(); ++i) q[i] = from_bf16(p.q.host[i]);
    for (int t = 0; t < p.T; ++t) {
      for (int h = 0; h < s.kv_heads; ++h) {
        for (int d = 0; d < D; ++d) {
          k[key_at(t, h) + d] = from_bf16(p.k.host[key_at(t, h) + d]);
          v[key_at(t, h) + d] = from_bf16(p.v_row(t, h)[d]);
        }
      }
    }
    for (int seq = 0; seq < p.batch.num_sequences(); ++seq) {
      const int begin = p.batch.begin(seq), n = p.batch.length(seq);
      parallel_for(n * s.heads, [&](int i) { run_query(begin, begin + i / s.heads, i % s.heads); });
      parallel_for(n * s.kv_heads,
                   [&](int i) { run_key(begin + n, begin + i / s.kv_heads, i % s.kv_heads); });
    }
  }
  size_t query_at(int t, int head) const { return (static_cast<size_t>(t) * s.heads + head) * D; }
  size_t key_at(int t, int kv_head) const { return (static_cast<size_t>(t) * s.kv_heads + kv_head) * D; }
  double dot(const double* a, const double* b) const {
    double sum = 0.0;
    for (int d = 0; d < D; ++d) sum += a[d] * b[d];
    return sum;
  }
  void run_query(int begin, int t, int head) {
    const int n = t - begin + 1, kv_head = head * s.kv_heads / s.heads;
    const size_t at = query_at(t, head), row = static_cast<size_t>(head) * p.T + t;
    const double scale = 1.0 / std::sqrt(static_cast<double>(D));
    std::vector<double> probability(n);
    double max = -1e300, sum = 0.0;
    for (int j = 0; j < n; ++j)
      max = std::max(max, probability[j] = scale * dot(&q[at], &k[key_at(begin + j, kv_head)]));
    for (double& x : probability) sum += x = std::exp(x - max);
    lse[row] = max + std::log(sum);
    for (int j = 0; j < n; ++j) {
      probability[j] /= sum;
      for (int d = 0; d < D; ++d) o[at + d] += probability[j] * v[key_at(begin + j, kv_head) + d];
    }
    for (int d = 0; d < D; ++d) {
      const double sig = 1.0 / (1.0 + std::exp(-static_cast<double>(from_bf16(p.gate_row(t, head)[d]))));
      const double dy = from_bf16(p.dy.host[at + d]);
      y[at + d] = o[at + d] * sig;
      grad[at + d] = dy * sig;
      dgate[at + d] = dy * o[at + d] * sig * (1.0 - sig);
      delta[row] += grad[at + d] * o[at + d];
    }
    for (int j = 0; j < n; ++j) {
      const size_t key = key_at(begin + j, kv_head);
      const double ds = scale * probability[j] * (dot(&grad[at], &v[key]) - delta[row]);
      for (int d = 0; d < D; ++d) dq[at + d] += ds * k[key + d];
    }
  }
  void run_key(int end, int t, int kv_head) {
    const int group = s.heads / s.kv_heads;
    const size_t key = key_at(t, kv_head);
    const double scale = 1.0 / std::sqrt(static_cast<double>(D));
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int i = t; i < end; ++i) {
        const size_t at = query_at(i, head), row = static_cast<size_t>(head) * p.T + i;
        const double probability = std::exp(scale * dot(&q[at], &k[key]) - lse[row]);
        const double ds = scale * probability * (dot(&grad[at], &v[key]) - delta[row]);
        for (int d = 0; d < D; ++d) {
          dv[key + d] += probability * grad[at + d];
          dk[key + d] += ds * q[at + d];
        }
      }
    }
  }

  const Problem& p;
  const AttnShape s;
  const int D;
  std::vector<double> q, k, v, grad, delta, y, o, dq, dgate, dk, dv, lse;
};

void compare(Report& report, const Problem& p, const std::string& what, double limit, double grad_limit) {
  const Reference want(p);
  const AttnShape& s = p.shape;
  const int sequences = p.batch.num_sequences(), D = s.head_dim;
  Comparison lse(what + " lse", sequences), o(what + " o", sequences), y(what + " y", sequences),
      dq(what + " dq", sequences), dk(what + " dk", sequences), dv(what + " dv", sequences),
      dgate(what + " d_gate", sequences);
  for (int seq = 0; seq < sequences; ++seq) {
    for (int t = p.batch.begin(seq); t < p.batch.begin(seq) + p.batch.length(seq); ++t) {
      const long index = static_cast<long>(t - p.batch.begin(seq));
      for (int h = 0; h < s.heads; ++h) {
        const size_t row = static_cast<size_t>(h) * p.T + t, at = (static_cast<size_t>(t) * s.heads + h) * D;
        lse.add(seq, p.lse.host[row], want.lse[row], index * s.heads + h);
        const size_t gate_at = t * s.proj_dim() + (2 * h + 1) * D;
        for (int d = 0; d < D; ++d) {
          const long where = (index * s.heads + h) * D + d;
          o.add(seq, from_bf16(p.o.host[at + d]), want.o[at + d], where);
          y.add(seq, from_bf16(p.y.host[at + d]), want.y[at + d], where);
          dq.add(seq, from_bf16(p.dq.host[at + d]), want.dq[at + d], where);
          dgate.add(seq, from_bf16(p.dproj.host[gate_at + d]), want.dgate[at + d], where);
        }
      }
      for (int h = 0; h < s.kv_heads; ++h) {
        const size_t at = (static_cast<size_t>(t) * s.kv_heads + h) * D;
        const size_t v_at = t * s.proj_dim() + s.v_offset() + h * D;
        for (int d = 0; d < D; ++d) {
          const long where = (index * s.kv_heads + h) * D + d;
          dk.add(seq, from_bf16(p.dk.host[at + d]), want.dk[at + d], where);
          dv.add(seq, from_bf16(p.dproj.host[v_at + d]), want.dv[at + d], where);
        }
      }
    }
  }
  lse.report(report, 1e-5);
  o.report(report, limit);
  y.report(report, limit);
  dgate.report(report, 1e-2);
  dv.report(report, grad_limit);
  dq.report(report, grad_limit);
  dk.report(report, grad_limit);
}

std::vector<std::uint32_t> bits_of(const Problem& p, int seq) {
  std::vector<std::uint32_t> bits;
  const AttnShape& s = p.shape;
  const int begin = p.batch.begin(seq), n = p.batch.length(seq);
  const auto rows = [&](const Bf16Buffer& b, size_t width) {
    bits.insert(bits.end(), b.host.begin() + static_cast<long>(begin * width),
                b.host.begin() + static_cast<long>((begin + n) * width));
  };
  const size_t width = static_cast<size_t>(s.heads) * s.head_dim;
  rows(p.y, width);
  rows(p.o, width);
  rows(p.dq, width);
  rows(p.dk, static_cast<size_t>(s.kv_heads) * s.head_dim);
  rows(p.dproj, s.proj_dim());
  for (int h = 0; h < s.heads; ++h) {
    for (int i = 0; i < n; ++i) {
      std::uint32_t word;
      std::memcpy(&word, &p.lse.host[static_cast<size_t>(h) * p.T + begin + i], 4);
      bits.push_back(word);
    }
  }
  return bits;
}

void check_packing(Report& report, const AttnShape& shape, KernelTier tier) {
  // The last long enough for the gradients of its first keys to be halved between two blocks.
  const std::vector<int> lengths = {65, 0, 129, 1, 64, 200, 3, 1700};
  Problem packed(lengths, shape, 1.0, 11);
  packed.run(tier);
  std::vector<std::vector<std::uint32_t>> first;
  for (int seq = 0; seq < packed.batch.num_sequences(); ++seq) first.push_back(bits_of(packed, seq));
  bool same = true;
  packed.run(tier);
  for (int seq = 0; seq < packed.batch.num_sequences(); ++seq)
    same = same && bits_of(packed, seq) == first[seq];
  report.line(same, "two runs bit-identical");
  for (int seq = 0; seq < packed.batch.num_sequences(); ++seq) {
    if (lengths[seq] == 0) continue;
    Problem alone({lengths[seq]}, shape, 1.0, 1);
    const auto rows = [&](Bf16Buffer& to, const Bf16Buffer& from, i64 width) {
      std::copy_n(from.host.begin() + packed.batch.begin(seq) * width, lengths[seq] * width, to.host.begin());
    };
    rows(alone.q, packed.q, i64{shape.heads} * shape.head_dim);
    rows(alone.k, packed.k, i64{shape.kv_heads} * shape.head_dim);
    rows(alone.proj, packed.proj, shape.proj_dim());
    rows(alone.dy, packed.dy, i64{shape.heads} * shape.head_dim);
    alone.upload();
    alone.run(tier);
    report.line(bits_of(alone, 0) == first[seq], "alone = packed, length " + std::to_string(lengths[seq]));
  }
  Random random(5);
  for (const int victim : {2, 5}) {
    const auto disturb = [&](Bf16Buffer& b, i64 width) {
      for (i64 i = packed.batch.begin(victim) * width;
           i < (packed.batch.begin(victim) + lengths[victim]) * width; ++i)
        b.host[i] = to_bf16(static_cast<float>(random.normal()));
    };
    disturb(packed.q, i64{shape.heads} * shape.head_dim);
    disturb(packed.k, i64{shape.kv_heads} * shape.head_dim);
    disturb(packed.proj, shape.proj_dim());
    disturb(packed.dy, i64{shape.heads} * shape.head_dim);
  }
  packed.upload();
  packed.run(tier);
  bool isolated = true, changed = true;
  for (int seq = 0; seq < packed.batch.num_sequences(); ++seq) {
    const bool equal = bits_of(packed, seq) == first[seq];
    if (seq == 2 || seq == 5)
      changed = changed && !equal;
    else
      isolated = isolated && equal;
  }
  report.line(isolated && changed, "perturbed sequences change themselves alone");
}

void check_refusal(Report& report) {
  std::string code;
  Problem p({3}, AttnShape{2, 1, 128, 32}, 1.0, 1);
  try {
    p.run(KernelTier::portable);
  } catch (const EngineError& e) {
    code = e.code();
  }
  report.line(code == "unsupported_head_size", "portable tier refuses heads of 128", code);
}

const char* name_of(KernelTier tier) {
  return tier == KernelTier::hopper ? "hopper" : tier == KernelTier::portable ? "portable" : "reference";
}

// Useful flops: half of the square, 4 D a pair forward, 10 D backward.
void bench(KernelTier tier) {
  const std::vector<int> even(8, 1024), one = {8192},
                                        chat = {2600, 1700, 1100, 800, 600, 400, 300, 250, 180, 120, 80, 62};
  std::printf("\n%s\n", name_of(tier));
  std::printf("%-8s %-8s %9s %9s %9s %9s %9s %9s | %9s\n", "heads", "lengths", "fwd ms", "TFLOP/s", "gate ms",
              "dkv ms", "dq ms", "bwd ms", "TFLOP/s");
  for (const auto& [heads, kv_heads] : {std::pair{24, 4}, std::pair{8, 2}}) {
    for (const auto& [what, lengths] :
         {std::pair{"8x1024", even}, std::pair{"1x8192", one}, std::pair{"chat 12", chat}}) {
      Problem p(lengths, AttnShape{heads, kv_heads, 256, 64}, 1.0, 3);
      p.run(tier);
      double pairs = 0.0;
      for (int n : lengths) pairs += 0.5 * n * n;
      const Batch b = p.batch.view();
      attention::Args args{};
      args.q = reinterpret_cast<const bf16*>(p.q.device());
      args.k = reinterpret_cast<const bf16*>(p.k.device());
      args.proj = reinterpret_cast<const bf16*>(p.proj.device());
      args.chunk = b.chunk;
      args.cu = b.cu;
      args.pos = b.pos;
      args.seq_end = b.seq_end;
      args.tokens = b.T;
      args.num_seq = b.num_seq;
      args.num_chunk = b.num_chunk;
      args.heads = heads;
      args.kv_heads = kv_heads;
      args.group = heads / kv_heads;
      args.head_dim = 256;
      args.proj_dim = p.shape.proj_dim();
      args.v_offset = p.shape.v_offset();
      const attention::Gradients out{reinterpret_cast<bf16*>(p.dq.device()),
                                     reinterpret_cast<bf16*>(p.dk.device()),
                                     reinterpret_cast<bf16*>(p.dproj.device()),
                                     reinterpret_cast<bf16*>(p.d_o.device()), p.delta.device()};
      const auto* dy = reinterpret_cast<const bf16*>(p.dy.device());
      const auto* o = reinterpret_cast<const bf16*>(p.o.device());
      const double fwd = median_ms([&] { p.forward(tier); });
      const double gate = median_ms([&] { attention::run_bwd_gate(args, out, dy, o, nullptr); });
      const double dkv = median_ms([&] {
        (tier == KernelTier::hopper ? attention::run_bwd_dkv_wgmma : attention::run_bwd_dkv)(
            args, out, p.lse.device(), nullptr);
      });
      const double dq = median_ms([&] {
        (tier == KernelTier::hopper ? attention::run_bwd_dq_wgmma : attention::run_bwd_dq)(
            args, out, p.lse.device(), nullptr);
      });
      const double flops = pairs * heads * 256.0;
      std::printf("%2d/%-5d %-8s %9.3f %9.1f %9.3f %9.3f %9.3f %9.3f | %9.1f\n", heads, kv_heads, what, fwd,
                  4.0 * flops / fwd * 1e-9, gate, dkv, dq, gate + dkv + dq,
                  10.0 * flops / (gate + dkv + dq) * 1e-9);
    }
  }
}

int run_quick(KernelTier tier) {
  Report report;
  Problem p({1, 65, 0, 130, 300}, AttnShape{2, 1, 256, 64}, 1.0, 21);
  p.run(tier);
  compare(report, p, "heads 2/1", 5e-3, 1e-2);
  return report.finish("attention_check --quick");
}

void check_fast(Report& report, KernelTier tier) {
  const std::string name = name_of(tier);
  const std::vector<int> lengths = {1, 2, 0, 3, 4, 5, 63, 64, 65, 127, 0, 129, 0};
  for (const auto& [heads, kv_heads] : {std::pair{24, 4}, std::pair{8, 2}, std::pair{2, 2}}) {
    Problem p(lengths, AttnShape{heads, kv_heads, 256, 64}, 1.0, 40 + heads);
    p.run(tier);
    compare(report, p, name + " " + std::to_string(heads) + "/" + std::to_string(kv_heads), 5e-3, 1e-2);
  }
  Problem p({33, 4096, 100}, AttnShape{2, 1, 256, 64}, 1.0, 50);
  p.run(tier);
  compare(report, p, name + " length 4096", 5e-3, 1e-2);
  Problem sharp({200, 70}, AttnShape{4, 2, 256, 64}, 12.0, 51);
  sharp.run(tier);
  compare(report, sharp, name + " sharp softmax", 5e-3, 1e-2);
  check_packing(report, AttnShape{6, 2, 256, 64}, tier);
  check_packing(report, AttnShape{8, 2, 256, 64}, tier);
}

int run(bool with_bench) {
  Report report;
  int major = 0;
  require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  check_fast(report, KernelTier::portable);
  if (major == 9) check_fast(report, KernelTier::hopper);
  check_refusal(report);
  Problem p({1, 5, 0, 64, 65, 130}, AttnShape{4, 2, 32, 8}, 1.0, 9);
  p.run(KernelTier::reference);
  compare(report, p, "reference 32", 5e-3, 1e-2);
  Problem large({3, 65}, AttnShape{2, 1, 256, 64}, 1.0, 9);
  large.run(KernelTier::reference);
  compare(report, large, "reference 256", 5e-3, 1e-2);
  if (with_bench) bench(KernelTier::portable);
  if (with_bench && major == 9) bench(KernelTier::hopper);
  return report.finish("attention_check");
}

}  // namespace
}  // namespace tessera::check

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--quick") return tessera::check::run_quick(tessera::KernelTier::portable);
  if (mode == "--quick-hopper") return tessera::check::run_quick(tessera::KernelTier::hopper);
  if (mode == "--times") return tessera::check::bench(tessera::KernelTier::hopper), 0;
  return tessera::check::run(mode == "--bench");
}
