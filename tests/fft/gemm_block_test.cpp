// Runs the steps of one block of our own products on the CPU and compares the result with sums in double.
#include "fft/cuda/products/gemm_block.h"

#include <gtest/gtest.h>

#include <complex>
#include <memory>
#include <random>
#include <vector>

#include "framework/error.h"
#include "tests/support/limits.h"

namespace twiddle::small_fft {
namespace {

using Number = std::complex<double>;

std::vector<Complex> complex_noise(std::int64_t count) {
  static std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<Complex> numbers(static_cast<std::size_t>(count));
  for (Complex& number : numbers) number = {normal(random), normal(random)};
  return numbers;
}

constexpr Complex poison(Complex) {
  return {not_a_number, not_a_number};
}
constexpr float poison(float) {
  return not_a_number;
}

template <class Tile, class Products, class Element = typename Products::Number>
void follow(const FrequencyGemm& gemm, std::int64_t part, const Element* a, const Element* b, Element* c) {
  using Block = GemmBlock<Tile, Products>;
  const auto arguments = Block::arguments(gemm, part, a, b, c);
  constexpr int ahead = Tile::stages - 1;
  for (std::int64_t block = 0; block < arguments.blocks(); ++block) {
    const auto shared = std::make_unique<typename Block::Shared>();
    for (auto& stage : shared->stages)
      std::fill(std::begin(stage.a), std::end(stage.a), poison(Element{})),
          std::fill(std::begin(stage.b), std::end(stage.b), poison(Element{}));
    std::vector<typename Block::Thread> threads;
    for (int thread = 0; thread < Tile::threads; ++thread)
      threads.push_back(Block::begin(arguments, block, thread, *shared));
    for (int step = 0; step < ahead; ++step)
      for (auto& thread : threads) Block::copy(arguments, thread, *shared, 0, step);
    for (int step = 0; threads.front().left > 0; ++step) {
      for (auto& thread : threads) Block::copy(arguments, thread, *shared, step, ahead);
      for (auto& thread : threads) Block::multiply(thread, *shared, step);
      for (auto& thread : threads)
        if (Block::stores(thread, step)) Block::store(arguments, thread, *shared, step);
    }
  }
}

struct Operands {
  std::vector<Complex> a, b, c;
};

Number number(Complex value, bool conjugate) {
  return {value.re, conjugate ? -value.im : value.im};
}

// The relative error of `results`, one result per part.
double error(const FrequencyGemm& gemm, const Operands& before, const std::vector<Complex>& results) {
  double wrong = 0, all = 0;
  for (std::int64_t i = 0; i < gemm.bins * gemm.groups * gemm.m * gemm.n; ++i) {
    const std::int64_t matrix = i / (gemm.m * gemm.n), row = i / gemm.n % gemm.m, column = i % gemm.n;
    const auto place = [&](const GroupedMatrix& of, std::int64_t r, std::int64_t c) {
      return static_cast<std::size_t>(matrix / gemm.groups * gemm.groups * of.rows * of.columns +
                                      matrix % gemm.groups * of.group_step + r * of.pitch + c);
    };
    const std::size_t result = place(gemm.c(), row, column);
    Number expected = gemm.accumulate ? number(before.c[result], false) : 0, actual = 0;
    for (std::int64_t k = 0; k < gemm.k; ++k) {
      const std::size_t a = gemm.transpose_a ? place(gemm.a(), k, row) : place(gemm.a(), row, k);
      const std::size_t b = gemm.transpose_b ? place(gemm.b(), column, k) : place(gemm.b(), k, column);
      expected += number(before.a[a], gemm.conjugate_a) * number(before.b[b], gemm.conjugate_b);
    }
    for (std::size_t part = 0; part * before.c.size() < results.size(); ++part)
      actual += number(results[part * before.c.size() + result], false);
    wrong += std::norm(actual - expected), all += std::norm(expected);
  }
  return std::sqrt(wrong / all);
}

template <class Tile, template <bool> class Products>
void expect_product(const FrequencyGemm& gemm, std::int64_t part) {
  SCOPED_TRACE(join(gemm.bins, " bins of ", gemm.groups, " groups of ", gemm.m, "x", gemm.n, "x", gemm.k,
                    " in tiles of ", Tile::rows, "x", Tile::columns, " and parts of ", part,
                    gemm.conjugate_a ? ", A conjugated" : "", gemm.conjugate_b ? ", B conjugated" : ""));
  const std::int64_t matrices = gemm.bins * gemm.groups;
  const Operands before{complex_noise(matrices * gemm.m * gemm.k), complex_noise(matrices * gemm.k * gemm.n),
                        complex_noise(matrices * gemm.m * gemm.n)};
  const auto parts = static_cast<std::size_t>((gemm.k + part - 1) / part);
  std::vector<Complex> results(parts * before.c.size(), Complex{not_a_number, not_a_number});
  if (gemm.accumulate) results = before.c;
  const auto multiply =
      gemm.conjugate_a != gemm.conjugate_b ? follow<Tile, Products<true>> : follow<Tile, Products<false>>;
  multiply(gemm, part, before.a.data(), before.b.data(), results.data());
  EXPECT_LE(error(gemm, before, results), 1e-6);
}

template <class Tile>
void expect_products(std::int64_t m, std::int64_t n) {
  const auto each = [](const FrequencyGemm& gemm, std::int64_t part) {
    expect_product<Tile, FourMultiplications>(gemm, part);
    expect_product<Tile, ThreeMultiplications>(gemm, part);
  };
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const bool conjugate_a : {false, true})
        for (const bool conjugate_b : {false, true})
          each({2, m, n, 3, transpose_a, conjugate_a, transpose_b, conjugate_b, false}, 256);
  each({2, m, n, 40, false, false, true, true, true}, 256);
  each({1, m, n, 301, true, true, false, false, true}, 512);    // what is summed goes to C twice
  each({2, m, n, 301, true, true, false, false, false}, 256);   // two results
  each({3, 1, 1, 17, false, false, false, false, false}, 256);  // the tile is hardly used
  each({2, m, n, 40, false, false, true, true, true, 3}, 256);  // the three passes of three groups
  each({2, m, n, 40, false, false, false, false, false, 3}, 256);
  each({2, m, n, 301, true, true, false, false, false, 3}, 256);
}

TEST(GemmBlock, MatchesDefinitionInEveryForm) {
  expect_products<GemmTile<64, 64, 8, 4>>(66, 65);  // odd rows go one by one
  expect_products<GemmTile<32, 32, 4, 4>>(31, 34);
  expect_products<GemmTile<64, 32, 8, 4>>(65, 33);
  expect_products<GemmTile<64, 16, 4, 4>>(65, 10);
  expect_products<GemmTile<128, 4, 2, 2, 16, 3>>(130, 3);
}

std::vector<float> real_parts(const std::vector<Complex>& numbers) {
  std::vector<float> parts;
  for (const Complex number : numbers) parts.push_back(number.re);
  return parts;
}
std::vector<Complex> complex_numbers(const std::vector<float>& parts) {
  std::vector<Complex> numbers;
  for (const float part : parts) numbers.push_back({part, 0});
  return numbers;
}

template <class Tile>
void expect_real_product(const FrequencyGemm& gemm, std::int64_t part) {
  SCOPED_TRACE(join(gemm.bins, " bins of ", gemm.m, "x", gemm.n, "x", gemm.k, " in tiles of ", Tile::rows, "x",
                    Tile::columns, " and parts of ", part));
  const std::vector<float> a = real_parts(complex_noise(gemm.bins * gemm.m * gemm.k)),
                           b = real_parts(complex_noise(gemm.bins * gemm.k * gemm.n)),
                           c = real_parts(complex_noise(gemm.bins * gemm.m * gemm.n));
  const auto parts = static_cast<std::size_t>((gemm.k + part - 1) / part);
  std::vector<float> results(parts * c.size(), not_a_number);
  if (gemm.accumulate) results = c;
  follow<Tile, OneMultiplication>(gemm, part, a.data(), b.data(), results.data());
  EXPECT_LE(error(gemm, {complex_numbers(a), complex_numbers(b), complex_numbers(c)}, complex_numbers(results)), 1e-6);
}

template <class Tile>
void expect_real_products(std::int64_t m, std::int64_t n) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      expect_real_product<Tile>({2, m, n, 40, transpose_a, false, transpose_b, false, true}, 256);
      expect_real_product<Tile>({1, m, n, 301, transpose_a, false, transpose_b, false, false}, 512);
      expect_real_product<Tile>({2, m, n, 300, transpose_a, false, transpose_b, false, false}, 256);
    }
}

TEST(GemmBlock, MatchesDefinitionForRealProducts) {
  expect_real_products<GemmTile<64, 128, 8, 8, 16, 2>>(68, 132);  // lines in groups of four
  expect_real_products<GemmTile<64, 128, 8, 8, 16, 2>>(65, 131);  // and one number at a time
  expect_real_products<GemmTile<32, 64, 4, 8, 16, 2>>(36, 63);
  expect_real_products<GemmTile<16, 32, 4, 4, 16, 3>>(17, 36);
}

TEST(GemmBlock, MeetsErrorLimitForLongSums) {
  const FrequencyGemm gemm{1, 96, 3, 20000, true, true, false, false, false};
  expect_product<GemmTile<128, 4, 2, 2, 16, 3>, FourMultiplications>(gemm, 20224);
  expect_product<GemmTile<128, 4, 2, 2, 16, 3>, ThreeMultiplications>(gemm, 20224);
}

}  // namespace
}  // namespace twiddle::small_fft
