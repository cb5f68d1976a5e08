#pragma once
#include <algorithm>
#include <limits>

#include "layers/conv/cuda/depthwise_blocks.h"

// From a problem to the arguments of the kernels, and how large their blocks are. Sizes of blocks change the speed, and
// of results only how long sums are cut into parts.
namespace twiddle::depthwise {

constexpr int largest_kernel = 11;

// run.operator()<K>() for the smallest K that has kernels and is no smaller than `size`.
template <class Run>
void with_kernel(int size, const Run& run) {
  if (size <= 3) return run.template operator()<3>();
  if (size <= 5) return run.template operator()<5>();
  if (size <= 7) return run.template operator()<7>();
  if (size <= 9) return run.template operator()<9>();
  return run.template operator()<largest_kernel>();
}

// Rows of taps that a thread sums: more of them would not fit its registers.
template <int K>
constexpr int rows_of_taps = K <= 7   ? K
                             : K == 9 ? 5
                                      : 4;

// A block has at most so many threads, and floats in shared memory: five blocks of a multiprocessor of an H200 then
// load and compute side by side. A launch of fewer blocks would leave multiprocessors idle.
constexpr int most_threads = 256, most_staged = 10240, longest_row = 128, fewest_blocks = 264;

inline bool fits(const ConvProblem& p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  // Each block has a plane or a part of one, of at least four rows and four columns.
  const std::int64_t planes = std::int64_t(p.batch) * p.channels;
  const auto few = [&](std::int64_t height, std::int64_t width) {
    return height * width <= most / 8 && planes * ((height + 3) / 4) * ((width + 3) / 4) <= most;
  };
  return std::max(p.kernel_h, p.kernel_w) <= largest_kernel && p.dilation == 1 && p.stride_h == p.stride_w &&
         p.stride_h <= 2 && few(p.height, p.width) && few(p.out_height(), p.out_width());
}

// Of more padding than that, a row of the gradient may meet no row of x, and then no block has it.
inline bool sums_bias(const ConvProblem& p) {
  return p.pad_h < p.kernel_h;
}

constexpr int parts_of(int size, int most) {
  return (size + most - 1) / most;
}
// `size` in parts of about equal size, none of them above `most`.
constexpr int even_part(int size, int most) {
  return parts_of(size, parts_of(size, most));
}

inline Planes input_planes(const ConvProblem& p, const float* x) {
  const std::int64_t plane = std::int64_t(p.height) * p.width;
  return {.values = x, .height = p.height, .width = p.width, .image = p.channels * plane, .channel = plane};
}

inline Planes gradient_planes(const ConvProblem& p, const float* grad_y, const float* mask) {
  const std::int64_t plane = std::int64_t(p.out_height()) * p.out_width();
  return {.values = grad_y,
          .mask = mask,
          .height = p.out_height(),
          .width = p.out_width(),
          .image = p.channels * plane,
          .channel = plane,
          .spread = p.stride_h};
}

inline Planes taps_of(const ConvProblem& p, const float* w, bool turned) {
  return {.values = w,
          .height = p.kernel_h,
          .width = p.kernel_w,
          .image = 0,
          .channel = std::int64_t(p.kernel_h) * p.kernel_w,
          .turned = turned};
}

template <int K, int S>
void choose_blocks(Correlation<K, S>& c) {
  c.tile_w = in_fours(even_part(c.width, longest_row));
  const int taps = K * Correlation<K, S>::tap_pitch, rows = (most_staged - taps) / c.staged_pitch();
  const int by_memory = std::max(((rows - K) / S + 1) / patch, 1), by_threads = most_threads / (c.tile_w / patch);
  c.tile_h = in_fours(even_part(c.height, patch * std::min(by_memory, by_threads)));
  c.images = 1;
  if (c.tiles_h() * c.tiles_w() > 1) return;
  const int fitting = std::min((most_staged - taps) / (c.staged_rows() * c.staged_pitch()), most_threads / c.patches());
  c.images = even_part(c.batch, std::max(fitting, 1));
  while (c.images > 1 && c.blocks() < fewest_blocks) c.images = parts_of(c.images, 2);
}

template <int K, int S>
Correlation<K, S> forward_blocks(const ConvProblem& p, const float* x, const float* w, const float* bias, bool relu,
                                 float* y) {
  Correlation<K, S> c{input_planes(p, x), taps_of(p, w, false), p.batch, p.channels, p.pad_h, p.pad_w, y,
                      p.out_height(),     p.out_width(),        bias,    relu};
  choose_blocks(c);
  return c;
}

// With the taps turned round, tap 0 of the first result meets what lies kernel - 1 - pad before it.
template <int K>
Correlation<K, 1> backward_input_blocks(const ConvProblem& p, const float* grad_y, const float* mask, const float* w,
                                        float* grad_x) {
  Correlation<K, 1> c{gradient_planes(p, grad_y, mask),
                      taps_of(p, w, true),
                      p.batch,
                      p.channels,
                      p.kernel_h - 1 - p.pad_h,
                      p.kernel_w - 1 - p.pad_w,
                      grad_x,
                      p.height,
                      p.width,
                      nullptr,
                      false};
  choose_blocks(c);
  return c;
}

template <int K, int G>
void choose_blocks(WeightSums<K, G>& s) {
  using Sums = WeightSums<K, G>;
  constexpr int wanted_blocks = 2112, longest_sum = 2048;
  const int threads = s.groups() <= 1 ? 128 : s.groups() == 2 ? 96 : s.groups() == 3 ? 64 : 32;  // of each group
  s.strips = even_part(parts_of(s.gradient_width(), Sums::strip), std::min(longest_row / Sums::strip, threads));
  const int fitting = (most_staged - s.rows_above() * s.gradient_pitch()) / (s.x_pitch() + s.gradient_pitch());
  s.rows = even_part(s.x.height, std::max(fitting, 1));
  s.images = s.rounds = 1;
  if (s.tiles() == 1)
    s.images = even_part(s.batch,
                         std::max(std::min(most_staged / (s.x_floats() + s.gradient_floats()), threads / s.strips), 1));
  s.segment_rows = parts_of(s.rows, std::max(threads / (s.strips * s.images), 1));
  const std::int64_t planes = std::int64_t(s.channels) * s.tiles();
  const int turns = parts_of(s.batch, s.images);
  const auto slices = static_cast<int>(std::clamp<std::int64_t>((wanted_blocks + planes - 1) / planes, 1, turns));
  s.rounds = std::clamp(longest_sum / (s.segment_rows * Sums::strip), 1, parts_of(turns, slices));
}

template <int K, int G>
WeightSums<K, G> weight_blocks(const ConvProblem& p, const float* x, const float* grad_y, const float* mask,
                               bool sums_bias, float* partial) {
  WeightSums<K, G> s{input_planes(p, x),
                     gradient_planes(p, grad_y, mask),
                     p.batch,
                     p.channels,
                     p.pad_h,
                     p.pad_w,
                     p.kernel_h,
                     p.kernel_w,
                     sums_bias,
                     partial};
  choose_blocks(s);
  return s;
}

// Floats of `partial`.
inline std::int64_t partial_floats(const ConvProblem& p) {
  std::int64_t floats = 0;
  with_kernel(p.kernel_w, [&]<int K>() {
    const auto blocks = weight_blocks<K, rows_of_taps<K>>(p, nullptr, nullptr, nullptr, false, nullptr);
    floats = blocks.blocks() * (p.kernel_h * p.kernel_w + 1);
  });
  return floats;
}

inline SumParts sum_of_parts(const ConvProblem& p, const float* partial, float* weight, float* bias) {
  const std::int64_t sums_each = std::int64_t(p.kernel_h) * p.kernel_w + 1;
  return {partial, p.channels * sums_each, Divisor(sums_each), weight, bias};
}

}  // namespace twiddle::depthwise
