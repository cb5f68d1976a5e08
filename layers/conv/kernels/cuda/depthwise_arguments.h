#pragma once
#include <algorithm>
#include <limits>

#include "framework/convolution.h"
#include "layers/conv/kernels/cuda/depthwise_blocks.h"
#include "layers/conv/kernels/cuda/depthwise_cell_sums.h"
#include "layers/conv/kernels/cuda/depthwise_rows.h"
#include "layers/conv/kernels/cuda/depthwise_whole_planes.h"

// From a problem to the arguments of the kernels, and how large their blocks are. Sizes of blocks change the speed, and
// in results only how long sums are split.
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

// Limits per block: threads, and floats in each buffer of shared memory (two of them and the taps are 64 KB). Launches
// of fewer blocks would leave multiprocessors idle.
constexpr int most_threads = 256, most_staged = 8120, longest_row = 128, fewest_blocks = 264;

// Warps that fit a multiprocessor's registers. For correlations, launch bounds limit the compiler to 80 registers per
// thread: it would use 128, and a launch would take up to 25 % longer. Sums use up to 128.
constexpr int correlation_warps = 24, sums_warps = 16;

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

// Small planes with relatively large kernels. Full planes are used if the other blocks have no kernel, or if a plane
// has fewer elements than a kernel has taps, unless the batch would leave most lanes idle.
inline bool by_whole_planes(const ConvProblem& p) {
  const int side = largest_side(p), kernel = larger_side_of_kernel(p);
  if (p.stride_h != 1 || p.stride_w != 1 || side > largest_plane) return false;
  bool pays = false;
  with_plane(side, [&]<int N>() { pays = N <= kernel && p.batch > WholePlane<N>::lanes / 2; });
  return pays || kernel > largest_kernel;
}

// Planes of 7 x 7 and 14 x 14 that keep their size, in whole cells, unless the batch leaves many lanes idle.
inline bool by_cells(const ConvProblem& p) {
  const int side = p.height;
  if (p.width != side || p.out_height() != side || p.out_width() != side || p.kernel_h != p.kernel_w) return false;
  if (p.stride_h != 1 || p.stride_w != 1 || p.dilation != 1) return false;
  if (side == 7) return p.channels % planes_of_cell<7> == 0 && p.batch > lanes_of_warp / 2;
  if (side != 14 || (p.kernel_h > 7 && p.kernel_h <= largest_kernel)) return false;
  return 8 * p.batch >= 5 * in_warps(p.batch);
}
// run.operator()<N, K>() for the smallest K that has kernels.
template <class Run>
void with_cells(const ConvProblem& p, const Run& run) {
  const int size = p.kernel_h;
  if (p.height == 14) {
    if (size <= 3) return run.template operator()<14, 3>();
    if (size <= 5) return run.template operator()<14, 5>();
    if (size <= 7) return run.template operator()<14, 7>();
    return run.template operator()<14, 27>();
  }
  if (size <= 3) return run.template operator()<7, 3>();
  if (size <= 5) return run.template operator()<7, 5>();
  if (size <= 7) return run.template operator()<7, 7>();
  return run.template operator()<7, 13>();
}

// Planes of one row. Their sums for the gradient of w are for kernels that the others do not have: those also fill a
// block with several short rows.
constexpr int longest_kernel_of_row = 2040;  // a thread sums eight of the taps, and a lead of up to three
inline bool by_rows(const ConvProblem& p) {
  return p.height == 1 && p.kernel_h == 1 && p.pad_h == 0 && p.stride_w == 1 && p.kernel_w <= longest_kernel_of_row;
}
inline bool sums_by_rows(const ConvProblem& p) {
  return by_rows(p) && p.kernel_w > largest_kernel;
}

inline bool fits(const ConvProblem& p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  // Each block has a plane or a part of one, of at least four rows and four columns.
  const std::int64_t planes = std::int64_t(p.batch) * p.channels;
  const auto few = [&](std::int64_t height, std::int64_t width) {
    return height * width <= most / 8 && planes * ((height + 3) / 4) * ((width + 3) / 4) <= most;
  };
  return p.dilation == 1 && p.stride_h == p.stride_w && p.stride_h <= 2 && few(p.height, p.width) &&
         few(p.out_height(), p.out_width()) &&
         (by_rows(p) || by_whole_planes(p) || larger_side_of_kernel(p) <= largest_kernel);
}

// With more padding, a row of the gradient may overlap no row of x; then no block has it.
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

