#pragma once
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/planes/tile_map.h"

// The forward transform of small real planes, wholly on chip; README.md has the picture. A block takes P planes that
// are adjacent in the layout [bin][plane], so that it writes each bin as one contiguous range. In the first phase a
// thread has two whole columns of a plane in its registers, in the second a whole row; between the two, numbers change
// threads through shared memory, once. (Vasilache et al., Fast Convolutional Nets With fbfft, 2015, section 5, gave the
// idea; theirs keeps a plane in one warp and writes [plane][bin].) The phases are functions of a thread's number, so
// that a test can run them on a CPU.
namespace twiddle::small_fft {

// Sizes for planes of H x W points, both even. The spectrum of a real plane is conjugate symmetric: bin (r, c) is the
// conjugate of bin (-r, -c), modulo H and W. So rows H/2 + 1 .. H - 1 follow from the others and are not stored, and of
// rows 0 and H/2, which are symmetric in themselves, only columns 0 .. W/2 are. The order of the packed bins: row 0,
// columns 0 .. W/2; row H/2, the same; then rows 1 .. H/2 - 1, all columns.
template <int H, int W>
struct PlaneSize {
  static_assert(H % 2 == 0 && W % 2 == 0);
  static constexpr int half_row = W / 2 + 1;
  static constexpr int bins = 2 * half_row + (H / 2 - 1) * W;
  static constexpr int pairs = W / 2,
                       rows = H / 2;  // threads of a plane in the two phases: for two columns each, and for a row each
  // Complex numbers of a plane in shared memory: H/2 rows of W, padded to an odd number of 16-byte pairs. In the second
  // phase adjacent threads read the same pair of adjacent planes, and the odd pitch spreads these over the banks.
  static constexpr int pitch = 2 * ((H * W / 4) | 1);
};

// Phase 1, of one thread. The real columns x and y come as one complex column v = x + iy. With V its transform, the
// transforms of x and y are X[k] = (V[k] + conj V[H-k]) / 2 and Y[k] = (V[k] - conj V[H-k]) / 2i. Row k of the plane in
// shared memory gets the pair X[k], Y[k], for k = 1 .. H/2 - 1. Rows 0 and H/2 are real: row 0 gets X[0] + i X[H/2] and
// Y[0] + i Y[H/2], so that the second phase transforms the two as one complex row.
template <int H, int W>
TWIDDLE_HD void columns_to_rows(Complex (&v)[H], Complex* plane, int pair) {
  transform<forwards>(v);
  auto* const at = reinterpret_cast<ComplexPair*>(plane) + pair;
  at[0] = {{v[0].re, v[H / 2].re}, {v[0].im, v[H / 2].im}};
  unrolled<H / 2 - 1>([&](auto before) {
    constexpr int row = decltype(before)::value + 1;
    const Complex a = v[row], b = v[H - row];
    at[row * (W / 2)] = {{0.5f * (a.re + b.re), 0.5f * (a.im - b.im)}, {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)}};
  });
}

// The inverse of columns_to_rows(): V[k] = X[k] + i Y[k] and V[H-k] = conj X[k] + i conj Y[k].
template <int H, int W>
TWIDDLE_HD void columns_from_rows(Complex (&v)[H], const Complex* plane, int pair) {
  const auto* const at = reinterpret_cast<const ComplexPair*>(plane) + pair;
  v[0] = {at[0].first.re, at[0].second.re}, v[H / 2] = {at[0].first.im, at[0].second.im};
  unrolled<H / 2 - 1>([&](auto before) {
    constexpr int row = decltype(before)::value + 1;
    const Complex a = at[row * (W / 2)].first, b = at[row * (W / 2)].second;
    v[row] = {a.re - b.im, a.im + b.re};
    v[H - row] = {a.re + b.im, b.re - a.im};
  });
  transform<backwards>(v);
}

// How a thread writes the bins of its plane: as complex floats, `pitch` numbers apart. Adjacent threads have adjacent
// planes, so that the stores of a warp are coalesced.
struct FloatBins {
  Complex* of_plane;
  std::int64_t pitch;
  TWIDDLE_HD void operator()(int bin, Complex number) const { of_plane[bin * pitch] = number; }
};

// The end of phase 2: a thread's row of the spectrum to its bins. Row 0 is the transform of row 0 + i * row H/2 and is
// split by the same symmetry.
template <int H, int W, class Bins>
TWIDDLE_HD void store_bins(const Complex (&v)[W], const Bins& bins, int row) {
  constexpr int middle = PlaneSize<H, W>::half_row;
  if (row > 0) {
    const int first = 2 * middle + (row - 1) * W;
    unrolled<W>([&](auto column) { bins(first + column, v[column]); });
    return;
  }
  bins(0, {v[0].re, 0}), bins(middle, {v[0].im, 0});
  bins(W / 2, {v[W / 2].re, 0}), bins(middle + W / 2, {v[W / 2].im, 0});
  unrolled<W / 2 - 1>([&](auto before) {
    constexpr int column = decltype(before)::value + 1;
    const Complex a = v[column], b = v[W - column];
    bins(column, {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)});
    bins(middle + column, {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)});
  });
}

