#pragma once
#include <algorithm>
#include <limits>

#include "framework/convolution.h"
#include "layers/conv/cuda/depthwise_blocks.h"
#include "layers/conv/cuda/depthwise_whole_planes.h"

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

// The same for planes that are computed as a whole.
constexpr int largest_plane = 16;
template <class Run>
void with_plane(int size, const Run& run) {
  if (size <= 7) return run.template operator()<7>();
  if (size <= 8) return run.template operator()<8>();
  if (size <= 14) return run.template operator()<14>();
  return run.template operator()<largest_plane>();
}

inline int largest_side(const ConvProblem& p) {
  return std::max({p.height, p.width, p.out_height(), p.out_width()});
}
inline int larger_side_of_kernel(const ConvProblem& p) {
  return std::max(p.kernel_h, p.kernel_w);
}

// Small planes under kernels that are large beside them: whole planes where the other blocks have no kernel, and where
// a plane has fewer elements than a kernel has taps, but for a batch that would leave most lanes idle.
inline bool by_whole_planes(const ConvProblem& p) {
  const int side = largest_side(p), kernel = larger_side_of_kernel(p);
  if (p.stride_h != 1 || p.stride_w != 1 || side > largest_plane) return false;
  bool pays = false;
  with_plane(side, [&]<int N>() { pays = N <= kernel && p.batch > WholePlane<N>::lanes / 2; });
  return pays || kernel > largest_kernel;
}

inline bool fits(const ConvProblem& p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  // Each block has a plane or a part of one, of at least four rows and four columns.
  const std::int64_t planes = std::int64_t(p.batch) * p.channels;
  const auto few = [&](std::int64_t height, std::int64_t width) {
    return height * width <= most / 8 && planes * ((height + 3) / 4) * ((width + 3) / 4) <= most;
  };
  return p.dilation == 1 && p.stride_h == p.stride_w && p.stride_h <= 2 && few(p.height, p.width) &&
         few(p.out_height(), p.out_width()) && (by_whole_planes(p) || larger_side_of_kernel(p) <= largest_kernel);
}

// Of more padding than that, a row of the gradient may meet no row of x, and then no block has it.
inline bool sums_bias(const ConvProblem& p) {
  return p.pad_h < p.kernel_h || by_whole_planes(p);
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
  const int taps = K * Correlation<K, S>::tap_pitch, rows = (most_staged - taps) / c.layout().pitch;
  const int by_memory = std::max(((rows - K) / S + 1) / patch, 1), by_threads = most_threads / (c.tile_w / patch);
  c.tile_h = in_fours(even_part(c.height, patch * std::min(by_memory, by_threads)));
  c.images = 1;
  if (c.tiles_h() * c.tiles_w() > 1) return;
  const int fitting = std::min((most_staged - taps) / c.layout().plane, most_threads / c.patches());
  c.images = even_part(c.batch, std::max(fitting, 1));
  while (c.images > 1 && c.blocks() < fewest_blocks) c.images = parts_of(c.images, 2);
}

// run(blocks) with the blocks of a pass.
template <class Run>
void with_forward_blocks(const ConvProblem& p, const float* x, const float* w, const float* bias, bool relu, float* y,
                         const Run& run) {
  const auto blocks = [&]<class Blocks>() {
    return Blocks{input_planes(p, x), taps_of(p, w, false), p.batch, p.channels, p.pad_h, p.pad_w, y,
                  p.out_height(),     p.out_width(),        bias,    relu};
  };
  if (by_whole_planes(p))
    return with_plane(largest_side(p), [&]<int N>() { run(blocks.template operator()<WholeCorrelation<N>>()); });
  const auto chosen = [&](auto of_tiles) {
    choose_blocks(of_tiles);
    run(of_tiles);
  };
  with_kernel(larger_side_of_kernel(p), [&]<int K>() {
    if (p.stride_h == 1)
      chosen(blocks.template operator()<Correlation<K, 1>>());
    else
      chosen(blocks.template operator()<Correlation<K, 2>>());
  });
}

