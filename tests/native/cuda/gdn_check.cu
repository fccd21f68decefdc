// Checks and times the gated delta rule on CUDA against the recurrence written out in double precision.
//   gdn_check          correctness: packed lengths, head groups, gate extremes, isolation, determinism; both
//   tiers
//   gdn_check --bench  the same, then times
//   gdn_check --times  the times of the hopper tier alone, for a profiler
//   gdn_check --quick | --quick-hopper | --quick-long  one small problem of that tier, for compute-sanitizer;
//   the last an example of hopper's segments
// Exit code 0 only where every check passed.
#include "gdn_times.h"

namespace tessera::check {
namespace {

// (I + strict_lower(beta K K^T))^-1 of one chunk and head, [64, 64].
std::vector<double> inverse_of(const Problem& p, const Reference& want, int c, int head) {
  const Chunk chunk = p.batch.chunk(c);
  const GdnShape& s = p.shape;
  const auto key = [&](int i, int d) {
    return static_cast<double>(from_bf16(
        p.qkv.host[(chunk.begin + i) * s.conv_dim() + s.keys() + head / s.group() * s.key_dim + d]));
  };
  std::vector<double> x(kChunk * kChunk, 0.0);
  for (int i = 0; i < kChunk; ++i) {
    x[i * kChunk + i] = 1.0;
    if (i >= chunk.count) continue;
    for (int m = 0; m < i; ++m) {
      double dot = 0.0;
      for (int d = 0; d < s.key_dim; ++d) dot += key(i, d) * key(m, d);
      dot *= want.beta[static_cast<size_t>(chunk.begin + i) * s.value_heads + head];
      for (int j = 0; j <= m; ++j) x[i * kChunk + j] -= dot * x[m * kChunk + j];
    }
  }
  return x;
}

// d_gamma is what is left of terms of order 1 summed in fp32: four times half a unit in their last place.
constexpr double kSumRounding = 0x1p-22;

void compare(Report& report, const Problem& p, const std::string& what, double limit, double gate_limit) {
  const Reference want(p);
  const GdnShape& s = p.shape;
  const int sequences = p.batch.num_sequences();
  Comparison g(what + " G", sequences), beta(what + " beta", sequences), ar(what + " Ar", sequences);
  Comparison o(what + " o", sequences), dq(what + " dq", sequences), dk(what + " dk", sequences),
      dv(what + " dv", sequences), d_gamma(what + " d_gamma", sequences), d_beta(what + " d_beta", sequences);
  const auto vectors = [&](Comparison& c, const Bf16Buffer& got, const std::vector<double>& ref, int dim) {
    for (int seq = 0; seq < sequences; ++seq) {
      const size_t from = static_cast<size_t>(p.batch.begin(seq)) * s.value_heads * dim;
      for (size_t i = from; i < from + static_cast<size_t>(p.batch.length(seq)) * s.value_heads * dim; ++i)
        c.add(seq, from_bf16(got.host[i]), ref[i], static_cast<long>(i - from));
    }
  };
  vectors(o, p.o, want.o, s.value_dim);
  vectors(dq, p.dq, want.dq, s.key_dim);
  vectors(dk, p.dk, want.dk, s.key_dim);
  vectors(dv, p.dv, want.dv, s.value_dim);
  bool padding_ok = true;
  for (int c = 0; c < p.batch.num_chunk(); ++c) {
    const Chunk chunk = p.batch.chunk(c);
    for (int head = 0; head < s.value_heads; ++head) {
      const size_t slot = static_cast<size_t>(c) * s.value_heads + head;
      double total = 0.0;
      for (int i = 0; i < kChunk; ++i) {
        const size_t at = slot * kChunk + i,
                     token = static_cast<size_t>(chunk.begin + i) * s.value_heads + head;
        if (i >= chunk.count) {
          padding_ok = padding_ok && p.beta.host[at] == 0.0f && (i == 0 || p.g.host[at] == p.g.host[at - 1]);
          continue;
        }
        total += want.gamma[token];
        g.add(chunk.seq, p.g.host[at], total, c * kChunk + i);
        beta.add(chunk.seq, p.beta.host[at], want.beta[token], c * kChunk + i);
        d_gamma.add(chunk.seq, p.d_gamma.host[at], want.d_gamma[token], c * kChunk + i, kSumRounding);
        d_beta.add(chunk.seq, p.d_beta.host[at], want.d_beta[token], c * kChunk + i);
      }
      if (chunk.count == 0 || (c * s.value_heads + head) % 5 != 0) continue;
      const std::vector<double> x = inverse_of(p, want, c, head);
      for (int i = 0; i < kChunk * kChunk; ++i)
        ar.add(chunk.seq, from_bf16(p.ar.host[slot * kChunk * kChunk + i]), x[i], i);
    }
  }
  g.report(report, 1e-4);
  beta.report(report, 1e-5);
  ar.report(report, 4e-3);
  report.line(padding_ok, what + " padding of g and beta");
  o.report(report, limit);
  dv.report(report, limit);
  dq.report(report, limit);
  dk.report(report, limit);
  d_gamma.report(report, gate_limit);
  d_beta.report(report, gate_limit);
}

// The bits of a sequence's outputs: rows of o, dq, dk, dv, and the gates' gradients of its chunks.
std::vector<std::uint32_t> bits_of(const Problem& p, int seq) {
  std::vector<std::uint32_t> bits;
  const GdnShape& s = p.shape;
  const auto rows = [&](const Bf16Buffer& b, size_t width) {
    const auto from = b.host.begin() + static_cast<long>(p.batch.begin(seq) * width);
    bits.insert(bits.end(), from, from + static_cast<long>(p.batch.length(seq) * width));
  };
  rows(p.o, s.values());
  rows(p.dv, s.values());
  rows(p.dq, static_cast<size_t>(s.value_heads) * s.key_dim);
  rows(p.dk, static_cast<size_t>(s.value_heads) * s.key_dim);
  const ChunkRange range = p.batch.chunks(seq);
  for (const FloatBuffer* b : {&p.g, &p.beta, &p.d_gamma, &p.d_beta}) {
    const size_t from = bits.size(), width = static_cast<size_t>(s.value_heads) * kChunk;
    bits.resize(from + (range.end - range.begin) * width);
    std::memcpy(bits.data() + from, b->host.data() + range.begin * width, (bits.size() - from) * 4);
  }
  return bits;
}

// victims: sequences whose values and gradients are changed.
void check_packing(Report& report, KernelTier tier, const GdnShape& shape, const std::vector<int>& lengths,
                   const std::vector<int>& victims) {
  Problem packed(lengths, shape, Regime::normal, 11);
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
    Problem alone({lengths[seq]}, shape, Regime::normal, 1);
    const auto rows = [&](Bf16Buffer& to, const Bf16Buffer& from, i64 width) {
      std::copy_n(from.host.begin() + packed.batch.begin(seq) * width, lengths[seq] * width, to.host.begin());
    };
    rows(alone.qkv, packed.qkv, shape.conv_dim());
    rows(alone.proj, packed.proj, shape.proj_dim());
    rows(alone.d_o, packed.d_o, shape.values());
    alone.a_log.host = packed.a_log.host;
    alone.dt_bias.host = packed.dt_bias.host;
    alone.upload();
    alone.run(tier);
    report.line(bits_of(alone, 0) == first[seq], "alone = packed, length " + std::to_string(lengths[seq]));
  }

