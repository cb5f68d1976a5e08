// What the hardware reads in a panel, by the rules of the PTX manual, against Panel::place; and blocks followed on a
// CPU. CPU.
#include "fft/cuda/tensor_core/panel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "fft/cuda/stored_pairs/stored_boxes.h"
#include "fft/cuda/tensor_core/native_tiling.h"
#include "fft/cuda/tensor_core/terms.h"

namespace twiddle {
namespace {

using tensor_core::Layout, tensor_core::Panel, tensor_core::matrices_of_c, tensor_core::steps_of;

// Swizzles of 128 and 64 bytes: bits 4 to 6, or 4 and 5, of an address are changed by those three bits above.
unsigned swizzled(unsigned address, int row_bytes) {
  return address ^ (address >> 7 & (row_bytes == 128 ? 7u : 3u)) << 4;
}

// The address at which wgmma reads a number, counted from the descriptor's first line and k.
unsigned address_by(std::uint64_t descriptor, bool k_major, int line, int k) {
  const auto start = static_cast<unsigned>(descriptor & 0x3fff) * 16;
  const auto leading = static_cast<unsigned>(descriptor >> 16 & 0x3fff) * 16;
  const auto stride = static_cast<unsigned>(descriptor >> 32 & 0x3fff) * 16;
  const int row_bytes = descriptor >> 62 == 1 ? 128 : 64;
  const auto row_numbers = row_bytes / 2;
  const unsigned plain =
      k_major ? start + line / 8 * stride + line % 8 * row_bytes + k * 2
              : start + line / row_numbers * leading + k / 8 * stride + k % 8 * row_bytes + line % row_numbers * 2;
  return swizzled(plain, row_bytes);
}

template <class P>
class TensorCorePanel : public testing::Test {};

using Panels = testing::Types<Panel<Layout::k_major_128, 128, 32, 4>, Panel<Layout::k_major_128, 64, 32, 2>,
                              Panel<Layout::k_major_128, 256, 64, 1>, Panel<Layout::mn_major_64, 128, 32, 4>,
                              Panel<Layout::mn_major_64, 64, 32, 2>, Panel<Layout::mn_major_128, 256, 64, 1>>;
TYPED_TEST_SUITE(TensorCorePanel, Panels);

TYPED_TEST(TensorCorePanel, HasPlaceForEachNumber) {
  using P = TypeParam;
  std::vector<bool> taken(P::bytes / 2);
  for (int plane = 0; plane < P::planes; ++plane)
    for (int line = 0; line < P::lines; ++line)
      for (int k = 0; k < P::depth; ++k) {
        const int place = P::place(plane, line, k);
        ASSERT_TRUE(place >= 0 && place < P::bytes && place % 2 == 0);
        ASSERT_FALSE(taken[static_cast<std::size_t>(place / 2)]) << plane << " " << line << " " << k;
        taken[static_cast<std::size_t>(place / 2)] = true;
      }
}

TYPED_TEST(TensorCorePanel, DescriptorsReadPlaces) {
  using P = TypeParam;
  constexpr unsigned panel = 3 * 1024;
  for (int plane = 0; plane < P::planes; ++plane)
    for (int first_line = 0; first_line < P::lines; first_line += 64)
      for (int first_k = 0; first_k < P::depth; first_k += 16) {
        const std::uint64_t descriptor = P::descriptor(panel, plane, first_line, first_k);
        for (int line = 0; line < 64; ++line)
          for (int k = 0; k < 16; ++k)
            ASSERT_EQ(address_by(descriptor, P::k_major, line, k),
                      panel + static_cast<unsigned>(P::place(plane, first_line + line, first_k + k)))
                << "plane " << plane << ", line " << first_line + line << ", k " << first_k + k;
      }
}

// ldmatrix reads 16 bytes at each lane's address: a row of matrix lane / 8. Matrices 0 and 1 have lines 0 to 7 and 8 to
// 15 of the first eight k, matrices 2 and 3 those of the next eight; rows are lines, or k if it transposes.
TYPED_TEST(TensorCorePanel, FragmentsReadPlaces) {
  using P = TypeParam;
  for (int plane = 0; plane < P::planes; ++plane)
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 8; ++i) {
        const int row = lane % 8, line = lane / 8 % 2 * 8 + (P::k_major ? row : i),
                  k = lane / 16 * 8 + (P::k_major ? i : row);
        ASSERT_EQ(P::fragment_row(plane, 48, 16, lane) + 2 * i, P::place(plane, 48 + line, 16 + k));
      }
}

// A number of a spectrum: its row, column, plane.
using SpectrumNumber = std::tuple<std::int64_t, std::int64_t, int>;

// What the copy engine writes of a step: by the address in the panel.
std::map<int, SpectrumNumber> boxes_copied(const stored_pairs::StoredSpectrum& spectrum, bool along_k, int lines,
                                           int step, int line) {
  constexpr int depth = 32;
  const int planes = 2 * spectrum.halves_a_float;
  const stored_pairs::BoxMap map(spectrum, along_k, lines, depth);
  const stored_pairs::BoxPlace from = stored_pairs::place_of_box(along_k, spectrum.halves_a_float, step, line, depth);
  std::map<int, SpectrumNumber> panel;
  unsigned address = 0;
  for (std::uint64_t group = 0; group < map.box[2]; ++group)
    for (std::uint64_t row = 0; row < map.box[1]; ++row)
      for (std::uint64_t i = 0; i < map.box[0]; ++i, address += 2) {
        const std::uint64_t z = group + static_cast<std::uint64_t>(from.group),
                            y = row + static_cast<std::uint64_t>(from.row);
        if (z >= map.sizes[2] || y >= map.sizes[1]) continue;
        const std::uint64_t number = (i * 2 + y * map.strides[0] + z * map.strides[1]) / 2;
        // [row][column / 32][plane][32 columns]
        const auto column_of = number / 32 / planes % (spectrum.columns / 32) * 32 + number % 32;
        panel[static_cast<int>(swizzled(address, static_cast<int>(map.box[0]) * 2))] = {
            static_cast<std::int64_t>(number / static_cast<std::uint64_t>(spectrum.columns * planes)),
            static_cast<std::int64_t>(column_of), static_cast<int>(number / 32 % planes)};
      }
  return panel;
}

template <Layout L, int Lines, int Parts>
void expect_boxes_fill_panel() {
  using P = Panel<L, Lines, 32, 2 * Parts>;
  const stored_pairs::StoredSpectrum spectrum{Parts, 1, 192, 256};
  const int step = 2, line = 64;
  const std::map<int, SpectrumNumber> panel = boxes_copied(spectrum, P::k_major, Lines, step, line);
  for (int plane = 0; plane < P::planes; ++plane)
    for (int i = 0; i < Lines; ++i)
      for (int k = 0; k < 32; ++k) {
        const std::int64_t row = P::k_major ? line + i : step * 32 + k, column = P::k_major ? step * 32 + k : line + i;
        if (row >= spectrum.rows || column >= spectrum.columns) continue;
        const auto found = panel.find(P::place(plane, i, k));
        ASSERT_NE(found, panel.end());
        ASSERT_EQ(found->second, SpectrumNumber(row, column, plane));
      }
}

// Follows all blocks of a product of 16-bit matrices number by number: tiles, boxes, panels, and the places of sums.
// Numbers are small and whole, so that sums are exact.
template <class P>
std::vector<float> panel_of(const std::vector<float>& matrices, std::int64_t width, std::int64_t rows, int line, int k,
                            int matrix) {
  std::vector<float> panel(P::bytes / 2, std::nanf(""));
  using Boxes = tensor_core::NativeBoxes<P>;
  for (int i = 0; i < Boxes::count; ++i) {
    const auto box = Boxes::box(i, line, k);
    for (int y = 0; y < Boxes::height; ++y)
      for (int x = 0; x < Boxes::width; ++x) {
        const bool inside = box.x + x < width && box.y + y < rows;
        const unsigned address = swizzled(static_cast<unsigned>(box.to + (y * Boxes::width + x) * 2), P::row_bytes);
        panel[address / 2] =
            inside ? matrices[static_cast<std::size_t>((matrix * rows + box.y + y) * width + box.x + x)] : 0;
      }
  }
  return panel;
}

template <bool AAlongK, bool BAlongK, int Columns>
std::vector<float> follow_native(const NativeProduct& p, const std::vector<float>& a, const std::vector<float>& b,
                                 const tensor_core::NativeTiling& tiling) {
  using A = tensor_core::NativePanel<AAlongK, tensor_core::native_rows>;
  using B = tensor_core::NativePanel<BAlongK, Columns>;
  const tensor_core::NativeShape shape = shape_of(p, tiling);
  std::vector<float> c(static_cast<std::size_t>(matrices_of_c(p) * p.m * p.n));
  const auto for_each_sum = [](const auto& visit) {
    for (int group = 0; group < 2; ++group)
      for (int thread = 0; thread < 128; ++thread)
        for (int i = 0; i < Columns / 2; ++i) {
          const tensor_core::SumPlace place = tensor_core::place_of_sum(thread, i);
          visit(static_cast<std::size_t>((group * 128 + thread) * (Columns / 2) + i), 64 * group + place.row,
                place.column);
        }
  };
  for (int tile = 0; tile < shape.tiles; ++tile) {
    const tensor_core::NativeWork<Columns> work(shape, tile);
    std::vector<float> sums(std::size_t(128) * Columns);
    for (int step = 0; step < work.steps; ++step) {
      const tensor_core::NativeStep at(shape, work.matrix, work.first_step + step);
      const std::vector<float> of_a = panel_of<A>(a, AAlongK ? p.k : p.m, AAlongK ? p.m : p.k, work.row, at.k,
                                                  at.matrix * shape.a_matrices),
                               of_b = panel_of<B>(b, BAlongK ? p.k : p.n, BAlongK ? p.n : p.k, work.column, at.k,
                                                  at.matrix * shape.b_matrices);
      for_each_sum([&](std::size_t sum, int row, int column) {
        for (int k = 0; k < tensor_core::native_depth; ++k)
          sums[sum] += of_a[static_cast<std::size_t>(A::place(0, row, k) / 2)] *
                       of_b[static_cast<std::size_t>(B::place(0, column, k) / 2)];
      });
    }
    for_each_sum([&](std::size_t sum, int row, int column) {
      const std::int64_t y = work.row + row, x = work.column + column;
      if (y < p.m && x < p.n) c[static_cast<std::size_t>((work.matrix * p.m + y) * p.n + x)] += sums[sum];
    });
  }
  return c;
}

template <bool AAlongK, bool BAlongK, int Columns>
void expect_product_followed(NativeProduct p, std::int64_t parts = 1) {
  p.a_along_k = AAlongK, p.b_along_k = BAlongK;
  const auto numbers = [](std::int64_t count, int seed) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + i / 5 * seed) % 9 - 4));
    return values;
  };
  const std::vector<float> a = numbers((p.one_a ? 1 : p.matrices) * p.m * p.k, 3),
                           b = numbers((p.one_b ? 1 : p.matrices) * p.n * p.k, 5);
  std::vector<float> expected(static_cast<std::size_t>(matrices_of_c(p) * p.m * p.n));
  for (std::int64_t matrix = 0; matrix < p.matrices; ++matrix)
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j)
        for (std::int64_t k = 0; k < p.k; ++k)
          expected[static_cast<std::size_t>(((p.sums_matrices ? 0 : matrix) * p.m + i) * p.n + j)] +=
              a[static_cast<std::size_t>((p.one_a ? 0 : matrix) * p.m * p.k + (AAlongK ? i * p.k + k : k * p.m + i))] *
              b[static_cast<std::size_t>((p.one_b ? 0 : matrix) * p.n * p.k + (BAlongK ? j * p.k + k : k * p.n + j))];
  const std::int64_t steps = quotient_up(steps_of(p), parts);
  EXPECT_EQ((follow_native<AAlongK, BAlongK, Columns>(p, a, b, {Columns, quotient_up(steps_of(p), steps), steps})),
            expected);
}

}  // namespace

