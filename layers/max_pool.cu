#include "layers/max_pool.h"

#include "framework/for_each.h"

namespace twiddle {

namespace {

// One call a row of outputs. Kernel and Stride above 0 are the window's own, told to the compiler: the row's interior
// then becomes straight vector code; 0 stands for any.
template <int Kernel, int Stride>
struct MaxPoolForward {
  PoolWindow window;
  const float* x;
  float* y;
  std::int32_t* index;  // where in its plane each maximum was found; null where nobody asks

  TWIDDLE_HD void operator()(std::int64_t row) const {
    const std::int64_t plane = row / window.out_height;
    const float* const in = x + plane * window.height * window.width;
    const std::int64_t top = row % window.out_height * window.stride_h - window.pad_h;
    std::int64_t out = 0;
    if (Kernel > 0 && top >= 0 && top + Kernel <= window.height) {
      for (; out < window.out_width && out * Stride < window.pad_w; ++out) clipped(in, row, top, out);
      const std::int64_t room = window.width + window.pad_w - Kernel;
      std::int64_t inside = room < 0 ? 0 : room / (Stride > 0 ? Stride : 1) + 1;
      if (inside > window.out_width) inside = window.out_width;
      if (index != nullptr)
        interior<true>(in, row, top, out, inside);
      else
        interior<false>(in, row, top, out, inside);
      if (out < inside) out = inside;
    }
    for (; out < window.out_width; ++out) clipped(in, row, top, out);
  }

  template <bool WithIndex>
  TWIDDLE_HD void interior(const float* in, std::int64_t row, std::int64_t top, std::int64_t begin,
                           std::int64_t end) const {
    const auto corner = static_cast<std::int32_t>(top * window.width - window.pad_w);
    const auto width = static_cast<std::int32_t>(window.width);
    const float* const from = in + corner;
    float* const row_y = y + row * window.out_width;
    std::int32_t* const row_index = index + (WithIndex ? row * window.out_width : 0);
    const auto last = static_cast<std::int32_t>(end);
    for (auto out = static_cast<std::int32_t>(begin); out < last; ++out) {
      float best = from[out * Stride];
      std::int32_t best_at = out * Stride;
      for (std::int32_t dy = 0; dy < Kernel; ++dy)
        for (std::int32_t dx = 0; dx < Kernel; ++dx) {
          const std::int32_t at = out * Stride + dy * width + dx;
          const float value = from[at];
          const bool larger = (value > best) | (value != value);  // without a branch
          best = larger ? value : best;
          best_at = larger ? at : best_at;
        }
      row_y[out] = best;
      if (WithIndex) row_index[out] = corner + best_at;
    }
  }

  TWIDDLE_HD void clipped(const float* in, std::int64_t row, std::int64_t top, std::int64_t out) const {
    const std::int64_t left = out * window.stride_w - window.pad_w;
    const std::int64_t first_h = top > 0 ? top : 0, first_w = left > 0 ? left : 0;
    std::int64_t end_h = top + window.kernel_h, end_w = left + window.kernel_w;
    if (end_h > window.height) end_h = window.height;
    if (end_w > window.width) end_w = window.width;
    std::int64_t best_at = first_h * window.width + first_w;
    for (std::int64_t h = first_h; h < end_h; ++h)
      for (std::int64_t w = first_w; w < end_w; ++w) {
        const std::int64_t at = h * window.width + w;
        if (in[best_at] == in[best_at] && !(in[at] <= in[best_at])) best_at = at;
      }
    y[row * window.out_width + out] = in[best_at];
    if (index != nullptr) index[row * window.out_width + out] = static_cast<std::int32_t>(best_at);
  }
};

// One call a plane: windows may overlap, and within a plane the sum keeps its order.
struct MaxPoolBackward {
  std::int64_t plane_size, out_size;
  const float* grad_y;
  const std::int32_t* index;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t plane) const {
    float* const to = grad_x + plane * plane_size;
    for (std::int64_t i = 0; i < plane_size; ++i) to[i] = 0;
    for (std::int64_t i = plane * out_size; i < (plane + 1) * out_size; ++i) to[index[i]] += grad_y[i];
  }
};

template <int Kernel, int Stride>
void max_pool(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  for_each_index(stream, y.size() / window.out_width,
                 MaxPoolForward<Kernel, Stride>{window, x.read(), y.write(),
                                                index.defined() ? index.write<std::int32_t>() : nullptr},
                 window.out_width * window.kernel_h * window.kernel_w);
}

}  // namespace

MaxPool::MaxPool(const Site& site, Params& params) : Layer(site.name, {}), window_(read_pool_window(site, params)) {
  set_output_shape(pooled_shape(site, window_));
}

std::size_t MaxPool::kept_bytes() const {
  return static_cast<std::size_t>(count_of(output_shape())) * sizeof(std::int32_t);
}

Variable MaxPool::forward(Context& ctx, const Variable& x) {
  const Shape shape = x.value().shape();
  Tensor y(*ctx.stream, {shape.at(0), shape.at(1), window_.out_height, window_.out_width});
  Tensor index;
  if (ctx.tape.recording() && x.needs_grad()) index = Tensor(*ctx.stream, y.shape(), DType::i32);
  if (window_.is_square(2, 2))
    max_pool<2, 2>(*ctx.stream, window_, x.value(), y, index);
  else if (window_.is_square(3, 2))
    max_pool<3, 2>(*ctx.stream, window_, x.value(), y, index);
  else
    max_pool<0, 0>(*ctx.stream, window_, x.value(), y, index);

  return ctx.tape.record(name(), y, {x}, [x, shape, index](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, shape);
    const std::int64_t planes = shape[0] * shape[1], plane_size = shape[2] * shape[3];
    for_each_index(
        stream, planes,
        MaxPoolBackward{plane_size, grad_y.size() / planes, grad_y.read(), index.read<std::int32_t>(), grad_x.write()},
        plane_size);
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
