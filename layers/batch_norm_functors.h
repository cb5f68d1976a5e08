#pragma once
#include <cstdint>

#include "layers/moments.h"
#include "layers/planes.h"
#include "layers/relu_functors.h"

// What batch norm does to a channel, a row or an element; batch_norm.cu launches it.
namespace twiddle::batch_norm {

// The moments of a channel in each image: of its plane, or of its number where a plane is but one.
struct MomentsOfImages {
  std::int64_t channels;
  RowMoments planes;
  const float* numbers;  // null: take the planes
  TWIDDLE_HD Moments of(std::int64_t channel, std::int64_t image) const {
    const std::int64_t row = image * channels + channel;
    return numbers != nullptr ? Moments{1, numbers[row], 0} : planes.of(row);
  }
};

// The moments of a channel on each rank, in three numbers: its images, and the mean and squared deviations of what they
// have in this channel.
struct MomentsOfRanks {
  std::int64_t channels;
  double inner;
  const float* values;
  TWIDDLE_HD Moments of(std::int64_t channel, std::int64_t rank) const {
    const float* const here = values + 3 * (rank * channels + channel);
    return {here[0] * inner, here[1], here[2]};
  }
};

// A channel's parts together.
template <class Parts>
struct JoinMoments {
  Parts parts;
  TWIDDLE_HD Moments start() const { return {0, 0, 0}; }
  TWIDDLE_HD Moments join(const Moments& a, const Moments& b) const { return joined(a, b); }
  TWIDDLE_HD Moments term(std::int64_t channel, std::int64_t part) const { return parts.of(channel, part); }
};

// As MomentsOfRanks has them.
struct MomentsForRanks : JoinMoments<MomentsOfImages> {
  float images;
  float* values;
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    float* const here = values + 3 * channel;
    here[0] = images;
    here[1] = static_cast<float>(all.mean);
    here[2] = static_cast<float>(all.deviations);
  }
};

// From moments to 1 / deviation, and the running averages on the way. The running variance is the unbiased one, as in
// PyTorch.
template <class Parts>
struct Statistics : JoinMoments<Parts> {
  float momentum, epsilon;
  float *mean, *inverse, *running_mean, *running_var;
  float* count;  // of values; null: nobody asks
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    const auto middle = static_cast<float>(all.mean);
    mean[channel] = middle;
    inverse[channel] = inverse_deviation(all, epsilon);
    const auto unbiased = static_cast<float>(all.deviations / (all.count > 1 ? all.count - 1 : 1));
    running_mean[channel] += momentum * (middle - running_mean[channel]);
    running_var[channel] += momentum * (unbiased - running_var[channel]);
    if (count != nullptr) count[channel] = static_cast<float>(all.count);
  }
};

struct InverseDeviation {
  float epsilon;
  const float* variance;
  float* inverse;
  TWIDDLE_HD void operator()(std::int64_t channel) const {
    inverse[channel] = inverse_deviation(variance[channel], epsilon);
  }
};

// What is known of each channel.
struct Factors {
  Divisor channels;
  const float *mean, *inverse, *scale, *bias;
  struct Channel {
    float middle, factor, shift;
    TWIDDLE_HD float operator()(float x) const { return (x - middle) * factor + shift; }
  };
  TWIDDLE_HD std::int64_t channel(std::int64_t row) const { return channels.remainder(row); }
  TWIDDLE_HD Channel of_row(std::int64_t row) const {
    const std::int64_t c = channel(row);
    return {mean[c], inverse[c] * scale[c], bias[c]};
  }
};

// With the ReLU that follows, and with another path's output.
template <bool Relu>
struct Normalize {
  Factors factors;
  struct Row {
    Factors::Channel normalized;
    TWIDDLE_HD static float passed(float y) { return Relu ? ReluForward{}(y) : y; }
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return passed(normalized(x)); }
    TWIDDLE_HD float operator()(std::int64_t, float x, float other) const { return passed(normalized(x) + other); }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {factors.of_row(row)}; }
};

// The gradient before the ReLU, of which there are three kinds: there is none; it is made of x alone, whose result is
// computed again, which reads less than the result would; or another path's output was added, and the result tells. In
// the last case what passed is written down, for that path and the pass that follows. A gate has a function for each
// row, whose first element is number `first`, which takes the column and x there.
struct NoGate {
  const float* grad_y;
  struct Row {
    const float* grad_y;
    TWIDDLE_HD float operator()(std::int64_t column, float) const { return grad_y[column]; }
  };
  TWIDDLE_HD Row row(std::int64_t, std::int64_t first) const { return {grad_y + first}; }
};

struct GateOfInput {
  Factors factors;
  const float* grad_y;
  struct Row {
    Factors::Channel normalized;
    const float* grad_y;
    TWIDDLE_HD float operator()(std::int64_t column, float x) const {
      return ReluBackward{}(normalized(x), grad_y[column]);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row, std::int64_t first) const { return {factors.of_row(row), grad_y + first}; }
};

struct GateOfOutput {
  const float *y, *grad_y;
  float* passed;
  struct Row {
    const float *y, *grad_y;
    float* passed;
    TWIDDLE_HD float operator()(std::int64_t column, float) const {
      return passed[column] = ReluBackward{}(y[column], grad_y[column]);
    }
  };
  TWIDDLE_HD Row row(std::int64_t, std::int64_t first) const { return {y + first, grad_y + first, passed + first}; }
};

// What an element adds to its channel's sums of the gradient, and of the gradient times (x - mean).
template <class Gate>
struct GradientTerms {
  Gate gate;
  Divisor channels;
  std::int64_t inner;
  const float *x, *mean;
  struct Row {
    typename Gate::Row gate;
    float middle;
    const float* x;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t column) const {
      const float here = x[column], gradient = gate(column, here);
      return {gradient, gradient * (here - middle)};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t first = row * inner;
    return {gate.row(row, first), mean[channels.remainder(row)], x + first};
  }
};

struct ScaleGradient {  // the sum of the gradient times the normalised x
  const float* inverse;
  float* product;
  TWIDDLE_HD void operator()(std::int64_t channel) const { product[channel] *= inverse[channel]; }
};

struct DivideByCount {  // both sums of each channel
  std::int64_t channels;
  const float* count;
  float* sums;
  TWIDDLE_HD void operator()(std::int64_t channel) const {
    sums[channel] /= count[channel];
    sums[channels + channel] /= count[channel];
  }
};

// grad_x = scale / deviation * (g - mean(g) - x' mean(g x')), x' the normalised x and g the gradient before the ReLU.
template <bool Gated>
struct Backward {
  Factors factors;
  float values;  // per channel, of what the sums are
  const float *gradient_sums, *product_sums;
  struct Row {
    Factors::Channel normalized;
    float share, slope;
    TWIDDLE_HD float operator()(std::int64_t, float x, float grad_y) const {
      const float g = Gated ? ReluBackward{}(normalized(x), grad_y) : grad_y;
      return normalized.factor * (g - share - (x - normalized.middle) * slope);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t channel = factors.channel(row);
    return {factors.of_row(row), gradient_sums[channel] / values,
            product_sums[channel] * factors.inverse[channel] / values};
  }
};

// By running averages: each channel has one factor.
struct BackwardByAverages {
  Factors factors;
  struct Row {
    float factor;
    TWIDDLE_HD float operator()(std::int64_t, float grad_y) const { return factor * grad_y; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {factors.of_row(row).factor}; }
};

}  // namespace twiddle::batch_norm
