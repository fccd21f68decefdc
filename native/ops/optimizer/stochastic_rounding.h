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

// SplitMix64's finalizer (Steele, Lea, Flood 2014).
TESSERA_HOST_DEVICE std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

TESSERA_HOST_DEVICE std::uint32_t rounding_key(std::uint32_t seed, std::int32_t step) {
  const std::uint64_t both = std::uint64_t{seed} << 32 | static_cast<std::uint32_t>(step);
  return static_cast<std::uint32_t>(mix64(both + 0x9e3779b97f4a7c15ull) >> 32);
}

// 32 bits for one element, by Wellons' two-round hash of low bias. Parameter and v take the lower half, m the
// upper, and elements 2^32 apart share them: each rounding alone is unbiased, which is all that is asked of
// it.
TESSERA_HOST_DEVICE std::uint32_t rounding_bits(std::uint32_t key, std::int64_t element) {
  std::uint32_t x = static_cast<std::uint32_t>(element) * 0x9e3779b9u + key;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// fp32 bits whose upper half is the bf16 below or above the value, the nearer the likelier; random: its lower
// 16 bits count. NaN and infinity stay what they are, and a finite value never becomes infinite.
TESSERA_HOST_DEVICE std::uint32_t round_stochastic_bits(std::uint32_t bits, std::uint32_t random) {
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t kept = magnitude > 0x7f800000u ? bits | 0x400000u : bits;
  return magnitude >= 0x7f7f0000u ? kept : bits + (random & 0xffffu);
}

TESSERA_HOST_DEVICE std::uint16_t round_stochastic(float value, std::uint32_t random) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(round_stochastic_bits(bits, random) >> 16);
}

}  // namespace tessera
