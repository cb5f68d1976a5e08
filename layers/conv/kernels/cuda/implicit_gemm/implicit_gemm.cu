#include "layers/conv/kernels/cuda/implicit_gemm/implicit_gemm.h"

#include <cstdlib>
#include <limits>
#include <optional>

#include "framework/cuda/check.h"
#include "layers/conv/kernels/cuda/implicit_gemm/forward_kernel.h"
#include "layers/conv/kernels/cuda/implicit_gemm/split_filters.h"
#include "layers/conv/kernels/cuda/implicit_gemm/weight_kernel.h"
#include "layers/conv/kernels/cuda/sum_of_parts.h"
#include "layers/conv/kernels/cuda/transposed.h"

namespace twiddle {

namespace implicit_gemm {
namespace {

constexpr int forward_tile = forward_warps * forward_rows * row_tile;  // where all warps have other positions

// Bytes of shared memory: the most that leave space for a second block, and the most per block.
struct MemoryLimits {
  std::size_t half, whole;
};
MemoryLimits memory_limits_of(const Device& gpu) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, gpu.index));
    return static_cast<std::size_t>(value);
  };
  constexpr std::size_t reserved = 1 << 10;  // of each block, by the driver
  const std::size_t whole = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return {std::min(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - reserved, whole), whole};
}

// A tensor core's product of 16 rows, 8 columns and 16 k, in the time that a multiprocessor takes to copy and split a
// float of a patch.
constexpr double product_in_floats = 32;
constexpr int multiplied_at_once = 4;  // by a multiprocessor

// Returns the fastest tiling that fits by an estimate: a tile's time grows with its products and with its patch's
// floats.
template <class Fits>
std::optional<Patches> best_patches(const ConvProblem& c, int tile, double products, const Fits& fits) {
  const auto time = [&](const Patches& p) { return p.tiles_an_image() * (p.floats() + products * product_in_floats); };
  std::optional<Patches> best;
  constexpr int narrowest = 4;
  for (int panels = 1; panels == 1 || c.out_width() >= panels * narrowest; ++panels) {
    const Patches p = patches_of(c, tile, panels);
    if (fits(p) && (!best || time(p) < time(*best))) best = p;
  }
  return best;
}

// Whether whole numbers of 32 bits are enough.
bool can_be_counted(const ConvProblem& c) {
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 4, most_taps = 1 << 16;
  const std::int64_t taps = std::int64_t(c.channels) * c.kernel_h * c.kernel_w;
  const std::int64_t seen = (std::int64_t(c.height) + 2 * std::abs(c.pad_h)) * (c.width + 2 * std::abs(c.pad_w));
  const std::int64_t places = std::int64_t(c.out_height() + forward_tile) * (c.out_width() + forward_tile);
  return taps <= most_taps && c.filters <= most / std::max(taps, places) && seen <= most / c.channels &&
         places <= most / c.batch;
}

// ---------------------------------------------------------------------------------------------------------- forward

struct ForwardTiling {
  Patches p;
  int columns, warps_across, blocks, turns, slots, buffers, resident;
  std::size_t shared;
  int filters() const { return columns * warps_across * column; }  // of a block
};

// Filters of a warp, in eights, and of a block: as few empty ones as can be, and the more of them have a patch
// together.
void set_filter_tiling(int filters, ForwardTiling& tiling) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const int across : {1, 2})
    for (const int columns : {4, 6, 8}) {
      const std::int64_t blocks = quotient_up(filters, across * columns * column), all = blocks * across * columns;
      if (const std::int64_t cost = all * 8 + blocks; cost < fewest)
        fewest = cost, tiling.columns = columns, tiling.warps_across = across, tiling.blocks = static_cast<int>(blocks);
    }
}