// Estimates a launch's time by a model of an H100, fitted to the table of docs/notes/depthwise.md. A multiprocessor
// runs its blocks in waves, limited by registers and shared memory. A round has a time per warp of the wave, for at
// least ten warps. A block adds a tenth of a round.
template <class Blocks>
std::int64_t time_of(const Blocks& blocks, int warps_that_fit) {
  constexpr int multiprocessors = 132, shared_bytes = 227 << 10, reserved_bytes = 1 << 10, busy_warps = 10;
  const int warps = blocks.threads() / 32, bytes = blocks.staged_floats() * int(sizeof(float)) + reserved_bytes;
  const int at_once = std::max(std::min(warps_that_fit / warps, shared_bytes / bytes), 1);
  const auto wave = [&](std::int64_t count) {
    return count == 0 ? 0 : std::max<std::int64_t>(count * warps, busy_warps);
  };
  const std::int64_t each = (blocks.blocks() + multiprocessors - 1) / multiprocessors;
  return (10 * blocks.rounds + 1) * (each / at_once * wave(at_once) + wave(each % at_once));
}

template <class Blocks>
void choose_rounds(Blocks& blocks, int warps_that_fit, int most) {
  Blocks tried = blocks;
  for (tried.rounds = 2; tried.rounds <= std::min(most, parts_of(blocks.batch, blocks.images)); ++tried.rounds)
    if (time_of(tried, warps_that_fit) < time_of(blocks, warps_that_fit)) blocks = tried;
}

// The fewest images, `most` at most, whose `each` threads leave less than an eighth of the lanes of their warps idle,
// or else the fewest that leave the least idle.
inline int images_in_full_warps(int each, int most) {
  const auto idle = [&](int images) { return 1 - images * each / double(in_warps(images * each)); };
  int best = 1;
  for (int images = 2; images <= most && idle(best) >= 0.125; ++images)
    if (idle(images) < idle(best)) best = images;
  return best;
}

template <int K, int S>
void choose_blocks(Correlation<K, S>& c) {
  constexpr int patch = patch_h<K>, most_rounds = 16;
  c.tile_w = in_fours(even_part(c.width, longest_row));
  const int rows = (most_staged - c.most_padding) / c.layout().pitch;
  const int by_memory = std::max(((rows - K) / S + 1) / patch, 1);
  c.tile_h = patch * even_part(parts_of(c.height, patch), std::min(by_memory, most_threads / c.across()));
  if (c.tiles_h() * c.tiles_w() == 1) {
    const int fitting = std::min(most_staged / c.layout().plane, most_threads / c.patches());
    c.images = images_in_full_warps(c.patches(), std::min(fitting, c.batch));
    while (c.images > 1 && c.blocks() < fewest_blocks) c.images = parts_of(c.images, 2);
  }
  choose_rounds(c, correlation_warps, most_rounds);
}

template <int N, int K>
void choose_blocks(CellCorrelation<N, K>& c) {
  constexpr int most_rounds = 4;
  choose_rounds(c, c.blocks_at_once * c.threads() / lanes_of_warp, most_rounds);
}

inline void choose_blocks(RowCorrelation& c) {
  constexpr int most_rounds = 16;
  c.tile = row_sums * even_part(parts_of(c.width, row_sums), most_threads);
  if (c.tiles() == 1) {
    c.images =
        images_in_full_warps(c.across(), std::min({most_staged / c.pitch(), most_threads / c.across(), c.batch}));
    while (c.images > 1 && c.blocks() < fewest_blocks) c.images = parts_of(c.images, 2);
  }
  choose_rounds(c, correlation_warps, most_rounds);
}

// run(blocks) with the blocks of a pass.
template <class Run>
void with_forward_blocks(const ConvProblem& p, const float* x, const float* w, const float* bias, bool relu, float* y,
                         const Run& run) {
  const auto blocks = [&]<class Blocks>() {
    return Blocks{input_planes(p, x), taps_of(p, w, false), p.batch, p.channels, p.pad_h, p.pad_w, y,
                  p.out_height(),     p.out_width(),        bias,    relu};
  };
  const auto chosen = [&](auto of_tiles) {
    choose_blocks(of_tiles);
    run(of_tiles);
  };
  if (by_rows(p)) return chosen(blocks.template operator()<RowCorrelation>());
  if (by_cells(p))
    return with_cells(p, [&]<int N, int K>() { chosen(blocks.template operator()<CellCorrelation<N, K>>()); });
  if (by_whole_planes(p))
    return with_plane(largest_side(p), [&]<int N>() { run(blocks.template operator()<WholeCorrelation<N>>()); });
  with_kernel(larger_side_of_kernel(p), [&]<int K>() {
    if (p.stride_h == 1)
      chosen(blocks.template operator()<Correlation<K, 1>>());
    else
      chosen(blocks.template operator()<Correlation<K, 2>>());
  });
}

// With rotated taps, tap 0 of the first result reads the element kernel - 1 - pad before it.
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
  const auto chosen = [&](auto of_tiles) {
    choose_blocks(of_tiles);
    run(of_tiles);
  };
  if (by_rows(p)) return chosen(blocks.template operator()<RowCorrelation>());
  if (by_cells(p))
    return with_cells(p, [&]<int N, int K>() { chosen(blocks.template operator()<CellCorrelation<N, K>>()); });
  if (by_whole_planes(p))
    return with_plane(largest_side(p), [&]<int N>() { run(blocks.template operator()<WholeCorrelation<N>>()); });
  with_kernel(larger_side_of_kernel(p), [&]<int K>() { chosen(blocks.template operator()<Correlation<K, 1>>()); });
}

