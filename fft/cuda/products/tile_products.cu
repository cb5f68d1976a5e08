#include "fft/cuda/products/tile_products.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "fft/cuda/device/tuned_on_h200.h"
#include "fft/cuda/products/gemm_kernel.h"
#include "fft/cuda/products/sum_parts.h"
#include "fft/cuda/products/tuned_on_h200.h"
#include "framework/quotient_up.h"

namespace twiddle {

namespace small_fft {
namespace {

// One shape of tiles: its speed relative to the others (tuned_on_h200.h), and the number of blocks per multiprocessor.
struct TileKernels {
  int rows, columns;
  double speed;
  int min_blocks;
  void (*multiply)(Stream& stream, const FrequencyGemm& gemm, std::int64_t part, const void* a, const void* b, void* c);
};

template <template <bool> class Products, const auto& Shapes, std::size_t... I>
std::vector<TileKernels> tile_kernels(std::index_sequence<I...>) {
  return {{Shapes[I].rows, Shapes[I].columns, Shapes[I].speed, Shapes[I].min_blocks,
           multiply<GemmTile<Shapes[I].rows, Shapes[I].columns, Shapes[I].thread_rows, Shapes[I].thread_columns,
                             Shapes[I].depth, Shapes[I].stages>,
                    Products, Shapes[I].min_blocks>}...};
}
template <template <bool> class Products, const auto& Shapes>
std::vector<TileKernels> tile_kernels() {
  return tile_kernels<Products, Shapes>(std::make_index_sequence<std::size(Shapes)>());
}

// Returns the number of the calling thread's GPU, or that of an H200 if there is none: tests make products without a
// GPU.
int current_multiprocessors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess)
    return count;
  static_cast<void>(cudaGetLastError());
  return multiprocessors_of_an_h200;
}

// The tiling of a product: tiles of C, and k into parts that blocks sum side by side (split k).
struct Tiling {
  const TileKernels* kernels = nullptr;
  std::int64_t wave = 0;  // blocks that the GPU holds at the same time
  std::int64_t tiles = 0, part = 0, parts = 0;
};

// As many parts as fill the multiprocessors twice, but none shorter than least_part.
Tiling tiling_with(const TileKernels& kernels, const FrequencyGemm& gemm, int multiprocessors) {
  const std::int64_t wave = std::int64_t(kernels.min_blocks) * multiprocessors;
  const std::int64_t matrices = gemm.bins * gemm.groups;
  Tiling tiling{&kernels, wave, matrices * quotient_up(gemm.m, kernels.rows) * quotient_up(gemm.n, kernels.columns)};
  const std::int64_t wanted = std::clamp<std::int64_t>(2 * wave / tiling.tiles, 1, gemm.k);
  tiling.part = quotient_up(quotient_up(gemm.k, wanted), least_part) * least_part;
  tiling.parts = quotient_up(gemm.k, tiling.part);
  return tiling;
}

// Returns the time of a number of waves of blocks, in waves. If there are few, a partly filled last wave takes as long
// as a full one; many overlap. Blocks that do not fill one wave run slightly faster, as each has more of its
// multiprocessor.
double time_of_waves(double waves) {
  if (waves < 1) return std::max(waves, least_wave);
  return waves > overlapping_waves ? waves : std::ceil(waves);
}

// In multiplications, those that an idle multiprocessor could have done included.
double estimated_time(const Tiling& tiling, const FrequencyGemm& gemm) {
  const auto wave = static_cast<double>(tiling.wave);
  const auto k = static_cast<double>(std::min(gemm.k, tiling.part));
  const double tile = tiling.kernels->rows * tiling.kernels->columns * k / tiling.kernels->speed + begin_and_end;
  return time_of_waves(static_cast<double>(tiling.tiles * tiling.parts) / wave) * wave * tile;
}

Tiling best_tiling(const FrequencyGemm& gemm, const std::vector<TileKernels>& all, int multiprocessors) {
  Tiling best;
  double best_time = std::numeric_limits<double>::infinity();
  for (const TileKernels& kernels : all) {
    const Tiling tiling = tiling_with(kernels, gemm, multiprocessors);
    const double time = estimated_time(tiling, gemm);
    if (time < best_time) best_time = time, best = tiling;
  }
  return best;
}

}  // namespace
}  // namespace small_fft

using small_fft::Complex;

namespace {

template <class Number>
class TilesProduct final : public FrequencyProduct {
 public:
  TilesProduct(std::string name, std::vector<small_fft::TileKernels> kernels)
      : name_(std::move(name)), kernels_(std::move(kernels)) {}
  std::string_view name() const override { return name_; }
  SpectrumStorage storage() const override {
    return std::is_same_v<Number, float> ? SpectrumStorage::real : SpectrumStorage::interleaved;
  }

  bool supports(const FrequencyGemm& gemm) const override { return !gemm.is_depthwise(); }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    const small_fft::Tiling tiling = best_tiling(gemm);
    if (tiling.parts == 1) return 0;
    return static_cast<std::size_t>(tiling.parts * numbers_of_c(gemm)) * sizeof(Number);
  }

  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const small_fft::Tiling tiling = best_tiling(gemm);
    void* const results = tiling.parts == 1 ? c : scratch;
    tiling.kernels->multiply(*ctx.stream, gemm, tiling.part, a, b, results);
    if (tiling.parts == 1) return;
    const std::int64_t count = numbers_of_c(gemm);
    for_each_index(*ctx.stream, count,
                   small_fft::SumParts<Number>{static_cast<const Number*>(scratch), static_cast<Number*>(c), count,
                                               tiling.parts, gemm.accumulate});
  }

 private:
  static std::int64_t numbers_of_c(const FrequencyGemm& gemm) { return gemm.bins * gemm.groups * gemm.m * gemm.n; }
  small_fft::Tiling best_tiling(const FrequencyGemm& gemm) const {
    return small_fft::best_tiling(gemm, kernels_, multiprocessors_);
  }

  std::string name_;
  std::vector<small_fft::TileKernels> kernels_;
  // Asked once: scratch_bytes() and run() must have the same tiling, whichever GPU is the calling thread's by then.
  int multiprocessors_ = small_fft::current_multiprocessors();
};

}  // namespace

std::vector<std::unique_ptr<FrequencyProduct>> make_tile_products() {
  using namespace small_fft;
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  products.push_back(
      std::make_unique<TilesProduct<Complex>>("tiles", tile_kernels<FourMultiplications, tile_shapes>()));
  products.push_back(
      std::make_unique<TilesProduct<Complex>>("tiles_3m", tile_kernels<ThreeMultiplications, tile_shapes_3m>()));
  return products;
}

std::unique_ptr<FrequencyProduct> make_real_tile_product() {
  using namespace small_fft;
  return std::make_unique<TilesProduct<float>>("tiles", tile_kernels<RealMultiplications, tile_shapes_real>());
}

}  // namespace twiddle
