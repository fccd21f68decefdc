// One set of tensors on two backends, for comparing every CUDA operation with the CPU's on the same inputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "ops/backend.h"

namespace tessera::check {

// The same numbers as fp32 on the CPU and as bf16 (activations, matrices) or fp32 on the GPU.
struct Tensor {
  i64 count;
  DType gpu_type;
  float* cpu;
  void* gpu;
  std::vector<std::uint8_t> first_run;  // the GPU's bytes, for comparing a second run
};

class Twin {
 public:
  Twin(Backend& cpu, Backend& gpu) : cpu_(cpu), gpu_(gpu) {}
  ~Twin() { clear(); }
  void clear() {
    for (void* p : cpu_memory_) cpu_.release(p);
    for (void* p : gpu_memory_) gpu_.release(p);
    cpu_memory_.clear();
    gpu_memory_.clear();
  }

  Backend& cpu() { return cpu_; }
  Backend& gpu() { return gpu_; }
  std::mt19937& random() { return random_; }

  Tensor act(const std::vector<float>& values) { return tensor(values, DType::bf16); }
  Tensor f32(const std::vector<float>& values) { return tensor(values, DType::f32); }
  Tensor act(i64 count, float scale = 1.0f) { return tensor(normal(count, scale), DType::bf16); }
  Tensor f32(i64 count, float scale = 1.0f, float mean = 0.0f) {
    std::vector<float> values = normal(count, scale);
    for (float& v : values) v += mean;
    return tensor(values, DType::f32);
  }
  // An output: every element NaN until an operation writes it.
  Tensor out(i64 count, DType gpu_type = DType::bf16) {
    return tensor(std::vector<float>(count, std::numeric_limits<float>::quiet_NaN()), gpu_type);
  }
  Tensor accumulator(i64 count, DType gpu_type = DType::f32) { return tensor(normal(count, 0.5f), gpu_type); }

  template <typename T>
  const T* both(const std::vector<T>& values, const T** gpu) {
    *gpu = static_cast<const T*>(place(gpu_, gpu_memory_, values.data(), values.size() * sizeof(T)));
    return static_cast<const T*>(place(cpu_, cpu_memory_, values.data(), values.size() * sizeof(T)));
  }

  std::vector<float> normal(i64 count, float scale) {
    std::normal_distribution<float> draw(0.0f, scale);
    std::vector<float> values(count);
    for (float& v : values) v = draw(random_);
    return values;
  }

  std::vector<float> cpu_values(const Tensor& t) {
    std::vector<float> values(t.count);
    cpu_.copy_out(values.data(), t.cpu, t.count * sizeof(float));
    return values;
  }
  std::vector<float> gpu_values(const Tensor& t) {
    const std::vector<std::uint8_t> raw = gpu_bytes(t);
    std::vector<float> values(t.count);
    to_f32(values.data(), raw.data(), t.gpu_type, t.count);
    return values;
  }
  std::vector<std::uint8_t> gpu_bytes(const Tensor& t) {
    std::vector<std::uint8_t> raw(t.count * dtype_bytes(t.gpu_type));
    gpu_.copy_out(raw.data(), t.gpu, raw.size());
    return raw;
  }
  // Gives both sides the CPU's result, rounded: a later operation then starts from the same numbers.
  void share(const Tensor& t) {
    set_gpu(t, cpu_values(t));
    const std::vector<float> rounded = gpu_values(t);
    cpu_.copy_in(t.cpu, rounded.data(), rounded.size() * sizeof(float));
  }
  void set_gpu(const Tensor& t, const std::vector<float>& values) {
    std::vector<std::uint8_t> raw(t.count * dtype_bytes(t.gpu_type));
    from_f32(raw.data(), t.gpu_type, values.data(), t.count);
    gpu_.copy_in(t.gpu, raw.data(), raw.size());
  }

 private:
  Tensor tensor(std::vector<float> values, DType gpu_type) {
    if (gpu_type == DType::bf16) {
      for (float& v : values) v = bf16_to_f32(f32_to_bf16(v));
    }
    Tensor t{static_cast<i64>(values.size()), gpu_type, nullptr, nullptr, {}};
    t.cpu = static_cast<float*>(place(cpu_, cpu_memory_, values.data(), values.size() * sizeof(float)));
    std::vector<std::uint8_t> raw(values.size() * dtype_bytes(gpu_type));
    from_f32(raw.data(), gpu_type, values.data(), t.count);
    t.gpu = place(gpu_, gpu_memory_, raw.data(), raw.size());
    return t;
  }
  static void* place(Backend& backend, std::vector<void*>& memory, const void* data, size_t bytes) {
    void* p = backend.allocate(std::max<size_t>(bytes, 16));
    memory.push_back(p);
    backend.copy_in(p, data, bytes);
    return p;
  }

