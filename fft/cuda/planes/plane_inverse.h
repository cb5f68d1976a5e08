#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/planes/plane_fft.h"
#include "fft/cuda/planes/plane_store.h"

// The inverse transform, plane_fft.h backwards: phase 1 rows, phase 2 columns, with scale, bias and ReLU as an epilogue
// in registers. Where the bins come from is a template parameter, the Source: StoredSource reads a spectrum from
// memory; FusedProductSource (fused_product_source.h) multiplies two spectra as it reads, so that their product is
// never stored.
namespace twiddle::small_fft {

struct InverseArguments : PlaneTarget {
  std::int64_t pitch;  // from bin to bin
  const Complex* spectrum;
  bool single_colour;                  // then a tile's index is its index in the spectrum
  std::int64_t prefetch_distance = 0;  // from a block to the one that it prefetches for
};

// The bins of P consecutive planes of a stored spectrum. A Source says which planes a block has (index, there) and
// gives cursors that read the bins of a plane one after the other.
template <int P>
class StoredSource {
 public:
  static constexpr int planes = P;
  using Arguments = InverseArguments;
  static std::int64_t blocks(const Arguments& arguments) { return (arguments.tiles.count() + P - 1) / P; }

  TWIDDLE_HD StoredSource(const Arguments& arguments, std::int64_t block, int plane)
      : index_(block * P + plane), there_(plane < P && index_ < arguments.tiles.count()) {}
  TWIDDLE_HD bool there() const { return there_; }
  TWIDDLE_HD std::int64_t index() const { return index_; }  // among the tiles

  // For a prefetch: visit(address) once for each cache line (128 bytes, 16 numbers) of the block's bins that is this
  // thread's share. Lines of a block that is not full are left out.
  template <class Visit>
  TWIDDLE_HD static void for_each_line(const Arguments& arguments, std::int64_t block, int bins, int thread,
                                       int threads, const Visit& visit) {
    if (!arguments.single_colour || (block + 1) * P > arguments.tiles.count()) return;
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
    const std::int64_t place = arguments.single_colour ? index_ : arguments.tiles(index_).spectrum;
    return {arguments.spectrum + place + bin * arguments.pitch, arguments.pitch};
  }

 private:
  std::int64_t index_;
  bool there_;
};

// A thread's row of a plane's bins: the inverse of store_bins().
template <int H, int W, class Source>
TWIDDLE_HD void load_bins(Complex (&v)[W], const Source& source, const typename Source::Arguments& arguments, int row) {
  if (row > 0) {
    auto at = source.from(arguments, 2 * PlaneSize<H, W>::half_row + (row - 1) * W);
    unrolled<W>([&](auto column) { v[column] = at.next(); });
    return;
  }
  auto first = source.from(arguments, 0), middle = source.from(arguments, PlaneSize<H, W>::half_row);
  v[0] = {first.next().re, middle.next().re};
  unrolled<W / 2 - 1>([&](auto before) {
    constexpr int column = decltype(before)::value + 1;
    const Complex a = first.next(), b = middle.next();
    v[column] = {a.re - b.im, a.im + b.re};
    v[W - column] = {a.re + b.im, b.re - a.im};
  });
  v[W / 2] = {first.next().re, middle.next().re};
}

template <int H, int W, class Source>
struct InverseBlock : PlaneBlock<H, W, Source::planes> {
  using Base = PlaneBlock<H, W, Source::planes>;
  using typename Base::Size;
  using Arguments = typename Source::Arguments;
  static constexpr int P = Source::planes;
  struct alignas(16) Shared {
    union {
      Complex numbers[P * Size::pitch];
      float stage[2 * P * Size::pitch];  // finished planes before their bulk store; reuses the memory of `numbers`
    };
    TilePlace places[P];  // computed once a plane: in registers they would lower the number of resident blocks
    float biases[P];
  };

  TWIDDLE_HD static void rows(const Arguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const int plane = thread % P, row = thread / P;
    const Source source(arguments, block, plane);
    if (row >= Size::rows || !source.there()) return;
    Complex v[W];
    load_bins<H, W>(v, source, arguments, row);
    if (row == 0) {
      // In flight while the rows are transformed. If it were loaded after the barrier, the whole block would stall for
      // its latency: of 32x32 planes 4 to 7 % of the time.
      const bool biased = arguments.bias != nullptr;
      const float* const bias = biased ? arguments.bias + arguments.tiles.column(source.index()) : nullptr;
      async_copy(shared.biases + plane, bias, biased);
    }
    transform<backwards>(v);
    // In phase 2 a thread reads the numbers of its two columns as one pair: adjacent columns, or such that are W/2
    // apart.
    Complex* const numbers = shared.numbers + plane * Size::pitch + row * W;
    if (PlaneStore<H, W>::adjacent(arguments))
      store_numbers(v, numbers);
    else
      unrolled<W / 2>([&](auto i) { reinterpret_cast<ComplexPair*>(numbers)[i] = {v[i], v[i + W / 2]}; });
    if (row > 0) return;
    shared.places[plane] = arguments.tiles(source.index());
    commit_group();
    wait_group<0>();
  }

  // Phase 2: two columns in `v`, transformed, and the epilogue applied.
  TWIDDLE_HD static void columns(const Arguments& arguments, std::int64_t block, int thread, const Shared& shared,
                                 Complex (&v)[H]) {
    const int plane = thread / Size::pairs, pair = thread % Size::pairs;
    if (!Source(arguments, block, plane).there()) return;
    columns_from_rows<H, W>(v, shared.numbers + plane * Size::pitch, pair);
    constexpr float scale = 1.f / (H * W);
    const float bias = shared.biases[plane];
    unrolled<H>([&](auto row) {
      v[row] = {v[row].re * scale + bias, v[row].im * scale + bias};
      if (!arguments.relu) return;
      v[row] = {v[row].re < 0 ? 0 : v[row].re, v[row].im < 0 ? 0 : v[row].im};  // NaN stays
    });
  }

  // Phase 3, one of two ways: from registers to global memory.
  TWIDDLE_HD static void store_columns(const Arguments& arguments, std::int64_t block, int thread, const Shared& shared,
                                       Complex (&v)[H]) {
    const int plane = thread / Size::pairs;
    if (!Source(arguments, block, plane).there()) return;
    PlaneStore<H, W>(arguments, shared.places[plane], thread % Size::pairs).store(v);
  }

  // Phase 3, the alternative: through shared memory, where the cropped planes become the one contiguous range that they
  // are in global memory. gather() fills it; a bulk store or store_gathered() copies it.
  TWIDDLE_HD static void gather(const Arguments& arguments, std::int64_t block, int thread, Shared& shared,
                                const Complex (&v)[H]) {
    const int plane = thread / Size::pairs, column = 2 * (thread % Size::pairs);
    if (!Source(arguments, block, plane).there()) return;
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

  // The floats of that range.
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
