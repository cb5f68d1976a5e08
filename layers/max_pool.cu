#include "layers/max_pool.h"

#include "framework/for_each.h"
#include "layers/covering_windows.h"
#include "layers/cuda/pool_pieces.h"

namespace twiddle {

namespace {

// On the CPU one call a row of outputs. Kernel and Stride above 0 are the window's own, told to the compiler: the row's
// interior then becomes straight vector code; 0 stands for any.
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

// On the CPU one call a plane: windows may overlap, and within a plane the sum keeps its order.
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

// On a GPU, for windows that pieces of planes cannot hold: one call an output.
struct MaxPoolOutput {
  MaxPoolForward<0, 0> windows;
  Divisor out_width, out_height;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const PoolWindow& window = windows.window;
    const std::int64_t row = out_width.quotient(i), plane = out_height.quotient(row);
    const std::int64_t top = (row - plane * window.out_height) * window.stride_h - window.pad_h;
    windows.clipped(windows.x + plane * window.height * window.width, row, top, i - row * window.out_width);
  }
};

// The same on the way back, one call an input: it gathers, which needs no atomics and keeps the order of the sum.
struct MaxPoolInput {
  CoveringWindows down, across;
  Divisor width, height;
  const float* grad_y;
  const std::int32_t* index;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i), plane = height.quotient(row);
    const CoveringWindows::Range h = down.at(row - plane * height.value()), w = across.at(i - row * width.value());
    const auto place = static_cast<std::int32_t>(i - plane * height.value() * width.value());
    float sum = 0;
    for (std::int64_t out_h = h.begin; out_h < h.end; ++out_h)
      for (std::int64_t out_w = w.begin; out_w < w.end; ++out_w) {
        const std::int64_t out = (plane * down.windows + out_h) * across.windows + out_w;
        if (index[out] == place) sum += grad_y[out];
      }
    grad_x[i] = sum;
  }
};

std::int32_t* pointer_to(Tensor& index) {
  return index.defined() ? index.write<std::int32_t>() : nullptr;
}

void pool_on_gpu(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  if (max_pool_in_pieces(stream, window, x, y, index)) return;
  for_each_index(
      stream, y.size(),
      MaxPoolOutput{
          {window, x.read(), y.write(), pointer_to(index)}, Divisor(window.out_width), Divisor(window.out_height)});
}

void gather_on_gpu(Stream& stream, const PoolWindow& window, const Tensor& grad_y, const Tensor& index,
                   Tensor& grad_x) {
  if (max_pool_backward_in_pieces(stream, window, grad_y, index, grad_x)) return;
  for_each_index(stream, grad_x.size(),
                 MaxPoolInput{{window.kernel_h, window.pad_h, window.out_height, Divisor(window.stride_h)},
                              {window.kernel_w, window.pad_w, window.out_width, Divisor(window.stride_w)},
                              Divisor(window.width),
                              Divisor(window.height),
                              grad_y.read(),
                              index.read<std::int32_t>(),
                              grad_x.write()});
}

template <int Kernel, int Stride>
void pool_rows(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  for_each_index(stream, y.size() / window.out_width,
                 MaxPoolForward<Kernel, Stride>{window, x.read(), y.write(), pointer_to(index)},
                 window.out_width * window.kernel_h * window.kernel_w);
}

void max_pool(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  if (on_gpu(stream)) return pool_on_gpu(stream, window, x, y, index);
  if (window.is_square(2, 2)) return pool_rows<2, 2>(stream, window, x, y, index);
  if (window.is_square(3, 2)) return pool_rows<3, 2>(stream, window, x, y, index);
  pool_rows<0, 0>(stream, window, x, y, index);
}

void max_pool_backward(Stream& stream, const PoolWindow& window, const Tensor& grad_y, const Tensor& index,
                       Tensor& grad_x) {
  if (on_gpu(stream)) return gather_on_gpu(stream, window, grad_y, index, grad_x);
  const std::int64_t plane_size = window.height * window.width, planes = grad_x.size() / plane_size;
  for_each_index(
      stream, planes,
      MaxPoolBackward{plane_size, grad_y.size() / planes, grad_y.read(), index.read<std::int32_t>(), grad_x.write()},
      plane_size);
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
  max_pool(*ctx.stream, window_, x.value(), y, index);
  return ctx.tape.record(name(), y, {x},
                         [x, shape, index, window = window_](Context& backward_ctx, const Tensor& grad_y) {
                           Tensor grad_x(*backward_ctx.stream, shape);
                           max_pool_backward(*backward_ctx.stream, window, grad_y, index, grad_x);
                           x.add_grad(backward_ctx, grad_x);
                         });
}

}  // namespace twiddle
