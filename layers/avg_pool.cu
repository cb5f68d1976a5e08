#include "layers/avg_pool.h"

#include "framework/for_each.h"
#include "layers/covering_windows.h"
#include "layers/cuda/pool_pieces.h"
#include "layers/mean_windows.h"

namespace twiddle {

namespace {

// On the CPU one call a row of outputs.
struct AvgPoolForward {
  MeanWindows mean;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const PoolWindow& window = mean.window;
    const float* const in = x + row / window.out_height * window.height * window.width;
    const auto h = mean.down(row % window.out_height);
    for (std::int64_t out = 0; out < window.out_width; ++out) {
      const auto w = mean.across(out);
      float sum = 0;
      for (std::int64_t i = h.begin; i < h.end; ++i)
        for (std::int64_t j = w.begin; j < w.end; ++j) sum += in[i * window.width + j];
      y[row * window.out_width + out] = sum * mean.share(h, w);
    }
  }
};

// On the CPU one call a plane: windows may overlap, and within a plane the sum keeps its order.
struct AvgPoolBackward {
  MeanWindows mean;
  const float* grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t plane) const {
    const PoolWindow& window = mean.window;
    float* const to = grad_x + plane * window.height * window.width;
    const float* from = grad_y + plane * window.out_height * window.out_width;
    for (std::int64_t i = 0; i < window.height * window.width; ++i) to[i] = 0;
    for (std::int64_t out_h = 0; out_h < window.out_height; ++out_h) {
      const auto h = mean.down(out_h);
      for (std::int64_t out_w = 0; out_w < window.out_width; ++out_w) {
        const auto w = mean.across(out_w);
        const float share = *from++ * mean.share(h, w);
        for (std::int64_t i = h.begin; i < h.end; ++i)
          for (std::int64_t j = w.begin; j < w.end; ++j) to[i * window.width + j] += share;
      }
    }
  }
};

// On a GPU, for windows that pieces of planes cannot hold: one call an output.
struct AvgPoolOutput {
  MeanWindows mean;
  Divisor out_width, out_height;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const PoolWindow& window = mean.window;
    const std::int64_t row = out_width.quotient(i), plane = out_height.quotient(row);
    const auto h = mean.down(row - plane * window.out_height), w = mean.across(i - row * window.out_width);
    const float* const in = x + plane * window.height * window.width;
    float sum = 0;
    for (std::int64_t at_h = h.begin; at_h < h.end; ++at_h)
      for (std::int64_t at_w = w.begin; at_w < w.end; ++at_w) sum += in[at_h * window.width + at_w];
    y[i] = sum * mean.share(h, w);
  }
};

// The same on the way back, one call an input, which gathers what the windows that hold it share out.
struct AvgPoolInput {
  MeanWindows mean;
  CoveringWindows down, across;
  Divisor width, height;
  const float* grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i), plane = height.quotient(row);
    const CoveringWindows::Range rows = down.at(row - plane * height.value());
    const CoveringWindows::Range columns = across.at(i - row * width.value());
    float sum = 0;
    for (std::int64_t out_h = rows.begin; out_h < rows.end; ++out_h)
      for (std::int64_t out_w = columns.begin; out_w < columns.end; ++out_w)
        sum += grad_y[(plane * down.windows + out_h) * across.windows + out_w] * mean.share(out_h, out_w);
    grad_x[i] = sum;
  }
};

void pool_on_gpu(Stream& stream, const MeanWindows& mean, const Tensor& x, Tensor& y) {
  if (avg_pool_in_pieces(stream, mean, x, y)) return;
  for_each_index(
      stream, y.size(),
      AvgPoolOutput{mean, Divisor(mean.window.out_width), Divisor(mean.window.out_height), x.read(), y.write()});
}

void gather_on_gpu(Stream& stream, const MeanWindows& mean, const Tensor& grad_y, Tensor& grad_x) {
  if (avg_pool_backward_in_pieces(stream, mean, grad_y, grad_x)) return;
  const PoolWindow& window = mean.window;
  for_each_index(stream, grad_x.size(),
                 AvgPoolInput{mean,
                              {window.kernel_h, window.pad_h, window.out_height, Divisor(window.stride_h)},
                              {window.kernel_w, window.pad_w, window.out_width, Divisor(window.stride_w)},
                              Divisor(window.width),
                              Divisor(window.height),
                              grad_y.read(),
                              grad_x.write()});
}

void avg_pool(Stream& stream, const MeanWindows& mean, const Tensor& x, Tensor& y) {
  if (on_gpu(stream)) return pool_on_gpu(stream, mean, x, y);
  const PoolWindow& window = mean.window;
  for_each_index(stream, y.size() / window.out_width, AvgPoolForward{mean, x.read(), y.write()},
                 window.out_width * window.kernel_h * window.kernel_w);
}

void avg_pool_backward(Stream& stream, const MeanWindows& mean, const Tensor& grad_y, Tensor& grad_x) {
  if (on_gpu(stream)) return gather_on_gpu(stream, mean, grad_y, grad_x);
  const std::int64_t plane_size = mean.window.height * mean.window.width;
  for_each_index(stream, grad_x.size() / plane_size, AvgPoolBackward{mean, grad_y.read(), grad_x.write()}, plane_size);
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
  const MeanWindows mean(window_, count_padding_);
  avg_pool(*ctx.stream, mean, x.value(), y);
  return ctx.tape.record(name(), y, {x}, [x, shape, mean](Context& backward_ctx, const Tensor& grad_y) {
    Tensor grad_x(*backward_ctx.stream, shape);
    avg_pool_backward(*backward_ctx.stream, mean, grad_y, grad_x);
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
