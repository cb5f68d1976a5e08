#include "fft/cuda/complex_pairs/pair_products.h"

#include <algorithm>
#include <limits>

#include "fft/cuda/complex_pairs/balance.h"
#include "fft/cuda/complex_pairs/pair_mma.h"
#include "fft/cuda/complex_pairs/sm_90a/pair_wgmma.h"
#include "fft/cuda/complex_pairs/tuned_on_h100.h"
#include "fft/cuda/products/sum_parts.h"
#include "fft/pair_product.h"
#include "framework/cuda/check.h"

namespace twiddle {

namespace complex_pairs {
namespace {

constexpr std::int64_t quotient_up(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

// What multiplies: in tiles of rows x columns or the other way round, of which the GPU holds so many at a time.
struct Kernel {
  std::string_view name;
  std::int64_t rows, columns, tiles_a_multiprocessor;
  void (*multiply)(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);
};
constexpr Kernel wgmma{"pairs", 128, 64, 1, multiply_by_wgmma};
constexpr Kernel mma{"pairs_mma", 64, 64, 2, multiply_by_mma};

// The calling thread's GPU; where there is none, as a test makes products there, too, it has no tensor cores.
Device current_gpu() {
  Device gpu{Device::Kind::cuda, 0};
  if (cuda_device_count() == 0) return Device{};
  check(cudaGetDevice(&gpu.index));
  return gpu;
}

// The length of a part of k: that with the fewest steps one after the other, where each tile takes some more to begin
// and to end, and those of several parts as many again, as their sums are read once more. fp32 sums of more than
// longest_part would lose digits.
std::int64_t part_of(const FrequencyGemm& gemm, std::int64_t tiles, std::int64_t tiles_at_a_time) {
  constexpr std::int64_t longest_part = 16384;
  const std::int64_t first = quotient_up(gemm.k, longest_part);
  std::int64_t best = gemm.k, least_steps = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t parts = first; parts == first || (parts <= most_parts && gemm.k / parts >= least_part); ++parts) {
    const std::int64_t part = quotient_up(quotient_up(gemm.k, parts), depth) * depth;
    const std::int64_t steps_of_a_tile = part / depth + (parts > 1 ? 2 : 1) * ends_of_a_tile;
    const std::int64_t steps = quotient_up(tiles * parts, tiles_at_a_time) * steps_of_a_tile;
    if (steps < least_steps) least_steps = steps, best = part;
  }
  return best;
}

}  // namespace
}  // namespace complex_pairs

using small_fft::Complex;

namespace {

class PairsProduct final : public FrequencyProduct {
 public:
  PairsProduct(const complex_pairs::Kernel& kernel, int multiprocessors)
      : kernel_(kernel), tiles_at_a_time_(kernel.tiles_a_multiprocessor * multiprocessors) {}
  std::string_view name() const override { return kernel_.name; }
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
    const std::int64_t part_count = parts(gemm);
    return balance_bytes(gemm) +
           (part_count == 1 ? 0 : static_cast<std::size_t>(part_count * numbers_of_c(gemm)) * sizeof(Complex));
  }

  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const int* const balance = complex_pairs::find_balance(*ctx.stream, gemm, a, scratch);
    const std::int64_t part_count = parts(gemm);
    const bool whole = part_count == 1;
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
        .part = static_cast<int>(part(gemm)),
        .groups = Divisor(gemm.groups),
        .parts = Divisor(part_count),
        .tiles_down = Divisor(1),
        .tiles_across = Divisor(1),
        .tiles = 0,
        .accumulate = gemm.accumulate && whole,
        .aligned =
            of_c.columns % 2 == 0 && reinterpret_cast<std::uintptr_t>(results) % sizeof(small_fft::ComplexPair) == 0};
    kernel_.multiply(*ctx.stream, gemm, arguments);
    if (whole) return;
    const std::int64_t count = numbers_of_c(gemm);
    for_each_index(*ctx.stream, count,
                   small_fft::SumParts<Complex>{results, static_cast<Complex*>(c), count, part_count, gemm.accumulate});
  }

 private:
  static complex_pairs::PairOperand operand(const void* numbers, const GroupedMatrix& matrix, const FrequencyGemm& gemm,
                                            std::int64_t lines) {
    return {static_cast<const Complex*>(numbers), gemm.groups * matrix.rows * matrix.columns, matrix.group_step,
            matrix.pitch, static_cast<int>(lines)};
  }
  static std::size_t balance_bytes(const FrequencyGemm& gemm) {
    constexpr std::size_t aligned = 256;
    return (complex_pairs::balance_bytes(gemm) + aligned - 1) / aligned * aligned;
  }
  static std::int64_t numbers_of_c(const FrequencyGemm& gemm) { return gemm.bins * gemm.groups * gemm.m * gemm.n; }
  std::int64_t part(const FrequencyGemm& gemm) const {
    using complex_pairs::quotient_up;
    const std::int64_t tiles =
        gemm.bins * gemm.groups * quotient_up(gemm.m, kernel_.rows) * quotient_up(gemm.n, kernel_.columns);
    return complex_pairs::part_of(gemm, tiles, tiles_at_a_time_);
  }
  std::int64_t parts(const FrequencyGemm& gemm) const { return complex_pairs::quotient_up(gemm.k, part(gemm)); }

  complex_pairs::Kernel kernel_;
  std::int64_t tiles_at_a_time_;
};

}  // namespace

std::vector<std::unique_ptr<FrequencyProduct>> make_pair_products() {
  using namespace complex_pairs;
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  const Device gpu = current_gpu();
  for (const TensorCores cores : tensor_cores(gpu))
    products.push_back(std::make_unique<PairsProduct>(cores == TensorCores::wgmma ? wgmma : mma, multiprocessors(gpu)));
  return products;
}

bool can_multiply_pairs(const ConvProblem& problem) {
  return std::min(problem.channels, problem.filters) / problem.groups >= complex_pairs::least_side &&
         !tensor_cores(complex_pairs::current_gpu()).empty();
}

}  // namespace twiddle
