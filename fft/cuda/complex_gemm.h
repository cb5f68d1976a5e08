#pragma once
#include "fft/cuda/async_copy.h"
#include "fft/frequency_product.h"
#include "framework/for_each.h"

// Complex matrix products C = A B, one a bin. A block sums a tile of C over a part of k: it copies the factors' next
// few rows and columns to shared memory while it multiplies those that are there. What its threads do between barriers
// are functions of a thread's number, so that a CPU can follow them.
namespace twiddle::small_fft {

// A factor seen as lines along k: rows of A, columns of B. One of the two strides is 1.
struct GemmFactor {
  const Complex* numbers;
  std::int64_t bin_size, line_stride, k_stride;
  int lines;
};

struct GemmArguments {
  GemmFactor a, b;
  Complex* c;  // a result for each part of k: [part][bin][m][n]
  std::int64_t bins;
  int m, n, k, part;  // the k of a part: a multiple of the tile's depth
  Divisor parts, tiles_down, tiles_across;
  std::int64_t blocks() const { return bins * parts.value() * tiles_down.value() * tiles_across.value(); }
  bool accumulate, negate_im, pairs;  // pairs: C's rows begin where a pair of numbers may be stored at once
};

inline GemmArguments gemm_arguments(const FrequencyGemm& gemm, int tile_rows, int tile_columns, std::int64_t part,
                                    const void* a, const void* b, void* c) {
  const auto m = static_cast<int>(gemm.m), n = static_cast<int>(gemm.n), k = static_cast<int>(gemm.k);
  const auto in_steps = [](std::int64_t count, std::int64_t step) { return Divisor((count + step - 1) / step); };
  GemmFactor rows{static_cast<const Complex*>(a), gemm.m * gemm.k, gemm.k, 1, m};
  if (gemm.transpose_a) rows.line_stride = 1, rows.k_stride = gemm.m;
  GemmFactor columns{static_cast<const Complex*>(b), gemm.k * gemm.n, 1, gemm.n, n};
  if (gemm.transpose_b) columns.line_stride = gemm.k, columns.k_stride = 1;
  const Divisor parts = in_steps(k, part);
  return {.a = rows,
          .b = columns,
          .c = static_cast<Complex*>(c),
          .bins = gemm.bins,
          .m = m,
          .n = n,
          .k = k,
          .part = static_cast<int>(part),
          .parts = parts,
          .tiles_down = in_steps(m, tile_rows),
          .tiles_across = in_steps(n, tile_columns),
          .accumulate = gemm.accumulate && parts.value() == 1,
          .negate_im = gemm.conjugate_a,
          .pairs = n % 2 == 0 && reinterpret_cast<std::uintptr_t>(c) % sizeof(ComplexPair) == 0};
}

// How products are summed: the usual way. Opposite: one of the two factors is conjugated. (If it is A, or if both are,
// the result's imaginary part changes its sign.)
template <bool Opposite>
struct FourMultiplications {
  using Factor = Complex;
  using Sum = Complex;
  TWIDDLE_HD static Factor left(Complex value) { return value; }
  TWIDDLE_HD static Factor right(Complex value) { return value; }
  TWIDDLE_HD static void add(Sum& sum, Factor a, Factor b) {
    sum.re += a.re * b.re;
    sum.im += a.im * b.re;
    sum.re += Opposite ? a.im * b.im : -a.im * b.im;
    sum.im += Opposite ? -a.re * b.im : a.re * b.im;
  }
  TWIDDLE_HD static Complex value(Sum sum) { return sum; }
};

// Gauss's way: a product of sums has both parts of the imaginary part in it.
template <bool Opposite>
struct ThreeMultiplications {
  struct Factor {
    float re, im, both;
  };
  using Sum = Factor;
  TWIDDLE_HD static Factor left(Complex value) { return {value.re, value.im, value.re + value.im}; }
  TWIDDLE_HD static Factor right(Complex value) {
    return {value.re, value.im, Opposite ? value.re - value.im : value.re + value.im};
  }
  TWIDDLE_HD static void add(Sum& sum, Factor a, Factor b) {
    sum.re += a.re * b.re, sum.im += a.im * b.im, sum.both += a.both * b.both;
  }
  TWIDDLE_HD static Complex value(Sum sum) {
    return Opposite ? Complex{sum.re + sum.im, sum.both - sum.re + sum.im}
                    : Complex{sum.re - sum.im, sum.both - sum.re - sum.im};
  }
};

// A tile of C, what of it one thread has, and how many k are copied at once, to one of how many places.
template <int Rows, int Columns, int ThreadRows, int ThreadColumns, int Depth = 8, int Stages = 4>
struct GemmTile {
  static_assert(ThreadRows % 2 == 0 && ThreadColumns % 2 == 0, "threads load pairs");
  static constexpr int rows = Rows, columns = Columns, depth = Depth, stages = Stages;
  static constexpr int thread_rows = ThreadRows, thread_columns = ThreadColumns;
  static constexpr int threads_down = Rows / ThreadRows, threads_across = Columns / ThreadColumns;
  static constexpr int threads = threads_down * threads_across;
  static constexpr int warp_across = threads_across < 8 ? threads_across : 8, warp_down = 32 / warp_across;
  static_assert(threads_down % warp_down == 0 && threads_across % warp_across == 0);
};

// A thread's share of copying one factor: the next Depth numbers of Lines lines, again and again. Shared memory has
// them as [k][line].
template <int Lines, int Depth, int Threads>
struct FactorCopy {
  // Lines that follow each other along k are spread over all banks.
  static constexpr int pitch = Lines + 2;
  static constexpr int shares = (Lines * Depth + Threads - 1) / Threads;
  static_assert(Threads % Depth == 0 && Threads % Lines == 0 && (shares == 1 || Lines * Depth % Threads == 0));