  Random random(5);
  for (const int victim : victims) {
    for (int t = packed.batch.begin(victim); t < packed.batch.begin(victim) + lengths[victim]; ++t) {
      for (i64 i = 2 * shape.keys(); i < shape.conv_dim(); ++i)
        packed.qkv.host[t * shape.conv_dim() + i] = to_bf16(static_cast<float>(random.normal()));
      for (i64 i = 0; i < shape.values(); ++i)
        packed.d_o.host[t * shape.values() + i] = to_bf16(static_cast<float>(random.normal()));
    }
  }
  packed.upload();
  packed.run(tier);
  bool isolated = true, changed = true;
  for (int seq = 0; seq < packed.batch.num_sequences(); ++seq) {
    const bool equal = bits_of(packed, seq) == first[seq];
    if (std::find(victims.begin(), victims.end(), seq) != victims.end())
      changed = changed && !equal;
    else
      isolated = isolated && equal;
  }
  report.line(isolated && changed, "perturbed sequences change themselves alone");
}

void check_refusal(Report& report) {
  std::string code;
  Problem p({3}, GdnShape{2, 2, 64, 128, 4}, Regime::normal, 1);
  try {
    p.run(KernelTier::portable);
  } catch (const EngineError& e) {
    code = e.code();
  }
  report.line(code == "unsupported_head_size", "portable tier refuses heads of 64", code);
}

int run_quick(KernelTier tier, const std::vector<int>& lengths, int value_heads) {
  Report report;
  Problem p(lengths, GdnShape{1, value_heads, 128, 128, 4}, Regime::normal, 21);
  p.run(tier);
  compare(report, p, "heads 1/" + std::to_string(value_heads), 1.5e-2, 1.5e-2);
  return report.finish("gdn_check --quick");
}

// Examples that the Hopper kernels divide into segments: of more than 48 chunks, or 96 with 17 to 32 heads.
// Lengths around the limit and around a segment's and a chunk's edge; a state that lives through all segments
// and one that is gone after a token.
void check_long(Report& report, KernelTier tier) {
  const std::string name = std::string(name_of(tier)) + " long ";
  {
    Problem p({3073, 63, 3072, 4096, 5121, 7200}, GdnShape{1, 3, 128, 128, 4}, Regime::normal, 31);
    p.run(tier);
    compare(report, p, name + "1/3", 1.5e-2, 1.5e-2);
    Problem wide({6145, 200}, GdnShape{1, 17, 128, 128, 4}, Regime::normal, 32);
    wide.run(tier);
    compare(report, wide, name + "1/17", 1.5e-2, 1.5e-2);
  }
  for (const Regime regime : {Regime::slow, Regime::fast, Regime::beta_one, Regime::same_keys}) {
    Problem p({130, 5120, 4161}, GdnShape{1, 2, 128, 128, 4}, regime, 7);
    p.run(tier);
    const bool hard = regime == Regime::same_keys;
    compare(report, p, name + name_of(regime), hard ? 5e-2 : 1.5e-2,
            hard                     ? 2e-1
            : regime == Regime::fast ? 5e-2
                                     : 1.5e-2);
  }
  check_packing(report, tier, GdnShape{2, 4, 128, 128, 4}, {3073, 65, 5200, 300, 6144}, {1, 2});
  check_packing(report, tier, GdnShape{1, 17, 128, 128, 4}, {65, 6145, 300}, {0});
}

// Everything a fast tier has to pass.
void check_fast(Report& report, KernelTier tier) {
  const std::string name = std::string(name_of(tier)) + " ";
  const std::vector<int> lengths = {1, 2, 0, 3, 4, 5, 63, 64, 65, 127, 0, 129, 4096, 0};
  const std::vector<int> some = {1, 5, 64, 0, 65, 127, 300};
  for (const auto& [hk, hv] : {std::pair{1, 3}, std::pair{16, 16}, std::pair{16, 32}, std::pair{16, 48}}) {
    Problem p(lengths, GdnShape{hk, hv, 128, 128, 4}, Regime::normal, 100 + hv);
    p.run(tier);
    compare(report, p, name + std::to_string(hk) + "/" + std::to_string(hv), 1.5e-2, 1.5e-2);
  }
  for (const Regime regime : {Regime::slow, Regime::fast, Regime::beta_one, Regime::beta_zero,
                              Regime::same_keys, Regime::zeros_and_large}) {
    Problem p(some, GdnShape{2, 6, 128, 128, 4}, regime, 7);
    p.run(tier);
    // Identical keys amplify the rounding of bf16 operands: emulation gives 1.5e-2, and 8e-2 for d_gamma.
    const bool hard = regime == Regime::same_keys;
    compare(report, p, name + name_of(regime), hard ? 5e-2 : 1.5e-2,
            hard                     ? 2e-1
            : regime == Regime::fast ? 5e-2
                                     : 1.5e-2);
  }
  check_packing(report, tier, GdnShape{2, 6, 128, 128, 4}, {65, 0, 129, 1, 64, 200, 3}, {2, 5});
}

int run(bool with_bench) {
  Report report;
  int major = 0;
  require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
  if (major == 9) check_fast(report, KernelTier::hopper);
  if (major == 9) check_long(report, KernelTier::hopper);
  check_fast(report, KernelTier::portable);
  check_refusal(report);
  {
    Problem p({1, 5, 0, 64, 65, 130}, GdnShape{2, 4, 16, 32, 4}, Regime::normal, 9);
    p.run(KernelTier::reference);
    compare(report, p, "reference 16/32", 6e-3, 6e-3);
    Problem large({3, 65}, GdnShape{1, 2, 128, 128, 4}, Regime::normal, 9);
    large.run(KernelTier::reference);
    compare(report, large, "reference 128", 6e-3, 6e-3);
  }
  if (with_bench && major == 9) bench(KernelTier::hopper);
  if (with_bench) bench(KernelTier::portable);
  return report.finish("gdn_check");
}

}  // namespace
}  // namespace tessera::check

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  // Of five chunks: a Hopper block goes round its three stages more than once.
  const std::vector<int> small = {1, 65, 0, 130, 300};
  if (mode == "--quick") return tessera::check::run_quick(tessera::KernelTier::portable, small, 3);
  if (mode == "--quick-hopper") return tessera::check::run_quick(tessera::KernelTier::hopper, small, 3);
  if (mode == "--quick-long") return tessera::check::run_quick(tessera::KernelTier::hopper, {4097}, 1);
  if (mode == "--times") return tessera::check::bench(tessera::KernelTier::hopper), 0;
  return tessera::check::run(mode == "--bench");
}
