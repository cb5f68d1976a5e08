#pragma once
#include <cuda.h>
#include <cuda_fp16.h>

#include "fft/cuda/stored_pairs/stored_boxes.h"
#include "fft/cuda/tensor_core/fragment.h"
#include "fft/cuda/tensor_core/terms.h"
#include "fft/cuda/tensor_core/tile_kernel.h"

// A product of factors in the storages of stored_spectrum.h as a task of tensor_core/.
namespace twiddle::stored_pairs {

using small_fft::Complex;
using small_fft::ComplexPair;
using tensor_core::Barrier;
using tensor_core::Fragment;

constexpr int depth = 32;  // k of a step

struct StoredArguments {
  CUtensorMap a, b;
  // Exponents that were removed from the factors: per k of both, and per row and column of C.
  const int *a_of_k, *b_of_k, *of_rows, *of_columns;
  Complex *c, *of_parts;  // the latter: [part][bin - whole_bins][row][column]
  int bins, m, n, k;
  int steps, whole_bins, steps_a_part;  // bins from whole_bins on are summed in parts of k
  Divisor parts, tiles_down, tiles_across;
  int tiles;
  int* taken;  // number of tiles started, initially 0 (dynamic schedule); null: static schedule
  bool accumulate;
};

// A factor as the tensor copy writes it. Numbers of a row are adjacent along k, or along lines.
template <int Lines, bool AlongK, int Fp16PerFloat>
using StoredPanel = tensor_core::Panel<AlongK ? tensor_core::Layout::k_major_128 : tensor_core::Layout::mn_major_64,
                                       Lines, depth, 2 * Fp16PerFloat>;

// The largest and the smallest exponent along k, of both factors together.
struct KRange {
  int largest = -1000, smallest = 1000;
  __device__ void add(const KRange& other) {
    largest = max(largest, other.largest), smallest = min(smallest, other.smallest);
  }
};

// 2^exponent, for an exponent of 0 or less.
__device__ inline __half half_of_power(int exponent) {
  const int bits = exponent >= -14 ? (exponent + 15) << 10 : exponent >= -24 ? 1 << (exponent + 24) : 0;
  return __ushort_as_half(static_cast<unsigned short>(bits));
}

// The L1 cache gets the part of a multiprocessor's 256 KB that shared memory does not use. A variant that left it less
// than 60 KB took up to 30 % longer if it stores much.
constexpr int most_shared = 194 * 1024;

// One thread issues copies, and two warpgroups multiply 64 x 64 of C each.
template <int Rows, int Columns, bool AAlongK, bool BAlongK, int Fp16PerFloat>
struct StoredTask {
  using Arguments = StoredArguments;
  using A = StoredPanel<Rows, AAlongK, Fp16PerFloat>;
  using B = StoredPanel<Columns, BAlongK, Fp16PerFloat>;
  static constexpr int planes = 2 * Fp16PerFloat;
  static constexpr int sign_a = AAlongK ? 1 : -1, sign_b = BAlongK ? -1 : 1;  // conjugated where transposed
  static constexpr auto terms = tensor_core::complex_terms<Fp16PerFloat>(sign_a, sign_b);
  static constexpr int k16s = depth / 16, sums = 2, sums_a_thread = 32;
  static constexpr bool keeps = Fp16PerFloat == 1;  // the error of rounded factors exceeds that of truncated sums
  static constexpr int producers = 1, consumers = 2, producer_registers = 24, consumer_registers = 240;
  static_assert(Rows * Columns == consumers * 64 * 64);

  struct Stage {
    char a[A::bytes], b[B::bytes];
  };
  static constexpr int stages = (most_shared - 1024) / static_cast<int>(sizeof(Stage));
  struct Extra {
    KRange found[consumers * 4];  // by each warp
  };
  using Shared = tensor_core::Shared<StoredTask>;

