#include "apps/bench/range_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/context.h"
#include "framework/random.h"
#include "framework/tensor_ops.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"

namespace twiddle {
namespace {

constexpr std::int64_t most_rows = 64, most_samples_of_a_row = 256;
constexpr double most_terms = 1e9;  // in the sums of all samples together

double one(double, double, bool) {
  return 1;
}
double one_of_k(double) {
  return 1;
}
constexpr double ten_deviations = 5.773502692;  // of uniform numbers in [-1, 1)
// Spreads values evenly over six decades; `place` is from 0 to 1.
double six_decades(double place) {
  return std::pow(10., 6 * place - 3);
}

// The factors of a pass, and the row and k of each of their elements.
struct Factors {
  Shape first, second;
  PlaceOf row, k_of_first, k_of_second;
};
Factors factors_of(const ConvProblem& p, ConvPass pass) {
  const std::int64_t in = std::int64_t(p.height) * p.width, out = std::int64_t(p.out_height()) * p.out_width();
  const std::int64_t taps = std::int64_t(p.kernel_h) * p.kernel_w, channels = p.channels / p.groups;
  const PlaceOf row = places_of(p, pass).row;
  switch (pass) {
    case ConvPass::forward:
      return {p.input_shape(), p.weight_shape(), row, {in, channels}, {taps, channels}};
    case ConvPass::backward_input:
      return {p.output_shape(), p.weight_shape(), row, {out, p.filters}, {channels * taps, p.filters}};
    default:
      return {p.output_shape(), p.input_shape(), row, {p.filters * out, p.batch}, {p.channels * in, p.batch}};
  }
}

// Returns a random position from 0 to 1 of a row or k, so that neighbors differ; one k has position 1.
double chance(std::int64_t place, std::uint64_t seed) {
  return RandomSequence{seed}.uniform(place);
}

// Returns uniform numbers in [-1, 1) plus `mean`, scaled by scale(index, position of its k).
template <class Scale>
std::vector<float> numbers(const Shape& shape, const PlaceOf& k, double mean, std::uint64_t seed, Scale scale) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for
  for (std::int64_t i = 0; i < count; ++i) {
    const double uniform = RandomSequence{seed}.uniform(i);
    const double place = k(i) == k.count / 2 ? 1 : chance(k(i), 4);
    values[static_cast<std::size_t>(i)] = static_cast<float>(scale(i, place) * (mean + 2 * uniform - 1));
  }
  return values;
}

// Returns the number of products summed in an element of the result, away from padding.
double terms_of(const ConvProblem& p, ConvPass pass) {
  const double taps = double(p.kernel_h) * p.kernel_w;
  switch (pass) {
    case ConvPass::forward:
      return taps * p.channels / p.groups;
    case ConvPass::backward_input:
      return taps * p.filters / p.groups;
    default:
      return double(p.batch) * p.out_height() * p.out_width();
  }
}

// Samples elements of up to most_rows rows of `length`; fewer per row if an element is a long sum. Takes all elements
// of `whole_row`, if any, because the few with the large number determine the row's norm.
std::vector<std::int64_t> sampled_places(std::int64_t rows, std::int64_t length, double terms, std::int64_t whole_row) {
  std::vector<std::int64_t> places;
  const std::int64_t taken = std::min(rows, most_rows);
  const auto samples =
      std::clamp<std::int64_t>(std::llround(most_terms / terms / double(taken)), 4, most_samples_of_a_row);
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t row = i * rows / taken;
    if (row == whole_row) continue;
    for (std::int64_t s = 0; s < samples; ++s)
      places.push_back(row * length + RandomSequence{5}.below(i * samples + s, length));
  }
  for (std::int64_t i = 0; whole_row >= 0 && i < length; ++i) places.push_back(whole_row * length + i);
  return places;
}

Tensor& result_of(ConvOperands& operands, ConvPass pass) {
  return pass == ConvPass::forward ? operands.y : pass == ConvPass::backward_input ? operands.x : operands.w;
}

}  // namespace

