#include "layers/cuda/norm_stretches.h"

#include <cmath>

namespace twiddle {

namespace {

struct Powers {
  float wanted, inverse;  // base^-beta, 1 / base
};

// AlexNet's power. The GPU has an instruction for the inverse of a root; a root and a division as IEEE 754 wants them
// take some ten each.
struct PowerThreeQuarters {
  TWIDDLE_HD Powers operator()(float base) const {
    const float inverse_root = rsqrtf(base);
    return {inverse_root * sqrtf(inverse_root), inverse_root * inverse_root};
  }
};

// For the forward pass, which loads and stores more than it computes: with inverse roots it took 6 % longer on an H200.
struct OnlyThreeQuarters {
  TWIDDLE_HD Powers operator()(float base) const {
    const float root = sqrtf(base);
    return {1 / (root * sqrtf(root)), 0};
  }
};

struct AnyPower {
  float beta;
  TWIDDLE_HD Powers operator()(float base) const { return {powf(base, -beta), 1 / base}; }
};

// A stretch of the channels of one pixel, and the neighbours that its windows reach, all loaded at once: what one
// thread of a GPU holds in registers while it marches through the channels. Threads side by side take pixels side by
// side.
template <int Reach>
struct Stretch {
  static constexpr int length = 8, loaded = length + 2 * Reach;
  Divisor inner, stretches;
  std::int64_t channels;

  struct Place {
    std::int64_t at;  // of the stretch's first channel
    int begin, end;   // what of [0, loaded) are channels that exist
  };
  TWIDDLE_HD Place place(std::int64_t i) const {
    const std::int64_t row = inner.quotient(i), image = stretches.quotient(row);
    const std::int64_t first = (row - image * stretches.value()) * length;
    const std::int64_t left = channels - first + Reach;
    return {(image * channels + first) * inner.value() + i - row * inner.value(),
            first >= Reach ? 0 : static_cast<int>(Reach - first), left < loaded ? static_cast<int>(left) : loaded};
  }
  // Element k of the loaded ones, the stretch's first at k = Reach.
  TWIDDLE_HD std::int64_t element(const Place& place, int k) const { return place.at + (k - Reach) * inner.value(); }
};

template <int Reach, class Power>
struct NormalizeStretch {
  Stretch<Reach> stretch;
  Power power;
  float k, scale;
  const float* x;
  float *base, *y;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    constexpr int loaded = Stretch<Reach>::loaded;
    const auto place = stretch.place(i);
    float values[loaded];
    for (int c = 0; c < loaded; ++c) values[c] = c >= place.begin && c < place.end ? x[stretch.element(place, c)] : 0;
    for (int c = Reach; c < loaded - Reach; ++c) {
      if (c >= place.end) return;
      float sum = k;
      for (int other = c - Reach; other <= c + Reach; ++other) sum += scale * values[other] * values[other];
      base[stretch.element(place, c)] = sum;
      y[stretch.element(place, c)] = values[c] * power(sum).wanted;
    }
  }
};

template <int Reach, class Power>
struct BackwardStretch {
  Stretch<Reach> stretch;
  Power power;
  float factor;  // 2 scale beta
  const float *x, *base, *grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    constexpr int loaded = Stretch<Reach>::loaded;
    const auto place = stretch.place(i);
    float values[loaded], bases[loaded], own[loaded], through[loaded];
    for (int c = 0; c < loaded; ++c) {
      const bool there = c >= place.begin && c < place.end;
      values[c] = there ? x[stretch.element(place, c)] : 0;
      bases[c] = there ? base[stretch.element(place, c)] : 1;
      own[c] = there ? grad_y[stretch.element(place, c)] : 0;
    }
    for (int c = 0; c < loaded; ++c) {
      const Powers powers = power(bases[c]);
      own[c] *= powers.wanted;
      through[c] = own[c] * values[c] * powers.inverse;
    }
    for (int c = Reach; c < loaded - Reach; ++c) {
      if (c >= place.end) return;
      float result = own[c];
      for (int other = c - Reach; other <= c + Reach; ++other) result -= factor * values[c] * through[other];
      grad_x[stretch.element(place, c)] = result;
    }
  }
};

constexpr int alexnet_reach = 2;

Stretch<alexnet_reach> stretch_of(const ChannelWindow& window) {
  constexpr int length = Stretch<alexnet_reach>::length;
  return {Divisor(window.inner), Divisor((window.channels + length - 1) / length), window.channels};
}

template <class Power>
void forward(Stream& stream, const Lrn& lrn, Power power, const Tensor& x, Tensor& base, Tensor& y) {
  const auto stretch = stretch_of(lrn.window);
  for_each_index(
      stream, lrn.rows / lrn.window.channels * stretch.stretches.value() * lrn.window.inner,
      NormalizeStretch<alexnet_reach, Power>{stretch, power, lrn.k, lrn.scale, x.read(), base.write(), y.write()});
}

template <class Power>
void backward(Stream& stream, const Lrn& lrn, Power power, const Tensor& x, const Tensor& base, const Tensor& grad_y,
              Tensor& grad_x) {
  const auto stretch = stretch_of(lrn.window);
  for_each_index(stream, lrn.rows / lrn.window.channels * stretch.stretches.value() * lrn.window.inner,
                 BackwardStretch<alexnet_reach, Power>{stretch, power, 2 * lrn.scale * lrn.beta, x.read(), base.read(),
                                                       grad_y.read(), grad_x.write()});
}

}  // namespace

bool normalize_in_stretches(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& base, Tensor& y) {
  if (lrn.window.reach != alexnet_reach) return false;
  if (lrn.beta == 0.75f)
    forward(stream, lrn, OnlyThreeQuarters{}, x, base, y);
  else
    forward(stream, lrn, AnyPower{lrn.beta}, x, base, y);
  return true;
}

bool normalize_backward_in_stretches(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& base,
                                     const Tensor& grad_y, Tensor& grad_x) {
  if (lrn.window.reach != alexnet_reach) return false;
  if (lrn.beta == 0.75f)
    backward(stream, lrn, PowerThreeQuarters{}, x, base, grad_y, grad_x);
  else
    backward(stream, lrn, AnyPower{lrn.beta}, x, base, grad_y, grad_x);
  return true;
}

}  // namespace twiddle
