#include "layers/cuda/norm_ranges.h"

#include <cmath>
#include <type_traits>

#include "layers/cuda/channel_range.h"

namespace twiddle {

namespace {

constexpr int alexnet_reach = 2, forward_length = 16, backward_length = 16;

// AlexNet's power, by inverse roots alone, for which a GPU has an instruction: a root and a division as IEEE 754 wants
// them take some ten each, and there are few to spare beside two or three loads and stores. Of an infinite base the
// inverse root is zero, and so must the power be.
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

template <int Length, class Power>
void forward(Stream& stream, const Lrn& lrn, const Power& power, const Tensor& x, Tensor& y) {
  const ChannelRange<Length> range(lrn.window);
  for_each_index(stream, range.count(lrn.rows),
                 NormalizeRange<alexnet_reach, Length, Power>{range, power, {lrn.k, lrn.scale}, x.read(), y.write()});
}

template <int Length, class Power>
void backward(Stream& stream, const Lrn& lrn, const Power& power, const Tensor& x, const Tensor& grad_y,
              Tensor& grad_x) {
  const ChannelRange<Length> range(lrn.window);
  for_each_index(
      stream, range.count(lrn.rows),
      BackwardRange<alexnet_reach, Length, Power>{
          range, power, {lrn.k, lrn.scale}, 2 * lrn.scale * lrn.beta, x.read(), grad_y.read(), grad_x.write()});
}

bool served(const Lrn& lrn) {
  return lrn.window.reach == alexnet_reach && lrn.window.inner < (std::int64_t(1) << 31);
}

// work(length, power): both as the layer asks for them; a few channels go one by one.
template <int Length, class Work>
void with_length_and_power(const Lrn& lrn, const Work& work) {
  const auto with_power = [&](auto length) {
    if (lrn.beta == 0.75f)
      work(length, PowerThreeQuarters{});
    else
      work(length, AnyPower{lrn.beta});
  };
  if (lrn.window.channels >= Length)
    with_power(std::integral_constant<int, Length>{});
  else
    with_power(std::integral_constant<int, 1>{});
}

}  // namespace

bool normalize_in_ranges(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& y) {
  if (!served(lrn)) return false;
  with_length_and_power<forward_length>(
      lrn, [&](auto length, const auto& power) { forward<length>(stream, lrn, power, x, y); });
  return true;
}

bool normalize_backward_in_ranges(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& grad_y,
                                  Tensor& grad_x) {
  if (!served(lrn)) return false;
  with_length_and_power<backward_length>(
      lrn, [&](auto length, const auto& power) { backward<length>(stream, lrn, power, x, grad_y, grad_x); });
  return true;
}

}  // namespace twiddle
