#include "layers/conv/tuner/conv_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "framework/for_each.h"
#include "framework/random.h"
#include "framework/tensor_ops.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

TWIDDLE_HD bool odd_bits(std::uint64_t number) {
  bool odd = false;
  for (; number != 0; number &= number - 1) odd = !odd;
  return odd;
}

struct Uniform {
  RandomSequence random;
  std::int64_t elements, count;  // of a PlaceOf: those at a place that is small are
  float small_size;
  // Finds errors as well as normal numbers do, at a tenth of the cost.
  TWIDDLE_HD float operator()(std::int64_t i) const {
    const bool small = odd_bits(static_cast<std::uint64_t>(i / elements % count));
    return (random.uniform(i) - 0.5f) * 3.4641016f * (small ? small_size : 1.0f);
  }
};

// Results of two small factors, 4,096 times smaller than 1 in fp16, are not subnormal.
float small_size(Precision precision) {
  return precision == Precision::fp16 ? 1.0f / 64 : 1.0f / 8192;
}

struct NotANumber {
  TWIDDLE_HD float operator()(std::int64_t) const { return NAN; }
};

// x[i] = functor(i), rounded to x's type.
template <class Functor>
void fill_with(Stream& stream, Tensor& x, const Functor& functor) {
  with_type(x.type(), [&](auto t) { map_indexed(stream, x.size(), functor, 1, x.write<decltype(t)>()); });
}

// The sampled elements: one from each of `taken` equal ranges of `count`, at varying offsets, so that no stride of the
// result is missed.
struct Sample {
  std::int64_t count, taken;
  TWIDDLE_HD std::int64_t operator[](std::int64_t i) const {
    const std::int64_t begin = i * count / taken, end = (i + 1) * count / taken;
    return begin + RandomSequence{1}.below(i, end - begin);
  }
};

// Sums of a pass: each sampled element's terms are the columns of a row.
struct Sums {
  Sample sample;
  ConvProblem p;
  int out_h, out_w;
  const float *x, *w, *y, *bias;
  double* expected;

  TWIDDLE_HD double input(std::int64_t image, std::int64_t channel, int row, int column) const {
    if (row < 0 || row >= p.height || column < 0 || column >= p.width) return 0;
    return x[((image * p.channels + channel) * p.height + row) * p.width + column];
  }
  TWIDDLE_HD double output(std::int64_t image, std::int64_t filter, int row, int column) const {
    return y[((image * p.filters + filter) * out_h + row) * out_w + column];
  }
};

struct ForwardSums : Sums {
  TWIDDLE_HD double term(std::int64_t sample_number, std::int64_t tap) const {
    const std::int64_t index = sample[sample_number];
    const int column = static_cast<int>(index % out_w), row = static_cast<int>(index / out_w % out_h);
    const std::int64_t filter = index / out_w / out_h % p.filters, image = index / out_w / out_h / p.filters;
    const int kx = static_cast<int>(tap % p.kernel_w), ky = static_cast<int>(tap / p.kernel_w % p.kernel_h);
    const std::int64_t channels = p.channels / p.groups, group = filter / (p.filters / p.groups);
    return input(image, group * channels + tap / p.kernel_w / p.kernel_h, row * p.stride_h - p.pad_h + ky * p.dilation,
                 column * p.stride_w - p.pad_w + kx * p.dilation) *
           w[filter * channels * p.kernel_h * p.kernel_w + tap];
  }
  TWIDDLE_HD void store(std::int64_t sample_number, double sum) const {
    const std::int64_t filter = sample[sample_number] / out_w / out_h % p.filters;
    expected[sample_number] = sum + (bias ? bias[filter] : 0);
  }
};

struct BackwardInputSums : Sums {
  TWIDDLE_HD double term(std::int64_t sample_number, std::int64_t tap) const {
    const std::int64_t index = sample[sample_number];
    const int column = static_cast<int>(index % p.width), row = static_cast<int>(index / p.width % p.height);
    const std::int64_t plane = index / p.width / p.height, channel = plane % p.channels, image = plane / p.channels;
    const int kx = static_cast<int>(tap % p.kernel_w), ky = static_cast<int>(tap / p.kernel_w % p.kernel_h);
    const std::int64_t channels = p.channels / p.groups, group = channel / channels;
    const std::int64_t filter = group * (p.filters / p.groups) + tap / p.kernel_w / p.kernel_h;
    // Strides times the output that saw this input through (ky, kx).
    const int above = row + p.pad_h - ky * p.dilation, left = column + p.pad_w - kx * p.dilation;
    if (above < 0 || left < 0 || above % p.stride_h != 0 || left % p.stride_w != 0) return 0;
    if (above / p.stride_h >= out_h || left / p.stride_w >= out_w) return 0;
    return output(image, filter, above / p.stride_h, left / p.stride_w) *
           w[((filter * channels + channel % channels) * p.kernel_h + ky) * p.kernel_w + kx];
  }
  TWIDDLE_HD void store(std::int64_t sample_number, double sum) const { expected[sample_number] = sum; }
};

