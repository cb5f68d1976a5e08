#pragma once
#include <cstdint>
#include <string_view>

#include "framework/dtype.h"

namespace twiddle {

// The error limit of a pass: its relative L2 error against a double reference on random normal data. A network with the
// limit bf16 also stores activations in bf16.
enum class Precision : std::uint8_t { fp32, tf32, bf16 };
double promise(Precision precision);  // 2e-6, 1e-3, 1e-2
std::string_view to_string(Precision precision);
inline DType storage_of(Precision precision) {  // of activations and of the weights that layers read
  return precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

}  // namespace twiddle
