#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/planes/plane_fft.h"
#include "fft/cuda/planes/plane_store.h"

// The way back of plane_fft.h. Where a block's bins come from is a type of its own, so that they need not be stored.
namespace twiddle::small_fft {

struct InverseArguments : PlaneTarget {
  std::int64_t pitch;  // numbers of a bin
  const Complex* spectrum;
  bool in_order;           // all tiles are of one colour, so that they are counted as their spectra lie
  std::int64_t ahead = 0;  // a block asks the cache for the bins of the one that comes so many behind it; 0: of none
};

// Bins of P planes that follow each other in their spectrum. Such a type says which planes a block has and where their
// bins begin; bins are read one after the other.
template <int P>
class StoredBins {
 public:
  static constexpr int planes = P;
  using Arguments = InverseArguments;
  static std::int64_t blocks(const Arguments& arguments) { return (arguments.tiles.count() + P - 1) / P; }

  TWIDDLE_HD StoredBins(const Arguments& arguments, std::int64_t block, int plane)
      : index_(block * P + plane), there_(plane < P && index_ < arguments.tiles.count()) {}
  TWIDDLE_HD bool there() const { return there_; }
  TWIDDLE_HD std::int64_t index() const { return index_; }  // among the tiles

  // visit(place) for what of a block's `bins` is a thread's, each place a cache line of 128 bytes or less from the
  // next.
  template <class Visit>
  TWIDDLE_HD static void for_each_line(const Arguments& arguments, std::int64_t block, int bins, int thread,
                                       int threads, const Visit& visit) {
    if (!arguments.in_order || (block + 1) * P > arguments.tiles.count()) return;
    constexpr int line = 16;
    for (int bin = thread; bin < bins; bin += threads)
      for (int plane = 0; plane < P; plane += line)
        visit(arguments.spectrum + block * P + plane + bin * arguments.pitch);
  }

  struct Cursor {
    const Complex* at;
    std::int64_t pitch;
    TWIDDLE_HD Complex next() {
      const Complex value = *at;
      at += pitch;
      return value;
    }
  };
  TWIDDLE_HD Cursor from(const Arguments& arguments, int bin) const {
    const std::int64_t place = arguments.in_order ? index_ : arguments.tiles(index_).spectrum;
    return {arguments.spectrum + place + bin * arguments.pitch, arguments.pitch};
  }

 private:
  std::int64_t index_;
  bool there_;
};

// A thread's row of a plane's bins: what store_bins() stored.
template <int H, int W, class Bins>
TWIDDLE_HD void load_bins(Complex (&v)[W], const Bins& bins, const typename Bins::Arguments& arguments, int row) {
  if (row > 0) {
    auto at = bins.from(arguments, 2 * PlaneSize<H, W>::half_row + (row - 1) * W);
    unrolled<W>([&](auto column) { v[column] = at.next(); });
    return;
  }
  auto first = bins.from(arguments, 0), middle = bins.from(arguments, PlaneSize<H, W>::half_row);
  v[0] = {first.next().re, middle.next().re};
  unrolled<W / 2 - 1>([&](auto before) {
    constexpr int column = decltype(before)::value + 1;
    const Complex a = first.next(), b = middle.next();
    v[column] = {a.re - b.im, a.im + b.re};
    v[W - column] = {a.re + b.im, b.re - a.im};
  });
  v[W / 2] = {first.next().re, middle.next().re};
}

template <int H, int W, class Bins>
struct InverseBlock : PlaneBlock<H, W, Bins::planes> {
  using Base = PlaneBlock<H, W, Bins::planes>;
  using typename Base::Size;
  using Arguments = typename Bins::Arguments;
  static constexpr int P = Bins::planes;
  struct alignas(16) Shared {
    union {
      Complex numbers[P * Size::pitch];
      float stage[2 * P * Size::pitch];  // planes on their way out, when all columns are read
    };
    TilePlace places[P];  // found once for all threads: what one keeps in registers beside its numbers is dear
    float biases[P];
  };