// A block of P planes: in phase 1 threads [0, P * pairs) work, in phase 2 threads [0, P * rows).
template <int H, int W, int P>
struct PlaneBlock : PlaneSize<H, W> {
  using Size = PlaneSize<H, W>;
  static constexpr int threads = P * (H > W ? H : W) / 2;
  TWIDDLE_HD static bool has(const TileMap& tiles, std::int64_t block, int plane) {
    return plane < P && block * P + plane < tiles.count();
  }
};

struct ForwardArguments {
  TileMap tiles;
  std::int64_t pitch;  // from bin to bin
  const float* source;
  Complex* spectrum;
  const float* mask = nullptr;  // null: none; else ReLU's: the source is read as zero unless the mask is above zero
  // 0: floats are stored. Otherwise: fp16 values per float, without these powers of two; of_rows is per matrix row.
  int halves_a_float = 0;
  const int *of_columns = nullptr, *of_rows = nullptr;
  unsigned early_blocks = 0;  // the first ones, which load planes while exponents are computed
};

struct StoreFloats {
  template <int H, int W>
  TWIDDLE_HD static void store(const Complex (&v)[W], const ForwardArguments& arguments, std::int64_t plane, int row) {
    store_bins<H, W>(v, FloatBins{arguments.spectrum + plane, arguments.pitch}, row);
  }
};

template <int H, int W, int P, class Store = StoreFloats>
struct ForwardBlock : PlaneBlock<H, W, P> {
  using Base = PlaneBlock<H, W, P>;
  using typename Base::Size;
  struct alignas(16) Shared {
    Complex numbers[P * Size::pitch];
  };

  TWIDDLE_HD static void columns(const ForwardArguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const int plane = thread / Size::pairs, pair = thread % Size::pairs;
    if (!Base::has(arguments.tiles, block, plane)) return;
    Complex v[H];
    load_columns(v, arguments, arguments.tiles(block * P + plane), 2 * pair);
    columns_to_rows<H, W>(v, shared.numbers + plane * Size::pitch, pair);
  }

  TWIDDLE_HD static void rows(const ForwardArguments& arguments, std::int64_t block, int thread, const Shared& shared) {
    const int plane = thread % P, row = thread / P;
    if (row >= Size::rows || !Base::has(arguments.tiles, block, plane)) return;
    Complex v[W];
    load_numbers(v, shared.numbers + plane * Size::pitch + row * W);
    transform<forwards>(v);
    Store::template store<H, W>(v, arguments, block * P + plane, row);
  }

 private:
  // The padding is zeros that are not read, so it costs nothing. Two columns are loaded by one access of 8 bytes if all
  // rows start at an even element.
  TWIDDLE_HD static void load_columns(Complex (&v)[H], const ForwardArguments& arguments, const TilePlace& place,
                                      int column) {
    const int width = arguments.tiles.plane_width();
    const std::int64_t at = place.plane + std::int64_t(place.rows.first) * width + place.columns.first + column;
    const auto aligned = [&](const float* from) {
      return from == nullptr || reinterpret_cast<std::uintptr_t>(from + at) % sizeof(Complex) == 0;
    };
    const bool even = (place.columns.begin | place.columns.end | width) % 2 == 0 && aligned(arguments.source) &&
                      aligned(arguments.mask);
    const bool first = place.columns.has(column), second = place.columns.has(column + 1);
    const auto load = [&](const float* from, auto&& take) {
      if (even)
        unrolled<H>([&](auto row) {
          if (first && place.rows.has(row)) take(row, *reinterpret_cast<const Complex*>(from + row * width));
        });
      else
        unrolled<H>([&](auto row) {
          if (!place.rows.has(row)) return;
          take(row, Complex{first ? from[row * width] : 0, second ? from[row * width + 1] : 0});
        });
    };
    const auto load_all = [&](const float* from) {
      unrolled<H>([&](auto row) { v[row] = Complex{0, 0}; });
      load(from + at, [&](auto row, Complex value) { v[row] = value; });
    };
    // The mask is loaded first and kept as one bit an element, since registers do not suffice for both arrays: so all
    // loads of the mask are in flight together, and then all loads of the source.
    constexpr int words = (H + 31) / 32;
    std::uint32_t passes_first[words] = {}, passes_second[words] = {};
    const bool masked = arguments.mask != nullptr;
    if (masked) {
      load_all(arguments.mask);
      unrolled<H>([&](auto row) {
        passes_first[row / 32] |= std::uint32_t(v[row].re > 0) << row % 32;
        passes_second[row / 32] |= std::uint32_t(v[row].im > 0) << row % 32;
      });
    }
    load_all(arguments.source);
    if (!masked) return;
    unrolled<H>([&](auto row) {
      if ((passes_first[row / 32] >> row % 32 & 1) == 0) v[row].re = 0;
      if ((passes_second[row / 32] >> row % 32 & 1) == 0) v[row].im = 0;
    });
  }
};

}  // namespace twiddle::small_fft
