#include "layers/cuda/norm_ranges.h"

#include <cmath>

#include "layers/cuda/channel_range.h"

namespace twiddle {

namespace {

constexpr int alexnet_reach = 2, most_channels = 16;  // of a range

// AlexNet's power, by inverse roots alone, for which a GPU has an instruction: an IEEE 754 root or division takes
// about ten instructions, too many next to two or three loads and stores. The inverse root of an infinite base is zero,
// and so must the power be.
struct PowerThreeQuarters {
  TWIDDLE_HD Powers operator()(float base) const {
    constexpr float below_all_others = 1e-30f;
    const float inverse_root = rsqrtf(base);
    return {inverse_root * (inverse_root * rsqrtf(fmaxf(inverse_root, below_all_others))), inverse_root * inverse_root};
  }
};

struct AnyPower {
  float beta;
  TWIDDLE_HD Powers operator()(float base) const { return {powf(base, -beta), 1 / base}; }
};

bool served(const Lrn& lrn) {
  return lrn.window.reach == alexnet_reach && lrn.window.inner < (std::int64_t(1) << 31);
}

// work(range, power): both as the layer requires them; ranges of one channel if it has few.
template <class Work>
void with_range_and_power(const Lrn& lrn, const Work& work) {
  const auto with_power = [&](const auto& range) {
    if (lrn.beta == 0.75f)
      work(range, PowerThreeQuarters{});
    else
      work(range, AnyPower{lrn.beta});
  };
  if (lrn.window.channels >= most_channels)
    with_power(ChannelRange<most_channels>(lrn.window));
  else
    with_power(ChannelRange<1>(lrn.window));
}

}  // namespace

bool normalize_in_ranges(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& y) {
  if (!served(lrn)) return false;
  with_range_and_power(lrn, [&]<int Length, class Power>(const ChannelRange<Length>& range, const Power& power) {
    with_type(x.type(), [&](auto t) {
      using T = decltype(t);
      for_each_index(
          stream, range.count(lrn.rows),
          NormalizeRange<alexnet_reach, Length, Power, T>{range, power, {lrn.k, lrn.scale}, x.read<T>(), y.write<T>()});
    });
  });
  return true;
}

bool normalize_backward_in_ranges(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& grad_y,
                                  Tensor& grad_x) {
  if (!served(lrn)) return false;
  with_range_and_power(lrn, [&]<int Length, class Power>(const ChannelRange<Length>& range, const Power& power) {
    with_type(x.type(), [&](auto t) {
      using T = decltype(t);
      for_each_index(stream, range.count(lrn.rows),
                     BackwardRange<alexnet_reach, Length, Power, T>{range,
                                                                    power,
                                                                    {lrn.k, lrn.scale},
                                                                    2 * lrn.scale * lrn.beta,
                                                                    x.read<T>(),
                                                                    grad_y.read<T>(),
                                                                    grad_x.write<T>()});
    });
  });
  return true;
}

}  // namespace twiddle
