#pragma once
#include "fft/cuda/register_fft.h"
#include "fft/cuda/tile_map.h"

// Real transforms of small planes, wholly on chip: a block takes planes that are neighbours in their spectra, so that
// it writes and reads each bin as one stretch. A thread has all of a column or of a row in its registers; the two meet
// once, in shared memory. (Vasilache et al., Fast Convolutional Nets With fbfft, 2015, section 5, gave the idea; theirs
// keeps a plane in one warp and writes it as it lies.) What a block does between its barriers are functions of a
// thread's number, so that a CPU can follow it.
namespace twiddle::small_fft {

// Planes of H x W points, both even, and what of their spectra is stored: rows 0 and H/2 of real planes' spectra are
// conjugates of themselves backwards, so that half of each will do; of the others, one of each two.
// Bins: row 0, columns 0 .. W/2; row H/2 likewise; rows 1 .. H/2 - 1 whole.
template <int H, int W>
struct PlaneSize {
  static_assert(H % 2 == 0 && W % 2 == 0);
  static constexpr int half_row = W / 2 + 1;
  static constexpr int bins = 2 * half_row + (H / 2 - 1) * W;
  static constexpr int pairs = W / 2, rows = H / 2;  // threads of a plane: one for two columns, then one for a row
  // Complex numbers of a plane in shared memory: an odd number of pairs, so that the same pair of neighbouring planes
  // lies in other banks.
  static constexpr int pitch = 2 * ((H * W / 4) | 1);
};

// The first step of a plane: two real columns are one complex column, whose transform is taken apart by its symmetry.
// Row 0 of what is left at `plane` holds rows 0 and H/2: both are real there.
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

// The way back of it.
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

template <int W>
TWIDDLE_HD void load_row(Complex (&v)[W], const Complex* row) {
  unrolled<W / 2>([&](auto i) {
    const ComplexPair pair = reinterpret_cast<const ComplexPair*>(row)[i];
    v[2 * i] = pair.first, v[2 * i + 1] = pair.second;
  });
}

template <int W>
TWIDDLE_HD void store_row(const Complex (&v)[W], Complex* row) {
  unrolled<W / 2>([&](auto i) { reinterpret_cast<ComplexPair*>(row)[i] = {v[2 * i], v[2 * i + 1]}; });
}

// A thread's row of the spectrum to its bins, which lie `pitch` numbers apart. Row 0 is rows 0 and H/2, as the real and
// the imaginary part of what was transformed.
template <int H, int W>
TWIDDLE_HD void store_bins(const Complex (&v)[W], Complex* spectrum, std::int64_t pitch, int row) {
  if (row > 0) {
    Complex* at = spectrum + (2 * PlaneSize<H, W>::half_row + (row - 1) * W) * pitch;
    unrolled<W>([&](auto column) { *at = v[column], at += pitch; });
    return;
  }
  Complex* const middle = spectrum + PlaneSize<H, W>::half_row * pitch;
  spectrum[0] = {v[0].re, 0}, middle[0] = {v[0].im, 0};
  spectrum[W / 2 * pitch] = {v[W / 2].re, 0}, middle[W / 2 * pitch] = {v[W / 2].im, 0};
  unrolled<W / 2 - 1>([&](auto before) {
    constexpr int column = decltype(before)::value + 1;
    const Complex a = v[column], b = v[W - column];
    spectrum[column * pitch] = {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)};
    middle[column * pitch] = {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)};
  });
}

template <int H, int W>
TWIDDLE_HD void load_bins(Complex (&v)[W], const Complex* spectrum, std::int64_t pitch, int row) {
  if (row > 0) {
    const Complex* at = spectrum + (2 * PlaneSize<H, W>::half_row + (row - 1) * W) * pitch;
    unrolled<W>([&](auto column) { v[column] = *at, at += pitch; });
    return;
  }
  const Complex* const middle = spectrum + PlaneSize<H, W>::half_row * pitch;
  v[0] = {spectrum[0].re, middle[0].re};
  v[W / 2] = {spectrum[W / 2 * pitch].re, middle[W / 2 * pitch].re};
  unrolled<W / 2 - 1>([&](auto before) {
    constexpr int column = decltype(before)::value + 1;
    const Complex a = spectrum[column * pitch], b = middle[column * pitch];
    v[column] = {a.re - b.im, a.im + b.re};
    v[W - column] = {a.re + b.im, b.re - a.im};
  });
}

