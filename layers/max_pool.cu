#include "layers/max_pool.h"

#include <cmath>

#include "framework/config/params.h"
#include "framework/for_each_in_rows.h"
#include "layers/cuda/max_pool_gradient.h"

namespace twiddle {

namespace {

// Kernel and Stride above 0 are the window's, known at compile time, if no window crosses an edge; 0 stands for any.

// One call an output.
template <int Kernel, int Stride, bool WithIndex, class T>
struct MaxPoolForward {
  PoolWindow window;
  Divisor out_height;
  const T* x;
  T* y;
  std::int32_t* index;  // where in its plane each maximum was found

  struct Row {
    PoolWindow window;
    int top;
    const T* in;
    T* y;
    std::int32_t* index;
    TWIDDLE_HD void operator()(std::int64_t column) const {
      const int kernel_h = Kernel > 0 ? Kernel : window.kernel_h, kernel_w = Kernel > 0 ? Kernel : window.kernel_w;
      const int left = static_cast<int>(column) * window.stride_w - window.pad_w;
      // Places count from the window's corner, or where that may lie outside, from the plane's.
      const std::int64_t corner = Kernel > 0 ? std::int64_t(top) * window.width + column * Stride : 0;
      const T* const from = in + corner;
      // From the last to the first: of equals the first stays, and the first NaN, with no more than two comparisons,
      // which g++ vectorizes (0.93 ms instead of 3.54 ms for 4x64x55x55, one thread).
      float best = -INFINITY;
      int best_at = 0;
#pragma unroll
      for (int dy = kernel_h - 1; dy >= 0; --dy)
#pragma unroll
        for (int dx = kernel_w - 1; dx >= 0; --dx) {
          // Over the edge the edge is met again, which changes no maximum.
          const int h = Kernel > 0 ? dy : clamped(top + dy, window.height);
          const int w = Kernel > 0 ? dx : clamped(left + dx, window.width);
          const int at = h * window.width + w;
          const float value = to_float(from[at]);
          const bool taken = (value >= best) | (value != value);
          best = taken ? value : best;
          best_at = taken ? at : best_at;
        }
      y[column] = from_float<T>(best);
      if (WithIndex) index[column] = static_cast<int>(corner) + best_at;
    }
  };

  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t plane = out_height.quotient(row), out = row * window.out_width;
    const int top = static_cast<int>(row - plane * window.out_height) * window.stride_h - window.pad_h;
    return {window, top, x + plane * window.height * window.width, y + out, WithIndex ? index + out : nullptr};
  }

  TWIDDLE_HD static int clamped(int place, int size) {
    return place < 0 ? 0 : (place < size ? place : size - 1);
  }
};

// On a GPU, where shared memory cannot hold the planes, and for 16 bits on the CPU, whose sums are in f32: one call an
// input. It gathers, which needs no atomics and keeps the order of the sum.
template <class T>
struct MaxPoolGather {
  PoolWindow window;
  Divisor width, height;
  const T* grad_y;
  const std::int32_t* index;
  T* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i), plane = height.quotient(row);
    const int h = static_cast<int>(height.remainder(row)), w = static_cast<int>(width.remainder(i));
    const PoolWindow::Range rows = window.over_row(h), columns = window.over_column(w);
    const std::int64_t out = plane * window.out_height * window.out_width;
    float sum = 0;
    for (int out_h = rows.begin; out_h < rows.end; ++out_h)
      for (int out_w = columns.begin; out_w < columns.end; ++out_w) {
        const std::int64_t at = out + std::int64_t(out_h) * window.out_width + out_w;
        if (index[at] == h * window.width + w) sum += to_float(grad_y[at]);
      }
    grad_x[i] = from_float<T>(sum);
  }
};

// On the CPU one call a plane, within which the order of the sum is the same. To gather takes twelve times as long
// there (3.73 ms against 0.30 for 8x64x55x55, two threads), about 3 % of an iteration of AlexNet.
struct MaxPoolScatter {
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

// work.operator()<Kernel, Stride>(): the compiler knows the windows of the networks in models/.
template <class Work>
void with_window(const PoolWindow& window, const Work& work) {
  const auto is = [&](int kernel, int stride) {
    return window.is_square(kernel, stride) && window.pad_h == 0 && window.pad_w == 0 &&
           (window.out_height - 1) * stride + kernel <= window.height &&
           (window.out_width - 1) * stride + kernel <= window.width;
  };
  if (is(2, 2)) return work.template operator()<2, 2>();
  if (is(3, 2)) return work.template operator()<3, 2>();
  if (is(3, 3)) return work.template operator()<3, 3>();
  work.template operator()<0, 0>();
}

template <int Kernel, int Stride, bool WithIndex>
void max_pool_rows(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, std::int32_t* index) {
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    for_each_in_rows(stream, y.size() / window.out_width, window.out_width,
                     MaxPoolForward<Kernel, Stride, WithIndex, T>{window, Divisor(window.out_height), x.read<T>(),
                                                                  y.write<T>(), index},
                     std::int64_t(window.kernel_h) * window.kernel_w);
  });
}

void max_pool(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  with_window(window, [&]<int Kernel, int Stride>() {
    if (index.defined())
      max_pool_rows<Kernel, Stride, true>(stream, window, x, y, index.write<std::int32_t>());
    else
      max_pool_rows<Kernel, Stride, false>(stream, window, x, y, nullptr);
  });
}

void gather(Stream& stream, const PoolWindow& window, const Tensor& grad_y, const Tensor& index, Tensor& grad_x) {
  with_type(grad_y.type(), [&](auto t) {
    using T = decltype(t);
    for_each_index(stream, grad_x.size(),
                   MaxPoolGather<T>{window, Divisor(window.width), Divisor(window.height), grad_y.read<T>(),
                                    index.read<std::int32_t>(), grad_x.write<T>()},
                   std::int64_t(window.kernel_h) * window.kernel_w);
  });
}

void max_pool_backward(Stream& stream, const PoolWindow& window, const Tensor& grad_y, const Tensor& index,
                       Tensor& grad_x) {
  if (on_gpu(stream) && max_pool_gradient_in_shared_memory(stream, window, grad_y, index, grad_x)) return;
  if (on_gpu(stream) || grad_y.type() != DType::f32) return gather(stream, window, grad_y, index, grad_x);
  const std::int64_t plane_size = std::int64_t(window.height) * window.width, planes = grad_x.size() / plane_size;
  for_each_index(
      stream, planes,
      MaxPoolScatter{plane_size, grad_y.size() / planes, grad_y.read(), index.read<std::int32_t>(), grad_x.write()},
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
  Tensor y(*ctx.stream, {shape.at(0), shape.at(1), window_.out_height, window_.out_width}, x.value().type());
  Tensor index;
  if (ctx.tape.recording() && x.needs_grad()) index = Tensor(*ctx.stream, y.shape(), DType::i32);
  max_pool(*ctx.stream, window_, x.value(), y, index);
  return ctx.tape.record(name(), y, {x},
                         [x, shape, index, window = window_](Context& backward_ctx, const Tensor& grad_y) {
                           Tensor grad_x(*backward_ctx.stream, shape, grad_y.type());
                           max_pool_backward(*backward_ctx.stream, window, grad_y, index, grad_x);
                           x.add_grad(backward_ctx, grad_x);
                         });
}

}  // namespace twiddle
