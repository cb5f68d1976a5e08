#include "fft/cuda/pair_products/short_sums.h"

#include <algorithm>

#include "fft/cuda/pair_products/short_sums_launch.h"
#include "fft/cuda/pair_products/split_launch.h"
#include "fft/cuda/pair_products/tuned_on_h100.h"
#include "framework/quotient_up.h"

namespace twiddle::pairs {

namespace {

// With C as it lies in memory.
PairProduct not_transposed(const PairProduct& p) {
  if (!p.transpose_c) return p;
  PairProduct turned = p;
  std::swap(turned.m, turned.n), std::swap(turned.a, turned.b), std::swap(turned.a_along_k, turned.b_along_k);
  turned.transpose_c = false;
  return turned;
}

struct Tiling {
  explicit Tiling(const PairProduct& p)
      : tiles_m(quotient_up(p.m, rows_of_a)), tiles_n(quotient_up(p.n, rows_of_b)), steps(p.k <= 2 * depth ? 2 : 4) {}
  std::int64_t tiles_m, tiles_n, steps;
};

struct Scratch {
  explicit Scratch(const Tiling& tiling)
      : b(tiling.tiles_m * tiling.steps * sizeof(SplitPart<rows_of_a>)),
        scales(b + tiling.tiles_n * tiling.steps * sizeof(SplitPart<rows_of_b>)),
        bytes(scales + tiling.steps * depth * sizeof(float)) {}
  std::size_t b, scales, bytes;
};

}  // namespace

bool has_short_sums(const PairProduct& p) {
  const std::int64_t across = p.transpose_c ? p.m : p.n;
  return p.batch == 1 && !p.add && p.bias == nullptr && !p.relu && p.k <= 4 * depth &&
         std::min(p.m, p.n) >= least_side_of_short_sums && p.c.period >= across && across % 4 == 0 &&
         p.c.stride % 4 == 0 && is_aligned<4>(plain_matrix(p.c.values, across), 0) &&
         quotient_up(p.m, rows_of_a) * quotient_up(p.n, rows_of_b) < std::int64_t(1) << 28;
}

std::size_t scratch_of_short_sums(const PairProduct& p) {
  return Scratch(Tiling(not_transposed(p))).bytes;
}

void multiply_short_sums(Stream& stream, const PairProduct& product, void* scratch) {
  const PairProduct p = not_transposed(product);
  const Tiling tiling(p);
  const Scratch places(tiling);
  auto* const bytes = static_cast<char*>(scratch);
  auto* const parts = reinterpret_cast<SplitPart<rows_of_a>*>(bytes);
  auto* const parts_of_b = reinterpret_cast<SplitPart<rows_of_b>*>(bytes + places.b);
  auto* const scales = reinterpret_cast<float*>(bytes + places.scales);
  split_a<Order::plain>(stream, p, tiling.steps, tiling.tiles_m, parts, scales);
  split_b(stream, p, tiling.steps, tiling.tiles_n, scales, parts_of_b);
  const std::int64_t tiles = tiling.tiles_m * tiling.tiles_n;
  multiply_short_sums_by_wgmma(stream,
                               {.a = parts,
                                .b = parts_of_b,
                                .m = p.m,
                                .n = p.n,
                                .tiles_n = static_cast<int>(tiling.tiles_n),
                                .part = static_cast<int>(quotient_up(tiles, multiprocessors(stream.device()))),
                                .tiles = static_cast<int>(tiles),
                                .c = p.c.values,
                                .c_stride = p.c.stride},
                               static_cast<int>(tiling.steps));
}

}  // namespace twiddle::pairs
