#include "layers/conv/kernels/cuda/tap_shifts/tap_shifts.h"

#include <algorithm>
#include <limits>

#include "framework/cuda/check.h"
#include "layers/conv/kernels/cuda/sum_of_parts.h"
#include "layers/conv/kernels/cuda/tap_shifts/forward_arguments.h"
#include "layers/conv/kernels/cuda/tap_shifts/split_filters.h"
#include "layers/conv/kernels/cuda/tap_shifts/weight_arguments.h"
#include "layers/conv/kernels/cuda/transposed.h"

namespace twiddle {

namespace tap_shifts {
namespace {

constexpr int most_shared = 227 << 10;  // bytes of a block on compute capability 9.0

bool by_pairs(const ConvProblem& c) {
  return c.precision == Precision::fp32;
}

// Whether whole numbers of 32 bits are enough, for places in a plane, and in the planes of a chunk.
bool can_be_counted(const ConvProblem& c) {
  constexpr std::int64_t most = std::numeric_limits<int>::max() / depth;
  const std::int64_t seen = (std::int64_t(c.height) + tall_strip * 4) * (c.width + tall_strip * 4);
  const std::int64_t places = (std::int64_t(c.out_height()) + tall_strip * 4) * (c.out_width() + tall_strip * 4);
  return seen <= most && places <= most && places * c.batch / (octet * short_strip) <= most &&
         std::int64_t(c.channels) * c.filters * taps <= most;
}

// Tiles of planes that are much smaller would be empty for the most part.
bool fills_tiles(const ConvProblem& c) {
  const Tiling t = best_tiling(c, by_pairs(c));
  constexpr int most_empty = 4;
  return std::int64_t(t.tiles_an_image()) * t.positions() <= std::int64_t(most_empty) * t.out_h * t.out_w;
}

// ---------------------------------------------------------------------------------------------------------- forward

struct ForwardTiling {
  Tiling t;
  int chunks, blocks, stages;
  bool resident;
};

ForwardTiling forward_tiling(const ConvProblem& c) {
  const bool pairs = by_pairs(c);
  ForwardTiling tiling{.t = best_tiling(c, pairs),
                       .chunks = static_cast<int>(quotient_up(c.channels, depth)),
                       .blocks = static_cast<int>(quotient_up(c.filters, block_filters))};
  const auto stages = [&](bool resident) {
    int most = most_stages;
    while (most > 0 && ForwardPlaces(tiling.t, tiling.chunks, most, resident, pairs).all > most_shared) --most;
    return most;
  };
  constexpr int enough = 3;
  tiling.resident = stages(true) >= enough;
  tiling.stages = stages(tiling.resident);
  return tiling;
}

// Offsets of a pass's buffers in its workspace.
struct ForwardScratch {
  ForwardScratch(const ConvProblem& c, const ForwardTiling& tiling)
      : scales(sizeof(__half) * tiling.blocks * tiling.chunks * values_of_chunk(by_pairs(c))),
        means(scales + sizeof(float) * c.channels),
        back(means + sizeof(int) * c.channels),
        bytes(back + sizeof(float) * c.filters) {}
  std::size_t scales, means, back, bytes;
};

void split_filters(Stream& stream, const ConvProblem& c, const ForwardTiling& tiling, const Filters& filters) {
  const auto native = twiddle::detail::native(stream);
  mean_exponents_kernel<<<static_cast<unsigned>(c.channels), split_threads, 0, native>>>(filters);
  twiddle::detail::check_launch();
  const auto kernel = by_pairs(c) ? split_filters_kernel<true> : split_filters_kernel<false>;
  kernel<<<static_cast<unsigned>(tiling.blocks * block_filters), split_threads, 0, native>>>(filters);
  twiddle::detail::check_launch();
}

void forward(Stream& stream, const ConvProblem& c, const ForwardOperands& operands) {
  const ForwardTiling tiling = forward_tiling(c);
  const ForwardScratch places(c, tiling);
  const auto scratch = stream.allocate(places.bytes);
  char* const at = static_cast<char*>(scratch.get());
  const Filters filters{.w = operands.w,
                        .filter_stride = operands.turned ? taps : c.channels * taps,
                        .channel_stride = operands.turned ? c.filters * taps : taps,
                        .turned = operands.turned,
                        .filters = c.filters,
                        .channels = c.channels,
                        .chunks = tiling.chunks,
                        .means = reinterpret_cast<int*>(at + places.means),
                        .scales = reinterpret_cast<float*>(at + places.scales),
                        .back = reinterpret_cast<float*>(at + places.back),
                        .weights = reinterpret_cast<__half*>(at)};
  split_filters(stream, c, tiling, filters);
  const ForwardArguments arguments{.t = tiling.t,
                                   .chunks = tiling.chunks,
                                   .stages = tiling.stages,
                                   .resident = tiling.resident,
                                   .x = operands.x,
                                   .bias = operands.bias,
                                   .relu = operands.relu,
                                   .scales = filters.scales,
                                   .back = filters.back,
                                   .weights = filters.weights,
                                   .y = operands.y};
  const int at_once = std::max(multiprocessors(stream.device()) / tiling.blocks, 1);  // each keeps to its filters
  const dim3 grid(static_cast<unsigned>(std::min(tiling.t.tiles(), at_once)), static_cast<unsigned>(tiling.blocks));
  launch_forward(stream, arguments, by_pairs(c), grid);
}

// -------------------------------------------------------------------------------------------------- backward_weight

struct WeightTiling {
  Tiling t;
  int filter_blocks, channel_blocks;
  int parts;  // blocks that share the tiles
};

WeightTiling weight_tiling(const Device& gpu, const ConvProblem& c) {
  const bool pairs = by_pairs(c);
  WeightTiling tiling{.t = tiling_by(c, short_strip, strips),
                      .filter_blocks = static_cast<int>(quotient_up(c.filters, block_filters)),
                      .channel_blocks = static_cast<int>(quotient_up(c.channels, channel_octets(pairs) * octet))};
  constexpr int longest = 128;  // tiles that a block sums consecutively, to stay within the error limit
  const int at_once = std::max(multiprocessors(gpu) / (tiling.filter_blocks * tiling.channel_blocks), 1);
  const auto rounds = static_cast<int>(quotient_up(tiling.t.tiles(), std::int64_t(longest) * at_once));
  tiling.parts = std::min(rounds * at_once, tiling.t.tiles());
  return tiling;
}

std::size_t weight_scratch(const ConvProblem& c, const WeightTiling& tiling) {
  return sizeof(float) * c.filters * c.channels * taps * tiling.parts;
}

void backward_weight(Stream& stream, const ConvProblem& c, ConvOperands& operands) {
  const WeightTiling tiling = weight_tiling(stream.device(), c);
  const auto scratch = stream.allocate(weight_scratch(c, tiling));
  auto* const partial = static_cast<float*>(scratch.get());
  const WeightArguments arguments{.t = tiling.t,
                                  .channel_blocks = tiling.channel_blocks,
                                  .x = operands.x.read(),
                                  .grad_y = operands.y.read(),
                                  .partial = partial};
  const dim3 grid(static_cast<unsigned>(tiling.parts * tiling.channel_blocks),
                  static_cast<unsigned>(tiling.filter_blocks));
  launch_weight(stream, arguments, by_pairs(c), grid);
  const std::int64_t count = std::int64_t(c.filters) * c.channels * taps;
  reduce_columns(stream, tiling.parts, count, SumOfParts{partial, count, operands.w.write()});
}

}  // namespace
}  // namespace tap_shifts

bool tap_shifts_fit(const ConvProblem& p, ConvPass pass) {
  using namespace tap_shifts;
  const bool of_3x3 = p.kernel_h == side && p.kernel_w == side && p.dilation == 1;
  if (!of_3x3 || p.stride_h != 1 || p.stride_w != 1 || p.groups != 1) return false;
  const ConvProblem convolved = forward_problem(p, pass);
  if (!can_be_counted(convolved) || !fills_tiles(convolved)) return false;
  // Each chunk of channels has scales in shared memory; two stages are what loading and multiplying hand each other.
  constexpr int most_channels = 1 << 14, least_stages = 2;
  return pass == ConvPass::backward_weight ||
         (convolved.channels <= most_channels && forward_tiling(convolved).stages >= least_stages);
}

void run_tap_shifts(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  using namespace tap_shifts;
  if (pass == ConvPass::backward_weight) return backward_weight(stream, problem, operands);
  forward(stream, forward_problem(problem, pass), forward_operands(pass, operands));
}

std::size_t tap_shifts_scratch(const Device& gpu, const ConvProblem& problem, ConvPass pass) {
  using namespace tap_shifts;
  if (pass == ConvPass::backward_weight) return weight_scratch(problem, weight_tiling(gpu, problem));
  const ConvProblem convolved = forward_problem(problem, pass);
  return ForwardScratch(convolved, forward_tiling(convolved)).bytes;
}

}  // namespace twiddle