// With the taps turned round, tap 0 of the first result meets what lies kernel - 1 - pad before it.
template <class Run>
void with_backward_input_blocks(const ConvProblem& p, const float* grad_y, const float* mask, const float* w,
                                float* grad_x, const Run& run) {
  const auto blocks = [&]<class Blocks>() {
    return Blocks{gradient_planes(p, grad_y, mask),
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
  };
  if (by_whole_planes(p))
    return with_plane(largest_side(p), [&]<int N>() { run(blocks.template operator()<WholeCorrelation<N>>()); });
  with_kernel(larger_side_of_kernel(p), [&]<int K>() {
    auto of_tiles = blocks.template operator()<Correlation<K, 1>>();
    choose_blocks(of_tiles);
    run(of_tiles);
  });
}

template <int K, int G>
void choose_blocks(WeightSums<K, G>& s) {
  using Sums = WeightSums<K, G>;
  constexpr int wanted_blocks = 2112, longest_sum = 2048;
  const int threads = s.groups() <= 1 ? 128 : s.groups() == 2 ? 96 : s.groups() == 3 ? 64 : 32;  // of each group
  s.strips = even_part(parts_of(s.gradient_width(), Sums::strip), std::min(longest_row / Sums::strip, threads));
  const int x_pitch = s.x_layout().pitch, gradient_pitch = s.gradient_layout().pitch;
  const int fitting = (most_staged - s.rows_above() * gradient_pitch) / (x_pitch + gradient_pitch);
  s.rows = even_part(s.x.height, std::max(fitting, 1));
  s.images = s.rounds = 1;
  if (s.tiles() == 1) {
    const int by_memory = most_staged / (s.x_layout().plane + s.gradient_layout().plane);
    s.images = even_part(s.batch, std::max(std::min(by_memory, threads / s.strips), 1));
  }
  s.segment_rows = parts_of(s.rows, std::max(threads / (s.strips * s.images), 1));
  const std::int64_t planes = std::int64_t(s.channels) * s.tiles();
  const int turns = parts_of(s.batch, s.images);
  const auto slices = static_cast<int>(std::clamp<std::int64_t>((wanted_blocks + planes - 1) / planes, 1, turns));
  s.rounds = std::clamp(longest_sum / (s.segment_rows * Sums::strip), 1, parts_of(turns, slices));
}

template <int N>
void choose_blocks(WholeWeightSums<N>& s) {
  constexpr int most_rounds = 4;
  const int turns = parts_of(s.batch, s.images);
  while (s.rounds < std::min(most_rounds, turns) && s.blocks() / 2 >= fewest_blocks) s.rounds *= 2;
}

template <class Run>
void with_weight_blocks(const ConvProblem& p, const float* x, const float* grad_y, const float* mask, bool sums_bias,
                        float* partial, const Run& run) {
  const auto chosen = [&]<class Blocks>() {
    Blocks blocks{input_planes(p, x),
                  gradient_planes(p, grad_y, mask),
                  p.batch,
                  p.channels,
                  p.pad_h,
                  p.pad_w,
                  p.kernel_h,
                  p.kernel_w,
                  sums_bias,
                  partial};
    choose_blocks(blocks);
    run(blocks);
  };
  if (by_whole_planes(p))
    return with_plane(largest_side(p), [&]<int N>() { chosen.template operator()<WholeWeightSums<N>>(); });
  with_kernel(p.kernel_w, [&]<int K>() { chosen.template operator()<WeightSums<K, rows_of_taps<K>>>(); });
}

// Floats of `partial`.
inline std::int64_t partial_floats(const ConvProblem& p) {
  std::int64_t floats = 0;
  with_weight_blocks(p, nullptr, nullptr, nullptr, false, nullptr, [&](const auto& blocks) {
    floats = blocks.blocks() * (std::int64_t(p.kernel_h) * p.kernel_w + 1);
  });
  return floats;
}

inline SumParts sum_of_parts(const ConvProblem& p, const float* partial, float* weight, float* bias) {
  const std::int64_t sums_each = std::int64_t(p.kernel_h) * p.kernel_w + 1;
  return {partial, p.channels * sums_each, Divisor(sums_each), weight, bias};
}

}  // namespace twiddle::depthwise
