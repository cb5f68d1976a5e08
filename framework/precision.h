#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "framework/dtype.h"

namespace twiddle {

// The error limit of convolutions. With bf16 and fp16, activations and the weights that layers read have 16 bits.
enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16 };
inline constexpr std::array every_precision{Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16};
std::string_view to_string(Precision precision);
inline DType storage_of(Precision precision) {
  return precision == Precision::bf16 ? DType::bf16 : precision == Precision::fp16 ? DType::f16 : DType::f32;
}

}  // namespace twiddle