  // A tile of C and the part of k that is summed in it.
  struct Work {
    int bin, part, row, column, first_step, steps;
    __device__ Work(const StoredArguments& arguments, int tile) {
      const auto strip = static_cast<int>(arguments.tiles_across.quotient(tile));
      const auto slab = static_cast<int>(arguments.tiles_down.quotient(strip));
      row = (strip - slab * static_cast<int>(arguments.tiles_down.value())) * Rows;
      column = (tile - strip * static_cast<int>(arguments.tiles_across.value())) * Columns;
      bin = slab, part = 0, first_step = 0, steps = arguments.steps;
      if (slab < arguments.whole_bins) return;
      const int later = slab - arguments.whole_bins;
      const auto later_bin = static_cast<int>(arguments.parts.quotient(later));
      bin = arguments.whole_bins + later_bin;
      part = later - later_bin * static_cast<int>(arguments.parts.value());
      first_step = part * arguments.steps_a_part;
      steps = min(arguments.steps_a_part, arguments.steps - first_step);
    }
  };

  // Copies boxes of the spectra, whose storage is that of panels.
  class Loader {
   public:
    static constexpr int arrivals = 1;
    __device__ Loader(const Arguments& arguments, Shared&, int, int thread) : arguments_(arguments), thread_(thread) {}
    __device__ bool takes_part() const { return thread_ == 0; }
    __device__ void begin(const Work& work) { bin_ = work.bin, row_ = work.row, column_ = work.column; }
    __device__ void fill(Stage& stage, Barrier& full, int step) const {
      full.expect(sizeof(Stage));
      copy<AAlongK>(stage.a, arguments_.a, step, row_, full);
      copy<BAlongK>(stage.b, arguments_.b, step, column_, full);
    }

   private:
    template <bool AlongK>
    __device__ void copy(char* panel, const CUtensorMap& map, int step, int line, Barrier& full) const {
      const BoxPlace place = place_of_box(AlongK, Fp16PerFloat, step, line, depth);
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
          "%5}], [%6];" ::"r"(small_fft::shared_address(panel)),
          "l"(&map), "r"(0), "r"(place.row), "r"(place.group), "r"(bin_), "r"(small_fft::shared_address(&full))
          : "memory");
    }

    const Arguments& arguments_;
    int thread_, bin_ = 0, row_ = 0, column_ = 0;
  };

  // A thread's powers of two for a step, of two neighbours along k each.
  struct Multipliers {
    __half2 of[2][2];
  };

  // A in registers, multiplied by powers of two if exponents along k differ; B in shared memory.
  class Consumer {
   public:
    __device__ Consumer(const Arguments& arguments, Shared& shared, int group, int thread)
        : arguments_(arguments),
          row_(Rows == 64 ? 0 : 64 * group),
          column_(Rows == 64 ? 64 * group : 0),
          warp_(thread / 32),
          lane_(thread % 32) {
      range_ = range_of_k(arguments, shared.extra.found, 128 * group + thread);
    }
    __device__ void fetch(int step) {
      if (differ()) multipliers_ = multipliers_of(arguments_, step * depth + lane_ % 4 * 2, range_.largest);
    }
    __device__ void load(const Stage& stage) {
      const unsigned a = small_fft::shared_address(stage.a);
      b_ = small_fft::shared_address(stage.b);
#pragma unroll
      for (int half = 0; half < k16s; ++half)
#pragma unroll
        for (int plane = 0; plane < planes; ++plane)
          a_[half][plane] = tensor_core::load_fragment<A>(a, plane, row_ + 16 * warp_, 16 * half, lane_);
      if (differ()) scale(a_, multipliers_);
    }
    __device__ const Fragment& a(int plane, int k16) const {
      return a_[k16][plane];
    }
    __device__ std::uint64_t b(int plane, int k16) const {
      return B::descriptor(b_, plane, column_, 16 * k16);
    }
    __device__ void store(const Work& work, const float (&of_tile)[sums][sums_a_thread]) const {
      StoredTask::store(arguments_, work, range_.largest, row_ + 16 * warp_ + lane_ / 4, column_ + lane_ % 4 * 2,
                        of_tile[0], of_tile[1]);
    }

   private:
    __device__ bool differ() const {
      return range_.smallest < range_.largest;
    }

    const Arguments& arguments_;
    int row_, column_, warp_, lane_;
    KRange range_;
    Fragment a_[k16s][planes];
    unsigned b_ = 0;
    Multipliers multipliers_ = {};
  };

  template <int Sign, bool Keep>
  __device__ static void multiply(float (&products)[sums_a_thread], const Fragment& a, std::uint64_t b) {
    tensor_core::multiply<__half, Sign, Keep, BAlongK>(products, a, b);
  }