const std::vector<Range>& hard_ranges() {
  static const std::vector<Range> ranges{
      {one, one_of_k, "uniform"},
      {[](double, double, bool) { return 1e-6; }, [](double) { return 1e4; }, "1e-6, and 1e4 in the second"},
      {[](double, double, bool marked) { return marked ? 1e6 : 1; }, one_of_k, "one number 1e6", 0, 0, true},
      {[](double row, double, bool) { return six_decades(row); }, one_of_k, "rows over six decades", 0, 0, true},
      {[](double, double k, bool) { return six_decades(k); }, [](double k) { return 1 / six_decades(k); },
       "k over six decades, inverse in the second", 0, 0, true},
      {[](double, double k, bool) { return k == 1 ? 1e6 : 1; }, [](double k) { return k == 1 ? 0. : 1.; },
       "one k 1e6, 0 in the second", 0, 0, true},
      {one, one_of_k, "all positive", 1, 1},
      {[](double, double, bool) { return 1e-4; }, one_of_k, "1e-4"},
      {[](double, double, bool) { return 1e-30; }, one_of_k, "1e-30", 0, 0, true},
      {one, one_of_k, "mean of ten deviations", ten_deviations},
  };
  return ranges;
}

RangeCheck::RangeCheck(Stream& stream, const ConvProblem& problem, ConvPass pass, const Range& range) : pass_(pass) {
  const Factors factors = factors_of(problem, pass);
  const std::int64_t marked = count_of(factors.first) / 3;
  const auto stored = [&](const Shape& shape, const std::vector<float>& values) {
    return cast(stream, Tensor::from(stream, shape, values), storage_of(problem.precision));
  };
  const Tensor of_first = stored(
      factors.first, numbers(factors.first, factors.k_of_first, range.first_mean, 1, [&](std::int64_t i, double k) {
        return range.first(chance(factors.row(i), 3), k, i == marked);
      }));
  const Tensor of_second = stored(factors.second, numbers(factors.second, factors.k_of_second, range.second_mean, 2,
                                                          [&](std::int64_t, double k) { return range.second(k); }));
  const std::vector<float> first = cast(stream, of_first, DType::f32).to_vector(stream);
  const std::vector<float> second = cast(stream, of_second, DType::f32).to_vector(stream);
  const bool forward = pass == ConvPass::forward, by_weight = pass == ConvPass::backward_weight;
  operands_ = {forward     ? of_first
               : by_weight ? of_second
                           : Tensor(),
               by_weight ? Tensor() : of_second, forward ? Tensor() : of_first};
  type_ = by_weight ? DType::f32 : of_first.type();
  result_ = forward ? problem.output_shape() : by_weight ? problem.weight_shape() : problem.input_shape();
  const std::int64_t rows = by_weight ? problem.filters : problem.batch;
  row_length_ = count_of(result_) / rows;
  const bool has_marked = range.first(0, 0, true) != range.first(0, 0, false);
  places_ = sampled_places(rows, row_length_, terms_of(problem, pass), has_marked ? factors.row(marked) : -1);
  expected_.resize(places_.size());
  const float* const x = forward ? first.data() : by_weight ? second.data() : nullptr;
  const auto count = static_cast<std::int64_t>(places_.size());
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t i = 0; i < count; ++i)
    expected_[static_cast<std::size_t>(i)] =
        conv_reference(problem, pass, x, by_weight ? nullptr : second.data(), forward ? nullptr : first.data(), nullptr,
                       places_[static_cast<std::size_t>(i)]);
}

RangeCheck::Errors RangeCheck::errors(Context& ctx, const ConvPlan& plan) const {
  ConvOperands operands = operands_;
  Tensor& result = result_of(operands, pass_);
  result = Tensor(*ctx.stream, result_, type_);
  fill_with_nan(*ctx.stream, result);
  plan.run(ctx, operands);
  const std::vector<float> found = cast(*ctx.stream, result, DType::f32).to_vector(*ctx.stream);
  double wrong = 0, norm = 0, worst = 0;
  for (std::size_t i = 0; i < places_.size();) {
    const std::int64_t row = places_[i] / row_length_;
    double wrong_of_row = 0, norm_of_row = 0;
    for (; i < places_.size() && places_[i] / row_length_ == row; ++i) {
      const double error = found[static_cast<std::size_t>(places_[i])] - expected_[i];
      wrong_of_row += error * error, norm_of_row += expected_[i] * expected_[i];
    }
    wrong += wrong_of_row, norm += norm_of_row;
    const double relative = wrong_of_row == 0 ? 0 : std::sqrt(wrong_of_row / norm_of_row);
    if (!(relative <= worst)) worst = relative;
    if (std::isnan(relative)) break;
  }
  return {std::sqrt(wrong / norm), worst};
}

}  // namespace twiddle