  Backend &cpu_, &gpu_;
  std::vector<void*> cpu_memory_, gpu_memory_;
  std::mt19937 random_{20261130};
};

// A packed micro-batch on both backends. The lengths' sum is rounded up to 64 by a last, unsupervised
// sequence.
struct TwinBatch {
  Batch cpu{}, gpu{};
  std::vector<i32> label;
};

inline TwinBatch make_batch(Twin& twin, std::vector<i32> lengths, i32 vocab) {
  i32 total = 0;
  for (i32 n : lengths) total += n;
  if (total % 64 != 0) lengths.push_back(64 - total % 64), total += lengths.back();
  std::vector<i32> tok(total), label(total), pos(total), end(total), cu(1, 0), loss_row;
  std::vector<Chunk> chunks;
  std::vector<ChunkRange> ranges;
  std::uniform_int_distribution<i32> draw(0, vocab - 1);
  for (size_t s = 0; s < lengths.size(); ++s) {
    const i32 begin = cu.back(), length = lengths[s], first = static_cast<i32>(chunks.size());
    for (i32 i = 0; i < length; ++i) {
      // A tenth of the tokens is one id, as pad and newline tokens are in real data.
      tok[begin + i] = i % 10 == 3 ? 7 % vocab : draw(twin.random());
      label[begin + i] = i + 1 < length && i % 3 != 0 ? draw(twin.random()) : kIgnoreLabel;
      pos[begin + i] = i;
      end[begin + i] = begin + length;
    }
    for (i32 i = 0; i < length; i += kChunk) {
      const i32 count = std::min(kChunk, length - i);
      chunks.push_back(
          {begin + i, count, static_cast<i32>(s), (i == 0 ? 1 : 0) | (i + count == length ? 2 : 0)});
    }
    ranges.push_back({first, static_cast<i32>(chunks.size())});
    cu.push_back(begin + length);
  }
  // Unused capacity, as in a run: two sequences and three chunks.
  for (int i = 0; i < 2; ++i) cu.push_back(total), ranges.push_back({0, 0});
  for (int i = 0; i < 3; ++i) chunks.push_back({0, 0, 0, 0});

  std::vector<i32> order(total), unique_id, unique_ptr, unique_pos;
  for (i32 t = 0; t < total; ++t) order[t] = t;
  std::stable_sort(order.begin(), order.end(), [&](i32 a, i32 b) { return tok[a] < tok[b]; });
  for (i32 i = 0; i < total; ++i) {
    if (i == 0 || tok[order[i]] != tok[order[i - 1]])
      unique_id.push_back(tok[order[i]]), unique_ptr.push_back(i);
    unique_pos.push_back(order[i]);
  }
  const i32 used = static_cast<i32>(unique_id.size());
  unique_ptr.push_back(total);
  for (i32 i = used; i < total; ++i) unique_id.push_back(-1), unique_ptr.push_back(total);

  TwinBatch b;
  b.label = label;
  const auto put = [&](const auto& values, auto Batch::*field) {
    using T = std::remove_const_t<std::remove_pointer_t<std::remove_reference_t<decltype(b.cpu.*field)>>>;
    const T* gpu = nullptr;
    b.cpu.*field = twin.both<T>(values, &gpu);
    b.gpu.*field = gpu;
  };
  put(tok, &Batch::tok);
  put(label, &Batch::label);
  put(pos, &Batch::pos);
  put(end, &Batch::seq_end);
  put(cu, &Batch::cu);
  put(chunks, &Batch::chunk);
  put(ranges, &Batch::seq_chunk);
  put(unique_id, &Batch::unique_id);
  put(unique_ptr, &Batch::unique_ptr);
  put(unique_pos, &Batch::unique_pos);
  for (Batch* one : {&b.cpu, &b.gpu}) {
    one->T = total;
    one->num_seq = static_cast<i32>(ranges.size());
    one->num_chunk = static_cast<i32>(chunks.size());
    one->num_loss = total;
    one->num_unique_cap = total;
  }
  return b;
}

// The printed table: one line an output, ok where every element is finite and close, and a second run gave
// the same bits.
class Report {
 public:
  void compare(Twin& twin, const std::string& name, const Tensor& t, double tolerance) {
    line(name, twin.gpu_values(t), twin.cpu_values(t), tolerance);
  }
  void line(const std::string& name, const std::vector<float>& got, const std::vector<float>& want,
            double tolerance) {
    double diff = 0.0, norm = 0.0, worst = 0.0;
    i64 bad = -1, nans = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i])) continue;  // a place that the operation leaves alone
      const double d = double(got[i]) - want[i];
      if (!std::isfinite(got[i])) {
        ++nans;
        if (bad < 0) bad = static_cast<i64>(i);
        continue;
      }
      diff += d * d;
      norm += double(want[i]) * want[i];
      if (std::abs(d) > worst) {
        worst = std::abs(d);
        if (nans == 0) bad = static_cast<i64>(i);
      }
    }
    const double error = norm > 0.0 ? std::sqrt(diff / norm) : std::sqrt(diff);
    const bool ok = nans == 0 && error <= tolerance;
    char text[256];
    std::snprintf(text, sizeof text, "error %.2e (limit %.0e)  largest %.2e at %lld of %zu%s", error,
                  tolerance, worst, static_cast<long long>(bad), got.size(),
                  nans ? ("  NOT FINITE: " + std::to_string(nans)).c_str() : "");
    verdict(name, ok, text);
  }
  void verdict(const std::string& name, bool ok, const std::string& text) {
    if (!ok) ++failures_;
    ++lines_;
    std::printf("%-4s %-58s %s\n", ok ? "ok" : "FAIL", name.c_str(), text.c_str());
    std::fflush(stdout);
  }
  int finish() {
    std::printf("%d of %d checks failed\n", failures_, lines_);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  int failures_ = 0, lines_ = 0;
};

}  // namespace tessera::check
