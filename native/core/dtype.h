// Element types of safetensors files and the conversions between the floating ones (round to nearest even).
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ops/backend.h"

namespace tessera {

std::optional<DType> dtype_from_safetensors(
    std::string_view name);            // "F32", "BF16", "F16", "I32", "I64", "U8"
std::string_view dtype_name(DType t);  // the same spelling
inline bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

inline float bf16_to_f32(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
inline std::uint16_t f32_to_bf16(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);  // stays a NaN
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
float f16_to_f32(std::uint16_t h);
std::uint16_t f32_to_f16(float f);

// Converts count elements of a floating type to or from fp32.
void to_f32(float* dst, const void* src, DType src_type, i64 count);
void from_f32(void* dst, DType dst_type, const float* src, i64 count);

}  // namespace tessera