  const Complex* from;
  int to, k, lines;  // lines: that the factor has from the thread's first one on; to: -1 where the thread has no share

  // Neighbouring threads copy neighbouring numbers.
  TWIDDLE_HD FactorCopy(const GemmFactor& factor, std::int64_t bin, int first_line, int first_k, int thread) {
    const bool along_k = factor.k_stride == 1;
    const int line = along_k ? thread / Depth : thread % Lines;
    k = along_k ? thread % Depth : thread / Lines;
    from = factor.numbers + bin * factor.bin_size + (first_line + line) * factor.line_stride +
           std::int64_t(first_k + k) * factor.k_stride;
    to = line < Lines && k < Depth ? k * pitch + line : -1;
    lines = factor.lines - first_line - line;
  }

  // `left`: how many k there are still.
  TWIDDLE_HD void operator()(const GemmFactor& factor, Complex* shared, int left) {
    const bool along_k = factor.k_stride == 1;
    const int line_step = along_k ? Threads / Depth : 0, k_step = along_k ? 0 : Threads / Lines;
    const std::int64_t from_step = line_step * factor.line_stride + k_step * factor.k_stride;
    if (to >= 0 || Lines * Depth >= Threads)
#pragma unroll
      for (int i = 0; i < shares; ++i)
        copy_beside(shared + to + i * (k_step * pitch + line_step), from + i * from_step,
                    i * line_step < lines && k + i * k_step < left);
    from += Depth * factor.k_stride;
  }
};

template <class Tile, class Products>
struct GemmBlock {
  using CopyA = FactorCopy<Tile::rows, Tile::depth, Tile::threads>;
  using CopyB = FactorCopy<Tile::columns, Tile::depth, Tile::threads>;

  // Which tile the block has. In shared memory, for what a thread keeps in registers beside its sums is dear.
  struct Place {
    std::int64_t matrix;  // numbers before that of the bin and part
    int row, column;      // the tile's first
  };
  struct alignas(16) Stage {
    Complex a[Tile::depth * CopyA::pitch], b[Tile::depth * CopyB::pitch];
  };
  struct Shared {
    Stage stages[Tile::stages];
    Place place;
  };
  struct Thread {
    CopyA copy_a;
    CopyB copy_b;
    int left;          // k that are not multiplied yet
    int down, across;  // where it is among the block's threads
    typename Products::Sum sums[Tile::thread_rows][Tile::thread_columns];
  };

  TWIDDLE_HD static Thread begin(const GemmArguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const std::int64_t strip = arguments.tiles_across.quotient(block), slab = arguments.tiles_down.quotient(strip);
    const std::int64_t bin = arguments.parts.quotient(slab), part = arguments.parts.remainder(slab);
    const int row = static_cast<int>(arguments.tiles_down.remainder(strip)) * Tile::rows;
    const int column = static_cast<int>(arguments.tiles_across.remainder(block)) * Tile::columns;
    const int first_k = static_cast<int>(part) * arguments.part;
    const int k = arguments.k - first_k < arguments.part ? arguments.k - first_k : arguments.part;
    if (thread == 0) shared.place = {(part * arguments.bins + bin) * arguments.m * arguments.n, row, column};
    constexpr int warps_across = Tile::threads_across / Tile::warp_across;
    const int warp = thread / 32, lane = thread % 32;
    return {CopyA(arguments.a, bin, row, first_k, thread),
            CopyB(arguments.b, bin, column, first_k, thread),
            k,
            warp / warps_across * Tile::warp_down + lane / Tile::warp_across,
            warp % warps_across * Tile::warp_across + lane % Tile::warp_across,
            {}};
  }