template <int K, int G>
void choose_blocks(WeightSums<K, G>& s) {
  using Sums = WeightSums<K, G>;
  constexpr int longest_sum = 2048, longest_segment = 7, most_rounds = 8;
  const int threads = s.groups() <= 1 ? 128 : s.groups() == 2 ? 96 : s.groups() == 3 ? 64 : 32;  // of each group
  s.strips = even_part(parts_of(s.gradient_width(), Sums::strip), std::min(longest_row / Sums::strip, threads));
  const int x_pitch = s.x_layout().pitch, gradient_pitch = s.gradient_layout().pitch;
  const int fitting = (most_staged - s.rows_above() * gradient_pitch) / (x_pitch + gradient_pitch);
  s.rows = even_part(s.x.height, std::max(fitting, 1));
  s.segment_rows = parts_of(s.rows, std::clamp(threads / s.strips, 1, parts_of(s.rows, longest_segment)));
  if (s.tiles() == 1) {
    const int by_memory = most_staged / (s.x_layout().plane + s.gradient_layout().plane);
    s.images = images_in_full_warps(s.items(), std::min({by_memory, threads / s.items(), s.batch}));
  }
  choose_rounds(s, sums_warps, std::min(most_rounds, longest_sum / (s.segment_rows * Sums::strip)));
}

template <int N>
void choose_blocks(WholeWeightSums<N>& s) {
  constexpr int most_rounds = 4;
  choose_rounds(s, sums_warps, most_rounds);
}

template <class Work>
void choose_blocks(CellWeightSums<Work>& s) {
  constexpr int most_rounds = 4;
  choose_rounds(s, Work::blocks_at_once * Work::warps, most_rounds);
}

template <int N, int K>
void choose_blocks(ChannelWeightSums<N, K>& s) {
  constexpr int most_rounds = 8;
  choose_rounds(s, s.blocks_at_once * s.threads() / lanes_of_warp, most_rounds);
}

inline void choose_blocks(RowWeightSums& s) {
  constexpr int longest_sum = 2048, longest_tile = 2048, most_rounds = 16;
  s.tile = in_fours(even_part(s.gradient.width, longest_tile));
  s.segment = in_fours(parts_of(s.tile, std::max(most_threads / s.groups(), 1)));
  choose_rounds(s, sums_warps, std::min(most_rounds, longest_sum / s.segment));
}

template <class Run>
void with_weight_blocks(const ConvProblem& p, const float* x, const float* grad_y, const float* mask,
                        const WeightResults& results, const Run& run) {
  const auto chosen = [&]<class Blocks>() {
    Blocks blocks{input_planes(p, x),
                  gradient_planes(p, grad_y, mask),
                  p.batch,
                  p.channels,
                  p.pad_h,
                  p.pad_w,
                  p.kernel_h,
                  p.kernel_w,
                  results};
    choose_blocks(blocks);
    run(blocks);
  };
  if (sums_by_rows(p)) return chosen.template operator()<RowWeightSums>();
  if (by_cells(p))
    return with_cells(p, [&]<int N, int K>() {
      if constexpr (N == 7)
        chosen.template operator()<ChannelWeightSums<N, K>>();
      else if constexpr (K == 2 * N - 1)
        chosen.template operator()<CellWeightSums<ShiftSums<N>>>();
      else
        chosen.template operator()<CellWeightSums<TwoRowSums<N, K>>>();
    });
  if (by_whole_planes(p))
    return with_plane(largest_side(p), [&]<int N>() { chosen.template operator()<WholeWeightSums<N>>(); });
  with_kernel(p.kernel_w, [&]<int K>() { chosen.template operator()<WeightSums<K, rows_of_taps<K>>>(); });
}

// Floats of `partial`: none where one block has a channel's whole sum.
inline std::int64_t partial_floats(const ConvProblem& p) {
  std::int64_t floats = 0;
  with_weight_blocks(p, nullptr, nullptr, nullptr, {}, [&](const auto& blocks) {
    const std::int64_t sums_each = std::int64_t(p.kernel_h) * p.kernel_w + 1;
    if (blocks.parts() > 1) floats = blocks.parts() * p.channels * sums_each;
  });
  return floats;
}

inline SumParts sum_of_parts(const ConvProblem& p, const WeightResults& results) {
  const std::int64_t sums_each = std::int64_t(p.kernel_h) * p.kernel_w + 1;
  return {results.partial, p.channels * sums_each, Divisor(sums_each), results.weight, results.bias};
}

}  // namespace twiddle::depthwise
