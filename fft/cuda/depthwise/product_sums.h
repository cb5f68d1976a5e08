#pragma once
#include "fft/cuda/depthwise/depthwise_block.h"

namespace twiddle::small_fft {

// Spectra of gradients of kernels from those of x and of y's gradient, which other passes left in memory: each number
// is a sum of conj(Y) X over the images of a part, in their order. Part p has images p, p + parts, and so on.
struct ProductSums {
  int size;  // of transforms: a spectrum is [bin][row], size x size / 2 numbers
  int images, parts;
  Divisor channels, threads;  // threads per spectrum
  const Complex *x, *y;       // [channel][image]
  Complex* sums;              // [part][channel]

  // One thread per number. Row 0 packs two real rows and needs opposite frequencies. It takes more time, so that its
  // pairs are assigned to threads after all others: no other warp waits for a single lane.
  static int threads_of(int size) { return size * (size / 2) + size / 2 + 1; }
  std::int64_t count() const { return parts * channels.value() * threads.value(); }

  TWIDDLE_HD void operator()(std::int64_t index) const {
    const std::int64_t spectrum = threads.quotient(index);
    const auto thread = static_cast<int>(index - spectrum * threads.value());
    const int rows = size / 2, numbers = size * rows;
    if (thread >= numbers)
      sum_real_rows(spectrum, thread - numbers);
    else if (thread % rows > 0)
      sums[spectrum * numbers + thread] =
          sum<Complex>(spectrum, [&](std::int64_t at) { return conjugate(y[at + thread]) * x[at + thread]; });
  }

 private:
  TWIDDLE_HD void sum_real_rows(std::int64_t spectrum, int bin) const {
    const int rows = size / 2, near = bin * rows, far = bin == 0 ? 0 : (size - bin) * rows;
    const auto both = sum<RealRows>(spectrum, [&](std::int64_t at) {
      const RealRows of_x = RealRows::of(x[at + near], x[at + far]), of_y = RealRows::of(y[at + near], y[at + far]);
      return RealRows{conjugate(of_y.a) * of_x.a, conjugate(of_y.b) * of_x.b};
    });
    Complex* const target = sums + spectrum * (size * rows);
    target[near] = both.bin();
    if (far != near) target[far] = both.opposite();
  }

  // Sums product(offset of an image's spectra) over the spectrum's images. Four images are loaded before the first is
  // added, to hide memory latency.
  template <class Sum, class Product>
  TWIDDLE_HD Sum sum(std::int64_t spectrum, const Product& product) const {
    const std::int64_t numbers = size * (size / 2), step = parts * numbers;
    const std::int64_t part = channels.quotient(spectrum), channel = spectrum - part * channels.value();
    std::int64_t at = (channel * images + part) * numbers;
    const std::int64_t end = (channel + 1) * images * numbers;
    constexpr int at_once = 4;
    Sum all{};
    for (; at + (at_once - 1) * step < end; at += at_once * step) {
      Sum each[at_once];
      unrolled<at_once>([&](auto i) { each[i] = product(at + i * step); });
      unrolled<at_once>([&](auto i) { all = all + each[i]; });
    }
    for (; at < end; at += step) all = all + product(at);
    return all;
  }
};

void sum_products(Stream& stream, const ProductSums& sums);

}  // namespace twiddle::small_fft