std::optional<ForwardTiling> forward_tiling(const Device& gpu, const ConvProblem& c) {
  const MemoryLimits limits = memory_limits_of(gpu);
  ForwardTiling tiling{.p = patches_of(c, forward_tile, 1)};
  set_filter_tiling(c.filters, tiling);
  const int tile = forward_tile / tiling.warps_across;
  tiling.turns = static_cast<int>(quotient_up(tiling.p.taps(), depth_of_turn));
  const int tiles = tiling.filters() / column * (tile / row_tile);  // of a tensor core
  const double products = 3.0 * tiling.turns * steps_a_turn * tiles / multiplied_at_once;
  const auto shared = [&](const Patches& p, int buffers, int slots) {
    return sizeof(float) *
           static_cast<std::size_t>(ForwardPlaces(p, buffers, slots, tiling.filters(), tiling.turns).all);
  };
  struct Way {
    int buffers, slots;
  };
  const int least = std::min(tiling.turns, short_ring);
  for (const int resident : {2, 1}) {
    const std::size_t bytes = resident == 2 ? limits.half : limits.whole;
    const auto p =
        best_patches(c, tile, products, [&](const Patches& other) { return shared(other, 1, least) <= bytes; });
    if (!p) continue;
    tiling.p = *p, tiling.resident = resident;
    for (const Way way :
         {Way{2, tiling.turns}, Way{1, tiling.turns}, Way{1, std::min(tiling.turns, long_ring)}, Way{1, least}})
      if (const std::size_t taken = shared(*p, way.buffers, way.slots); taken <= bytes) {
        tiling.buffers = way.buffers, tiling.slots = way.slots, tiling.shared = taken;
        return tiling;
      }
  }
  return std::nullopt;
}

// Offsets of a pass's buffers in its workspace.
struct ForwardScratch {
  ForwardScratch(const ConvProblem& c, const ForwardTiling& tiling)
      : means(sizeof(__half) * tiling.blocks * tiling.turns * tiling.filters() * depth_of_turn * 2),
        exponents(means + sizeof(int) * c.channels),
        offsets(exponents + sizeof(int) * c.channels),
        back(offsets + sizeof(int) * tiling.turns * depth_of_turn),
        bytes(back + sizeof(float) * c.filters) {}
  std::size_t means, exponents, offsets, back, bytes;
};

Filters filters_of(const ConvProblem& c, const ForwardTiling& tiling, const ForwardOperands& operands, char* scratch) {
  const ForwardScratch places(c, tiling);
  const int kernel = c.kernel_h * c.kernel_w;
  return {.w = operands.w,
          .filter_stride = operands.turned ? kernel : c.channels * kernel,
          .channel_stride = operands.turned ? c.filters * kernel : kernel,
          .turned = operands.turned,
          .filters = c.filters,
          .taps = tiling.p.taps(),
          .taps_a_channel = kernel,
          .channels = c.channels,
          .turns = tiling.turns,
          .rows = tiling.filters(),
          .means = reinterpret_cast<int*>(scratch + places.means),
          .exponents = reinterpret_cast<int*>(scratch + places.exponents),
          .offsets = reinterpret_cast<int*>(scratch + places.offsets),
          .back = reinterpret_cast<float*>(scratch + places.back),
          .fp16 = reinterpret_cast<__half*>(scratch)};
}

void forward(Stream& stream, TensorCores cores, const ConvProblem& c, const ForwardOperands& operands) {
  const ForwardTiling tiling = forward_tiling(stream.device(), c).value();
  const auto scratch = stream.allocate(ForwardScratch(c, tiling).bytes);
  const Filters filters = filters_of(c, tiling, operands, static_cast<char*>(scratch.get()));
  const auto native = twiddle::detail::native(stream);
  mean_exponents_kernel<<<static_cast<unsigned>(c.channels), split_threads, 0, native>>>(filters);
  twiddle::detail::check_launch();
  const int blocks = tiling.blocks * tiling.filters() / column;
  split_filters_kernel<<<static_cast<unsigned>(blocks), split_threads, 0, native>>>(filters, tiling.p);
  twiddle::detail::check_launch();
  const ForwardArguments arguments{
      .p = tiling.p,
      .places = ForwardPlaces(tiling.p, tiling.buffers, tiling.slots, tiling.filters(), tiling.turns),
      .tiles = c.batch * tiling.p.tiles_an_image(),
      .filters = c.filters,
      .turns = tiling.turns,
      .warps_across = tiling.warps_across,
      .slots = tiling.slots,
      .buffers = tiling.buffers,
      .x = operands.x,
      .bias = operands.bias,
      .relu = operands.relu,
      .exponents = filters.exponents,
      .offsets = filters.offsets,
      .back = filters.back,
      .fp16 = filters.fp16,
      .y = operands.y};
  const int at_once = std::max(tiling.resident * multiprocessors(stream.device()) / tiling.blocks, 1);
  const dim3 grid(static_cast<unsigned>(std::min(arguments.tiles, at_once)), static_cast<unsigned>(tiling.blocks));
  const auto launch = cores == TensorCores::wgmma ? launch_forward_by_wgmma : launch_forward_by_mma;
  launch(stream, arguments, tiling.columns, c.precision == Precision::fp32, grid, tiling.shared);
}

