#include "layers/upsample.h"

#include <algorithm>
#include <limits>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/for_each_in_rows.h"
#include "framework/text.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

// One axis of a plane that grows by a factor. An output is mixed of one or two neighbouring places.
struct GrownAxis {
  int size, factor;
  bool bilinear;

  struct Mix {
    int low, high;
    float share;  // of `high`
    TWIDDLE_HD float weight(int place) const { return (low == place ? 1 - share : 0) + (high == place ? share : 0); }
  };
  TWIDDLE_HD int grown() const { return size * factor; }
  TWIDDLE_HD Mix mix(int out) const {
    if (!bilinear) return {out / factor, out / factor, 0};
    const float wanted = (static_cast<float>(out) + 0.5f) / static_cast<float>(factor) - 0.5f;
    const float place = wanted > 0 ? wanted : 0;
    const int low = static_cast<int>(place);
    return {low, low + 1 < size ? low + 1 : low, place - static_cast<float>(low)};
  }

  // The outputs to which a place may contribute: begin <= out < end.
  struct Range {
    int begin, end;
  };
  TWIDDLE_HD Range reached(int place) const {
    const int reach = bilinear ? (factor + 1) / 2 : 0;
    const int begin = place * factor - reach, end = (place + 1) * factor + reach;
    return {begin > 0 ? begin : 0, end < grown() ? end : grown()};
  }
};

// Where nothing is mixed a value passes as it is, an infinite one too.
TWIDDLE_HD float between(float low, float high, float share) {
  return share > 0 ? low + share * (high - low) : low;
}

template <class T>
struct UpsampleForward {
  Divisor grown_height;
  GrownAxis down, across;
  const T* x;
  T* y;
  struct Row {
    GrownAxis across;
    float share;
    const T *low, *high;
    T* to;
    TWIDDLE_HD float at(int column) const { return between(to_float(low[column]), to_float(high[column]), share); }
    TWIDDLE_HD void operator()(std::int64_t column) const {
      const GrownAxis::Mix mix = across.mix(static_cast<int>(column));
      to[column] = from_float<T>(between(at(mix.low), at(mix.high), mix.share));
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const T* const plane = x + grown_height.quotient(row) * down.size * across.size;
    const GrownAxis::Mix mix = down.mix(static_cast<int>(grown_height.remainder(row)));
    return {across, mix.share, plane + std::int64_t(mix.low) * across.size,
            plane + std::int64_t(mix.high) * across.size, y + row * across.grown()};
  }
};

// Each place gathers from the outputs that it contributes to, in a fixed order.
template <class T>
struct UpsampleBackward {
  Divisor height;
  GrownAxis down, across;
  const T* grad_y;
  T* grad_x;
  struct Row {
    GrownAxis down, across;
    int place;
    const T* plane;
    T* to;
    TWIDDLE_HD void operator()(std::int64_t column) const {
      const int own = static_cast<int>(column);
      const GrownAxis::Range rows = down.reached(place), columns = across.reached(own);
      float sum = 0;
      for (int h = rows.begin; h < rows.end; ++h) {
        float along = 0;
        for (int w = columns.begin; w < columns.end; ++w)
          along += across.mix(w).weight(own) * to_float(plane[std::int64_t(h) * across.grown() + w]);
        sum += down.mix(h).weight(place) * along;
      }
      to[column] = from_float<T>(sum);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    return {down, across, static_cast<int>(height.remainder(row)),
            grad_y + height.quotient(row) * down.grown() * across.grown(), grad_x + row * across.size};
  }
};

}  // namespace

Upsample::Upsample(const Site& site, Params& params)
    : Layer(site.name, {}),
      factor_(params.pair("factor", {{2, 2}}, 1, 1024)),
      bilinear_(params.choice("mode", "nearest", {"nearest", "bilinear"}) == "bilinear") {
  require_planes(site, params);
  const std::int64_t height = site.input[1] * factor_[0], width = site.input[2] * factor_[1];
  if (std::max(height, width) > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config, join(params.owner(), ": the output ", height, "x", width, " is too large"));
  set_output_shape({site.input[0], height, width});
}

std::string Upsample::describe() const {
  return join(bilinear_ ? "bilinear" : "nearest", ", factor ", format_sides(factor_[0], factor_[1]));
}

Variable Upsample::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const Shape shape = value.shape();
  const GrownAxis down{static_cast<int>(shape.at(2)), factor_[0], bilinear_};
  const GrownAxis across{static_cast<int>(shape.at(3)), factor_[1], bilinear_};
  const std::int64_t planes = shape[0] * shape[1], taps = bilinear_ ? 4 : 1;
  Tensor y(*ctx.stream, {shape[0], shape[1], down.grown(), across.grown()}, value.type());
  with_type(value.type(), [&](auto t) {
    using T = decltype(t);
    for_each_in_rows(*ctx.stream, planes * down.grown(), across.grown(),
                     UpsampleForward<T>{Divisor(down.grown()), down, across, value.read<T>(), y.write<T>()}, taps);
  });
  return ctx.tape.record(name(), y, {x}, [x, shape, planes, taps, down, across](Context& back, const Tensor& grad_y) {
    Tensor grad_x(*back.stream, shape, grad_y.type());
    with_type(grad_y.type(), [&](auto t) {
      using T = decltype(t);
      for_each_in_rows(*back.stream, planes * down.size, across.size,
                       UpsampleBackward<T>{Divisor(down.size), down, across, grad_y.read<T>(), grad_x.write<T>()},
                       taps * down.factor * across.factor);
    });
    x.add_grad(back, grad_x);
  });
}

}  // namespace twiddle
