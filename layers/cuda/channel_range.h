#pragma once
#include "layers/cuda/norm_ranges.h"

namespace twiddle {

// Ranges of `Length` channels of one pixel: what one thread of a GPU holds in registers, with the neighbours that
// its windows reach. Threads side by side take pixels side by side, and longer ranges load fewer neighbours twice.
// If the last range would end after the last channel, it begins earlier and writes some channels twice. So only
// neighbors need a bounds check, and a layer needs at least `Length` channels.
template <int Length>
struct ChannelRange {
  Divisor inner, ranges;  // pixels of a channel, ranges of a pixel
  int channels, pitch;    // elements from one channel to the next
  explicit ChannelRange(const ChannelWindow& window)
      : inner(window.inner),
        ranges((window.channels + Length - 1) / Length),
        channels(static_cast<int>(window.channels)),
        pitch(static_cast<int>(window.inner)) {}

  std::int64_t count(std::int64_t rows) const { return rows / channels * ranges.value() * inner.value(); }

  struct Place {
    std::int64_t at;    // of the first channel
    int before, after;  // channels on either side of the range
  };
  TWIDDLE_HD Place place(std::int64_t i) const {
    const std::int64_t row = inner.quotient(i), image = ranges.quotient(row);
    const int wanted = static_cast<int>(row - image * ranges.value()) * Length;
    const int first = wanted < channels - Length ? wanted : channels - Length;
    return {(image * channels + first) * inner.value() + i - row * inner.value(), first, channels - Length - first};
  }

  // The channels from `Margin` before the range to `Margin` after it, zeros where there are none.
  template <int Margin, class T>
  TWIDDLE_HD void load(const T* from, const Place& place, float (&values)[Length + 2 * Margin]) const {
    const T* const first = from + place.at;
#pragma unroll
    for (int k = 0; k < Length + 2 * Margin; ++k) {
      const int channel = k - Margin, past = channel - Length + 1;
      const bool exists = (channel >= 0 || place.before >= -channel) && (past <= 0 || place.after >= past);
      values[k] = exists ? to_float(first[std::int64_t(channel) * pitch]) : 0;
    }
  }
  template <class T>
  TWIDDLE_HD void store(const float (&values)[Length], const Place& place, T* to) const {
    T* const first = to + place.at;
#pragma unroll
    for (int channel = 0; channel < Length; ++channel)
      first[std::int64_t(channel) * pitch] = from_float<T>(values[channel]);
  }
};

// base = k + scale * sum of x^2 over a window, of which `first` is the first channel.
template <int Reach>
struct WindowBase {
  float k, scale;
  TWIDDLE_HD float operator()(const float* first) const {
    float sum = 0;
#pragma unroll
    for (int other = 0; other <= 2 * Reach; ++other) sum += first[other] * first[other];
    return k + scale * sum;
  }
};

struct Powers {
  float wanted, inverse;  // base^-beta, 1 / base
};

// y = x base^-beta; Power makes Powers of a base.
template <int Reach, int Length, class Power, class T>
struct NormalizeRange {
  ChannelRange<Length> range;
  Power power;
  WindowBase<Reach> base;
  const T* x;
  T* y;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const auto place = range.place(i);
    float values[Length + 2 * Reach], results[Length];
    range.template load<Reach>(x, place, values);
#pragma unroll
    for (int c = 0; c < Length; ++c) results[c] = values[c + Reach] * power(base(values + c)).wanted;
    range.store(results, place, y);
  }
};

// The gradient, with the bases recomputed from x: what of neighbours' bases it needs is made of neighbours of theirs.
// Had the forward pass kept them, it would have to store and this one to load as much again as x.
template <int Reach, int Length, class Power, class T>
struct BackwardRange {
  ChannelRange<Length> range;
  Power power;
  WindowBase<Reach> base;
  float factor;  // 2 scale beta
  const T *x, *grad_y;
  T* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    constexpr int bases = Length + 2 * Reach;
    const auto place = range.place(i);
    float values[bases + 2 * Reach], own[bases], through[bases], results[Length];
    range.template load<2 * Reach>(x, place, values);
    range.template load<Reach>(grad_y, place, own);
#pragma unroll
    for (int c = 0; c < bases; ++c) {
      const Powers powers = power(base(values + c));
      own[c] *= powers.wanted;
      through[c] = own[c] * values[c + Reach] * powers.inverse;
    }
#pragma unroll
    for (int c = 0; c < Length; ++c) {
      float sum = 0;
#pragma unroll
      for (int other = c; other <= c + 2 * Reach; ++other) sum += through[other];
      results[c] = own[c + Reach] - factor * values[c + 2 * Reach] * sum;
    }
    range.store(results, place, grad_x);
  }
};

}  // namespace twiddle
