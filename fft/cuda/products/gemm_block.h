#pragma once
#include "fft/cuda/products/gemm_loader.h"
#include "fft/frequency_product.h"
#include "framework/for_each.h"

// Batched GEMM of complex or of real numbers, C = A B for each bin and group. A block computes one tile of C for a part
// of k, in steps of Tile::depth: while its threads multiply one step from shared memory into sums in registers, async
// copies of the next steps are in flight to other stages of shared memory. The loop over the steps is in gemm_kernel.h.
// The phases are functions of a thread's number, so that a test can run them on a CPU.
namespace twiddle::small_fft {

template <class Number>
struct GemmArguments {
  GemmOperand<Number> a, b;
  Number* c;  // with several parts of k, a spectrum for each
  std::int64_t bins, c_group_step, c_pitch;
  int m, n, k, part;  // part: the length of a part of k, a multiple of the tile's depth
  Divisor groups, parts, tiles_down, tiles_across;
  bool accumulate, negate_im, aligned;  // aligned: all rows of C are, to groups of numbers
  std::int64_t blocks() const {
    return bins * groups.value() * parts.value() * tiles_down.value() * tiles_across.value();
  }
};

// Sums of complex products by four real multiplications each. Opposite: a conj(b) instead of a b. The other cases
// follow from these two, for conj(a) b = conj(a conj(b)) and conj(a) conj(b) = conj(a b): GemmArguments::negate_im.
template <bool Opposite>
struct FourMultiplications {
  using Number = Complex;
  static constexpr int most_terms = 256;
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

// By three, after Gauss: (ar + ai)(br + bi) - ar br - ai bi is the imaginary part. The subtractions are done once, in
// value(), on the three sums.
template <bool Opposite>
struct ThreeMultiplications {
  using Number = Complex;
  static constexpr int most_terms = 256;
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

// Sums of real products by one multiplication each.
struct OneMultiplication {
  using Number = float;
  static constexpr int most_terms = longest_real_sum;
  using Factor = float;
  using Sum = float;
  TWIDDLE_HD static Factor left(float value) { return value; }
  TWIDDLE_HD static Factor right(float value) { return value; }
  TWIDDLE_HD static void add(Sum& sum, Factor a, Factor b) { sum += a * b; }
  TWIDDLE_HD static float value(Sum sum) { return sum; }
};
// One type for both values of Opposite, as real numbers have no conjugates: the kernels are compiled once.
template <bool Opposite>
using RealMultiplications = OneMultiplication;

TWIDDLE_HD inline Complex conjugate_where(bool wanted, Complex value) {
  return {value.re, wanted ? -value.im : value.im};
}
TWIDDLE_HD inline float conjugate_where(bool, float value) {
  return value;
}

// Rows x Columns of C per block, ThreadRows x ThreadColumns of them per thread. Depth is the length of a step of k, and
// Stages the number of steps in shared memory. A warp's threads form a rectangle of the tile, as square as may be,
// so that many of them read the same numbers (a broadcast).
template <int Rows, int Columns, int ThreadRows, int ThreadColumns, int Depth = 8, int Stages = 4>
struct GemmTile {
  static constexpr int rows = Rows, columns = Columns, depth = Depth, stages = Stages;
  static constexpr int thread_rows = ThreadRows, thread_columns = ThreadColumns;
  static constexpr int threads_down = Rows / ThreadRows, threads_across = Columns / ThreadColumns;
  static constexpr int threads = threads_down * threads_across;
  static constexpr int warp_across = threads_across < 8 ? threads_across : 8, warp_down = 32 / warp_across;
  static_assert(threads_down % warp_down == 0 && threads_across % warp_across == 0);
};

template <class Tile, class Products>
struct GemmBlock {
  using Number = typename Products::Number;
  using Group = small_fft::Group<Number>;
  static constexpr int group = Group::size;
  static_assert(Tile::thread_rows % group == 0 && Tile::thread_columns % group == 0, "threads load groups");
  using Arguments = GemmArguments<Number>;
  using LoadA = GemmLoader<Number, Tile::rows, Tile::depth, Tile::threads>;
  using LoadB = GemmLoader<Number, Tile::columns, Tile::depth, Tile::threads>;

