#include "fft/cuda/products/complex_products.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "fft/cuda/products/complex_gemm_kernel.h"

namespace twiddle {

namespace small_fft {
namespace {

// One shape of tiles: how fast it multiplies on an H200 where all of a tile is needed, relative to the first, and how
// many blocks of it run there at once.
struct TileKernels {
  int rows, columns;
  double speed;
  std::int64_t at_once;
  void (*multiply)(Stream& stream, const FrequencyGemm& gemm, std::int64_t part, const void* a, const void* b, void* c);
};

template <class Tile, template <bool> class Products, int BlocksAtOnce>
TileKernels tile_kernels(double speed) {
  constexpr std::int64_t multiprocessors = 132;
  return {Tile::rows, Tile::columns, speed, multiprocessors * BlocksAtOnce, multiply<Tile, Products, BlocksAtOnce>};
}

std::int64_t quotient_up(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

// How a product is cut: into tiles, and k into parts that blocks sum side by side.
struct Cut {
  const TileKernels* kernels = nullptr;
  std::int64_t tiles = 0, part = 0, parts = 0;
};

// Parts until all multiprocessors are busy, but none so short that the sum over parts is more work than it saves.
Cut cut_into(const TileKernels& kernels, const FrequencyGemm& gemm) {
  constexpr std::int64_t least_part = 256;
  Cut cut{&kernels, gemm.bins * quotient_up(gemm.m, kernels.rows) * quotient_up(gemm.n, kernels.columns)};
  const std::int64_t wanted = std::clamp<std::int64_t>(2 * kernels.at_once / cut.tiles, 1, gemm.k);
  cut.part = quotient_up(quotient_up(gemm.k, wanted), least_part) * least_part;
  cut.parts = quotient_up(gemm.k, cut.part);
  return cut;
}

// As many rounds of blocks as the time they take: many flow into each other; of few, the last one is as long as the
// others; a block that has its multiprocessor to itself still takes a while.
double rounds_worth(double rounds) {
  constexpr double flowing = 4, alone = 0.4;
  if (rounds < 1) return std::max(rounds, alone);
  return rounds > flowing ? rounds : std::ceil(rounds);
}

// In multiplications, with those that are idle; to begin and end a tile counts as some.
double estimated_time(const Cut& cut, const FrequencyGemm& gemm) {
  constexpr double begin_and_end = 1000;
  const auto at_once = static_cast<double>(cut.kernels->at_once);
  const auto k = static_cast<double>(std::min(gemm.k, cut.part));
  const double tile = cut.kernels->rows * cut.kernels->columns * k / cut.kernels->speed + begin_and_end;
  return rounds_worth(static_cast<double>(cut.tiles * cut.parts) / at_once) * at_once * tile;
}

Cut best_cut(const FrequencyGemm& gemm, const std::vector<TileKernels>& all) {
  Cut best;
  double best_time = std::numeric_limits<double>::infinity();
  for (const TileKernels& kernels : all) {
    const Cut cut = cut_into(kernels, gemm);
    const double time = estimated_time(cut, gemm);
    if (time < best_time) best_time = time, best = cut;
  }
  return best;
}

// C, or C + it, is the sum of the parts' results in their order.
struct SumParts {
  const Complex* results;
  Complex* c;
  std::int64_t count, parts;
  bool accumulate;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    Complex sum = accumulate ? c[i] : Complex{0, 0};
    for (std::int64_t part = 0; part < parts; ++part) sum = sum + results[part * count + i];
    c[i] = sum;
  }
};

}  // namespace
}  // namespace small_fft

using small_fft::Complex;

namespace {

class TilesProduct final : public FrequencyProduct {
 public:
  TilesProduct(std::string name, std::vector<small_fft::TileKernels> kernels)
      : name_(std::move(name)), kernels_(std::move(kernels)) {}
  std::string_view name() const override { return name_; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }

  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    const small_fft::Cut cut = small_fft::best_cut(gemm, kernels_);
    if (cut.parts == 1) return 0;
    return static_cast<std::size_t>(cut.parts * gemm.bins * gemm.m * gemm.n) * sizeof(Complex);
  }

  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const small_fft::Cut cut = small_fft::best_cut(gemm, kernels_);
    void* const results = cut.parts == 1 ? c : scratch;
    cut.kernels->multiply(*ctx.stream, gemm, cut.part, a, b, results);
    if (cut.parts == 1) return;
    const std::int64_t count = gemm.bins * gemm.m * gemm.n;
    for_each_index(*ctx.stream, count,
                   small_fft::SumParts{static_cast<const Complex*>(scratch), static_cast<Complex*>(c), count, cut.parts,
                                       gemm.accumulate});
  }

 private:
  std::string name_;
  std::vector<small_fft::TileKernels> kernels_;
};

}  // namespace

std::vector<std::unique_ptr<FrequencyProduct>> make_complex_products() {
  using namespace small_fft;
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  products.push_back(std::make_unique<TilesProduct>(
      "tiles", std::vector{tile_kernels<GemmTile<64, 64, 8, 4>, FourMultiplications, 4>(1),
                           tile_kernels<GemmTile<32, 32, 4, 4>, FourMultiplications, 8>(1.01),
                           tile_kernels<GemmTile<64, 16, 4, 4>, FourMultiplications, 8>(0.75),
                           tile_kernels<GemmTile<128, 4, 2, 2, 16, 3>, FourMultiplications, 4>(0.45)}));
  products.push_back(std::make_unique<TilesProduct>(
      "tiles_3m", std::vector{tile_kernels<GemmTile<64, 64, 8, 4>, ThreeMultiplications, 3>(1),
                              tile_kernels<GemmTile<64, 32, 8, 4>, ThreeMultiplications, 6>(0.85),
                              tile_kernels<GemmTile<32, 32, 4, 4>, ThreeMultiplications, 8>(0.7)}));
  return products;
}

}  // namespace twiddle
