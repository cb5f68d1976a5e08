#pragma once
#include <cstdint>

#include "framework/host_device.h"

namespace twiddle {

// The element types of tensors. All arithmetic is in float: bf16 and f16 are only stored.
enum class DType : std::uint8_t { f32, i32, bf16, f16 };

// The upper half of a float: its range, 8 significant bits.
struct Bf16 {
  std::uint16_t bits;
};

// IEEE 754 binary16: up to 65,504, 11 significant bits, subnormals down to 2^-24.
struct Half {
  std::uint16_t bits;
};

constexpr int size_of(DType type) {  // bytes of an element
  return type == DType::bf16 || type == DType::f16 ? 2 : 4;
}

constexpr const char* to_string(DType type) {
  constexpr const char* names[] = {"f32", "i32", "bf16", "f16"};
  return names[static_cast<int>(type)];
}

template <class T>
constexpr DType dtype_of = DType::f32;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<Bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;

// work(T()), where T is float, Bf16 or Half. Tensor::read<T>() refuses any other type.
template <class Work>
auto with_type(DType type, const Work& work) {
  if (type == DType::bf16) return work(Bf16());
  if (type == DType::f16) return work(Half());
  return work(float());
}

// The compiler's own cast: std::bit_cast is no device function.
TWIDDLE_HD inline std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}

TWIDDLE_HD inline float float_of_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

TWIDDLE_HD inline float to_float(float x) {
  return x;
}

TWIDDLE_HD inline float to_float(Bf16 x) {
  return float_of_bits(std::uint32_t(x.bits) << 16);
}

TWIDDLE_HD inline float to_float(Half x) {
#ifdef __CUDA_ARCH__
  float value;  // by the instruction: 1 instead of about 10
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  const std::uint32_t sign = std::uint32_t(x.bits & 0x8000u) << 16, exponent = (x.bits >> 10) & 31u;
  const std::uint32_t digits = x.bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: digits times 2^-24
    const float magnitude = static_cast<float>(digits) * 5.9604645e-8f;
    return float_of_bits(bits_of(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112;
  return float_of_bits(sign | wide << 23 | digits << 13);
#endif
}

// Rounds to nearest even. Overflow becomes infinity; NaN stays NaN.
template <class T>
TWIDDLE_HD T from_float(float x);

template <>
TWIDDLE_HD inline float from_float<float>(float x) {
  return x;
}

template <>
TWIDDLE_HD inline Bf16 from_float<Bf16>(float x) {
  const auto bits = bits_of(x);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return {static_cast<std::uint16_t>(x != x ? bits >> 16 | 0x40u : rounded)};
}

template <>
TWIDDLE_HD inline Half from_float<Half>(float x) {
#ifdef __CUDA_ARCH__
  Half value;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value.bits) : "f"(x));
  return value;
#else
  const auto bits = bits_of(x);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};   // NaN
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // 65,520 or more
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves multiples of 2^-24 in the last bits, rounded
    const float shifted = float_of_bits(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (bits_of(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
  return {static_cast<std::uint16_t>(sign | rounded >> 13)};
#endif
}

}  // namespace twiddle