 private:
  __device__ static void wait_for_consumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(consumers * 128) : "memory");
  }

  // Found by all threads that multiply.
  __device__ static KRange range_of_k(const StoredArguments& arguments, KRange* found, int thread) {
    KRange range;
    for (int k = thread; k < arguments.k; k += consumers * 128) {
      const int of_a = arguments.a_of_k[k], of_b = arguments.b_of_k[k];
      if (of_a > no_exponent && of_b > no_exponent) range.add({of_a + of_b, of_a + of_b});
    }
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2)
      range.add({__shfl_xor_sync(~0u, range.largest, apart), __shfl_xor_sync(~0u, range.smallest, apart)});
    if (thread % 32 == 0) found[thread / 32] = range;
    wait_for_consumers();
    for (int warp = 0; warp < consumers * 4; ++warp) range.add(found[warp]);
    return range;
  }

  __device__ static Multipliers multipliers_of(const StoredArguments& arguments, int k, int largest) {
    Multipliers multipliers;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      multipliers.of[i / 2][i % 2] = {multiplier(arguments, k + 8 * i, largest),
                                      multiplier(arguments, k + 8 * i + 1, largest)};
    return multipliers;
  }
  // Returns the power of two removed from both factors at k, relative to the largest one, which counts as 1.
  __device__ static __half multiplier(const StoredArguments& arguments, int k, int largest) {
    return half_of_power(min(__ldg(arguments.a_of_k + k) + __ldg(arguments.b_of_k + k) - largest, 0));
  }

  __device__ static void scale(Fragment (&of_a)[2][planes], const Multipliers& multipliers) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int plane = 0; plane < planes; ++plane)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          auto& pair = reinterpret_cast<__half2&>(of_a[half][plane].at[i]);
          pair = __hmul2(pair, multipliers.of[half][i / 2]);
        }
  }

  // Stores a thread's numbers: two rows, and two neighbors of each eight columns. All scales are loaded before the
  // first store: the compiler must assume that they may alias.
  __device__ static void store(const StoredArguments& arguments, const Work& place, int of_k, int first_row,
                               int first_column, const float (&re)[32], const float (&im)[32]) {
    const int first = place.row + first_row, column = place.column + first_column;
    float of_rows[2];
    float2 of_columns[8];
#pragma unroll
    for (int below = 0; below < 2; ++below)
      of_rows[below] = scale_back(exponent(arguments.of_rows, first + 8 * below, arguments.m) + of_k / 2);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int at = column + 8 * i, rest = of_k - of_k / 2;
      of_columns[i] = {scale_back(exponent(arguments.of_columns, at, arguments.n) + rest),
                       scale_back(exponent(arguments.of_columns, at + 1, arguments.n) + rest)};
    }
    const int whole = arguments.whole_bins;
    const bool at_once = place.bin < whole, accumulate = at_once && arguments.accumulate;
    Complex* c = at_once ? arguments.c : arguments.of_parts;
    c += (at_once ? place.bin : std::int64_t(place.part) * (arguments.bins - whole) + place.bin - whole) * arguments.m *
         arguments.n;
#pragma unroll
    for (int below = 0; below < 2; ++below)
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int at = 4 * i + 2 * below;
        const float of_first = of_rows[below] * of_columns[i].x, of_next = of_rows[below] * of_columns[i].y;
        store_pair(arguments, c, accumulate, first + 8 * below, column + 8 * i,
                   {{re[at] * of_first, im[at] * of_first}, {re[at + 1] * of_next, im[at + 1] * of_next}});
      }
  }
  __device__ static int exponent(const int* of_lines, int line, int lines) {
    return __ldg(of_lines + min(line, lines - 1));
  }

  __device__ static void store_pair(const StoredArguments& arguments, Complex* c, bool accumulate, int row, int column,
                                    ComplexPair numbers) {
    if (row >= arguments.m || column >= arguments.n) return;
    auto* const to = reinterpret_cast<ComplexPair*>(c + std::int64_t(row) * arguments.n + column);
    if (accumulate) numbers = {to->first + numbers.first, to->second + numbers.second};
    *to = numbers;
  }
};

}  // namespace twiddle::stored_pairs