struct BackwardWeightSums : Sums {
  TWIDDLE_HD double term(std::int64_t sample_number, std::int64_t place) const {
    const std::int64_t index = sample[sample_number];
    const int kx = static_cast<int>(index % p.kernel_w), ky = static_cast<int>(index / p.kernel_w % p.kernel_h);
    const std::int64_t channels = p.channels / p.groups, kernel = index / p.kernel_w / p.kernel_h;
    const std::int64_t filter = kernel / channels, group = filter / (p.filters / p.groups);
    const int column = static_cast<int>(place % out_w), row = static_cast<int>(place / out_w % out_h);
    const std::int64_t image = place / out_w / out_h;
    return input(image, group * channels + kernel % channels, row * p.stride_h - p.pad_h + ky * p.dilation,
                 column * p.stride_w - p.pad_w + kx * p.dilation) *
           output(image, filter, row, column);
  }
  TWIDDLE_HD void store(std::int64_t sample_number, double sum) const { expected[sample_number] = sum; }
};

struct ReplaceAt {
  PlaceOf place;
  std::int64_t index;
  float replacement;
  TWIDDLE_HD float operator()(std::int64_t i, float x) const {
    return i / place.elements % place.count == index ? replacement : x;
  }
};

Tensor replaced(Stream& stream, const Tensor& tensor, const PlaceOf& place, std::int64_t index, float replacement) {
  Tensor copy(stream, tensor.shape(), tensor.type());
  with_type(tensor.type(), [&](auto t) {
    using T = decltype(t);
    map_indexed(stream, copy.size(), ReplaceAt{place, index, replacement}, 1, copy.write<T>(), tensor.read<T>());
  });
  return copy;
}

struct Gather {
  Sample sample;
  const float* from;
  float* to;
  TWIDDLE_HD void operator()(std::int64_t i) const { to[i] = from[sample[i]]; }
};

Sample sample_of(std::int64_t count, std::int64_t samples) {
  return {count, std::min(samples, count)};
}

}  // namespace

PassPlaces places_of(const ConvProblem& p, ConvPass pass) {
  const std::int64_t in = std::int64_t(p.height) * p.width, out = std::int64_t(p.out_height()) * p.out_width();
  const std::int64_t taps = std::int64_t(p.kernel_h) * p.kernel_w, channels = p.channels / p.groups;
  const PlaceOf image_of_x{p.channels * in, p.batch}, channel_of_x{in, channels};
  const PlaceOf image_of_y{p.filters * out, p.batch}, filter_of_y{out, p.filters};
  const PlaceOf filter_of_w{channels * taps, p.filters}, channel_of_w{taps, channels};
  switch (pass) {
    case ConvPass::forward:
      return {image_of_y, filter_of_y, image_of_x, filter_of_w};
    case ConvPass::backward_input:
      return {image_of_x, channel_of_x, image_of_y, channel_of_w};
    default:
      return {filter_of_w, channel_of_w, filter_of_y, channel_of_x};
  }
}

bool is_small(std::int64_t place) {
  return odd_bits(static_cast<std::uint64_t>(place));
}

ConvOperands random_operands(Stream& stream, const ConvProblem& problem, ConvPass pass) {
  const DType type = storage_of(problem.precision);
  const auto nothing = [&](const Shape& shape, DType of_result) {
    Tensor made(stream, shape, of_result);
    fill_with_nan(stream, made);
    return made;
  };
  const auto noise = [&](const Shape& shape, std::uint64_t seed, const PlaceOf& place) {
    Tensor made(stream, shape, type);
    fill_with(stream, made, Uniform{{seed}, place.elements, place.count, small_size(problem.precision)});
    return made;
  };
  const PassPlaces places = places_of(problem, pass);
  const Shape x = problem.input_shape(), w = problem.weight_shape(), y = problem.output_shape();
  switch (pass) {
    case ConvPass::forward:
      return {noise(x, 1, places.row), noise(w, 2, places.column), nothing(y, type)};
    case ConvPass::backward_input:
      return {nothing(x, type), noise(w, 2, places.column), noise(y, 3, places.row)};
    default:
      return {noise(x, 1, places.column), nothing(w, DType::f32), noise(y, 3, places.row)};
  }
}

