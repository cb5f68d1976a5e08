#pragma once
#include "framework/convolution.h"

namespace twiddle {

// The convolution of y's gradient whose result is x's, where the stride is 1: channels and filters change places.
inline ConvProblem transposed(const ConvProblem& p) {
  ConvProblem back = p;
  back.channels = p.filters, back.filters = p.channels;
  back.height = p.out_height(), back.width = p.out_width();
  back.pad_h = p.dilation * (p.kernel_h - 1) - p.pad_h, back.pad_w = p.dilation * (p.kernel_w - 1) - p.pad_w;
  return back;
}

}  // namespace twiddle
