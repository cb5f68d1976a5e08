#include "fft/cuda/stored_pairs/stored_products.h"

#include <algorithm>
#include <limits>

#include "fft/cuda/device/current_gpu.h"
#include "fft/cuda/products/sum_parts.h"
#include "fft/cuda/stored_pairs/sm_90a/stored_wgmma.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"
#include "fft/cuda/stored_pairs/tuned_on_h100.h"
#include "fft/pair_product.h"
#include "framework/cuda/check.h"
#include "framework/quotient_up.h"

namespace twiddle {

using small_fft::Complex;

namespace stored_pairs {
namespace {

bool has_wgmma(const Device& gpu) {
  const std::vector<TensorCores> cores = tensor_cores(gpu);
  return std::find(cores.begin(), cores.end(), TensorCores::wgmma) != cores.end();
}

// Longer fp32 sums would lose accuracy.
constexpr std::int64_t longest_sum = 16384;

struct Shape {
  TileShape tile;
  std::int64_t rows, columns;
  double step;  // what a step takes
};

// Selects the tiling with the fewest consecutive steps. Each tile has extra steps for its start and end, twice as many
// if k is split, as the sums are read again.
class BestTiling {
 public:
  BestTiling(const FrequencyGemm& gemm, std::int64_t multiprocessors) : gemm_(gemm), multiprocessors_(multiprocessors) {
    const Shape shapes[] = {
        {TileShape::high_128x64, 128, 64, 1},
        {TileShape::wide_64x128, 64, 128, gemm.k < long_sum ? wide_of_short_sums : wide_of_long_sums}};
    for (const Shape& shape : shapes) {
      consider(shape, gemm.bins, 1);
      for (std::int64_t parts = 2; parts <= most_parts && gemm.k / parts >= least_part; ++parts)
        consider(shape, 0, parts);
      split_last_bins(shape);
    }
  }
  const Tiling& get() const { return best_; }

 private:
  std::int64_t tiles_a_bin(const Shape& shape) const {
    return quotient_up(gemm_.m, shape.rows) * quotient_up(gemm_.n, shape.columns);
  }

  // Tiles left after the last full round would occupy a few multiprocessors for another round: their bins are split
  // along k, so that all multiprocessors share them.
  void split_last_bins(const Shape& shape) {
    const std::int64_t rounds = gemm_.bins * tiles_a_bin(shape) / multiprocessors_;
    const std::int64_t whole_bins = rounds * multiprocessors_ / tiles_a_bin(shape);
    const std::int64_t left = (gemm_.bins - whole_bins) * tiles_a_bin(shape);
    const std::int64_t parts = std::min(multiprocessors_ / std::max<std::int64_t>(left, 1), gemm_.k / depth);
    if (whole_bins > 0 && parts > 1) consider(shape, whole_bins, parts);
  }

  void consider(const Shape& shape, std::int64_t whole_bins, std::int64_t parts) {
    const std::int64_t part = quotient_up(quotient_up(gemm_.k, parts), depth) * depth;
    const std::int64_t whole = whole_bins * tiles_a_bin(shape), split = (gemm_.bins - whole_bins) * tiles_a_bin(shape);
    const double steps =
        rounds_of(whole) * (static_cast<double>(quotient_up(gemm_.k, depth)) + ends_of_a_tile) +
        rounds_of(split * quotient_up(gemm_.k, part)) * (static_cast<double>(part / depth) + 2 * ends_of_a_tile) +
        (whole > 0 && split > 0 ? sum_of_last_bins : 0);
    if (steps * shape.step < least_) least_ = steps * shape.step, best_ = {shape.tile, whole_bins, part};
  }
  double rounds_of(std::int64_t tiles) const { return static_cast<double>(quotient_up(tiles, multiprocessors_)); }

  static constexpr std::int64_t depth = 32;
  const FrequencyGemm& gemm_;
  std::int64_t multiprocessors_;
  Tiling best_ = {};
  double least_ = std::numeric_limits<double>::max();
};

class StoredProduct final : public FrequencyProduct {
 public:
  StoredProduct(int halves_a_float, int multiprocessors)
      : halves_a_float_(halves_a_float), multiprocessors_(multiprocessors) {}
  std::string_view name() const override { return keeps_fp32() ? "stored_pairs" : "stored_halves"; }
  SpectrumStorage storage() const override {
    return keeps_fp32() ? SpectrumStorage::half_pairs : SpectrumStorage::halves;
  }
  bool keeps_fp32() const override { return halves_a_float_ == 2; }

  bool supports(const FrequencyGemm& gemm) const override {
    const auto takes = [](const GroupedMatrix& matrix) { return matrix.columns % columns_a_group == 0; };
    return gemm.groups == 1 && gemm.conjugate_a == gemm.transpose_a && gemm.conjugate_b == gemm.transpose_b &&
           !(gemm.transpose_a && gemm.transpose_b) && takes(gemm.a()) && takes(gemm.b()) && gemm.n % 2 == 0 &&
           gemm.k <= longest_sum && std::min({gemm.m, gemm.n, gemm.k}) >= least_side &&
           gemm.bins * gemm.m * gemm.n * gemm.k >= least_multiplications;
  }

  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    return bytes_of_results(gemm, tiling_of(gemm)) + sizeof(int);
  }

  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const Tiling tiling = tiling_of(gemm);
    auto* const sums = static_cast<Complex*>(c);
    auto* const of_parts = static_cast<Complex*>(scratch);
    // With several ranks, gradients are summed during the product and occupy multiprocessors: the schedule is dynamic.
    // A single rank avoids the counter, which costs 0.02 ms of AlexNet's 3 ms.
    auto* const count_of_tiles = reinterpret_cast<int*>(static_cast<char*>(scratch) + bytes_of_results(gemm, tiling));
    multiply_stored(*ctx.stream, gemm, halves_a_float_, a, b, tiling, sums, of_parts,
                    ctx.ranks != nullptr ? count_of_tiles : nullptr);
    const std::int64_t count = (gemm.bins - tiling.whole_bins) * gemm.m * gemm.n,
                       parts = quotient_up(gemm.k, tiling.part);
    if (count == 0) return;
    Complex* const last = sums + tiling.whole_bins * gemm.m * gemm.n;
    for_each_index(*ctx.stream, count, small_fft::SumParts<Complex>{of_parts, last, count, parts, gemm.accumulate});
  }

 private:
  Tiling tiling_of(const FrequencyGemm& gemm) const { return BestTiling(gemm, multiprocessors_).get(); }
  static std::size_t bytes_of_results(const FrequencyGemm& gemm, const Tiling& tiling) {  // in scratch memory
    const std::int64_t parts = quotient_up(gemm.k, tiling.part);
    return static_cast<std::size_t>(parts * (gemm.bins - tiling.whole_bins) * gemm.m * gemm.n) * sizeof(Complex);
  }

  int halves_a_float_;
  std::int64_t multiprocessors_;
};

}  // namespace
}  // namespace stored_pairs

std::vector<std::unique_ptr<FrequencyProduct>> make_stored_products() {
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  const Device gpu = current_gpu();
  if (!stored_pairs::has_wgmma(gpu)) return products;
  for (const int halves_a_float : {2, 1})
    products.push_back(std::make_unique<stored_pairs::StoredProduct>(halves_a_float, multiprocessors(gpu)));
  return products;
}

bool can_multiply_stored(const ConvProblem& problem) {
  constexpr int each = stored_pairs::columns_a_group;
  return problem.groups == 1 && problem.channels % each == 0 && problem.filters % each == 0 &&
         stored_pairs::has_wgmma(current_gpu());
}

}  // namespace twiddle
