#include "layers/normalize_groups.h"

#include <array>

#include "framework/sum_pairs.h"
#include "layers/moments.h"

namespace twiddle {

namespace {

// From the moments of a group's channels to its mean and 1 / deviation.
struct GroupStatistics : JoinMoments {
  RowMoments rows;
  std::int64_t channels_each;
  float epsilon;
  float *mean, *inverse;
  TWIDDLE_HD Moments term(std::int64_t group, std::int64_t channel) const {
    return rows.of(group * channels_each + channel);
  }
  TWIDDLE_HD void store(std::int64_t group, const Moments& all) const {
    mean[group] = static_cast<float>(all.mean);
    inverse[group] = inverse_deviation(all, epsilon);
  }
};

// Where a row's part is of what belongs to groups and to the parameters.
template <bool OwnFactors>
struct RowPlace {
  Divisor channels_each, channels;
  std::int64_t inner;
  explicit RowPlace(const NormGroups& groups)
      : channels_each(groups.channels_each), channels(groups.planes.channels), inner(groups.planes.inner) {}
  TWIDDLE_HD std::int64_t group(std::int64_t row) const { return channels_each.quotient(row); }
  TWIDDLE_HD std::int64_t factors(std::int64_t row) const { return channels.remainder(row) * (OwnFactors ? inner : 1); }
};

template <bool OwnFactors>
struct Normalize {
  RowPlace<OwnFactors> place;
  const float *mean, *inverse, *scale, *bias;
  struct Row {
    float middle, factor;
    const float *scale, *bias;
    TWIDDLE_HD float operator()(std::int64_t column, float x) const {
      const std::int64_t own = OwnFactors ? column : 0;
      return (x - middle) * factor * scale[own] + bias[own];
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t group = place.group(row), factors = place.factors(row);
    return {mean[group], inverse[group], scale + factors, bias + factors};
  }
};

// Over each row the sums of g and g (x - mean), where g is the gradient of the normalised x: scale grad_y. Where a row
// shares its scale, that is multiplied in later, and the sums serve the parameters, too.
template <bool OwnFactors, class T>
struct GradientSums {
  RowPlace<OwnFactors> place;
  const float *mean, *scale;
  const T *x, *grad_y;
  struct Row {
    float middle;
    const float* scale;
    const T *x, *grad_y;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t column) const {
      const float gradient = to_float(grad_y[column]), g = OwnFactors ? scale[column] * gradient : gradient;
      return {g, g * (to_float(x[column]) - middle)};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t first = row * place.inner;
    return {mean[place.group(row)], scale + place.factors(row), x + first, grad_y + first};
  }
};

// The same over a group: `gradients` and `products` are the sums of its rows.
template <bool OwnFactors>
struct GroupGradientSums {
  RowPlace<OwnFactors> place;
  const float *scale, *gradients, *products;
  struct Row {
    GroupGradientSums all;
    std::int64_t first;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t channel) const {
      const std::int64_t row = first + channel;
      const float factor = OwnFactors ? 1 : all.scale[all.place.factors(row)];
      return {factor * all.gradients[row], factor * all.products[row]};
    }
  };
  TWIDDLE_HD Row row(std::int64_t group) const { return {*this, group * place.channels_each.value()}; }
};

// grad_x = (g - mean(g) - x' mean(g x')) / deviation, x' the normalised x.
template <bool OwnFactors>
struct Backward {
  RowPlace<OwnFactors> place;
  float values;                                                // of a group
  const float *mean, *inverse, *scale, *gradients, *products;  // the latter two: sums over groups
  struct Row {
    float middle, factor, share, slope;
    const float* scale;
    TWIDDLE_HD float operator()(std::int64_t column, float x, float grad_y) const {
      return factor * (scale[OwnFactors ? column : 0] * grad_y - share - (x - middle) * slope);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t group = place.group(row);
    const float factor = inverse[group];
    return {mean[group], factor, gradients[group] / values, products[group] * factor * factor / values,
            scale + place.factors(row)};
  }
};

// Down the batch, from the sums of rows: what belongs to a channel.
struct ChannelScale {
  RowPlace<false> place;
  const float *inverse, *products;
  float* grad;
  TWIDDLE_HD float term(std::int64_t image, std::int64_t channel) const {
    const std::int64_t row = image * place.channels.value() + channel;
    return products[row] * inverse[place.group(row)];
  }
  TWIDDLE_HD void store(std::int64_t channel, double sum) const { grad[channel] = static_cast<float>(sum); }
};

// Down the batch, if each number of an image has a separate factor and the image is one group.
template <class T>
struct OwnScale {
  std::int64_t numbers;
  const float *mean, *inverse;
  const T *x, *grad_y;
  float* grad;
  TWIDDLE_HD float term(std::int64_t image, std::int64_t number) const {
    const std::int64_t i = image * numbers + number;
    return to_float(grad_y[i]) * (to_float(x[i]) - mean[image]) * inverse[image];
  }
  TWIDDLE_HD void store(std::int64_t number, double sum) const { grad[number] = static_cast<float>(sum); }
};

// All that is known of one batch after its forward pass.
struct Normalized {
  NormGroups groups;
  Tensor x, mean, inverse;
};

Normalized measured(Stream& stream, const NormGroups& groups, const Tensor& x) {
  const BatchShape& planes = groups.planes;
  Normalized all{groups, x, Tensor(stream, {groups.groups()}), Tensor(stream, {groups.groups()})};
  const Tensor rows = row_moments(stream, x, planes.rows(), planes.inner);
  fold_rows(stream, groups.groups(), groups.channels_each,
            GroupStatistics{{},
                            {static_cast<double>(planes.inner), rows.read()},
                            groups.channels_each,
                            groups.epsilon,
                            all.mean.write(),
                            all.inverse.write()});
  return all;
}

template <bool OwnFactors>
Tensor forward(Stream& stream, const Normalized& all, const Tensor& scale, const Tensor& bias) {
  const BatchShape& planes = all.groups.planes;
  Tensor y(stream, all.x.shape(), all.x.type());
  with_type(y.type(), [&](auto t) {
    using T = decltype(t);
    map_rows(stream, planes.rows(), planes.inner,
             Normalize<OwnFactors>{RowPlace<OwnFactors>(all.groups), all.mean.read(), all.inverse.read(), scale.read(),
                                   bias.read()},
             1, y.write<T>(), all.x.read<T>());
  });
  return y;
}

// The sums of gradients and products over each row.
using RowSums = std::array<Tensor, 2>;

template <bool OwnFactors>
RowSums sums_of_rows(Stream& stream, const Normalized& all, const Tensor& scale, const Tensor& grad_y) {
  const BatchShape& planes = all.groups.planes;
  return with_type(grad_y.type(), [&](auto t) {
    using T = decltype(t);
    return sum_pairs_by_row(stream, planes.rows(), planes.inner,
                            GradientSums<OwnFactors, T>{RowPlace<OwnFactors>(all.groups), all.mean.read(), scale.read(),
                                                        all.x.read<T>(), grad_y.read<T>()});
  });
}

template <bool OwnFactors>
Tensor input_gradient(Stream& stream, const Normalized& all, const Tensor& scale, const Tensor& grad_y,
                      const RowSums& rows) {
  const BatchShape& planes = all.groups.planes;
  const RowPlace<OwnFactors> place(all.groups);
  const auto [gradients, products] =
      sum_pairs_by_row(stream, all.groups.groups(), all.groups.channels_each,
                       GroupGradientSums<OwnFactors>{place, scale.read(), rows[0].read(), rows[1].read()});
  const Backward<OwnFactors> functor{place,           static_cast<float>(all.groups.values()),
                                     all.mean.read(), all.inverse.read(),
                                     scale.read(),    gradients.read(),
                                     products.read()};
  Tensor grad_x(stream, all.x.shape(), all.x.type());
  with_type(grad_x.type(), [&](auto t) {
    using T = decltype(t);
    map_rows(stream, planes.rows(), planes.inner, functor, 1, grad_x.write<T>(), all.x.read<T>(), grad_y.read<T>());
  });
  return grad_x;
}

template <bool OwnFactors>
Tensor scale_gradient(Stream& stream, const Normalized& all, const Shape& shape, const Tensor& grad_y,
                      const RowSums& rows) {
  const std::int64_t batch = all.groups.planes.batch;
  Tensor grad(stream, shape);
  if constexpr (OwnFactors)
    with_type(grad_y.type(), [&](auto t) {
      using T = decltype(t);
      reduce_columns(stream, batch, grad.size(),
                     OwnScale<T>{grad.size(), all.mean.read(), all.inverse.read(), all.x.read<T>(), grad_y.read<T>(),
                                 grad.write()});
    });
  else
    reduce_columns(stream, batch, grad.size(),
                   ChannelScale{RowPlace<false>(all.groups), all.inverse.read(), rows[1].read(), grad.write()});
  return grad;
}

template <bool OwnFactors>
void backward(Context& ctx, const Normalized& all, const Variable& x, const Variable& scale, const Variable& bias,
              const Tensor& grad_y) {
  Stream& stream = *ctx.stream;
  const Tensor factors = scale.value();
  RowSums rows;  // the gradients of a number's own factors do without them
  if (!OwnFactors || x.needs_grad()) rows = sums_of_rows<OwnFactors>(stream, all, factors, grad_y);
  if (x.needs_grad()) x.add_grad(ctx, input_gradient<OwnFactors>(stream, all, factors, grad_y, rows));
  if (scale.needs_grad()) scale.add_grad(ctx, scale_gradient<OwnFactors>(stream, all, factors.shape(), grad_y, rows));
  if (bias.needs_grad())
    bias.add_grad(
        ctx, sum_over_channels(stream, OwnFactors ? grad_y : rows[0], factors.size(), 1).reshaped(factors.shape()));
}

}  // namespace

Variable normalize_groups(Context& ctx, const std::string& name, const Variable& x, const NormGroups& groups,
                          const Variable& scale, const Variable& bias) {
  const Normalized all = measured(*ctx.stream, groups, x.value());
  auto* const run = groups.own_factors ? &forward<true> : &forward<false>;
  return ctx.tape.record(name, run(*ctx.stream, all, scale.value(), bias.value()), {x, scale, bias},
                         [x, all, scale, bias](Context& backward_ctx, const Tensor& grad_y) {
                           auto* const run_back = all.groups.own_factors ? &backward<true> : &backward<false>;
                           run_back(backward_ctx, all, x, scale, bias, grad_y);
                         });
}

}  // namespace twiddle