  static Arguments arguments(const FrequencyGemm& gemm, std::int64_t part, const void* a, const void* b, void* c) {
    const auto steps = [](std::int64_t count, std::int64_t step) { return Divisor((count + step - 1) / step); };
    const Divisor parts = steps(gemm.k, part);
    return {.a = LoadA::operand(a, gemm.a(), gemm.groups, !gemm.transpose_a),
            .b = LoadB::operand(b, gemm.b(), gemm.groups, gemm.transpose_b),
            .c = static_cast<Number*>(c),
            .bins = gemm.bins,
            .c_group_step = gemm.c().group_step,
            .c_pitch = gemm.c().pitch,
            .m = static_cast<int>(gemm.m),
            .n = static_cast<int>(gemm.n),
            .k = static_cast<int>(gemm.k),
            .part = static_cast<int>(part),
            .groups = Divisor(gemm.groups),
            .parts = parts,
            .tiles_down = steps(gemm.m, Tile::rows),
            .tiles_across = steps(gemm.n, Tile::columns),
            .accumulate = gemm.accumulate && parts.value() == 1,
            .negate_im = gemm.conjugate_a,
            .aligned = gemm.n % group == 0 && reinterpret_cast<std::uintptr_t>(c) % sizeof(Group) == 0};
  }

  // Where the block's tile lies in C. Kept in shared memory until the end, since the sums need nearly all registers.
  struct TileOrigin {
    std::int64_t matrix;  // offset of the matrix of its bin, group and part
    int row, column;
  };
  struct alignas(16) Stage {
    Number a[Tile::depth * LoadA::pitch], b[Tile::depth * LoadB::pitch];
  };
  static constexpr int groups_down = Tile::thread_rows / group, groups_across = Tile::thread_columns / group;
  struct Shared {
    Stage stages[Tile::stages];
    TileOrigin origin;
  };
  struct Thread {
    LoadA load_a;
    LoadB load_b;
    int left;          // k that are still to be multiplied
    int down, across;  // its place in the block's rectangle of threads
    typename Products::Sum sums[Tile::thread_rows][Tile::thread_columns];
  };

  TWIDDLE_HD static Thread begin(const Arguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const std::int64_t strip = arguments.tiles_across.quotient(block), slab = arguments.tiles_down.quotient(strip);
    const std::int64_t matrix = arguments.parts.quotient(slab), part = arguments.parts.remainder(slab);
    const std::int64_t bin = arguments.groups.quotient(matrix), of_group = arguments.groups.remainder(matrix);
    const int row = static_cast<int>(arguments.tiles_down.remainder(strip)) * Tile::rows;
    const int column = static_cast<int>(arguments.tiles_across.remainder(block)) * Tile::columns;
    const int first_k = static_cast<int>(part) * arguments.part;
    const int k = arguments.k - first_k < arguments.part ? arguments.k - first_k : arguments.part;
    const std::int64_t bin_size = arguments.groups.value() * arguments.m * arguments.n;
    if (thread == 0)
      shared.origin = {(part * arguments.bins + bin) * bin_size + of_group * arguments.c_group_step, row, column};
    constexpr int warps_across = Tile::threads_across / Tile::warp_across;
    const int warp = thread / 32, lane = thread % 32;
    return {LoadA(arguments.a, bin, of_group, row, first_k, thread),
            LoadB(arguments.b, bin, of_group, column, first_k, thread),
            k,
            warp / warps_across * Tile::warp_down + lane / Tile::warp_across,
            warp % warps_across * Tile::warp_across + lane % Tile::warp_across,
            {}};
  }

