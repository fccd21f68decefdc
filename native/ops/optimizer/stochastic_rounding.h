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

// The key of 2^32 elements, those that share their upper bits `high`, in one step.
TESSERA_HOST_DEVICE std::uint32_t rounding_key(std::uint32_t seed, std::int32_t step, std::uint32_t high) {
  const std::uint64_t mixed = mix64((std::uint64_t{seed} << 32 | static_cast<std::uint32_t>(step)) + 0x9e3779b97f4a7c15ull);
  return static_cast<std::uint32_t>(mix64(mixed + high) >> 32);
}

// 32 bits for one element, by Wellons' two-round hash of low bias. Parameter and v take the lower half, m the upper:
// each rounding alone is unbiased, which is all that is asked of them.
TESSERA_HOST_DEVICE std::uint32_t rounding_bits(std::uint32_t key, std::uint32_t low) {
  std::uint32_t x = low * 0x9e3779b9u + key;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
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
