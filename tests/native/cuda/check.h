// What the device checks share: random bf16 inputs, packed batches in device memory, comparison with
// localisation, timing. Host code only; every check program is self-contained (its reference is written out
// in double precision).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ops/backend.h"

namespace tessera::check {

inline void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("CUDA error in %s: %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}

// splitmix64, with normal deviates by Box and Muller.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::uint64_t state_;
};

inline std::uint16_t to_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
inline float from_bf16(std::uint16_t x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// Device memory with a host copy. Fresh device memory is poisoned: every byte 0xff, a NaN in bf16 and fp32.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : host(count) {
    require(cudaMalloc(&device_, std::max<size_t>(count, 1) * sizeof(T)), "cudaMalloc");
    poison();
  }
  ~Buffer() { cudaFree(device_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* device() const { return device_; }
  size_t bytes() const { return host.size() * sizeof(T); }
  void poison() { require(cudaMemset(device_, 0xff, bytes()), "cudaMemset"); }
  void upload() { require(cudaMemcpy(device_, host.data(), bytes(), cudaMemcpyHostToDevice), "upload"); }
  void download() { require(cudaMemcpy(host.data(), device_, bytes(), cudaMemcpyDeviceToHost), "download"); }

  std::vector<T> host;

 private:
  T* device_ = nullptr;
};
using Bf16Buffer = Buffer<std::uint16_t>;
using FloatBuffer = Buffer<float>;

// Sequences packed one after another; capacities exceed what is used, as in a run.
class PackedBatch {
 public:
  explicit PackedBatch(const std::vector<int>& lengths, int spare = 3)
      : lengths_(lengths),
        total_(count_tokens(lengths)),
        num_seq_(static_cast<int>(lengths.size()) + spare),
        chunks_(make_chunks(lengths)),
        num_chunk_(static_cast<int>(chunks_.size()) + spare),
        cu_(num_seq_ + 1),
        pos_(total_),
        seq_end_(total_),
        chunk_(num_chunk_),
        seq_chunk_(num_seq_) {
    int token = 0, next_chunk = 0;
    for (int s = 0; s < num_seq_; ++s) {
      const int length = s < static_cast<int>(lengths.size()) ? lengths[s] : 0,
                n = (length + kChunk - 1) / kChunk;
      cu_.host[s] = token;
      seq_chunk_.host[s] = {next_chunk, next_chunk + n};
      for (int i = 0; i < length; ++i) {
        pos_.host[token + i] = i;
        seq_end_.host[token + i] = token + length;
      }
      token += length;
      next_chunk += n;
    }
    cu_.host[num_seq_] = token;
    for (int c = 0; c < num_chunk_; ++c)
      chunk_.host[c] = c < static_cast<int>(chunks_.size()) ? chunks_[c] : Chunk{0, 0, 0, 0};
    cu_.upload();
    pos_.upload();
    seq_end_.upload();
    chunk_.upload();
    seq_chunk_.upload();
  }

  Batch view() const {
    Batch b{};
    b.T = total_;
    b.num_seq = num_seq_;
    b.num_chunk = num_chunk_;
    b.pos = pos_.device();
    b.seq_end = seq_end_.device();
    b.cu = cu_.device();
    b.chunk = chunk_.device();
    b.seq_chunk = seq_chunk_.device();
    b.longest = *std::max_element(lengths_.begin(), lengths_.end());
    return b;
  }
  int tokens() const { return total_; }
  int num_chunk() const { return num_chunk_; }
  int num_sequences() const { return static_cast<int>(lengths_.size()); }
  int length(int s) const { return lengths_[s]; }
  int begin(int s) const { return cu_.host[s]; }
  ChunkRange chunks(int s) const { return seq_chunk_.host[s]; }
  Chunk chunk(int c) const { return chunk_.host[c]; }

 private:
  static int count_tokens(const std::vector<int>& lengths) {
    int total = 0;
    for (int n : lengths) total += n;
    return total;
  }
  static std::vector<Chunk> make_chunks(const std::vector<int>& lengths) {
    std::vector<Chunk> chunks;
    int token = 0;
    for (int s = 0; s < static_cast<int>(lengths.size()); ++s) {
      for (int i = 0; i < lengths[s]; i += kChunk) {
        const int count = std::min(kChunk, lengths[s] - i);
        chunks.push_back({token + i, count, s, (i == 0 ? 1 : 0) | (i + count == lengths[s] ? 2 : 0)});
      }
      token += lengths[s];
    }
    return chunks;
  }

  std::vector<int> lengths_;
  int total_, num_seq_;
  std::vector<Chunk> chunks_;
  int num_chunk_;
  Buffer<i32> cu_, pos_, seq_end_;
  Buffer<Chunk> chunk_;
  Buffer<ChunkRange> seq_chunk_;
};

inline void parallel_for(int count, const std::function<void(int)>& body) {
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&] {
      for (int i = next++; i < count; i = next++) body(i);
    });
  for (auto& thread : threads) thread.join();
}

