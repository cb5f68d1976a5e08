#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/tensor.h"

namespace twiddle {

// Visits square pooling windows one by one, by definition: work(top, left, the indices of x in the window), for a y of
// shape `out`.
struct SquareWindows {
  std::int64_t kernel, stride, pad;

  template <class Work>
  void for_each(const Shape& in, const Shape& out, const Work& work) const {
    for (std::int64_t plane = 0; plane < in[0] * in[1]; ++plane)
      for (std::int64_t top = -pad; top < out[2] * stride - pad; top += stride)
        for (std::int64_t left = -pad; left < out[3] * stride - pad; left += stride) {
          std::vector<std::size_t> places;
          for (std::int64_t h = std::max<std::int64_t>(top, 0); h < std::min(top + kernel, in[2]); ++h)
            for (std::int64_t w = std::max<std::int64_t>(left, 0); w < std::min(left + kernel, in[3]); ++w)
              places.push_back(static_cast<std::size_t>((plane * in[2] + h) * in[3] + w));
          work(top, left, places);
        }
  }
};

}  // namespace twiddle
