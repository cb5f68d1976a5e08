#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "framework/convolution.h"
#include "framework/random.h"
#include "tests/support/conv_problem.h"

namespace twiddle {

// Returns TWIDDLE_RANDOM_PROBLEMS, or a number that runs quickly.
inline int random_depthwise_problems() {
  const char* const text = std::getenv("TWIDDLE_RANDOM_PROBLEMS");
  return text != nullptr ? std::atoi(text) : 60;
}

// Planes of 7 x 7 and 14 x 14 that keep their size, in batches that fill most lanes of a warp.
inline std::vector<ConvProblem> problems_of_cells() {
  return conv_problems(
      {"64x8x7x7 * 8x1x13x13 pad 6 groups 8", "33x16x7x7 * 16x1x7x7 pad 3 groups 16",
       "17x8x7x7 * 8x1x3x3 pad 1 groups 8", "20x12x7x7 * 12x1x5x5 pad 2 groups 12", "40x8x7x7 * 8x1x9x9 pad 4 groups 8",
       "18x8x7x7 * 8x1x17x17 pad 8 groups 8", "24x4x7x7 * 4x1x1x1 groups 4", "65x2x14x14 * 2x1x7x7 pad 3 groups 2",
       "21x3x14x14 * 3x1x5x5 pad 2 groups 3", "40x1x14x14 * 1x1x3x3 pad 1", "100x2x14x14 * 2x1x7x7 pad 3 groups 2",
       "30x2x14x14 * 2x1x1x1 groups 2", "45x2x14x14 * 2x1x27x27 pad 13 groups 2", "20x1x14x14 * 1x1x13x13 pad 6",
       "65x1x14x14 * 1x1x31x31 pad 15"});
}

// Depthwise edge cases: one row, kernels larger than the plane, wide pads, many small images.
inline ConvProblem random_depthwise_problem(std::int64_t number, int largest_kernel, int largest_stride,
                                            int largest_dilation) {
  const RandomSequence random{7};
  std::int64_t draws = number * 32;
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(draws++, most - least + 1));
  };
  ConvProblem p;
  const bool large = between(0, 7) == 0, many = !large && between(0, 3) == 0;
  p.batch = many ? between(10, 90) : between(1, 5);
  p.channels = p.filters = p.groups = between(1, 6);
  p.kernel_h = between(1, largest_kernel);
  p.kernel_w = between(0, 2) == 0 ? between(1, largest_kernel) : p.kernel_h;
  p.stride_h = p.stride_w = between(1, largest_stride);
  p.dilation = between(0, 2) == 0 ? between(1, largest_dilation) : 1;
  const bool usual = between(0, 1) == 0;  // odd kernels, and planes that stay as large as they are
  if (usual) p.kernel_h |= 1, p.kernel_w |= 1;
  const int span_h = p.dilation * (p.kernel_h - 1) + 1, span_w = p.dilation * (p.kernel_w - 1) + 1;
  p.pad_h = usual ? span_h / 2 : between(0, span_h + 2), p.pad_w = usual ? span_w / 2 : between(0, span_w + 2);
  const int longest = many ? 14 : large ? 160 : 34;
  p.height = between(std::max(1, span_h - 2 * p.pad_h), std::max(longest, span_h));
  p.width = between(std::max(1, span_w - 2 * p.pad_w), std::max(longest, span_w));
  if (between(0, 2) == 0) p.width = (p.width + 3) / 4 * 4;
  return p;
}

}  // namespace twiddle
