#include "fft/cuda/complex_pairs/pair_products.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fft/cuda/complex_pairs/balance.h"
#include "fft/cuda/complex_pairs/pair_mma.h"
#include "fft/cuda/complex_pairs/sm_90a/pair_wgmma.h"
#include "fft/cuda/complex_pairs/tuned_on_h100.h"
#include "fft/cuda/device/current_gpu.h"
#include "fft/cuda/products/sum_parts.h"
#include "fft/pair_product.h"
#include "framework/cuda/check.h"
#include "framework/quotient_up.h"

namespace twiddle {

namespace complex_pairs {
namespace {

// A kernel for tiles of one shape; `step` is the relative time per step.
struct TileKernel {
  std::int64_t rows, columns;
  double step;
  void (*multiply)(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);
};
template <int Rows, int Columns, int Fp16PerFloat>
constexpr TileKernel by_wgmma(double step) {
  return {Rows, Columns, step, multiply_by_wgmma<PairTile<Rows, Columns>, Fp16PerFloat>};
}

// A product with a number of fp16 values per float, by whichever of its kernels is estimated to be the fastest.
struct Kernels {
  std::string_view name;
  int fp16_per_float;
  std::int64_t tiles_a_multiprocessor;
  std::vector<TileKernel> tiles;
};
std::vector<Kernels> kernels_for(TensorCores cores) {
  if (cores == TensorCores::mma)
    return {{"halves_mma", 1, 2, {{64, 64, 1, multiply_by_mma<1>}}},
            {"pairs_mma", 2, 2, {{64, 64, 1, multiply_by_mma<2>}}}};
  return {{"halves", 1, 1, {by_wgmma<128, 64, 1>(1), by_wgmma<64, 128, 1>(1), by_wgmma<128, 128, 1>(large_step)}},
          {"pairs", 2, 1, {by_wgmma<128, 64, 2>(1), by_wgmma<64, 128, 2>(1)}}};
}

// The tiling of a product: its kernel, and the length and number of parts of k.
struct Tiling {
  const TileKernel* kernel;
  std::int64_t part, parts;
};

// Returns the tiling with the least time in consecutive steps. Each tile has extra steps for its start and end, twice
// as many if k is split, as the sums are read again. Among equal times, it returns the tiling that fills tiles best.
// fp32 sums longer than longest_part would lose accuracy.
Tiling tiling_of(const FrequencyGemm& gemm, const std::vector<TileKernel>& kernels, std::int64_t tiles_at_a_time) {
  constexpr std::int64_t longest_part = 16384;
  const std::int64_t first = quotient_up(gemm.k, longest_part);
  Tiling best = {};
  std::pair least{std::numeric_limits<double>::infinity(), std::int64_t(0)};
  for (const TileKernel& kernel : kernels) {
    const std::int64_t tiles_of_a_matrix = quotient_up(gemm.m, kernel.rows) * quotient_up(gemm.n, kernel.columns);
    const std::int64_t tiles = gemm.bins * gemm.groups * tiles_of_a_matrix;
    for (std::int64_t parts = first; parts == first || (parts <= most_parts && gemm.k / parts >= least_part); ++parts) {
      const std::int64_t part = quotient_up(quotient_up(gemm.k, parts), depth) * depth;
      const std::int64_t steps_of_a_tile = part / depth + (parts > 1 ? 2 : 1) * ends_of_a_tile;
      const std::int64_t steps = quotient_up(tiles * parts, tiles_at_a_time) * steps_of_a_tile;
      const std::pair time{kernel.step * static_cast<double>(steps), tiles_of_a_matrix * kernel.rows * kernel.columns};
      if (time < least) least = time, best = {&kernel, part, quotient_up(gemm.k, part)};
    }
  }
  return best;
}

}  // namespace
}  // namespace complex_pairs

using small_fft::Complex;

namespace {

class PairsProduct final : public FrequencyProduct {
 public:
  PairsProduct(complex_pairs::Kernels kernels, int multiprocessors)
      : kernels_(std::move(kernels)), tiles_at_a_time_(kernels_.tiles_a_multiprocessor * multiprocessors) {}
  std::string_view name() const override { return kernels_.name; }
  bool keeps_fp32() const override { return kernels_.fp16_per_float == 2; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }

