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

struct ForwardCut {
  Patches p;
  int columns, warps_across, blocks, turns, slots, buffers, resident;
  std::size_t shared;
  int filters() const { return columns * warps_across * column; }  // of a block
};

// Filters of a warp, in eights, and of a block: as few empty ones as can be, and the more of them have a patch
// together.
void cut_filters(int filters, ForwardCut& cut) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const int across : {1, 2})
    for (const int columns : {4, 6, 8}) {
      const std::int64_t blocks = quotient_up(filters, across * columns * column), all = blocks * across * columns;
      if (const std::int64_t cost = all * 8 + blocks; cost < fewest)
        fewest = cost, cut.columns = columns, cut.warps_across = across, cut.blocks = static_cast<int>(blocks);
    }
}

std::optional<ForwardCut> cut_forward(const Device& gpu, const ConvProblem& c) {
  const MemoryLimits limits = memory_limits_of(gpu);
  ForwardCut cut{.p = patches_of(c, forward_tile, 1)};
  cut_filters(c.filters, cut);
  const int tile = forward_tile / cut.warps_across;
  cut.turns = static_cast<int>(quotient_up(cut.p.taps(), depth_of_turn));
  const int tiles = cut.filters() / column * (tile / row_tile);  // of a tensor core
  const double products = 3.0 * cut.turns * steps_a_turn * tiles / multiplied_at_once;
  const auto shared = [&](const Patches& p, int buffers, int slots) {
    return sizeof(float) * static_cast<std::size_t>(ForwardPlaces(p, buffers, slots, cut.filters(), cut.turns).all);
  };
  struct Way {
    int buffers, slots;
  };
  const int least = std::min(cut.turns, short_ring);
  for (const int resident : {2, 1}) {
    const std::size_t bytes = resident == 2 ? limits.half : limits.whole;
    const auto p =
        best_patches(c, tile, products, [&](const Patches& other) { return shared(other, 1, least) <= bytes; });
    if (!p) continue;
    cut.p = *p, cut.resident = resident;
    for (const Way way : {Way{2, cut.turns}, Way{1, cut.turns}, Way{1, std::min(cut.turns, long_ring)}, Way{1, least}})
      if (const std::size_t taken = shared(*p, way.buffers, way.slots); taken <= bytes) {
        cut.buffers = way.buffers, cut.slots = way.slots, cut.shared = taken;
        return cut;
      }
  }
  return std::nullopt;
}

// Offsets of a pass's buffers in its workspace.
struct ForwardScratch {
  ForwardScratch(const ConvProblem& c, const ForwardCut& cut)
      : means(sizeof(__half) * cut.blocks * cut.turns * cut.filters() * depth_of_turn * 2),
        exponents(means + sizeof(int) * c.channels),
        offsets(exponents + sizeof(int) * c.channels),
        back(offsets + sizeof(int) * cut.turns * depth_of_turn),
        bytes(back + sizeof(float) * c.filters) {}
  std::size_t means, exponents, offsets, back, bytes;
};

Filters filters_of(const ConvProblem& c, const ForwardCut& cut, const ForwardOperands& operands, char* scratch) {
  const ForwardScratch places(c, cut);
  const int kernel = c.kernel_h * c.kernel_w;
  return {.w = operands.w,
          .filter_stride = operands.turned ? kernel : c.channels * kernel,
          .channel_stride = operands.turned ? c.filters * kernel : kernel,
          .turned = operands.turned,
          .filters = c.filters,
          .taps = cut.p.taps(),
          .taps_a_channel = kernel,
          .channels = c.channels,
          .turns = cut.turns,
          .rows = cut.filters(),
          .means = reinterpret_cast<int*>(scratch + places.means),
          .exponents = reinterpret_cast<int*>(scratch + places.exponents),
          .offsets = reinterpret_cast<int*>(scratch + places.offsets),
          .back = reinterpret_cast<float*>(scratch + places.back),
          .fp16 = reinterpret_cast<__half*>(scratch)};
}

