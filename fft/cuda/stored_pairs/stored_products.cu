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

// fp32 sums of more terms would lose digits.
constexpr std::int64_t longest_sum = 16384;

// How a product is cut: the tiles of C, and the length of a part of k.
struct Cut {
  TileShape tile = TileShape::high_128x64;
  std::int64_t part = 0;
};

struct Shape {
  TileShape tile;
  std::int64_t rows, columns;
  double step;  // what a step takes
};

// That with the fewest steps one after the other, where each tile takes some more to begin and to end, and those of
// several parts as many again, as their sums are read once more.
Cut cut_of(const FrequencyGemm& gemm, std::int64_t multiprocessors) {
  constexpr std::int64_t depth = 32;
  const Shape shapes[] = {
      {TileShape::high_128x64, 128, 64, 1},
      {TileShape::wide_64x128, 64, 128, gemm.k < long_sum ? wide_of_short_sums : wide_of_long_sums}};
  Cut best;
  double least = std::numeric_limits<double>::max();
  for (const Shape& shape : shapes)
    for (std::int64_t parts = 1; parts == 1 || (parts <= most_parts && gemm.k / parts >= least_part); ++parts) {
      const std::int64_t part = quotient_up(quotient_up(gemm.k, parts), depth) * depth;
      const std::int64_t tiles =
          gemm.bins * parts * quotient_up(gemm.m, shape.rows) * quotient_up(gemm.n, shape.columns);
      const double of_a_tile = static_cast<double>(part / depth) + (parts > 1 ? 2 : 1) * ends_of_a_tile;
      const double steps = static_cast<double>(quotient_up(tiles, multiprocessors)) * of_a_tile * shape.step;
      if (steps < least) least = steps, best = {shape.tile, part};
    }
  return best;
}

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
    const std::int64_t parts = quotient_up(gemm.k, cut_of(gemm, multiprocessors_).part);
    return bytes_of_results(gemm, parts) + sizeof(int);
  }

  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const Cut cut = cut_of(gemm, multiprocessors_);
    const std::int64_t parts = quotient_up(gemm.k, cut.part), count = numbers_of_c(gemm);
    auto* const results = static_cast<Complex*>(parts == 1 ? c : scratch);
    // Ranks sum gradients beside the product, on multiprocessors that it then has not. Alone it does without the count,
    // which costs 0.02 ms of AlexNet's 3.
    auto* const count_of_tiles = reinterpret_cast<int*>(static_cast<char*>(scratch) + bytes_of_results(gemm, parts));
    multiply_stored(*ctx.stream, gemm, halves_a_float_, a, b, cut.tile, cut.part, results,
                    ctx.ranks != nullptr ? count_of_tiles : nullptr);
    if (parts == 1) return;
    auto* const sums = static_cast<Complex*>(c);
    for_each_index(*ctx.stream, count, small_fft::SumParts<Complex>{results, sums, count, parts, gemm.accumulate});
  }

 private:
  static std::size_t bytes_of_results(const FrequencyGemm& gemm, std::int64_t parts) {  // in scratch memory
    return parts == 1 ? 0 : static_cast<std::size_t>(parts * numbers_of_c(gemm)) * sizeof(Complex);
  }
  static std::int64_t numbers_of_c(const FrequencyGemm& gemm) { return gemm.bins * gemm.m * gemm.n; }

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
