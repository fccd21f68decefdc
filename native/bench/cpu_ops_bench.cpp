// Time of every operation of the CPU backend for one layer of a small model:
//   cpu_ops_bench [threads = all] [positions = 2048] [hidden = 256]
// GFLOP/s for matrix products and what is made of them, GB/s (fewest bytes moved) for the rest, both by wall
// time; "cpu ms" is processor time over all threads, which a busy machine disturbs less.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace tessera {
namespace {

constexpr i32 kLength = 256;  // every sequence of the packed batch
constexpr i64 kVocab = 4096;

struct Packed {
  explicit Packed(i32 T)
      : tok(size_t(T)), label(size_t(T)), pos(size_t(T)), seq_end(size_t(T)), unique_pos(size_t(T)) {
    cu.push_back(0);
    for (i32 begin = 0; begin < T; begin += kLength) {
      const i32 end = std::min(T, begin + kLength), first = i32(chunk.size());
      for (i32 at = begin; at < end; at += kChunk)
        chunk.push_back({at, std::min(kChunk, end - at), i32(cu.size()), 0});
      seq_chunk.push_back({first, i32(chunk.size())});
      cu.push_back(end);
      for (i32 t = begin; t < end; ++t) {
        tok[size_t(t)] = label[size_t(t)] = t % i32(kVocab);
        pos[size_t(t)] = t - begin;
        seq_end[size_t(t)] = end;
        unique_pos[size_t(t)] = t;
        unique_id.push_back(t % i32(kVocab));
        unique_ptr.push_back(t);
      }
    }
    unique_ptr.push_back(T);
  }
  Batch view() const {
    Batch b{};
    b.T = b.num_loss = i32(tok.size());
    b.num_seq = i32(seq_chunk.size());
    b.num_chunk = i32(chunk.size());
    b.tok = tok.data();
    b.label = label.data();
    b.pos = pos.data();
    b.seq_end = seq_end.data();
    b.cu = cu.data();
    b.chunk = chunk.data();
    b.seq_chunk = seq_chunk.data();
    b.num_unique_cap = i32(unique_id.size());
    b.unique_id = unique_id.data();
    b.unique_ptr = unique_ptr.data();
    b.unique_pos = unique_pos.data();
    return b;
  }
  std::vector<i32> tok, label, pos, seq_end, unique_pos, cu, unique_id, unique_ptr;
  std::vector<Chunk> chunk;
  std::vector<ChunkRange> seq_chunk;
};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

class Bench {
 public:
  Bench(int threads, i32 positions, i64 hidden)
      : backend_(make_cpu_backend({GdnAlgorithm::chunked, threads})),
        packed_(positions),
        T(positions),
        H(hidden) {}

  void run() {
    std::printf("%-28s %9s %9s %9s %9s\n", "operation", "wall ms", "cpu ms", "GFLOP/s", "GB/s");
    matrix_products();
    rows();
    delta_net();
    attention();
    optimizer();
    std::printf("matrix products %.1f ms, everything else %.1f ms (processor time)\n", 1e3 * linear_seconds_,
                1e3 * other_seconds_);
  }

 private:
  float *array(i64 count) {
    std::vector<float> values(static_cast<size_t>(count));
    std::minstd_rand rng(static_cast<unsigned>(arrays_.size()) + 1);
    for (float &v : values) v = float(rng() % 2000) / 1000.0f - 1.0f;
    arrays_.push_back(std::move(values));
    return arrays_.back().data();
  }

  void time(const std::string &name, double flops, double floats, const std::function<void()> &body) {
    body();
    int calls = 0;
    const double wall = wall_seconds(), cpu = cpu_seconds();
    while (cpu_seconds() - cpu < 0.3 || calls < 2) {
      body();
      ++calls;
    }
    const double each = (wall_seconds() - wall) / calls, each_cpu = (cpu_seconds() - cpu) / calls;
    (name.starts_with("linear") ? linear_seconds_ : other_seconds_) += each_cpu;
    std::printf("%-28s %9.3f %9.3f ", name.c_str(), each * 1e3, each_cpu * 1e3);
    flops > 0 ? std::printf("%9.1f ", flops / each * 1e-9) : std::printf("%9s ", "");
    floats > 0 ? std::printf("%9.1f\n", 4 * floats / each * 1e-9) : std::printf("\n");
  }