void forward(Stream& stream, TensorCores cores, const ConvProblem& c, const ForwardOperands& operands) {
  const ForwardCut cut = cut_forward(stream.device(), c).value();
  const auto scratch = stream.allocate(ForwardScratch(c, cut).bytes);
  const Filters filters = filters_of(c, cut, operands, static_cast<char*>(scratch.get()));
  const auto native = twiddle::detail::native(stream);
  mean_exponents_kernel<<<static_cast<unsigned>(c.channels), split_threads, 0, native>>>(filters);
  twiddle::detail::check_launch();
  const int blocks = cut.blocks * cut.filters() / column;
  split_filters_kernel<<<static_cast<unsigned>(blocks), split_threads, 0, native>>>(filters, cut.p);
  twiddle::detail::check_launch();
  const ForwardArguments arguments{.p = cut.p,
                                   .places = ForwardPlaces(cut.p, cut.buffers, cut.slots, cut.filters(), cut.turns),
                                   .tiles = c.batch * cut.p.tiles_an_image(),
                                   .filters = c.filters,
                                   .turns = cut.turns,
                                   .warps_across = cut.warps_across,
                                   .slots = cut.slots,
                                   .buffers = cut.buffers,
                                   .x = operands.x,
                                   .bias = operands.bias,
                                   .relu = operands.relu,
                                   .exponents = filters.exponents,
                                   .offsets = filters.offsets,
                                   .back = filters.back,
                                   .fp16 = filters.fp16,
                                   .y = operands.y};
  const int at_once = std::max(cut.resident * multiprocessors(stream.device()) / cut.blocks, 1);
  const dim3 grid(static_cast<unsigned>(std::min(arguments.tiles, at_once)), static_cast<unsigned>(cut.blocks));
  const auto launch = cores == TensorCores::wgmma ? launch_forward_by_wgmma : launch_forward_by_mma;
  launch(stream, arguments, cut.columns, c.precision == Precision::fp32, grid, cut.shared);
}

// -------------------------------------------------------------------------------------------------- backward_weight

