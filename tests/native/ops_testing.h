// Packed batches, random and poisoned arrays, and gradient checks for the tests of operations.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace tessera::testing {

// Lengths around the edges of chunks, attention blocks and the convolution's window, with an empty sequence.
inline const std::vector<i32> kEdgeLengths = {1, 2, 3, 4, 63, 64, 65, 129, 0};

// A batch with its arrays; capacities exceed what is used, as in a run with fixed shapes.
struct PackedBatch {
  explicit PackedBatch(const std::vector<i32>& lengths, i32 vocab = 50, unsigned seed = 1) {
    std::mt19937 rng(seed);
    cu.push_back(0);
    for (const i32 length : lengths) add_sequence(length, vocab, rng);
    const i32 T = cu.back();
    for (int spare = 0; spare < 3; ++spare) {
      cu.push_back(T);
      seq_chunk.push_back({0, 0});
      chunk.push_back({0, 0, 0, 0});
    }
    std::map<i32, std::vector<i32>> where;
    for (i32 t = 0; t < T; ++t) where[tok[size_t(t)]].push_back(t);
    unique_ptr.push_back(0);
    for (const auto& [id, positions] : where) {
      unique_id.push_back(id);
      unique_pos.insert(unique_pos.end(), positions.begin(), positions.end());
      unique_ptr.push_back(static_cast<i32>(unique_pos.size()));
    }
    unique_id.push_back(-1);
    unique_ptr.push_back(unique_ptr.back());
  }

  void add_sequence(i32 length, i32 vocab, std::mt19937& rng) {
    const i32 begin = cu.back(), seq = static_cast<i32>(seq_chunk.size());
    const i32 first = static_cast<i32>(chunk.size());
    for (i32 at = 0; at < length; at += kChunk) {
      const i32 count = std::min(kChunk, length - at);
      chunk.push_back({begin + at, count, seq, (at == 0 ? 1 : 0) | (at + count == length ? 2 : 0)});
    }
    seq_chunk.push_back({first, static_cast<i32>(chunk.size())});
    for (i32 i = 0; i < length; ++i) {
      tok.push_back(static_cast<i32>(rng() % unsigned(vocab)));
      label.push_back(i + 1 == length ? kIgnoreLabel : static_cast<i32>(rng() % unsigned(vocab)));
      pos.push_back(i);
      seq_end.push_back(begin + length);
    }
    cu.push_back(begin + length);
  }

  i32 T() const { return static_cast<i32>(tok.size()); }
  i32 num_chunk() const { return static_cast<i32>(chunk.size()); }
  Batch view() const {
    Batch b{};
    b.T = T();
    b.num_seq = static_cast<i32>(seq_chunk.size());
    b.num_chunk = num_chunk();
    b.num_loss = T();
    b.tok = tok.data();
    b.label = label.data();
    b.pos = pos.data();
    b.seq_end = seq_end.data();
    b.cu = cu.data();
    b.chunk = chunk.data();
    b.seq_chunk = seq_chunk.data();
    b.num_unique_cap = static_cast<i32>(unique_id.size());
    b.unique_id = unique_id.data();
    b.unique_ptr = unique_ptr.data();
    b.unique_pos = unique_pos.data();
    return b;
  }

  std::vector<i32> tok, label, pos, seq_end, cu, unique_id, unique_ptr, unique_pos;
  std::vector<Chunk> chunk;
  std::vector<ChunkRange> seq_chunk;
};

template <class Real>
using Array = std::vector<Real>;

template <class Real = double>
Array<Real> random_array(i64 count, unsigned seed, double scale = 1.0) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal(0, scale);
  Array<Real> values(static_cast<size_t>(count));
  for (Real& v : values) v = static_cast<Real>(static_cast<float>(normal(rng)));
  return values;
}

// What an operation must overwrite.
template <class Real = double>
Array<Real> poisoned(i64 count) {
  return Array<Real>(static_cast<size_t>(count), std::numeric_limits<Real>::quiet_NaN());
}

template <class To, class From>
Array<To> cast(const Array<From>& from) {
  return Array<To>(from.begin(), from.end());
}

template <class A, class B>
double relative_error(const Array<A>& a, const Array<B>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  return std::sqrt(difference) / (std::sqrt(norm) + 1e-30);
}

template <class Real>
bool all_finite(const Array<Real>& a) {
  for (const Real v : a) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

inline double inner(const Array<double>& a, const Array<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Compares grad with fourth-order central differences of loss at random places of input, within 1e-6 of the
// larger of the derivative and a thousandth of the largest gradient.
inline void expect_gradient(const std::string& name, Array<double>& input, const Array<double>& grad,
                            const std::function<double()>& loss, int probes = 16) {
  ASSERT_EQ(input.size(), grad.size()) << name;
  ASSERT_TRUE(all_finite(grad)) << name;
  double largest = 0;
  for (const double g : grad) largest = std::max(largest, std::abs(g));
  EXPECT_GT(largest, 0) << name << ": the gradient is zero everywhere";
  std::mt19937_64 rng(7);
  for (int probe = 0; probe < probes; ++probe) {
    const size_t i = rng() % input.size();
    const double kept = input[i], h = 1e-3;
    const auto at = [&](double offset) {
      input[i] = kept + offset;
      const double value = loss();
      input[i] = kept;
      return value;
    };
    const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    EXPECT_NEAR(grad[i], slope, 1e-6 * (std::abs(slope) + 1e-3 * largest) + 1e-11) << name << "[" << i << "]";
  }
}

}  // namespace tessera::testing