  void product(const std::string &name, i64 N, i64 K) {
    float *x = array(T * K), *w = array(N * K), *y = array(T * N), *dw = array(N * K);
    const double flops = 2.0 * double(T) * double(N) * double(K);
    time("linear_fwd " + name, flops, 0, [=, this] { backend_->linear_fwd(y, x, w, nullptr, T, N, K); });
    time("linear_bwd_data " + name, flops, 0, [=, this] { backend_->linear_bwd_data(x, y, w, T, N, K); });
    time("linear_bwd_weight " + name, flops, 0,
         [=, this] { backend_->linear_bwd_weight(dw, DType::f32, y, x, T, N, K, true); });
  }

  void matrix_products() {
    product("gdn in", gdn_.proj_dim(), H);
    product("gdn out", H, gdn_.values());
    product("gate up", 6 * H, H);
    product("down", H, 3 * H);
    product("head", kVocab, H);
  }

  void rows() {
    float *x = array(T * H), *dx = array(T * H), *w = array(H), *dw = array(H), *table = array(kVocab * H);
    const double size = double(T) * double(H);
    const Batch b = packed_.view();
    time("embedding_fwd", 0, 2 * size, [=, this] { backend_->embedding_fwd(x, table, b, H); });
    time("embedding_bwd", 0, 3 * size, [=, this] { backend_->embedding_bwd(table, DType::f32, dx, b, H); });
    time("rmsnorm_fwd", 0, 2 * size, [=, this] { backend_->rmsnorm_fwd(dx, x, w, T, H, 1e-6f); });
    time("rmsnorm_bwd", 0, 4 * size, [=, this] { backend_->rmsnorm_bwd(dx, dw, x, x, w, dx, T, H, 1e-6f); });
    const i64 I = 3 * H;
    float *gu = array(T * 2 * I), *act = array(T * I), *dgu = array(T * 2 * I), *act_out = array(T * I);
    time("swiglu_fwd", 0, 9 * size, [=, this] { backend_->swiglu_fwd(act, gu, T, I); });
    time("swiglu_bwd", 0, 18 * size, [=, this] { backend_->swiglu_bwd(dgu, act_out, act, gu, T, I); });
    float *z = array(T * kVocab), *nll = array(T);
    time("cross_entropy", 0, 2.0 * double(T * kVocab),
         [=, this] { backend_->cross_entropy(z, nll, b.label, T, kVocab, true); });
  }

  void delta_net() {
    const GdnShape s = gdn_;
    const Batch b = packed_.view();
    const i64 lines = i64{b.num_chunk} * s.value_heads * kChunk, K = s.key_dim, V = s.value_dim,
              HV = s.value_heads;
    float *proj = array(T * s.proj_dim()), *qkv = array(T * s.conv_dim()), *conv = array(s.conv_dim() * 4);
    float *g = array(lines), *beta = array(lines), *ar = array(lines * kChunk),
          *state = array(lines / kChunk * K * V);
    float *o = array(T * s.values()), *a = array(HV), *dt = array(HV), *w = array(V);
    float *dq = array(T * HV * K), *dk = array(T * HV * K), *dv = array(T * s.values()),
          *d_o = array(T * s.values());
    float *dg = array(lines), *db = array(lines), *dproj = array(T * s.proj_dim()),
          *d_conv = array(s.conv_dim() * 4);
    const double prep = double(T * s.conv_dim()), chunks = double(lines) / kChunk,
                 square = 2.0 * kChunk * kChunk;
    time("gdn_prep_fwd", 0, 2 * prep, [=, this] { backend_->gdn_prep_fwd(qkv, proj, conv, b, s); });
    time("gdn_kkt_fwd", chunks * (square * double(K) / s.group() + square * kChunk / 6), 0,
         [=, this] { backend_->gdn_kkt_fwd(g, beta, ar, qkv, proj, a, dt, b, s); });
    const double kv = 2.0 * kChunk * double(K * V), kk = square * double(K), vv = square * double(V);
    time("gdn_fwd", chunks * (3 * kv + kk + 2 * vv), 0,
         [=, this] { backend_->gdn_fwd(o, state, qkv, g, beta, ar, b, s); });
    time("gdn_bwd", chunks * (7 * kv + 5 * kk + 5 * vv + 2 * square * kChunk), 0, [=, this] {
      backend_->gdn_bwd(dq, dk, dv, dg, db, nullptr, nullptr, d_o, qkv, g, beta, ar, state, b, s);
    });
    time("gdn_prep_bwd", 0, 3 * prep, [=, this] {
      backend_->gdn_prep_bwd(dproj, d_conv, a, dt, dq, dk, dv, dg, db, proj, qkv, beta, conv, a, dt, b, s);
    });
    const double gated = double(T * s.values());
    time("gated_norm_fwd", 0, 3 * gated,
         [=, this] { backend_->gated_norm_fwd(d_o, o, proj, w, T, s, 1e-6f); });
    time("gated_norm_bwd", 0, 5 * gated,
         [=, this] { backend_->gated_norm_bwd(dv, dproj, w, d_o, o, proj, w, T, s, 1e-6f); });
  }

