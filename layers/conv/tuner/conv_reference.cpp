// The three passes as gather sums in double, one element at a time: the reference for every engine.
#include <algorithm>

#include "framework/context.h"
#include "layers/conv/engines/engines.h"

namespace twiddle {

namespace {

// The input row (column) that output row `out` sees through kernel row `tap`; may lie in the padding.
int input_at(int out, int tap, int stride, int pad, int dilation) {
  return out * stride - pad + tap * dilation;
}

bool inside(int position, int size) {
  return position >= 0 && position < size;
}

double forward_element(const ConvProblem& p, const float* x, const float* w, const float* bias, std::int64_t index) {
  const int out_h = p.out_height(), out_w = p.out_width();
  const int column = static_cast<int>(index % out_w), row = static_cast<int>(index / out_w % out_h);
  const std::int64_t filter = index / out_w / out_h % p.filters, image = index / out_w / out_h / p.filters;
  const std::int64_t channels = p.channels / p.groups, group = filter / (p.filters / p.groups);
  double sum = bias ? bias[filter] : 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const float* const plane = x + (image * p.channels + group * channels + c) * p.height * p.width;
    const float* const kernel = w + (filter * channels + c) * p.kernel_h * p.kernel_w;
    for (int ky = 0; ky < p.kernel_h; ++ky) {
      const int y = input_at(row, ky, p.stride_h, p.pad_h, p.dilation);
      if (!inside(y, p.height)) continue;
      for (int kx = 0; kx < p.kernel_w; ++kx) {
        const int column_in = input_at(column, kx, p.stride_w, p.pad_w, p.dilation);
        if (inside(column_in, p.width))
          sum += double(plane[std::int64_t(y) * p.width + column_in]) * kernel[std::int64_t(ky) * p.kernel_w + kx];
      }
    }
  }
  return sum;
}

double backward_input_element(const ConvProblem& p, const float* w, const float* grad_y, std::int64_t index) {
  const int out_h = p.out_height(), out_w = p.out_width();
  const int column = static_cast<int>(index % p.width), row = static_cast<int>(index / p.width % p.height);
  const std::int64_t channel = index / p.width / p.height % p.channels, image = index / p.width / p.height / p.channels;
  const std::int64_t channels = p.channels / p.groups, filters = p.filters / p.groups, group = channel / channels;
  double sum = 0;
  for (std::int64_t f = group * filters; f < (group + 1) * filters; ++f) {
    const float* const plane = grad_y + (image * p.filters + f) * out_h * out_w;
    const float* const kernel = w + (f * channels + channel % channels) * p.kernel_h * p.kernel_w;
    for (int ky = 0; ky < p.kernel_h; ++ky) {
      const int y = row + p.pad_h - ky * p.dilation;  // stride times the output row that saw this one through ky
      if (y % p.stride_h != 0 || !inside(y, out_h * p.stride_h)) continue;
      for (int kx = 0; kx < p.kernel_w; ++kx) {
        const int column_out = column + p.pad_w - kx * p.dilation;
        if (column_out % p.stride_w == 0 && inside(column_out, out_w * p.stride_w))
          sum += double(plane[std::int64_t(y / p.stride_h) * out_w + column_out / p.stride_w]) *
                 kernel[std::int64_t(ky) * p.kernel_w + kx];
      }
    }
  }
  return sum;
}

double backward_weight_element(const ConvProblem& p, const float* x, const float* grad_y, std::int64_t index) {
  const int out_h = p.out_height(), out_w = p.out_width();
  const int kx = static_cast<int>(index % p.kernel_w), ky = static_cast<int>(index / p.kernel_w % p.kernel_h);
  const std::int64_t channels = p.channels / p.groups, of_kernel = index / p.kernel_w / p.kernel_h;
  const std::int64_t filter = of_kernel / channels, group = filter / (p.filters / p.groups);
  const std::int64_t channel = group * channels + of_kernel % channels;
  double sum = 0;
  for (std::int64_t image = 0; image < p.batch; ++image) {
    const float* const plane = x + (image * p.channels + channel) * p.height * p.width;
    const float* const gradient = grad_y + (image * p.filters + filter) * out_h * out_w;
    for (int row = 0; row < out_h; ++row) {
      const int y = input_at(row, ky, p.stride_h, p.pad_h, p.dilation);
      if (!inside(y, p.height)) continue;
      for (int column = 0; column < out_w; ++column) {
        const int column_in = input_at(column, kx, p.stride_w, p.pad_w, p.dilation);
        if (inside(column_in, p.width))
          sum += double(plane[std::int64_t(y) * p.width + column_in]) * gradient[std::int64_t(row) * out_w + column];
      }
    }
  }
  return sum;
}

}  // namespace

double conv_reference(const ConvProblem& problem, ConvPass pass, const float* x, const float* w, const float* y,
                      const float* bias, std::int64_t index) {
  switch (pass) {
    case ConvPass::backward_input:
      return backward_input_element(problem, w, y, index);
    case ConvPass::backward_weight:
      return backward_weight_element(problem, x, y, index);
    default:
      return forward_element(problem, x, w, bias, index);
  }
}

}  // namespace twiddle
