// Stochastic rounding fp32 -> bf16 whose random bits depend on (seed, step, element) alone: the same for any
// launch shape, any sharding and on host and device.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define TESSERA_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TESSERA_HOST_DEVICE inline
#endif

namespace tessera {

// SplitMix64's finalizer (Steele, Lea, Flood 2014): a bijection that passes BigCrush over a counter.
TESSERA_HOST_DEVICE std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

TESSERA_HOST_DEVICE std::uint64_t rounding_key(std::uint32_t seed, std::int32_t step) {
  return mix64((std::uint64_t{seed} << 32 | static_cast<std::uint32_t>(step)) + 0x9e3779b97f4a7c15ull);
}

// 64 bits for one element: 16 each for the parameter, m and v.
TESSERA_HOST_DEVICE std::uint64_t rounding_bits(std::uint64_t key, std::int64_t element) {
  return mix64(key + static_cast<std::uint64_t>(element) * 0x9e3779b97f4a7c15ull);
}

// The bf16 pattern below or above u's value, the nearer the likelier; random: 16 bits. NaN and infinity stay
// what they are, and a finite value never becomes infinite.
TESSERA_HOST_DEVICE std::uint16_t round_stochastic(float value, std::uint32_t random) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  if (magnitude >= 0x7f7f0000u) return static_cast<std::uint16_t>(bits >> 16);
  return static_cast<std::uint16_t>((bits + (random & 0xffffu)) >> 16);
}

}  // namespace tessera