// -------------------------------------------------------------------------------------------------- backward_weight

struct WeightTiling {
  Patches p;
  int warps, rows, columns, warps_down, warps_across, blocks, groups;
  int parts;  // blocks that share the tiles
  int buffers;
  std::size_t shared;
  double cost;
  int warps_along() const { return warps / (warps_down * warps_across); }
  int rows_a_block() const { return rows * row_tile * warps_down; }
  int taps_a_block() const { return columns * column * warps_across; }
};

// Filters and taps of a block's warps: as few empty ones as can be; as few blocks, each of which splits what it
// multiplies; and as many of a warp, each of which gathers or loads what it multiplies.
WeightTiling result_tiling(const ConvProblem& c, int warps) {
  constexpr int most_rows_a_block = 6, steps = weight_tile / depth;
  constexpr double of_a_block = 40, of_loads = 0.1;  // against a product of a warp and a step of k
  const int taps = c.channels * c.kernel_h * c.kernel_w;
  WeightTiling best{.p = patches_of(c, weight_tile, 1), .warps = warps, .cost = std::numeric_limits<double>::max()};
  for (int down = 1; down <= 2; ++down)
    for (int across = 1; across <= warps / down; across *= 2)
      for (int rows = fewest_rows; rows <= most_rows; ++rows)
        for (int columns = fewest_columns; columns <= most_columns(rows); ++columns) {
          if (warps / (down * across) > steps || rows * down > most_rows_a_block) continue;
          WeightTiling tiling = best;
          tiling.warps_down = down, tiling.warps_across = across, tiling.rows = rows, tiling.columns = columns;
          tiling.blocks = static_cast<int>(quotient_up(c.filters, tiling.rows_a_block()));
          tiling.groups = static_cast<int>(quotient_up(taps, column * columns * across));
          const double blocks = double(tiling.blocks) * tiling.groups,
                       products = blocks * rows * down * columns * across;
          tiling.cost = products * (1 + of_loads * (1.0 / rows + 1.0 / columns)) + of_a_block * blocks;
          if (tiling.cost < best.cost) best = tiling;
        }
  return best;
}

// Products of 32 positions that a thread adds consecutively.
constexpr int longest_sum = 2048;

// Two blocks of eight warps, which wait for memory in each other's shadow, or one of 16.
std::optional<WeightTiling> weight_tiling(const Device& gpu, const ConvProblem& c, bool masked) {
  const MemoryLimits limits = memory_limits_of(gpu);
  WeightTiling tilings[] = {result_tiling(c, most_weight_warps / 2), result_tiling(c, most_weight_warps)};
  if (tilings[1].cost < tilings[0].cost) std::swap(tilings[0], tilings[1]);
  for (WeightTiling& tiling : tilings) {
    const int resident = most_weight_warps / tiling.warps;
    const std::size_t bytes = resident == 2 ? limits.half : limits.whole;
    const double tiles = double(tiling.rows) * tiling.warps_down * tiling.columns * tiling.warps_across;
    const double products = 3 * tiles * weight_tile / step / multiplied_at_once;
    const auto shared = [&](const Patches& p, int buffers) {
      return sizeof(float) * static_cast<std::size_t>(
                                 WeightPlaces(p, masked, buffers, tiling.rows_a_block(), tiling.taps_a_block()).all);
    };
    for (const int buffers : {2, 1}) {
      const auto p =
          best_patches(c, weight_tile, products, [&](const Patches& other) { return shared(other, buffers) <= bytes; });
      if (!p) continue;
      tiling.p = *p, tiling.buffers = buffers, tiling.shared = shared(*p, buffers);
      const int tiles = c.batch * p->tiles_an_image(), sums_a_tile = weight_tile / depth / tiling.warps_along();
      const int at_once = std::max(resident * multiprocessors(gpu) / (tiling.blocks * tiling.groups), 1);
      const auto enough = quotient_up(std::int64_t(tiles) * sums_a_tile, longest_sum);
      tiling.parts = static_cast<int>(std::max<std::int64_t>(std::min(tiles, at_once), enough));
      return tiling;
    }
  }
  return std::nullopt;
}

struct WeightScratch {
  WeightScratch(const ConvProblem& c, const WeightTiling& tiling)
      : bias(sizeof(float) * c.filters * tiling.p.taps() * tiling.parts * tiling.warps_along()),
        bytes(bias + sizeof(float) * c.filters * tiling.parts) {}
  std::size_t bias, bytes;
};

