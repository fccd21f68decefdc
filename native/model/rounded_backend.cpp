#include "model/rounded_backend.h"

#include <bit>

namespace tessera {
namespace {

// To the nearest bf16, ties to even. NaN and infinity stay what they are.
float rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

}  // namespace

void RoundedBackend::round(Act* p, i64 count) {
  auto* values = static_cast<float*>(p);
  for (i64 i = 0; values && i < count; ++i) values[i] = rounded(values[i]);
}

void RoundedBackend::round_columns(Act* p, i64 rows, i64 width, i64 first, i64 count) {
  for (i64 row = 0; row < rows; ++row) round(static_cast<float*>(p) + row * width + first, count);
}

}  // namespace tessera