// Counts failures of a program and prints one line a check.
class Report {
 public:
  bool line(bool ok, const std::string& what, const std::string& detail = "") {
    ++checks_;
    failures_ += ok ? 0 : 1;
    if (!ok || verbose) std::printf("%s  %-58s %s\n", ok ? "ok  " : "FAIL", what.c_str(), detail.c_str());
    return ok;
  }
  int finish(const char* program) const {
    std::printf("%s: %d checks, %d failed\n", program, checks_, failures_);
    return failures_ == 0 ? 0 : 1;
  }
  bool verbose = true;

 private:
  int checks_ = 0, failures_ = 0;
};

// Compares element by element in groups (sequences): ||a - b|| / ||b|| over all, and in each group against
// the larger of its own norm and a tenth of what its size would have at the overall root mean square. A NaN
// fails.
class Comparison {
 public:
  Comparison(std::string name, int groups) : name_(std::move(name)), groups_(groups) {}
  // forgiven: what an element may differ by whatever its size.
  void add(int group, double got, double want, long index, double forgiven = 0.0) {
    Group& g = groups_[group];
    const double error = std::max(0.0, std::abs(got - want) - forgiven);
    if (!std::isfinite(got) && g.first_nan < 0) g.first_nan = index;
    g.error += error * error;
    g.norm += want * want;
    ++g.count;
    if (!(error <= g.worst)) {
      g.worst = error;
      g.worst_at = index;
      g.worst_got = got;
      g.worst_want = want;
    }
  }
  // what: how to read an index, e.g. "token*heads*dim"
  bool report(Report& report, double limit) const {
    double error = 0.0, norm = 0.0, count = 0.0, worst_group = 0.0;
    int worst = -1;
    for (const Group& g : groups_) {
      error += g.error;
      norm += g.norm;
      count += static_cast<double>(g.count);
    }
    const double total = std::sqrt(error / std::max(norm, 1e-60)), mean_square = norm / std::max(count, 1.0);
    bool nan = false;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const Group& g = groups_[i];
      if (g.count == 0) continue;
      const double floor = 0.01 * mean_square * static_cast<double>(g.count);
      const double relative = std::sqrt(g.error / std::max({g.norm, floor, 1e-60}));
      nan = nan || g.first_nan >= 0;
      if (!(relative <= worst_group)) {
        worst_group = relative;
        worst = static_cast<int>(i);
      }
    }
    const bool ok = !nan && total <= limit && worst_group <= 3.0 * limit;
    char detail[320];
    std::snprintf(detail, sizeof detail, "error %.2e (limit %.1e), worst group %d: %.2e", total, limit, worst,
                  worst_group);
    std::string text = detail;
    if (!ok) {
      int shown = 0;
      for (size_t i = 0; i < groups_.size() && shown < 6; ++i) {
        const Group& g = groups_[i];
        if (g.count == 0) continue;
        const double relative =
            std::sqrt(g.error / std::max({g.norm, 0.01 * mean_square * static_cast<double>(g.count), 1e-60}));
        if (g.first_nan < 0 && relative <= 3.0 * limit) continue;
        std::snprintf(detail, sizeof detail,
                      "\n        group %zu (%ld values): %.2e, first NaN %ld, worst at %ld: got %g want %g",
                      i, g.count, relative, g.first_nan, g.worst_at, g.worst_got, g.worst_want);
        text += detail;
        ++shown;
      }
    }
    return report.line(ok, name_, text);
  }

 private:
  struct Group {
    double error = 0.0, norm = 0.0, worst = -1.0, worst_got = 0.0, worst_want = 0.0;
    long count = 0, first_nan = -1, worst_at = -1;
  };
  std::string name_;
  std::vector<Group> groups_;
};

// Milliseconds of one call: median over `runs` after two warm-up calls, each timed by events.
inline double median_ms(const std::function<void()>& call, int runs = 31) {
  cudaEvent_t from, to;
  require(cudaEventCreate(&from), "cudaEventCreate");
  require(cudaEventCreate(&to), "cudaEventCreate");
  std::vector<float> times;
  for (int i = 0; i < runs + 2; ++i) {
    require(cudaEventRecord(from), "cudaEventRecord");
    call();
    require(cudaEventRecord(to), "cudaEventRecord");
    require(cudaEventSynchronize(to), "timed call");
    float ms = 0.0f;
    require(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    if (i >= 2) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  return times[times.size() / 2];
}

}  // namespace tessera::check
