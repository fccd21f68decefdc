#include "core/dtype.h"

#include <array>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

struct Name {
  DType type;
  std::string_view text;
  size_t bytes;
};
constexpr std::array<Name, 6> kNames = {{{DType::f32, "F32", 4},
                                         {DType::bf16, "BF16", 2},
                                         {DType::f16, "F16", 2},
                                         {DType::i32, "I32", 4},
                                         {DType::i64, "I64", 8},
                                         {DType::u8, "U8", 1}}};

const Name& entry(DType t) { return kNames[static_cast<size_t>(t)]; }

}  // namespace

size_t dtype_bytes(DType t) { return entry(t).bytes; }
std::string_view dtype_name(DType t) { return entry(t).text; }

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const Name& n : kNames)
    if (n.text == name) return n.type;
  return std::nullopt;
}

float f16_to_f32(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16, exponent = (h >> 10) & 31u,
                      mantissa = h & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float f = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -f : f;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return sign | 0x7e00u;
  if (a >= 0x47800000u) return sign | 0x7c00u;
  if (a < 0x38800000u) {  // subnormal: adding 0.5 lets the fp32 adder do the rounding
    const float shifted = std::bit_cast<float>(a) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

void to_f32(float* dst, const void* src, DType src_type, i64 count) {
  const auto* half = static_cast<const std::uint16_t*>(src);
  switch (src_type) {
    case DType::f32:
      std::memcpy(dst, src, static_cast<size_t>(count) * 4);
      return;
    case DType::bf16:
      for (i64 i = 0; i < count; ++i) dst[i] = bf16_to_f32(half[i]);
      return;
    case DType::f16:
      for (i64 i = 0; i < count; ++i) dst[i] = f16_to_f32(half[i]);
      return;
    default:
      throw EngineError("wrong_dtype", std::string(dtype_name(src_type)) + " is no floating type");
  }
}

void from_f32(void* dst, DType dst_type, const float* src, i64 count) {
  auto* half = static_cast<std::uint16_t*>(dst);
  switch (dst_type) {
    case DType::f32:
      std::memcpy(dst, src, static_cast<size_t>(count) * 4);
      return;
    case DType::bf16:
      for (i64 i = 0; i < count; ++i) half[i] = f32_to_bf16(src[i]);
      return;
    case DType::f16:
      for (i64 i = 0; i < count; ++i) half[i] = f32_to_f16(src[i]);
      return;
    default:
      throw EngineError("wrong_dtype", std::string(dtype_name(dst_type)) + " is no floating type");
  }
}

}  // namespace tessera