  // Starts the async copies of the step `ahead` of the one that is multiplied next.
  TWIDDLE_HD static void copy(const Arguments& arguments, Thread& self, Shared& shared, int step, int ahead) {
    const int left = self.left - ahead * Tile::depth;
    if (left <= 0) return;
    Stage& stage = shared.stages[(step + ahead) % Tile::stages];
    self.load_a(arguments.a, stage.a, left);
    self.load_b(arguments.b, stage.b, left);
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

  // Sums of more terms than these lose digits in fp32: then the sums so far are added to C, and begin again at 0. (It
  // is a matter of accuracy, not of the GPU. To keep them in shared memory instead is no faster: it takes the memory of
  // another block.)
  static constexpr int most_steps = Products::most_terms / Tile::depth;
  static_assert(Products::most_terms % Tile::depth == 0);
  TWIDDLE_HD static bool stores(const Thread& self, int step) {
    return self.left <= 0 || step % most_steps == most_steps - 1;
  }

  TWIDDLE_HD static void store(const Arguments& arguments, Thread& self, const Shared& shared, int step) {
    const bool add = arguments.accumulate || step >= most_steps;
    const TileOrigin origin = shared.origin;
    Number* const c = arguments.c + origin.matrix + origin.column + group * self.across;
    const int columns = arguments.n - origin.column - group * self.across;  // of C, from the thread's first to the edge
    const bool whole = arguments.aligned && arguments.n - origin.column >= Tile::columns;
#pragma unroll
    for (int i = 0; i < Tile::thread_rows; ++i) {
      const int row = origin.row + group * (self.down + i / group * Tile::threads_down) + i % group;
      if (row >= arguments.m) continue;
      Number* const at = c + row * arguments.c_pitch;
      if (whole)
        store_row(arguments, self.sums[i], at, add);
      else
        store_row(arguments, self.sums[i], at, add, columns);
    }
#pragma unroll
    for (auto& row : self.sums)
#pragma unroll
      for (auto& sum : row) sum = {};
  }

 private:
  using Sums = typename Products::Sum[Tile::thread_columns];

  // A thread's columns are groups, and adjacent threads have adjacent groups, so that a warp's accesses of shared
  // memory and of C are coalesced. Its next group follows after one group of each thread. The same holds for its rows.
  static constexpr int columns_apart = group * Tile::threads_across;

  TWIDDLE_HD static void store_row(const Arguments& arguments, const Sums& sums, Number* at, bool add) {
    Group before[groups_across] = {};
    if (add)
#pragma unroll
      for (int j = 0; j < groups_across; ++j) before[j] = *reinterpret_cast<const Group*>(at + j * columns_apart);
#pragma unroll
    for (int j = 0; j < groups_across; ++j) {
      Group after;
#pragma unroll
      for (int l = 0; l < group; ++l) after.at[l] = before[j].at[l] + result(arguments, sums[group * j + l]);
      *reinterpret_cast<Group*>(at + j * columns_apart) = after;
    }
  }

  // The same at the matrix' right edge, or where its rows are not aligned to groups.
  TWIDDLE_HD static void store_row(const Arguments& arguments, const Sums& sums, Number* at, bool add, int columns) {
#pragma unroll
    for (int j = 0; j < Tile::thread_columns; ++j) {
      const int column = j / group * columns_apart + j % group;
      if (column < columns) at[column] = (add ? at[column] : Number{}) + result(arguments, sums[j]);
    }
  }

  TWIDDLE_HD static void multiply_one(Thread& self, const Stage& stage, int k) {
    typename Products::Factor left[Tile::thread_rows], right[Tile::thread_columns];
    const auto* const a = reinterpret_cast<const Group*>(stage.a + k * LoadA::pitch) + self.down;
    const auto* const b = reinterpret_cast<const Group*>(stage.b + k * LoadB::pitch) + self.across;
#pragma unroll
    for (int i = 0; i < groups_down; ++i) {
      const Group numbers = a[i * Tile::threads_down];
#pragma unroll
      for (int l = 0; l < group; ++l) left[group * i + l] = Products::left(numbers.at[l]);
    }
#pragma unroll
    for (int j = 0; j < groups_across; ++j) {
      const Group numbers = b[j * Tile::threads_across];
#pragma unroll
      for (int l = 0; l < group; ++l) right[group * j + l] = Products::right(numbers.at[l]);
    }
#pragma unroll
    for (int i = 0; i < Tile::thread_rows; ++i)
#pragma unroll
      for (int j = 0; j < Tile::thread_columns; ++j) Products::add(self.sums[i][j], left[i], right[j]);
  }

  TWIDDLE_HD static Number result(const Arguments& arguments, typename Products::Sum sum) {
    return conjugate_where(arguments.negate_im, Products::value(sum));
  }
};

}  // namespace twiddle::small_fft