  // The numbers of the step `ahead` of the one that is multiplied next.
  TWIDDLE_HD static void copy(const GemmArguments& arguments, Thread& self, Shared& shared, int step, int ahead) {
    const int left = self.left - ahead * Tile::depth;
    if (left <= 0) return;
    Stage& stage = shared.stages[(step + ahead) % Tile::stages];
    self.copy_a(arguments.a, stage.a, left);
    self.copy_b(arguments.b, stage.b, left);
  }

  TWIDDLE_HD static void multiply(Thread& self, const Shared& shared, int step) {
    const Stage& stage = shared.stages[step % Tile::stages];
    if (self.left >= Tile::depth) {
#pragma unroll
      for (int k = 0; k < Tile::depth; ++k) multiply_one(self, stage, k);
    } else {
#pragma unroll 1
      for (int k = 0; k < self.left; ++k) multiply_one(self, stage, k);
    }
    self.left -= Tile::depth;
  }

  // Sums of more products than these lose digits: what there is goes to C then.
  static constexpr int most_products = 256, most_steps = most_products / Tile::depth;
  static_assert(most_products % Tile::depth == 0);
  TWIDDLE_HD static bool stores(const Thread& self, int step) {
    return self.left <= 0 || step % most_steps == most_steps - 1;
  }

  TWIDDLE_HD static void store(const GemmArguments& arguments, Thread& self, const Shared& shared, int step) {
    const bool add = arguments.accumulate || step >= most_steps;
    const Place& place = shared.place;
#pragma unroll
    for (int i = 0; i < Tile::thread_rows; ++i) {
      const int row = place.row + place_of_pair<Tile::threads_down>(self.down, i);
      if (row >= arguments.m) continue;
      Complex* const at = arguments.c + place.matrix + std::int64_t(row) * arguments.n;
#pragma unroll
      for (int j = 0; j < Tile::thread_columns; j += 2) {
        const int column = place.column + place_of_pair<Tile::threads_across>(self.across, j);
        const Complex first = result(arguments, self.sums[i][j]), second = result(arguments, self.sums[i][j + 1]);
        if (arguments.pairs && column < arguments.n) {
          auto* const pair = reinterpret_cast<ComplexPair*>(at + column);
          const ComplexPair before = add ? *pair : ComplexPair{};
          *pair = {before.first + first, before.second + second};
        } else {
          if (column < arguments.n) at[column] = add ? at[column] + first : first;
          if (column + 1 < arguments.n) at[column + 1] = add ? at[column + 1] + second : second;
        }
        self.sums[i][j] = self.sums[i][j + 1] = {};
      }
    }
  }

 private:
  // A thread has pairs of the tile's rows and columns, as far apart as all threads' pairs take: the tile's place of
  // its i-th one.
  template <int Threads>
  TWIDDLE_HD static int place_of_pair(int thread, int i) {
    return 2 * (thread + i / 2 * Threads) + i % 2;
  }

  TWIDDLE_HD static void multiply_one(Thread& self, const Stage& stage, int k) {
    typename Products::Factor left[Tile::thread_rows], right[Tile::thread_columns];
    const auto* const a = reinterpret_cast<const ComplexPair*>(stage.a + k * CopyA::pitch) + self.down;
    const auto* const b = reinterpret_cast<const ComplexPair*>(stage.b + k * CopyB::pitch) + self.across;
#pragma unroll
    for (int i = 0; i < Tile::thread_rows; i += 2) {
      const ComplexPair pair = a[i / 2 * Tile::threads_down];
      left[i] = Products::left(pair.first), left[i + 1] = Products::left(pair.second);
    }
#pragma unroll
    for (int j = 0; j < Tile::thread_columns; j += 2) {
      const ComplexPair pair = b[j / 2 * Tile::threads_across];
      right[j] = Products::right(pair.first), right[j + 1] = Products::right(pair.second);
    }
#pragma unroll
    for (int i = 0; i < Tile::thread_rows; ++i)
#pragma unroll
      for (int j = 0; j < Tile::thread_columns; ++j) Products::add(self.sums[i][j], left[i], right[j]);
  }

  TWIDDLE_HD static Complex result(const GemmArguments& arguments, typename Products::Sum sum) {
    const Complex value = Products::value(sum);
    return {value.re, arguments.negate_im ? -value.im : value.im};
  }
};

}  // namespace twiddle::small_fft
