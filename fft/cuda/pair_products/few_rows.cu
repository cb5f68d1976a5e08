#include "fft/cuda/pair_products/few_rows.h"

#include <algorithm>

#include "fft/cuda/pair_products/few_rows_launch.h"
#include "fft/cuda/pair_products/split_launch.h"
#include "fft/cuda/pair_products/tuned_on_h100.h"
#include "framework/quotient_up.h"

namespace twiddle::pairs {

namespace {

// With this number of tiles per block, blocks have complete tiles, whose sums need no scratch: their work differs
// little.
constexpr std::int64_t most_tiles_cut = 16;
constexpr std::int64_t most_steps = std::int64_t(1) << 28;  // of all tiles that have the same rows

struct Tiling {
  std::int64_t tiles_m, tiles, steps, part;

  std::int64_t most_parts() const { return part % steps == 0 ? 0 : (steps + part - 2) / part + 1; }  // of a tile
};
Tiling tiling_of(const PairProduct& p, const Device& device) {
  const std::int64_t tiles_m = quotient_up(p.m, rows_of_a), tiles = tiles_m * quotient_up(p.n, columns_of_few_rows);
  const std::int64_t steps = quotient_up(p.k, depth), longest = std::max(p.longest_sum / depth, std::int64_t(1));
  const std::int64_t rounds = quotient_up(quotient_up(tiles * steps, multiprocessors(device)), longest);
  std::int64_t part = quotient_up(tiles * steps, rounds * multiprocessors(device));
  if (part >= most_tiles_cut * steps) part = quotient_up(part, steps) * steps;
  return {tiles_m, tiles, steps, part};
}

struct Scratch {
  Scratch(const PairProduct& p, const Tiling& tiling)
      : scales(tiling.tiles_m * tiling.steps * sizeof(SplitPart<rows_of_a>)),
        results(scales + tiling.steps * depth * sizeof(float)),
        bytes(results + tiling.most_parts() * p.m * p.n * sizeof(float)) {}
  std::size_t scales, results, bytes;
};

// Adds tiles that several blocks have parts of; Count adjacent numbers of C at a time.
template <int Count>
struct SumOfTiles {
  FewRows of;
  std::int64_t numbers;
  Divisor n;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t first = i * Count, row = n.quotient(first), column = first - row * n.value();
    const int tile = static_cast<int>(column / columns_of_few_rows * of.tiles_m + row / rows_of_a);
    const int parts = of.last_block(tile) - of.first_block(tile) + 1;
    if (parts == 1) return;
    Adjacent<Count> sum = *reinterpret_cast<const Adjacent<Count>*>(of.results + first);
    for (int part = 1; part < parts; ++part) {
      const auto more = *reinterpret_cast<const Adjacent<Count>*>(of.results + part * numbers + first);
      for (int j = 0; j < Count; ++j) sum.at[j] += more.at[j];
    }
    for (int j = 0; j < Count; ++j) {
      if (of.bias != nullptr) sum.at[j] += of.bias[column + j];
      if (of.relu && sum.at[j] < 0) sum.at[j] = 0;
    }
    *reinterpret_cast<Adjacent<Count>*>(of.c + first) = sum;
  }
};

}  // namespace

bool has_few_rows(const PairProduct& p) {
  const bool whole_rows = p.b.period >= (p.b_along_k ? p.k : p.n) && p.c.stride == p.n && p.c.period >= p.n;
  return p.batch == 1 && !p.transpose_c && !p.add && (p.bias == nullptr || p.bias_of_columns) && whole_rows &&
         p.m > 0 && p.n > 0 && p.m <= most_few_rows && p.k >= least_sum_of_few_rows && is_aligned<4>(p.b, 0) &&
         is_aligned<2>(p.c, 0) && quotient_up(p.n, columns_of_few_rows) * quotient_up(p.k, depth) < most_steps;
}

std::size_t scratch_of_few_rows(const Device& device, const PairProduct& p) {
  return Scratch(p, tiling_of(p, device)).bytes;
}

void multiply_few_rows(Stream& stream, const PairProduct& p, void* scratch) {
  const Tiling tiling = pairs::tiling_of(p, stream.device());
  const Scratch places(p, tiling);
  auto* const bytes = static_cast<char*>(scratch);
  auto* const parts = reinterpret_cast<SplitPart<rows_of_a>*>(bytes);
  auto* const scales = reinterpret_cast<float*>(bytes + places.scales);
  const FewRows arguments{.a = parts,
                          .scales = scales,
                          .b = factor(p.b, p.n, 0),
                          .m = p.m,
                          .k = static_cast<int>(p.k),
                          .steps = static_cast<int>(tiling.steps),
                          .tiles_m = static_cast<int>(tiling.tiles_m),
                          .part = static_cast<int>(tiling.part),
                          .all_steps = static_cast<int>(tiling.tiles * tiling.steps),
                          .c = p.c.values,
                          .results = reinterpret_cast<float*>(bytes + places.results),
                          .bias = p.bias,
                          .relu = p.relu};

  split_a<Order::of_registers>(stream, p, tiling.steps, tiling.tiles_m, parts, scales);
  multiply_few_rows_by_wgmma(stream, arguments, p.b_along_k);
  if (tiling.most_parts() == 0) return;
  const std::int64_t numbers = p.m * p.n;
  if (p.n % 4 == 0 && is_aligned<4>(p.c, 0))
    for_each_index(stream, numbers / 4, SumOfTiles<4>{arguments, numbers, Divisor(p.n)});
  else
    for_each_index(stream, numbers, SumOfTiles<1>{arguments, numbers, Divisor(p.n)});
}

}  // namespace twiddle::pairs
