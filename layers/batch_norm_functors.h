#pragma once
#include <cstdint>

#include "layers/cuda/channel_blocks.h"
#include "layers/moments.h"
#include "layers/planes.h"
#include "layers/relu_functors.h"

// What batch norm does to a channel, a row or an element; batch_norm.cu launches it.
namespace twiddle::batch_norm {

// The moments of a channel in each image: of its plane, or of its number where a plane is but one.
template <class T>
struct MomentsOfImages {
  std::int64_t channels;
  RowMoments planes;
  const T* numbers;  // null: take the planes
  TWIDDLE_HD Moments of(std::int64_t channel, std::int64_t image) const {
    const std::int64_t row = image * channels + channel;
    return numbers != nullptr ? Moments{1, to_float(numbers[row]), 0} : planes.of(row);
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

// In the format of MomentsOfRanks.
template <class T>
struct MomentsForRanks : JoinMoments {
  MomentsOfImages<T> parts;
  float images;
  float* values;
  TWIDDLE_HD Moments term(std::int64_t channel, std::int64_t image) const { return parts.of(channel, image); }
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    float* const here = values + 3 * channel;
    here[0] = images;
    here[1] = static_cast<float>(all.mean);
    here[2] = static_cast<float>(all.deviations);
  }
};

template <class Parts>
struct Statistics : JoinMoments {
  Parts parts;
  ChannelStatistics statistics;
  float* count;  // of values; null: not stored
  TWIDDLE_HD Moments term(std::int64_t channel, std::int64_t part) const { return parts.of(channel, part); }
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    store_statistics(statistics, channel, all, inverse_deviation(all, statistics.epsilon));
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

// What an element adds to its channel's sums of the gradient before the ReLU, and of that gradient times (x - mean).
// `passed` is read by the pass that follows and is the gradient of the other path.
template <ReluGate gate, class T>
struct GradientTerms {
  Factors factors;
  std::int64_t inner;
  const T *x, *y, *grad_y;
  T* passed;
  struct Row {
    Factors::Channel normalized;
    const T *x, *y, *grad_y;
    T* passed;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t column) const {
      const float here = to_float(x[column]);
      float gradient = to_float(grad_y[column]);
      if constexpr (gate == ReluGate::input) gradient = ReluBackward{}(normalized(here), gradient);
      if constexpr (gate == ReluGate::output) {
        gradient = ReluBackward{}(to_float(y[column]), gradient);
        passed[column] = from_float<T>(gradient);
      }
      return {gradient, gradient * (here - normalized.middle)};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t first = row * inner, gated = gate == ReluGate::output ? first : 0;
    return {factors.of_row(row), x + first, y + gated, grad_y + first, passed + gated};
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
