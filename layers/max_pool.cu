#include "layers/max_pool.h"

#include "framework/for_each.h"
#include "layers/covering_windows.h"

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

// On a GPU one call an output, neighbours side by side.
template <int Kernel, int Stride>
struct MaxPoolOutput {
  PoolWindow window;
  Divisor out_width, out_height;
  const float* x;
  float* y;
  std::int32_t* index;

  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = out_width.quotient(i), plane = out_height.quotient(row);
    const int width = static_cast<int>(window.width), height = static_cast<int>(window.height);
    const int kernel_h = Kernel > 0 ? Kernel : static_cast<int>(window.kernel_h);
    const int kernel_w = Kernel > 0 ? Kernel : static_cast<int>(window.kernel_w);
    const int stride_h = Stride > 0 ? Stride : static_cast<int>(window.stride_h);
    const int stride_w = Stride > 0 ? Stride : static_cast<int>(window.stride_w);
    const int top = static_cast<int>(row - plane * window.out_height) * stride_h - static_cast<int>(window.pad_h);
    const int left = static_cast<int>(i - row * window.out_width) * stride_w - static_cast<int>(window.pad_w);
    const float* const in = x + plane * window.height * window.width;
    float best = 0;
    std::int32_t best_at = -1;
    for (int dy = 0; dy < kernel_h; ++dy)
      for (int dx = 0; dx < kernel_w; ++dx) {
        const int h = top + dy, w = left + dx;
        if (h < 0 || h >= height || w < 0 || w >= width) continue;
        const float value = in[h * width + w];
        if (best_at >= 0 && (best != best || value <= best)) continue;  // the first NaN stays
        best = value;
        best_at = h * width + w;
      }
    y[i] = best;
    if (index != nullptr) index[i] = best_at;
  }
};

// On a GPU the inputs gather, which needs no atomics and keeps the order of the sum. One call a square of Stride x
// Stride inputs of the padded plane: they share the ceil(Kernel / Stride) windows either way that reach them.
template <int Kernel, int Stride>
struct MaxPoolSquare {
  PoolWindow window;
  Divisor across, down;  // squares
  const float* grad_y;
  const std::int32_t* index;
  float* grad_x;

  TWIDDLE_HD void operator()(std::int64_t i) const {
    constexpr int reach = (Kernel + Stride - 1) / Stride;
    const std::int64_t square_row = across.quotient(i), plane = down.quotient(square_row);
    const int square_h = static_cast<int>(square_row - plane * down.value());
    const int square_w = static_cast<int>(i - square_row * across.value());
    const int width = static_cast<int>(window.width), height = static_cast<int>(window.height);
    const int top = square_h * Stride - static_cast<int>(window.pad_h);
    const int left = square_w * Stride - static_cast<int>(window.pad_w);
    const int out_height = static_cast<int>(window.out_height), out_width = static_cast<int>(window.out_width);
    const std::int32_t* const plane_index = index + plane * window.out_height * window.out_width;
    const float* const plane_grad = grad_y + plane * window.out_height * window.out_width;

    float sums[Stride][Stride] = {};
    for (int back_h = reach - 1; back_h >= 0; --back_h)
      for (int back_w = reach - 1; back_w >= 0; --back_w) {
        const int out_h = square_h - back_h, out_w = square_w - back_w;
        if (out_h < 0 || out_h >= out_height || out_w < 0 || out_w >= out_width) continue;
        const std::int32_t found = plane_index[out_h * out_width + out_w];
        const float grad = plane_grad[out_h * out_width + out_w];
        for (int h = 0; h < Stride; ++h)
          for (int w = 0; w < Stride; ++w) sums[h][w] += found == (top + h) * width + left + w ? grad : 0;
      }
    float* const to = grad_x + plane * window.height * window.width;
    for (int h = 0; h < Stride; ++h)
      for (int w = 0; w < Stride; ++w)
        if (top + h >= 0 && top + h < height && left + w >= 0 && left + w < width)
          to[(top + h) * width + left + w] = sums[h][w];
  }
};

struct MaxPoolInput {  // the same for any window, one call an input
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

template <int Kernel, int Stride>
void gather_squares(Stream& stream, const PoolWindow& window, std::int64_t planes, const Tensor& grad_y,
                    const Tensor& index, Tensor& grad_x) {
  const std::int64_t down = (window.height + window.pad_h + Stride - 1) / Stride;
  const std::int64_t across = (window.width + window.pad_w + Stride - 1) / Stride;
  for_each_index(stream, planes * down * across,
                 MaxPoolSquare<Kernel, Stride>{window, Divisor(across), Divisor(down), grad_y.read(),
                                               index.read<std::int32_t>(), grad_x.write()});
}

void gather(Stream& stream, const PoolWindow& window, std::int64_t planes, const Tensor& grad_y, const Tensor& index,
            Tensor& grad_x) {
  if (window.is_square(2, 2)) return gather_squares<2, 2>(stream, window, planes, grad_y, index, grad_x);
  if (window.is_square(3, 2)) return gather_squares<3, 2>(stream, window, planes, grad_y, index, grad_x);
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
void max_pool(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  if (on_gpu(stream))
    return for_each_index(
        stream, y.size(),
        MaxPoolOutput<Kernel, Stride>{window, Divisor(window.out_width), Divisor(window.out_height), x.read(),
                                      y.write(), index.defined() ? index.write<std::int32_t>() : nullptr});
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

  return ctx.tape.record(name(), y, {x},
                         [x, shape, index, window = window_](Context& backward_ctx, const Tensor& grad_y) {
                           Stream& stream = *backward_ctx.stream;
                           Tensor grad_x(stream, shape);
                           const std::int64_t planes = shape[0] * shape[1], plane_size = shape[2] * shape[3];
                           if (on_gpu(stream))
                             gather(stream, window, planes, grad_y, index, grad_x);
                           else
                             for_each_index(stream, planes,
                                            MaxPoolBackward{plane_size, grad_y.size() / planes, grad_y.read(),
                                                            index.read<std::int32_t>(), grad_x.write()},
                                            plane_size);
                           x.add_grad(backward_ctx, grad_x);
                         });
}

}  // namespace twiddle