// A block takes P planes: threads [0, P * pairs) have columns, threads [0, P * rows) rows.
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
  std::int64_t pitch;  // numbers of a bin
  const float* source;
  Complex* spectrum;
};

template <int H, int W, int P>
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
    load_columns(v, arguments.source, arguments.tiles(block * P + plane), arguments.tiles.plane_width(), 2 * pair);
    columns_to_rows<H, W>(v, shared.numbers + plane * Size::pitch, pair);
  }

  TWIDDLE_HD static void rows(const ForwardArguments& arguments, std::int64_t block, int thread, const Shared& shared) {
    const int plane = thread % P, row = thread / P;
    if (row >= Size::rows || !Base::has(arguments.tiles, block, plane)) return;
    Complex v[W];
    load_row(v, shared.numbers + plane * Size::pitch + row * W);
    transform<forwards>(v);
    store_bins<H, W>(v, arguments.spectrum + (block * P + plane), arguments.pitch, row);
  }

 private:
  // Zeros outside of the plane are not read. Two columns go at once where they lie at even places.
  TWIDDLE_HD static void load_columns(Complex (&v)[H], const float* source, const TilePlace& place, int width,
                                      int column) {
    const float* const at =
        source + place.plane + std::int64_t(place.rows.first) * width + place.columns.first + column;
    const bool even = (place.columns.begin | place.columns.end | width) % 2 == 0 &&
                      reinterpret_cast<std::uintptr_t>(at) % sizeof(Complex) == 0;
    const bool first = place.columns.has(column), second = place.columns.has(column + 1);
    const TileSpan rows = place.rows;
    if (even) {
      unrolled<H>([&](auto row) {
        v[row] = Complex{0, 0};
        if (first && rows.has(row)) v[row] = *reinterpret_cast<const Complex*>(at + row * width);
      });
    } else {
      unrolled<H>([&](auto row) {
        v[row] = Complex{0, 0};
        if (first && rows.has(row)) v[row].re = at[row * width];
        if (second && rows.has(row)) v[row].im = at[row * width + 1];
      });
    }
  }
};

struct InverseArguments {
  TileMap tiles;
  std::int64_t pitch;
  const Complex* spectrum;
  float* target;
  const float* bias;  // one a column; null: none
  bool relu;
  bool in_order;  // all tiles are of one colour, so that they are counted as their spectra lie
  // Whether all rows of columns go from the registers, as pairs; else they are gathered in shared memory first.
  bool even_rows;
  bool side_by_side;  // planes lie behind each other and each is one tile: what is gathered is one stretch
  bool add;           // to what launches of earlier colours wrote
  Divisor stage_height, stage_width;  // of a plane that is gathered: most_rows(), most_columns()
};

template <int H, int W, int P>
struct InverseBlock : PlaneBlock<H, W, P> {
  using Base = PlaneBlock<H, W, P>;
  using typename Base::Size;
  struct alignas(16) Shared {
    union {
      Complex numbers[P * Size::pitch];
      float stage[2 * P * Size::pitch];  // planes on their way out, when all columns are read
    };
    TilePlace places[P];  // found once for all threads: what one keeps in registers beside its numbers is dear
  };

  TWIDDLE_HD static void rows(const InverseArguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const int plane = thread % P, row = thread / P;
    if (row >= Size::rows || !Base::has(arguments.tiles, block, plane)) return;
    const std::int64_t index = block * P + plane;
    const std::int64_t place = arguments.in_order ? index : arguments.tiles(index).spectrum;
    Complex v[W];
    load_bins<H, W>(v, arguments.spectrum + place, arguments.pitch, row);
    transform<backwards>(v);
    store_row(v, shared.numbers + plane * Size::pitch + row * W);
    if (row == 0) shared.places[plane] = arguments.tiles(index);
  }

  // Two columns to `v`, finished.
  TWIDDLE_HD static void columns(const InverseArguments& arguments, std::int64_t block, int thread,
                                 const Shared& shared, Complex (&v)[H]) {
    const int plane = thread / Size::pairs, pair = thread % Size::pairs;
    if (!Base::has(arguments.tiles, block, plane)) return;
    columns_from_rows<H, W>(v, shared.numbers + plane * Size::pitch, pair);
    constexpr float scale = 1.f / (H * W);
    const float bias = arguments.bias == nullptr ? 0 : arguments.bias[shared.places[plane].column];
    unrolled<H>([&](auto row) {
      v[row] = {v[row].re * scale + bias, v[row].im * scale + bias};
      if (!arguments.relu) return;
      v[row] = {v[row].re < 0 ? 0 : v[row].re, v[row].im < 0 ? 0 : v[row].im};  // NaN stays
    });
  }

