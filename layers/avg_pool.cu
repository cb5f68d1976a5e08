#include "layers/avg_pool.h"

#include "framework/for_each.h"
#include "layers/covering_windows.h"

namespace twiddle {

namespace {

// The stretch of one axis that a window covers, and how much of the padded axis it spans.
struct Span {
  std::int64_t begin, end, padded;
};

TWIDDLE_HD Span span_of(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                        std::int64_t size) {
  const std::int64_t begin = out * stride - pad;
  const std::int64_t end = begin + kernel < size + pad ? begin + kernel : size + pad;
  return {begin > 0 ? begin : 0, end < size ? end : size, end - begin};
}

TWIDDLE_HD float share_of(const Span& h, const Span& w, bool count_padding) {
  const std::int64_t count = count_padding ? h.padded * w.padded : (h.end - h.begin) * (w.end - w.begin);
  return 1.0f / static_cast<float>(count);
}

// On the CPU one call a row of outputs.
struct AvgPoolForward {
  PoolWindow window;
  bool count_padding;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float* const in = x + row / window.out_height * window.height * window.width;
    const Span h = span_of(row % window.out_height, window.kernel_h, window.stride_h, window.pad_h, window.height);
    for (std::int64_t out = 0; out < window.out_width; ++out) {
      const Span w = span_of(out, window.kernel_w, window.stride_w, window.pad_w, window.width);
      float sum = 0;
      for (std::int64_t i = h.begin; i < h.end; ++i)
        for (std::int64_t j = w.begin; j < w.end; ++j) sum += in[i * window.width + j];
      y[row * window.out_width + out] = sum * share_of(h, w, count_padding);
    }
  }
};

// On the CPU one call a plane: windows may overlap, and within a plane the sum keeps its order.
struct AvgPoolBackward {
  PoolWindow window;
  bool count_padding;
  const float* grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t plane) const {
    float* const to = grad_x + plane * window.height * window.width;
    const float* from = grad_y + plane * window.out_height * window.out_width;
    for (std::int64_t i = 0; i < window.height * window.width; ++i) to[i] = 0;
    for (std::int64_t out_h = 0; out_h < window.out_height; ++out_h) {
      const Span h = span_of(out_h, window.kernel_h, window.stride_h, window.pad_h, window.height);
      for (std::int64_t out_w = 0; out_w < window.out_width; ++out_w) {
        const Span w = span_of(out_w, window.kernel_w, window.stride_w, window.pad_w, window.width);
        const float share = *from++ * share_of(h, w, count_padding);
        for (std::int64_t i = h.begin; i < h.end; ++i)
          for (std::int64_t j = w.begin; j < w.end; ++j) to[i * window.width + j] += share;
      }
    }
  }
};

// On a GPU one call an output, and backwards one an input, which gathers what the windows that hold it share out.
struct AvgPoolOutput {
  PoolWindow window;
  bool count_padding;
  Divisor out_width, out_height;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = out_width.quotient(i), plane = out_height.quotient(row);
    const std::int64_t out_h = row - plane * window.out_height, out_w = i - row * window.out_width;
    const Span h = span_of(out_h, window.kernel_h, window.stride_h, window.pad_h, window.height);
    const Span w = span_of(out_w, window.kernel_w, window.stride_w, window.pad_w, window.width);
    const float* const in = x + plane * window.height * window.width;
    float sum = 0;
    for (std::int64_t at_h = h.begin; at_h < h.end; ++at_h)
      for (std::int64_t at_w = w.begin; at_w < w.end; ++at_w) sum += in[at_h * window.width + at_w];
    y[i] = sum * share_of(h, w, count_padding);
  }
};

struct AvgPoolInput {
  PoolWindow window;
  bool count_padding;
  CoveringWindows down, across;
  Divisor width, height;
  const float* grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i), plane = height.quotient(row);
    const CoveringWindows::Range rows = down.at(row - plane * window.height);
    const CoveringWindows::Range columns = across.at(i - row * window.width);
    float sum = 0;
    for (std::int64_t out_h = rows.begin; out_h < rows.end; ++out_h) {
      const Span h = span_of(out_h, window.kernel_h, window.stride_h, window.pad_h, window.height);
      for (std::int64_t out_w = columns.begin; out_w < columns.end; ++out_w) {
        const Span w = span_of(out_w, window.kernel_w, window.stride_w, window.pad_w, window.width);
        sum += grad_y[(plane * window.out_height + out_h) * window.out_width + out_w] * share_of(h, w, count_padding);
      }
    }
    grad_x[i] = sum;
  }
};

void avg_pool(Stream& stream, const PoolWindow& window, bool count_padding, const Tensor& x, Tensor& y) {
  if (on_gpu(stream))
    return for_each_index(stream, y.size(),
                          AvgPoolOutput{window, count_padding, Divisor(window.out_width), Divisor(window.out_height),
                                        x.read(), y.write()});
  for_each_index(stream, y.size() / window.out_width, AvgPoolForward{window, count_padding, x.read(), y.write()},
                 window.out_width * window.kernel_h * window.kernel_w);
}

void avg_pool_backward(Stream& stream, const PoolWindow& window, bool count_padding, const Tensor& grad_y,
                       Tensor& grad_x) {
  const std::int64_t plane_size = window.height * window.width;
  if (on_gpu(stream))
    return for_each_index(stream, grad_x.size(),
                          AvgPoolInput{window,
                                       count_padding,
                                       {window.kernel_h, window.pad_h, window.out_height, Divisor(window.stride_h)},
                                       {window.kernel_w, window.pad_w, window.out_width, Divisor(window.stride_w)},
                                       Divisor(window.width),
                                       Divisor(window.height),
                                       grad_y.read(),
                                       grad_x.write()});
  for_each_index(stream, grad_x.size() / plane_size,
                 AvgPoolBackward{window, count_padding, grad_y.read(), grad_x.write()}, plane_size);
}

}  // namespace

AvgPool::AvgPool(const Site& site, Params& params)
    : Layer(site.name, {}),
      count_padding_(params.flag("count_padding", true)),
      window_(read_pool_window(site, params)) {
  set_output_shape(pooled_shape(site, window_));
}

Variable AvgPool::forward(Context& ctx, const Variable& x) {
  const Shape shape = x.value().shape();
  Tensor y(*ctx.stream, {shape.at(0), shape.at(1), window_.out_height, window_.out_width});
  avg_pool(*ctx.stream, window_, count_padding_, x.value(), y);
  return ctx.tape.record(
      name(), y, {x},
      [x, shape, window = window_, padding = count_padding_](Context& backward_ctx, const Tensor& grad_y) {
        Tensor grad_x(*backward_ctx.stream, shape);
        avg_pool_backward(*backward_ctx.stream, window, padding, grad_y, grad_x);
        x.add_grad(backward_ctx, grad_x);
      });
}

}  // namespace twiddle
