#pragma once
#include <algorithm>
#include <limits>

#include "fft/cuda/tensor_core/native_work.h"
#include "fft/native_product.h"
#include "framework/error.h"
#include "framework/quotient_up.h"

namespace twiddle::tensor_core {

// Tiles of C, 128 x `columns`, and parts of k.
struct NativeTiling {
  int columns;
  std::int64_t parts, steps_a_part;
};

inline std::int64_t steps_a_matrix(const NativeProduct& product) {
  return quotient_up(product.k, native_depth);
}
inline std::int64_t steps_of(const NativeProduct& product) {
  return steps_a_matrix(product) * (product.sums_matrices ? product.matrices : 1);
}
inline std::int64_t matrices_of_c(const NativeProduct& product) {
  return product.sums_matrices ? 1 : product.matrices;
}

inline std::int64_t tiles_of(const NativeProduct& product, const NativeTiling& tiling) {
  return quotient_up(product.m, native_rows) * quotient_up(product.n, tiling.columns) * matrices_of_c(product) *
         tiling.parts;
}

// Selects the tiling with the least time of the busiest multiprocessor, in steps of 128 x 128.
inline NativeTiling tiling_of(const NativeProduct& product, int multiprocessors) {
  // Tensor cores truncate sums: an error of 5.8e-5 at 8,192 terms and of 4.8e-3 at a million (H200).
  constexpr std::int64_t longest = 32768 / native_depth, most_parts = 64;
  const std::int64_t fewest = quotient_up(steps_of(product), longest);
  // Estimates, in steps of 128 columns: a step of 256, and beginning and end of a tile.
  constexpr double wide = 1.8, ends_of_a_tile = 4;
  NativeTiling best{128, 1, steps_of(product)};
  double least = std::numeric_limits<double>::max();
  for (const int columns : {128, 256})
    for (std::int64_t parts = fewest; parts <= std::max<std::int64_t>(fewest, most_parts); ++parts) {
      const std::int64_t steps = quotient_up(steps_of(product), parts);
      if (parts > fewest && steps < 4) break;
      const NativeTiling tiling{columns, quotient_up(steps_of(product), steps), steps};
      const double time = static_cast<double>(quotient_up(tiles_of(product, tiling), multiprocessors)) *
                          (static_cast<double>(steps) + ends_of_a_tile * (parts > 1 ? 2 : 1)) *
                          (columns == 256 ? wide : 1);
      if (time < least) least = time, best = tiling;
    }
  return best;
}

inline NativeShape shape_of(const NativeProduct& product, const NativeTiling& tiling) {
  const std::int64_t tiles = tiles_of(product, tiling);
  require(tiles < std::int64_t(1) << 30, tiles, " tiles are more than one launch can count");
  return {.m = static_cast<int>(product.m),
          .n = static_cast<int>(product.n),
          .steps = static_cast<int>(steps_of(product)),
          .steps_a_part = static_cast<int>(tiling.steps_a_part),
          .a_matrices = product.one_a ? 0 : 1,
          .b_matrices = product.one_b ? 0 : 1,
          .steps_a_matrix = Divisor(steps_a_matrix(product)),
          .parts = Divisor(tiling.parts),
          .tiles_down = Divisor(quotient_up(product.m, native_rows)),
          .tiles_across = Divisor(quotient_up(product.n, tiling.columns)),
          .tiles = static_cast<int>(tiles)};
}

}  // namespace twiddle::tensor_core