double relative_error(const ConvProblem& problem, ConvPass pass, const std::vector<std::int64_t>& index,
                      const std::vector<float>& found, const std::vector<double>& expected) {
  constexpr std::size_t least = 16;  // the norm of fewer is unreliable: they use that of all
  struct Part {
    std::size_t count = 0;
    double wrong = 0, norm = 0;
  };
  std::array<Part, 4> parts;
  const PassPlaces places = places_of(problem, pass);
  double norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int row = is_small(places.result_row(index[i])), column = is_small(places.result_column(index[i]));
    Part& part = parts[static_cast<std::size_t>(2 * row + column)];
    ++part.count;
    part.wrong += (found[i] - expected[i]) * (found[i] - expected[i]);
    part.norm += expected[i] * expected[i];
    norm += expected[i] * expected[i];
  }
  const auto all = static_cast<double>(found.size());
  double squares = 0;
  for (const Part& part : parts) {
    if (part.wrong == 0) continue;
    const double mean = part.count < least ? norm / all : part.norm / static_cast<double>(part.count);
    squares += mean > 0 ? part.wrong / mean / all : std::numeric_limits<double>::infinity();
  }
  return std::sqrt(squares);
}

ConvCheck::ConvCheck(Stream& stream, const ConvProblem& p, ConvPass pass, const ConvOperands& operands, int samples)
    : problem_(p), pass_(pass) {
  const bool forward = pass == ConvPass::forward, input_gradient = pass == ConvPass::backward_input;
  count_ = (forward ? operands.y : input_gradient ? operands.x : operands.w).size();
  const Sample sample = sample_of(count_, samples);
  expected_.resize(static_cast<std::size_t>(sample.taken));
  const std::size_t bytes = expected_.size() * sizeof(double);
  const std::shared_ptr<void> sums = stream.allocate(bytes);
  const auto read_in_f32 = [&](const Tensor& tensor, bool is_result) {
    return is_result ? Tensor() : cast(stream, tensor, DType::f32);
  };
  const Tensor x = read_in_f32(operands.x, input_gradient), y = read_in_f32(operands.y, forward);
  const Tensor w = read_in_f32(operands.w, pass == ConvPass::backward_weight);
  const Sums common{sample,
                    p,
                    p.out_height(),
                    p.out_width(),
                    read_if_defined(x),
                    read_if_defined(w),
                    read_if_defined(y),
                    forward ? read_if_defined(operands.bias) : nullptr,
                    static_cast<double*>(sums.get())};
  const std::int64_t taps = std::int64_t(p.kernel_h) * p.kernel_w;
  if (forward)
    reduce_rows(stream, sample.taken, p.channels / p.groups * taps, ForwardSums{common});
  else if (input_gradient)
    reduce_rows(stream, sample.taken, p.filters / p.groups * taps, BackwardInputSums{common});
  else
    reduce_rows(stream, sample.taken, std::int64_t(p.batch) * common.out_h * common.out_w, BackwardWeightSums{common});
  stream.copy(expected_.data(), sums.get(), bytes);
  stream.synchronize();
}

// Squares add up to NaN where one of them is NaN, and to infinity at worst elsewhere.
bool holds_nan(Stream& stream, const Tensor& result) {
  return std::isnan(l2_norm(stream, {cast(stream, result, DType::f32)}).to_vector(stream).front());
}

void fill_with_nan(Stream& stream, Tensor& tensor) {
  fill_with(stream, tensor, NotANumber{});
}

Tensor with_nan_at(Stream& stream, const Tensor& factor, const PlaceOf& place, std::int64_t index) {
  return replaced(stream, factor, place, index, std::numeric_limits<float>::quiet_NaN());
}

bool holds_nan_elsewhere(Stream& stream, const Tensor& result, const PlaceOf& place, std::int64_t index) {
  return holds_nan(stream, replaced(stream, result, place, index, 0));
}

double ConvCheck::error(Stream& stream, const Tensor& result) const {
  const Tensor found = cast(stream, result, DType::f32);
  if (holds_nan(stream, found)) return std::numeric_limits<double>::quiet_NaN();
  const auto taken = static_cast<std::int64_t>(expected_.size());
  Tensor gathered(stream, {taken});
  for_each_index(stream, taken, Gather{sample_of(count_, taken), found.read(), gathered.write()});
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < taken; ++i) index.push_back(sample_of(count_, taken)[i]);
  return relative_error(problem_, pass_, index, gathered.to_vector(stream), expected_);
}

}  // namespace twiddle