  void attention() {
    const AttnShape s = attn_;
    const Batch b = packed_.view();
    const i64 queries = T * s.heads * s.head_dim, keys = T * s.kv_heads * s.head_dim;
    float *proj = array(T * s.proj_dim()), *q = array(queries), *k = array(keys), *y = array(queries);
    float *o = array(queries), *lse = array(s.heads * T), *w = array(s.head_dim),
          *rope = array(kLength * s.rotary_dim);
    float *dq = array(queries), *dk = array(keys), *dproj = array(T * s.proj_dim()), *d_o = array(queries);
    float *delta = array(s.heads * T), *dw = array(s.head_dim);
    const double size = double(queries + keys);
    time("qk_norm_rope_fwd", 0, 2 * size,
         [=, this] { backend_->qk_norm_rope_fwd(q, k, proj, w, w, rope, b, s, 1e-6f); });
    const double causal = double(queries) * kLength;  // of one product: 2 T D L / 2 per head
    time("attention_fwd", 2 * causal, 0, [=, this] { backend_->attention_fwd(y, o, lse, q, k, proj, b, s); });
    time("attention_bwd", 7 * causal, 0,
         [=, this] { backend_->attention_bwd(dq, dk, dproj, d_o, delta, y, o, lse, q, k, proj, b, s); });
    time("qk_norm_rope_bwd", 0, 3 * size,
         [=, this] { backend_->qk_norm_rope_bwd(dproj, dw, dw, dq, dk, proj, w, w, rope, b, s, 1e-6f); });
  }

  void optimizer() {
    AdamSegment segment{};
    segment.count = 1 << 20;
    segment.param = array(segment.count);
    segment.grad = array(segment.count);
    segment.m = array(segment.count);
    segment.v = array(segment.count);
    for (i64 i = 0; i < segment.count; ++i) static_cast<float *>(segment.v)[i] = 1.0f;
    StepScalars scalars{1e-4f, 1.0f, 1.0f, 1e-4f, 1.0f, 0, 1};
    StepResult result{};
    const std::vector<AdamSegment> segments = {segment};
    const AdamConfig config{0.9, 0.999, 1e-8, OptimizerMode::master32};
    time("grad_norm, 1 M parameters", 0, 1 << 20, [&] { backend_->grad_norm(&result, segments, &scalars); });
    time("adamw, 1 M parameters", 0, 7 << 20, [&] { backend_->adamw(segments, config, &scalars, &result); });
  }

  std::unique_ptr<Backend> backend_;
  Packed packed_;
  i64 T, H;
  GdnShape gdn_{.key_heads = 2, .value_heads = 4, .key_dim = 64, .value_dim = 64, .conv_taps = 4};
  AttnShape attn_{.heads = 4, .kv_heads = 2, .head_dim = 64, .rotary_dim = 16};
  std::vector<std::vector<float>> arrays_;
  double linear_seconds_ = 0, other_seconds_ = 0;
};

}  // namespace
}  // namespace tessera

int main(int argc, char **argv) {
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  tessera::Bench(argument(1, 0), argument(2, 2048), argument(3, 256)).run();
}
