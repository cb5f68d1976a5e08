// Runs the steps of one block of a depthwise convolution, and of the sum of its spectra's products, on the CPU and
// compares them with sums in double.
#include "fft/cuda/depthwise/depthwise_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fft/cuda/depthwise/product_sums.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"

namespace twiddle::small_fft {
namespace {

// A block of P planes: shared memory filled with NaN, and each thread's registers.
template <class Block>
struct Follower {
  std::vector<Complex> shared = std::vector<Complex>(Block::shared_numbers, Complex{not_a_number, not_a_number});
  struct alignas(16) Registers {
    typename Block::Registers v;
  };
  std::vector<Registers> registers = std::vector<Registers>(Block::threads);

  template <class Step>
  void each_thread(const Step& step) {
    for (int thread = 0; thread < Block::threads; ++thread) step(thread, registers[std::size_t(thread)].v);
  }

  void to_bins(const PlaneWindow& window, const std::vector<float>& planes) {
    const auto source_of = [&](int plane) { return planes.data() + plane * window.height * window.width; };
    each_thread([&](int thread, auto&) { Block::columns(window, source_of, thread, shared.data()); });
    each_thread([&](int thread, auto& v) { Block::rows(shared.data(), thread, v); });
  }

  template <class Product>
  void multiply(const Follower& other, const Product& product) {
    each_thread([&](int thread, auto& v) {
      const auto& right = other.registers[std::size_t(thread)].v;
      multiply_bins<Block>(
          v, thread, [&](auto m) { return right[m]; }, product);
    });
  }

  // Stores bins as spectra in memory, one spectrum per plane, and loads them back.
  std::vector<Complex> spectra() {
    std::vector<Complex> numbers(std::size_t(Block::planes * Block::spectrum_numbers),
                                 Complex{not_a_number, not_a_number});
    for_each_place([&](std::size_t place, Complex& bin) { numbers[place] = bin; });
    return numbers;
  }
  void take_spectra(const std::vector<Complex>& numbers) {
    for_each_place([&](std::size_t place, Complex& bin) { bin = numbers[place]; });
  }
  template <class Visit>
  void for_each_place(const Visit& visit) {
    each_thread([&](int thread, auto& v) {
      const int plane = Block::plane_of(thread) * Block::spectrum_numbers;
      for (int m = 0; m < Block::points; ++m) visit(std::size_t(plane + Block::spectrum_place(thread, m)), v[m]);
    });
  }