  // The three passes' products, of rows that are aligned to pairs of numbers, where they are not too small to pay.
  bool supports(const FrequencyGemm& gemm) const override {
    constexpr std::int64_t longest_row = 1 << 24;
    const auto takes = [](const GroupedMatrix& matrix) {
      return matrix.columns % 2 == 0 && matrix.pitch < longest_row;
    };
    return gemm.conjugate_a == gemm.transpose_a && gemm.conjugate_b == gemm.transpose_b &&
           !(gemm.transpose_a && gemm.transpose_b) && takes(gemm.a()) && takes(gemm.b()) &&
           std::min({gemm.m, gemm.n, gemm.k}) >= complex_pairs::least_side &&
           gemm.bins * gemm.groups * gemm.m * gemm.n * gemm.k >= complex_pairs::least_multiplications;
  }

  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    const std::int64_t parts = tiling_of(gemm).parts;
    return balance_bytes(gemm) +
           (parts == 1 ? 0 : static_cast<std::size_t>(parts * numbers_of_c(gemm)) * sizeof(Complex));
  }

  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const int* const balance = is_balanced(gemm) ? complex_pairs::find_balance(*ctx.stream, gemm, a, scratch) : nullptr;
    const complex_pairs::Tiling tiling = this->tiling_of(gemm);
    const bool whole = tiling.parts == 1;
    auto* const results = whole ? static_cast<Complex*>(c)
                                : reinterpret_cast<Complex*>(static_cast<char*>(scratch) + balance_bytes(gemm));
    const GroupedMatrix of_c = gemm.c();
    const complex_pairs::PairArguments arguments{
        .a = operand(a, gemm.a(), gemm, gemm.m),
        .b = operand(b, gemm.b(), gemm, gemm.n),
        .balance = balance,
        .c = results,
        .bins = gemm.bins,
        .c_group_step = of_c.group_step,
        .c_pitch = of_c.pitch,
        .m = static_cast<int>(gemm.m),
        .n = static_cast<int>(gemm.n),
        .k = static_cast<int>(gemm.k),
        .part = static_cast<int>(tiling.part),
        .groups = Divisor(gemm.groups),
        .parts = Divisor(tiling.parts),
        .tiles_down = Divisor(1),
        .tiles_across = Divisor(1),
        .tiles = 0,
        .accumulate = gemm.accumulate && whole,
        .aligned =
            of_c.columns % 2 == 0 && reinterpret_cast<std::uintptr_t>(results) % sizeof(small_fft::ComplexPair) == 0};
    tiling.kernel->multiply(*ctx.stream, gemm, arguments);
    if (whole) return;
    const std::int64_t count = numbers_of_c(gemm);
    for_each_index(
        *ctx.stream, count,
        small_fft::SumParts<Complex>{results, static_cast<Complex*>(c), count, tiling.parts, gemm.accumulate});
  }

 private:
  static complex_pairs::PairOperand operand(const void* numbers, const GroupedMatrix& matrix, const FrequencyGemm& gemm,
                                            std::int64_t lines) {
    return {static_cast<const Complex*>(numbers), gemm.groups * matrix.rows * matrix.columns, matrix.group_step,
            matrix.pitch, static_cast<int>(lines)};
  }
  bool is_balanced(const FrequencyGemm& gemm) const {
    return complex_pairs::is_balanced(kernels_.fp16_per_float, gemm.transpose_a);
  }
  std::size_t balance_bytes(const FrequencyGemm& gemm) const {
    constexpr std::size_t aligned = 256;
    if (!is_balanced(gemm)) return 0;
    return (complex_pairs::balance_bytes(gemm) + aligned - 1) / aligned * aligned;
  }
  static std::int64_t numbers_of_c(const FrequencyGemm& gemm) { return gemm.bins * gemm.groups * gemm.m * gemm.n; }
  complex_pairs::Tiling tiling_of(const FrequencyGemm& gemm) const {
    return complex_pairs::tiling_of(gemm, kernels_.tiles, tiles_at_a_time_);
  }

  complex_pairs::Kernels kernels_;
  std::int64_t tiles_at_a_time_;
};

}  // namespace

std::vector<std::unique_ptr<FrequencyProduct>> make_pair_products() {
  using namespace complex_pairs;
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  const Device gpu = current_gpu();
  for (const TensorCores cores : tensor_cores(gpu))
    for (Kernels& kernels : kernels_for(cores))
      products.push_back(std::make_unique<PairsProduct>(std::move(kernels), multiprocessors(gpu)));
  return products;
}

bool can_multiply_pairs(const ConvProblem& problem) {
  return std::min(problem.channels, problem.filters) / problem.groups >= complex_pairs::least_side &&
         !tensor_cores(current_gpu()).empty();
}

}  // namespace twiddle
