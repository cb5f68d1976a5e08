#include "layers/global_avg_pool.h"

#include "framework/for_each.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

template <class T>
struct PlaneMean {
  std::int64_t plane_size;
  const T* x;
  T* y;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return to_float(x[row * plane_size + column]); }
  TWIDDLE_HD void store(std::int64_t row, double sum) const {
    y[row] = from_float<T>(static_cast<float>(sum / static_cast<double>(plane_size)));
  }
};

template <class T>
struct SpreadOverPlane {
  float plane_size;
  const T* grad_y;
  struct Plane {
    float share;
    TWIDDLE_HD float operator()(std::int64_t) const { return share; }
  };
  TWIDDLE_HD Plane row(std::int64_t plane) const { return {to_float(grad_y[plane]) / plane_size}; }
};

}  // namespace

GlobalAvgPool::GlobalAvgPool(const Site& site, Params& params) : Layer(site.name, {}) {
  require_planes(site, params);
  set_output_shape({site.input[0]});
}

Variable GlobalAvgPool::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const Shape shape = value.shape();
  const std::int64_t plane_size = shape.at(2) * shape.at(3);
  Tensor y(*ctx.stream, {shape[0], shape[1]}, value.type());
  with_type(value.type(), [&](auto t) {
    using T = decltype(t);
    reduce_rows(*ctx.stream, y.size(), plane_size, PlaneMean<T>{plane_size, value.read<T>(), y.write<T>()});
  });
  return ctx.tape.record(name(), y, {x}, [x, shape, plane_size](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, shape, grad_y.type());
    with_type(grad_y.type(), [&](auto t) {
      using T = decltype(t);
      map_rows(stream, grad_y.size(), plane_size, SpreadOverPlane<T>{static_cast<float>(plane_size), grad_y.read<T>()},
               1, grad_x.write<T>());
    });
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
