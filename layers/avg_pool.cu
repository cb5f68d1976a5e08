#include "layers/avg_pool.h"

#include "framework/config/params.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

// What one axis of a window covers, and how much of the padded axis it spans.
struct Span {
  int begin, end, padded;
};

TWIDDLE_HD Span span_of(int out, int kernel, int stride, int pad, int size) {
  const int begin = out * stride - pad;
  const int end = begin + kernel < size + pad ? begin + kernel : size + pad;
  return {begin > 0 ? begin : 0, end < size ? end : size, end - begin};
}

// What each value counts in the mean of a window.
struct Means {
  PoolWindow window;
  bool count_padding;

  TWIDDLE_HD Span down(int out_h) const {
    return span_of(out_h, window.kernel_h, window.stride_h, window.pad_h, window.height);
  }
  TWIDDLE_HD Span across(int out_w) const {
    return span_of(out_w, window.kernel_w, window.stride_w, window.pad_w, window.width);
  }
  TWIDDLE_HD float share(const Span& h, const Span& w) const {
    const int count = count_padding ? h.padded * w.padded : (h.end - h.begin) * (w.end - w.begin);
    return 1.0f / static_cast<float>(count);
  }
};

// One call an output.
template <class T>
struct AvgPoolForward {
  Means means;
  Divisor out_width, out_height;
  const T* x;
  T* y;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = out_width.quotient(i), plane = out_height.quotient(row);
    const Span h = means.down(static_cast<int>(out_height.remainder(row)));
    const Span w = means.across(static_cast<int>(out_width.remainder(i)));
    const T* const in = x + plane * means.window.height * means.window.width;
    float sum = 0;
    for (int at_h = h.begin; at_h < h.end; ++at_h)
      for (int at_w = w.begin; at_w < w.end; ++at_w) sum += to_float(in[at_h * means.window.width + at_w]);
    y[i] = from_float<T>(sum * means.share(h, w));
  }
};

// One call an input, which gathers what the windows that hold it share out: no two calls add to one place, and the
// order of the sum is fixed.
template <class T>
struct AvgPoolBackward {
  Means means;
  Divisor width, height;
  const T* grad_y;
  T* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const PoolWindow& window = means.window;
    const std::int64_t row = width.quotient(i), plane = height.quotient(row);
    const PoolWindow::Range rows = window.over_row(static_cast<int>(height.remainder(row)));
    const PoolWindow::Range columns = window.over_column(static_cast<int>(width.remainder(i)));
    const T* const from = grad_y + plane * window.out_height * window.out_width;
    float sum = 0;
    for (int out_h = rows.begin; out_h < rows.end; ++out_h)
      for (int out_w = columns.begin; out_w < columns.end; ++out_w)
        sum += to_float(from[out_h * window.out_width + out_w]) * means.share(means.down(out_h), means.across(out_w));
    grad_x[i] = from_float<T>(sum);
  }
};

}  // namespace

AvgPool::AvgPool(const Site& site, Params& params)
    : Layer(site.name, {}),
      count_padding_(params.flag("count_padding", true)),
      window_(read_pool_window(site, params)) {
  set_output_shape(pooled_shape(site, window_));
}

Variable AvgPool::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const Shape shape = value.shape();
  Tensor y(*ctx.stream, {shape.at(0), shape.at(1), window_.out_height, window_.out_width}, value.type());
  const Means means{window_, count_padding_};
  with_type(value.type(), [&](auto t) {
    using T = decltype(t);
    for_each_index(*ctx.stream, y.size(),
                   AvgPoolForward<T>{means, Divisor(window_.out_width), Divisor(window_.out_height), value.read<T>(),
                                     y.write<T>()},
                   std::int64_t(window_.kernel_h) * window_.kernel_w);
  });
  return ctx.tape.record(name(), y, {x}, [x, shape, means](Context& backward_ctx, const Tensor& grad_y) {
    Tensor grad_x(*backward_ctx.stream, shape, grad_y.type());
    with_type(grad_y.type(), [&](auto t) {
      using T = decltype(t);
      for_each_index(*backward_ctx.stream, grad_x.size(),
                     AvgPoolBackward<T>{means, Divisor(means.window.width), Divisor(means.window.height),
                                        grad_y.read<T>(), grad_x.write<T>()});
    });
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
