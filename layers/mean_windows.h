#pragma once
#include "framework/for_each.h"
#include "layers/pool_window.h"

namespace twiddle {

// The stretch of one axis that a window covers, and how much of the padded axis it spans.
template <class Int>
struct Span {
  Int begin, end, padded;
};

template <class Int>
TWIDDLE_HD Span<Int> span_of(Int out, Int kernel, Int stride, Int pad, Int size) {
  const Int begin = out * stride - pad;
  const Int end = begin + kernel < size + pad ? begin + kernel : size + pad;
  return {begin > 0 ? begin : 0, end < size ? end : size, end - begin};
}

// The windows of average pooling and what each value of one counts. On a GPU they are asked with ints.
struct MeanWindows {
  PoolWindow window;
  bool count_padding;
  float common = 0;  // the share in all windows; 0 where it differs

  MeanWindows(const PoolWindow& pool_window, bool counts_padding) : window(pool_window), count_padding(counts_padding) {
    const auto even = [&](std::int64_t kernel, std::int64_t stride, std::int64_t pad, std::int64_t size,
                          std::int64_t windows) {
      const bool padding_alike = pad == 0 || count_padding;
      return padding_alike && (windows - 1) * stride - pad + kernel <= size + pad;
    };
    if (even(window.kernel_h, window.stride_h, window.pad_h, window.height, window.out_height) &&
        even(window.kernel_w, window.stride_w, window.pad_w, window.width, window.out_width))
      common = 1.0f / static_cast<float>(window.kernel_h * window.kernel_w);
  }

  template <class Int>
  TWIDDLE_HD Span<Int> down(Int out) const {
    return span_of<Int>(out, static_cast<Int>(window.kernel_h), static_cast<Int>(window.stride_h),
                        static_cast<Int>(window.pad_h), static_cast<Int>(window.height));
  }
  template <class Int>
  TWIDDLE_HD Span<Int> across(Int out) const {
    return span_of<Int>(out, static_cast<Int>(window.kernel_w), static_cast<Int>(window.stride_w),
                        static_cast<Int>(window.pad_w), static_cast<Int>(window.width));
  }

  template <class Int>
  TWIDDLE_HD float share(const Span<Int>& h, const Span<Int>& w) const {
    const Int count = count_padding ? h.padded * w.padded : (h.end - h.begin) * (w.end - w.begin);
    return 1.0f / static_cast<float>(count);
  }
  template <class Int>
  TWIDDLE_HD float share(Int out_h, Int out_w) const {
    return common > 0 ? common : share(down(out_h), across(out_w));
  }
};

}  // namespace twiddle