TEST(NativeBlocks, SumProductsInEveryLayout) {
  const NativeProduct p{.m = 136, .n = 264, .k = 72};
  expect_product_followed<true, true, 128>(p);
  expect_product_followed<true, false, 256>(p);
  expect_product_followed<false, false, 256>(p);
}

TEST(NativeBlocks, SumMatricesAndParts) {
  expect_product_followed<true, false, 128>({.m = 40, .n = 72, .k = 24, .matrices = 3, .one_a = true});
  expect_product_followed<true, true, 128>({.m = 40, .n = 24, .k = 72, .matrices = 3, .sums_matrices = true});
  expect_product_followed<true, true, 256>({.m = 40, .n = 24, .k = 200, .matrices = 2, .sums_matrices = true}, 3);
}

TEST(StoredBoxes, FillPanels) {
  expect_boxes_fill_panel<Layout::k_major_128, 128, 2>();
  expect_boxes_fill_panel<Layout::k_major_128, 64, 1>();
  expect_boxes_fill_panel<Layout::mn_major_64, 128, 2>();
  expect_boxes_fill_panel<Layout::mn_major_64, 64, 1>();
}

// Whole numbers that fit into two parts: the terms sum up to the product of the numbers, conjugated or not, without the
// product of the low parts.
TEST(TensorCoreTerms, SumUpToProducts) {
  for (const int sign_a : {1, -1})
    for (const int sign_b : {1, -1}) {
      const int a[] = {1000, 2000, 3, 5}, b[] = {7000, 300, 2, 9};  // re, im of the high parts and of the low ones
      int sums[2] = {};
      constexpr int count = tensor_core::complex_terms<2>(1, 1).count;
      const tensor_core::Terms<count> terms = tensor_core::complex_terms<2>(sign_a, sign_b);
      for (const tensor_core::Term& term : terms.of) sums[term.out] += term.sign * a[term.a] * b[term.b];
      const auto product = [&](int i, int k, int& re, int& im) {  // of part i of a and part k of b
        re += a[i] * b[k] - sign_a * sign_b * a[i + 1] * b[k + 1];
        im += sign_b * a[i] * b[k + 1] + sign_a * a[i + 1] * b[k];
      };
      int re = 0, im = 0;
      product(0, 0, re, im), product(0, 2, re, im), product(2, 0, re, im);
      EXPECT_EQ(sums[0], re);
      EXPECT_EQ(sums[1], im);
      EXPECT_TRUE(terms.is_first(0) && terms.is_first(1) && !terms.is_first(2));
    }
}

}  // namespace twiddle