  std::vector<float> to_planes(const PlaneWindow& window, int n) {
    each_thread([&](int thread, auto& v) { Block::rows_back(v, thread, shared.data()); });
    each_thread([&](int thread, auto& v) { Block::columns_back(window, shared.data(), thread, v); });
    if (Block::threads > Block::lines)
      each_thread([&](int thread, auto& v) { Block::put_shares(window, v, thread, shared.data()); });
    std::vector<float> planes(std::size_t(Block::planes * window.height * window.width), not_a_number);
    each_thread([&](int thread, auto& v) {
      const int plane = Block::stored_plane(window, thread);
      if (plane >= Block::planes) return;
      const auto store = [&](int row, int column, float value) {
        if (!window.has_row(row) || !window.has_column(column)) return;
        const int at = ((plane * window.height) + row - window.top) * window.width + column - window.left;
        planes[std::size_t(at)] = value / float(n * n);
      };
      Block::for_each_element(window, v, shared.data(), thread, [&](int row, int column, Complex two) {
        store(row, column, two.re), store(row, column + 1, two.im);
      });
    });
    return planes;
  }
};

struct Sizes {
  int height, width, kernel_h, kernel_w, pad_h, pad_w;
  int out_height() const { return height + 2 * pad_h - kernel_h + 1; }
  int out_width() const { return width + 2 * pad_w - kernel_w + 1; }
};

// visit(plane of y, plane of x, element of w) for every product of the convolution of one plane.
template <class Visit>
void for_each_product(const Sizes& s, const Visit& visit) {
  for (int i = 0; i < s.out_height(); ++i)
    for (int j = 0; j < s.out_width(); ++j)
      for (int a = 0; a < s.kernel_h; ++a)
        for (int b = 0; b < s.kernel_w; ++b) {
          const int row = i + a - s.pad_h, column = j + b - s.pad_w;
          if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
          visit(i * s.out_width() + j, row * s.width + column, a * s.kernel_w + b);
        }
}

// Reduces spectra of x and y, [channel][image], to the sums over the images of a channel, stored contiguously in a
// vector of the same length.
template <class Block>
std::vector<Complex> sums_of_products(const std::vector<Complex>& x, const std::vector<Complex>& y, int images,
                                      int parts) {
  const int channels = Block::planes / images, size = 2 * Block::pairs;
  std::vector<Complex> sums(std::size_t(parts * channels * Block::spectrum_numbers),
                            Complex{not_a_number, not_a_number});
  const ProductSums products{size,     images,   parts,      Divisor(channels), Divisor(ProductSums::threads_of(size)),
                             x.data(), y.data(), sums.data()};
  for (std::int64_t index = 0; index < products.count(); ++index) products(index);
  std::vector<Complex> whole(x.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Complex& sum = whole[i % std::size_t(channels * Block::spectrum_numbers)];
    sum = sum + sums[i];
  }
  return whole;
}

// Sums each group of `images` consecutive planes, those of one channel.
std::vector<double> sums_over_images(const std::vector<double>& planes, int size, int images) {
  std::vector<double> sums(planes.size());
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::size_t plane = i / std::size_t(size), channel = plane / std::size_t(images);
    sums[channel * std::size_t(size) + i % std::size_t(size)] += planes[i];
  }
  return sums;
}

template <int N, int S, int P>
void expect_passes(const Sizes& s) {
  SCOPED_TRACE(join(N, " points, ", s.height, "x", s.width, ", kernel ", s.kernel_h, "x", s.kernel_w));
  using Block = DepthwiseBlock<N, S, P>;
  const PlaneWindow x{s.height, s.width, s.pad_h, s.pad_w}, y{s.out_height(), s.out_width(), 0, 0};
  const PlaneWindow w{s.kernel_h, s.kernel_w, 0, 0};
  const int size_x = x.height * x.width, size_y = y.height * y.width, size_w = w.height * w.width;
  std::vector<float> noise_x = noise(P * size_x), noise_y = noise(P * size_y, 4), noise_w = noise(P * size_w, 5);
  std::vector<double> sums_x(std::size_t(P * size_x)), sums_y(std::size_t(P * size_y)), sums_w(std::size_t(P * size_w));
  for (int p = 0; p < P; ++p)
    for_each_product(s, [&](int at_y, int at_x, int at_w) {
      const auto place = [p](int size, int at) { return std::size_t(p * size + at); };
      const double vx = noise_x[place(size_x, at_x)], vy = noise_y[place(size_y, at_y)];
      const double vw = noise_w[place(size_w, at_w)];
      sums_y[place(size_y, at_y)] += vx * vw;
      sums_x[place(size_x, at_x)] += vy * vw;
      sums_w[place(size_w, at_w)] += vx * vy;
    });
  const auto expect = [](const std::vector<float>& actual, const std::vector<double>& sums) {
    EXPECT_LE(relative_error(actual, std::vector<float>(sums.begin(), sums.end())), 1e-6);
  };
  const auto correlate = [](Complex a, Complex b) { return a * conjugate(b); };

  Follower<Block> of_x, of_y, of_w;
  of_w.to_bins(w, noise_w);
  of_x.to_bins(x, noise_x);
  of_y.to_bins(y, noise_y);
  Follower<Block> forward = of_x, backward_input = of_y, backward_weight = of_x;
  forward.multiply(of_w, correlate);
  expect(forward.to_planes(y, N), sums_y);
  backward_input.multiply(of_w, [](Complex a, Complex b) { return a * b; });
  expect(backward_input.to_planes(x, N), sums_x);
  backward_weight.multiply(of_y, correlate);
  expect(backward_weight.to_planes(w, N), sums_w);

  const int images = P % 2 == 0 ? P / 2 : P;
  for (int parts = 1; parts <= std::min(images, 2); ++parts) {
    Follower<Block> shared;
    shared.take_spectra(sums_of_products<Block>(of_x.spectra(), of_y.spectra(), images, parts));
    expect(shared.to_planes(w, N), sums_over_images(sums_w, size_w, images));
  }
}

TEST(DepthwiseBlock, ConvolvesWithOneLinePerThread) {
  expect_passes<2, 1, 3>({1, 1, 1, 1, 0, 0});
  expect_passes<8, 1, 2>({5, 5, 3, 3, 1, 1});
  expect_passes<10, 1, 3>({7, 7, 7, 7, 3, 3});
  expect_passes<14, 1, 2>({7, 6, 13, 13, 6, 6});  // a kernel larger than the plane
  expect_passes<16, 1, 4>({9, 13, 4, 7, 2, 3});
  expect_passes<16, 1, 1>({16, 1, 5, 1, 0, 0});
  expect_passes<12, 1, 2>({1, 9, 1, 6, 0, 3});  // a plane of one row
  expect_passes<10, 1, 12>({7, 6, 5, 5, 2, 2});
}

TEST(DepthwiseBlock, ConvolvesWithTwoThreadsPerLine) {
  expect_passes<4, 2, 2>({3, 3, 2, 2, 1, 1});
  expect_passes<8, 2, 1>({6, 5, 4, 5, 2, 2});
  expect_passes<12, 2, 3>({9, 8, 7, 5, 3, 2});
  expect_passes<20, 2, 2>({13, 14, 13, 13, 6, 6});
  expect_passes<24, 2, 1>({24, 1, 9, 1, 0, 0});
  expect_passes<28, 2, 2>({14, 14, 27, 27, 13, 13});
}

}  // namespace
}  // namespace twiddle::small_fft