  TWIDDLE_HD static void store_even(const InverseArguments& arguments, std::int64_t block, int thread,
                                    const Shared& shared, const Complex (&v)[H]) {
    const int plane = thread / Size::pairs, column = 2 * (thread % Size::pairs);
    if (!Base::has(arguments.tiles, block, plane)) return;
    const TilePlace& place = shared.places[plane];
    if (!place.columns.has(column)) return;
    const int width = arguments.tiles.plane_width();
    float* const at =
        arguments.target + place.plane + std::int64_t(place.rows.first) * width + place.columns.first + column;
    const TileSpan rows = place.rows;
    unrolled<H>([&](auto row) {
      if (rows.has(row)) *reinterpret_cast<Complex*>(at + row * width) = v[row];
    });
  }

  // What of the columns lies in their planes, as one matrix a plane.
  TWIDDLE_HD static void gather(const InverseArguments& arguments, std::int64_t block, int thread, Shared& shared,
                                const Complex (&v)[H]) {
    const int plane = thread / Size::pairs, column = 2 * (thread % Size::pairs);
    if (!Base::has(arguments.tiles, block, plane)) return;
    const TilePlace& place = shared.places[plane];
    const auto width = static_cast<int>(arguments.stage_width.value());
    const int at = plane * stage_size(arguments) - place.rows.begin * width - place.columns.begin + column;
    const bool first = place.columns.has(column), second = place.columns.has(column + 1);
    const TileSpan rows = place.rows;
    unrolled<H>([&](auto row) {
      if (!rows.has(row)) return;
      if (first) shared.stage[at + row * width] = v[row].re;
      if (second) shared.stage[at + row * width + 1] = v[row].im;
    });
  }

  // How many floats the stage holds.
  TWIDDLE_HD static int gathered(const InverseArguments& arguments, std::int64_t block) {
    const std::int64_t left = arguments.tiles.count() - block * P;
    return stage_size(arguments) * (left < P ? static_cast<int>(left) : P);
  }

  TWIDDLE_HD static void store_gathered(const InverseArguments& arguments, std::int64_t block, int thread,
                                        const Shared& shared) {
    const int count = gathered(arguments, block);
    if (arguments.side_by_side)
      store_stretch(arguments.target + shared.places[0].plane, shared.stage, count, thread);
    else
      store_rows(arguments, count / static_cast<int>(arguments.stage_width.value()), thread, shared);
  }

 private:
  TWIDDLE_HD static int stage_size(const InverseArguments& arguments) {
    return static_cast<int>(arguments.stage_height.value() * arguments.stage_width.value());
  }

  TWIDDLE_HD static void store_stretch(float* target, const float* values, int count, int thread) {
    const int fours = reinterpret_cast<std::uintptr_t>(target) % sizeof(Four) == 0 ? count / 4 : 0;
    for (int i = thread; i < fours; i += Base::threads)
      reinterpret_cast<Four*>(target)[i] = reinterpret_cast<const Four*>(values)[i];
    for (int i = 4 * fours + thread; i < count; i += Base::threads) target[i] = values[i];
  }

  // So many threads beside each other take a row.
  static constexpr int lanes = W <= 8 ? 8 : W <= 16 ? 16 : 32;

  TWIDDLE_HD static void store_rows(const InverseArguments& arguments, int rows, int thread, const Shared& shared) {
    const int rows_at_once = Base::threads / lanes, width = static_cast<int>(arguments.stage_width.value());
    if (thread >= rows_at_once * lanes) return;
    for (int i = thread / lanes; i < rows; i += rows_at_once) {
      const auto plane = static_cast<int>(arguments.stage_height.quotient(i));
      const TilePlace& place = shared.places[plane];
      const int row = place.rows.begin + i - plane * static_cast<int>(arguments.stage_height.value());
      if (row >= place.rows.end) continue;
      float* const at = arguments.target + place.plane +
                        std::int64_t(place.rows.first + row) * arguments.tiles.plane_width() + place.columns.first;
      for (int down_the_row = thread % lanes; down_the_row < width; down_the_row += lanes) {
        const int column = place.columns.begin + down_the_row;
        if (column >= place.columns.end) break;
        const float value = shared.stage[i * width + down_the_row];
        const bool adds = arguments.add && arguments.tiles.written_before(place, row, column);
        at[column] = adds ? at[column] + value : value;
      }
    }
  }
};

}  // namespace twiddle::small_fft
