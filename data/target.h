#pragma once
#include <cstdint>

namespace twiddle {

// The kind of target that a network's output is compared with.
enum class TargetKind : std::uint8_t {
  label,   // the image's class
  labels,  // its classes: any number of them
  input,   // the image itself
  image,   // another image
};

// Whether the output is an image, and not the scores of classes.
inline bool is_image(TargetKind kind) {
  return kind == TargetKind::input || kind == TargetKind::image;
}

}  // namespace twiddle