bool is_aligned(const float* values) {
  return reinterpret_cast<std::uintptr_t>(values) % sizeof(Four) == 0;
}

void backward_weight(Stream& stream, const ConvProblem& c, ConvOperands& operands) {
  const float* const mask = operands.mask.defined() ? operands.mask.read() : nullptr;
  const WeightTiling tiling = weight_tiling(stream.device(), c, mask != nullptr).value();
  const WeightScratch places(c, tiling);
  const auto scratch = stream.allocate(places.bytes);
  auto* const partial = static_cast<float*>(scratch.get());
  auto* const partial_bias = reinterpret_cast<float*>(static_cast<char*>(scratch.get()) + places.bias);
  const bool wants_bias = operands.bias.defined(), one_panel = tiling.p.panels == 1;
  const float* const grad_y = operands.y.read();
  const bool by_fours = tiling.p.places() % 4 == 0 &&
                        (one_panel || (tiling.p.panel % 4 == 0 && tiling.p.out_w % 4 == 0)) && is_aligned(grad_y) &&
                        is_aligned(mask);
  const WeightArguments arguments{
      .p = tiling.p,
      .places = WeightPlaces(tiling.p, mask != nullptr, tiling.buffers, tiling.rows_a_block(), tiling.taps_a_block()),
      .tiles = c.batch * tiling.p.tiles_an_image(),
      .filters = c.filters,
      .taps = tiling.p.taps(),
      .taps_a_channel = c.kernel_h * c.kernel_w,
      .warps_down = tiling.warps_down,
      .warps_across = tiling.warps_across,
      .by_fours = by_fours,
      .buffers = tiling.buffers,
      .x = operands.x.read(),
      .grad_y = grad_y,
      .mask = mask,
      .partial = partial,
      .partial_bias = wants_bias ? partial_bias : nullptr};
  const dim3 grid(static_cast<unsigned>(tiling.parts), static_cast<unsigned>(tiling.blocks),
                  static_cast<unsigned>(tiling.groups));
  const auto launch = tiling.warps == most_weight_warps ? launch_weight_of_16_warps : launch_weight_of_8_warps;
  launch(stream, arguments, {tiling.rows, tiling.columns, c.precision == Precision::fp32}, grid, tiling.shared);
  const std::int64_t count = std::int64_t(c.filters) * tiling.p.taps();
  reduce_columns(stream, tiling.parts * tiling.warps_along(), count, SumOfParts{partial, count, operands.w.write()});
  if (wants_bias)
    reduce_columns(stream, tiling.parts, c.filters, SumOfParts{partial_bias, c.filters, operands.bias.write()});
}

}  // namespace
}  // namespace implicit_gemm

// With more channels patches are narrow, and most elements copied and split are used by few positions: 64 channels of
// 224x224 took two to ten times as long as by FFT convolution.
constexpr int most_channels = 16;

bool implicit_gemm_fits(const Device& gpu, const ConvProblem& problem, ConvPass pass) {
  using namespace implicit_gemm;
  const bool back = pass == ConvPass::backward_input;
  if (problem.groups != 1 || (back && (problem.stride_h > 1 || problem.stride_w > 1))) return false;
  const ConvProblem convolved = forward_problem(problem, pass);
  if (convolved.channels > most_channels || !can_be_counted(convolved)) return false;
  return pass == ConvPass::backward_weight ? weight_tiling(gpu, problem, true).has_value()
                                           : forward_tiling(gpu, convolved).has_value();
}

void run_implicit_gemm(Stream& stream, TensorCores cores, const ConvProblem& problem, ConvPass pass,
                       ConvOperands& operands) {
  using namespace implicit_gemm;
  if (pass == ConvPass::backward_weight) return backward_weight(stream, problem, operands);
  forward(stream, cores, forward_problem(problem, pass), forward_operands(pass, operands));
}

std::size_t implicit_gemm_scratch(const Device& gpu, const ConvProblem& problem, ConvPass pass) {
  using namespace implicit_gemm;
  if (pass == ConvPass::backward_weight) {
    const auto with = [&](bool masked) { return WeightScratch(problem, *weight_tiling(gpu, problem, masked)).bytes; };
    return std::max(with(true), with(false));
  }
  const ConvProblem convolved = forward_problem(problem, pass);
  return ForwardScratch(convolved, *forward_tiling(gpu, convolved)).bytes;
}

}  // namespace twiddle
