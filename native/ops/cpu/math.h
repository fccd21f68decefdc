// Scalar functions that loops of the CPU backend vectorise.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// e^x within 2 ulp, branch-free: x = n ln2 + r, a degree-7 polynomial in r (Cephes expf), then 2^n in two
// factors so that results that are denormal, zero or infinite come out right. NaN stays NaN.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float shifted = x * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const std::int32_t whole =
      static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, shifted) - 0x4b400000u);
  const std::int32_t half = whole >> 1;
  const auto power = [](std::int32_t e) {
    return __builtin_bit_cast(float, (static_cast<std::uint32_t>(e) + 127u) << 23);
  };
  return p * power(half) * power(whole - half);
}
inline double exp_of(double x) { return std::exp(x); }

template <class Real>
Real sigmoid(Real x) {
  return Real(1) / (Real(1) + exp_of(-x));
}

template <class Real>
Real softplus(Real x) {
  return x > Real(20) ? x : std::log1p(std::exp(x));
}

template <class Real>
Real dot(const Real* a, const Real* b, long long n) {
  Real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (long long i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// y += factor * x
template <class Real>
void axpy(Real* y, Real factor, const Real* x, long long n) {
  for (long long i = 0; i < n; ++i) y[i] += factor * x[i];
}

}  // namespace tessera::TESSERA_ISA