struct WeightCut {
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
WeightCut cut_results(const ConvProblem& c, int warps) {
  constexpr int most_rows_a_block = 6, steps = weight_tile / depth;
  constexpr double of_a_block = 40, of_loads = 0.1;  // against a product of a warp and a step of k
  const int taps = c.channels * c.kernel_h * c.kernel_w;
  WeightCut best{.p = patches_of(c, weight_tile, 1), .warps = warps, .cost = std::numeric_limits<double>::max()};
  for (int down = 1; down <= 2; ++down)
    for (int across = 1; across <= warps / down; across *= 2)
      for (int rows = fewest_rows; rows <= most_rows; ++rows)
        for (int columns = fewest_columns; columns <= most_columns(rows); ++columns) {
          if (warps / (down * across) > steps || rows * down > most_rows_a_block) continue;
          WeightCut cut = best;
          cut.warps_down = down, cut.warps_across = across, cut.rows = rows, cut.columns = columns;
          cut.blocks = static_cast<int>(quotient_up(c.filters, cut.rows_a_block()));
          cut.groups = static_cast<int>(quotient_up(taps, column * columns * across));
          const double blocks = double(cut.blocks) * cut.groups, products = blocks * rows * down * columns * across;
          cut.cost = products * (1 + of_loads * (1.0 / rows + 1.0 / columns)) + of_a_block * blocks;
          if (cut.cost < best.cost) best = cut;
        }
  return best;
}

// Products of 32 positions that a thread adds consecutively.
constexpr int longest_sum = 2048;

// Two blocks of eight warps, which wait for memory in each other's shadow, or one of 16.
std::optional<WeightCut> cut_weight(const Device& gpu, const ConvProblem& c, bool masked) {
  const MemoryLimits limits = memory_limits_of(gpu);
  WeightCut cuts[] = {cut_results(c, most_weight_warps / 2), cut_results(c, most_weight_warps)};
  if (cuts[1].cost < cuts[0].cost) std::swap(cuts[0], cuts[1]);
  for (WeightCut& cut : cuts) {
    const int resident = most_weight_warps / cut.warps;
    const std::size_t bytes = resident == 2 ? limits.half : limits.whole;
    const double tiles = double(cut.rows) * cut.warps_down * cut.columns * cut.warps_across;
    const double products = 3 * tiles * weight_tile / step / multiplied_at_once;
    const auto shared = [&](const Patches& p, int buffers) {
      return sizeof(float) *
             static_cast<std::size_t>(WeightPlaces(p, masked, buffers, cut.rows_a_block(), cut.taps_a_block()).all);
    };
    for (const int buffers : {2, 1}) {
      const auto p =
          best_patches(c, weight_tile, products, [&](const Patches& other) { return shared(other, buffers) <= bytes; });
      if (!p) continue;
      cut.p = *p, cut.buffers = buffers, cut.shared = shared(*p, buffers);
      const int tiles = c.batch * p->tiles_an_image(), sums_a_tile = weight_tile / depth / cut.warps_along();
      const int at_once = std::max(resident * multiprocessors(gpu) / (cut.blocks * cut.groups), 1);
      const auto enough = quotient_up(std::int64_t(tiles) * sums_a_tile, longest_sum);
      cut.parts = static_cast<int>(std::max<std::int64_t>(std::min(tiles, at_once), enough));
      return cut;
    }
  }
  return std::nullopt;
}

struct WeightScratch {
  WeightScratch(const ConvProblem& c, const WeightCut& cut)
      : bias(sizeof(float) * c.filters * cut.p.taps() * cut.parts * cut.warps_along()),
        bytes(bias + sizeof(float) * c.filters * cut.parts) {}
  std::size_t bias, bytes;
};

bool is_aligned(const float* values) {
  return reinterpret_cast<std::uintptr_t>(values) % sizeof(Four) == 0;
}

void backward_weight(Stream& stream, const ConvProblem& c, ConvOperands& operands) {
  const float* const mask = operands.mask.defined() ? operands.mask.read() : nullptr;
  const WeightCut cut = cut_weight(stream.device(), c, mask != nullptr).value();
  const WeightScratch places(c, cut);
  const auto scratch = stream.allocate(places.bytes);
  auto* const partial = static_cast<float*>(scratch.get());
  auto* const partial_bias = reinterpret_cast<float*>(static_cast<char*>(scratch.get()) + places.bias);
  const bool wants_bias = operands.bias.defined(), one_panel = cut.p.panels == 1;
  const float* const grad_y = operands.y.read();
  const bool by_fours = cut.p.places() % 4 == 0 && (one_panel || (cut.p.panel % 4 == 0 && cut.p.out_w % 4 == 0)) &&
                        is_aligned(grad_y) && is_aligned(mask);
  const WeightArguments arguments{
      .p = cut.p,
      .places = WeightPlaces(cut.p, mask != nullptr, cut.buffers, cut.rows_a_block(), cut.taps_a_block()),
      .tiles = c.batch * cut.p.tiles_an_image(),
      .filters = c.filters,
      .taps = cut.p.taps(),
      .taps_a_channel = c.kernel_h * c.kernel_w,
      .warps_down = cut.warps_down,
      .warps_across = cut.warps_across,
      .by_fours = by_fours,
      .buffers = cut.buffers,
      .x = operands.x.read(),
      .grad_y = grad_y,
      .mask = mask,
      .partial = partial,
      .partial_bias = wants_bias ? partial_bias : nullptr};
  const dim3 grid(static_cast<unsigned>(cut.parts), static_cast<unsigned>(cut.blocks),
                  static_cast<unsigned>(cut.groups));
  const auto launch = cut.warps == most_weight_warps ? launch_weight_of_16_warps : launch_weight_of_8_warps;
  launch(stream, arguments, {cut.rows, cut.columns, c.precision == Precision::fp32}, grid, cut.shared);
  const std::int64_t count = std::int64_t(c.filters) * cut.p.taps();
  reduce_columns(stream, cut.parts * cut.warps_along(), count, SumOfParts{partial, count, operands.w.write()});
  if (wants_bias)
    reduce_columns(stream, cut.parts, c.filters, SumOfParts{partial_bias, c.filters, operands.bias.write()});
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
  return pass == ConvPass::backward_weight ? cut_weight(gpu, problem, true).has_value()
                                           : cut_forward(gpu, convolved).has_value();
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
    const auto with = [&](bool masked) { return WeightScratch(problem, *cut_weight(gpu, problem, masked)).bytes; };
    return std::max(with(true), with(false));
  }
  const ConvProblem convolved = forward_problem(problem, pass);
  return ForwardScratch(convolved, *cut_forward(gpu, convolved)).bytes;
}

}  // namespace twiddle
