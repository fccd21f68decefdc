// The least work of each operation, for rooflines: floating-point operations of its matrix products, and
// bytes that it must move where nothing stays in a cache. `e` is the size of an activation in bytes, `w` of a
// weight.
#pragma once

#include "ops/backend.h"

namespace tessera {

struct OpCost {
  double flops = 0.0;
  double bytes = 0.0;
};

namespace cost {

// m x n x k products over three matrices; `reads_output`: the result is added to what is there.
inline OpCost product(double m, double n, double k, double bytes_in, double bytes_out, bool reads_output) {
  return {2.0 * m * n * k, bytes_in * (m * k + k * n) + bytes_out * m * n * (reads_output ? 2.0 : 1.0)};
}

// `rows` x `width` values read or written `times` times.
inline OpCost elementwise(double rows, double width, double times, double e) {
  return {0.0, rows * width * times * e};
}

// The chunked delta rule per 64-token chunk and value head: `thin` products of 64 x 64 x K, `wide` of
// 64 x K x V and `square` of 64^3.
inline double delta_rule(const Batch& b, const GdnShape& s, double thin, double wide, double square) {
  const double C = kChunk, K = s.key_dim, V = s.value_dim;
  return 2.0 * (thin * C * C * K + wide * C * K * V + square * C * C * C) * s.value_heads * b.T / C;
}

inline double delta_states(const Batch& b, const GdnShape& s, double e) {
  return e * b.T / kChunk * s.value_heads * s.key_dim * s.value_dim;
}

// Causal products over the packed sequences, whose ends must be readable by the host: half of each square.
inline double causal_products(const Batch& b, const AttnShape& s, int products) {
  double squares = 0;
  for (i32 n = 0; n < b.num_seq; ++n) {
    const double length = b.cu[n + 1] - b.cu[n];
    squares += length * length;
  }
  return products * 2.0 * s.heads * s.head_dim * squares / 2.0;
}

}  // namespace cost
}  // namespace tessera