  TWIDDLE_HD static void rows(const Arguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const int plane = thread % P, row = thread / P;
    const Bins bins(arguments, block, plane);
    if (row >= Size::rows || !bins.there()) return;
    Complex v[W];
    load_bins<H, W>(v, bins, arguments, row);
    if (row == 0) {
      // On its way beside the bins: were it loaded behind the barrier, the whole block would stand still for it (of
      // 32x32 4 to 7 % of the time).
      const bool biased = arguments.bias != nullptr;
      const float* const bias = biased ? arguments.bias + arguments.tiles.column(bins.index()) : nullptr;
      copy_beside(shared.biases + plane, bias, biased);
    }
    transform<backwards>(v);
    // Side by side lies what a thread has of this row afterwards: the numbers of its two columns.
    Complex* const numbers = shared.numbers + plane * Size::pitch + row * W;
    if (TwoColumns<H, W>::neighbours(arguments))
      store_numbers(v, numbers);
    else
      unrolled<W / 2>([&](auto i) { reinterpret_cast<ComplexPair*>(numbers)[i] = {v[i], v[i + W / 2]}; });
    if (row > 0) return;
    shared.places[plane] = arguments.tiles(bins.index());
    end_batch();
    wait_for_all_but<0>();
  }

  // Two columns to `v`, finished.
  TWIDDLE_HD static void columns(const Arguments& arguments, std::int64_t block, int thread, const Shared& shared,
                                 Complex (&v)[H]) {
    const int plane = thread / Size::pairs, pair = thread % Size::pairs;
    if (!Bins(arguments, block, plane).there()) return;
    columns_from_rows<H, W>(v, shared.numbers + plane * Size::pitch, pair);
    constexpr float scale = 1.f / (H * W);
    const float bias = shared.biases[plane];
    unrolled<H>([&](auto row) {
      v[row] = {v[row].re * scale + bias, v[row].im * scale + bias};
      if (!arguments.relu) return;
      v[row] = {v[row].re < 0 ? 0 : v[row].re, v[row].im < 0 ? 0 : v[row].im};  // NaN stays
    });
  }

  // From the registers to their planes.
  TWIDDLE_HD static void store_columns(const Arguments& arguments, std::int64_t block, int thread, const Shared& shared,
                                       Complex (&v)[H]) {
    const int plane = thread / Size::pairs;
    if (!Bins(arguments, block, plane).there()) return;
    TwoColumns<H, W>(arguments, shared.places[plane], thread % Size::pairs).store(v);
  }

  // What of the columns lies in their planes, as one matrix a plane.
  TWIDDLE_HD static void gather(const Arguments& arguments, std::int64_t block, int thread, Shared& shared,
                                const Complex (&v)[H]) {
    const int plane = thread / Size::pairs, column = 2 * (thread % Size::pairs);
    if (!Bins(arguments, block, plane).there()) return;
    const TilePlace& place = shared.places[plane];
    const int width = arguments.stage_width;
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
  TWIDDLE_HD static int gathered(const Arguments& arguments, std::int64_t block) {
    const std::int64_t left = arguments.tiles.count() - block * P;
    return stage_size(arguments) * (left < P ? static_cast<int>(left) : P);
  }

  TWIDDLE_HD static void store_gathered(const Arguments& arguments, std::int64_t block, int thread,
                                        const Shared& shared) {
    float* const target = arguments.target + shared.places[0].plane;
    const int count = gathered(arguments, block);
    const int fours = reinterpret_cast<std::uintptr_t>(target) % sizeof(Four) == 0 ? count / 4 : 0;
    for (int i = thread; i < fours; i += Base::threads)
      reinterpret_cast<Four*>(target)[i] = reinterpret_cast<const Four*>(shared.stage)[i];
    for (int i = 4 * fours + thread; i < count; i += Base::threads) target[i] = shared.stage[i];
  }

 private:
  TWIDDLE_HD static int stage_size(const Arguments& arguments) {
    return arguments.stage_height * arguments.stage_width;
  }
};

}  // namespace twiddle::small_fft
