#pragma once
#include <cstdint>

#include "framework/tensor.h"

namespace twiddle {

// Returns the same elements in separate memory, copied by the stream that computes with the tensor.
inline Tensor copy_of(Stream& stream, const Tensor& tensor) {
  const bool floats = tensor.type() == DType::f32;
  Tensor copy(stream, tensor.shape(), tensor.type());
  if (floats)
    stream.copy(copy.write(), tensor.read(), tensor.bytes());
  else
    stream.copy(copy.write<std::int32_t>(), tensor.read<std::int32_t>(), tensor.bytes());
  return copy;
}

}  // namespace twiddle
