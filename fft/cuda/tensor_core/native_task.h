#pragma once
#include <cuda.h>

#include "fft/cuda/tensor_core/panel.h"
#include "fft/cuda/tensor_core/terms.h"
#include "fft/cuda/tensor_core/tile_kernel.h"
#include "framework/divisor.h"
#include "framework/dtype.h"

// Products of 16-bit matrices as tasks: nothing is split or scaled.
namespace twiddle::tensor_core {

struct NativeArguments {
  CUtensorMap a, b;
  int a_matrices, b_matrices;  // 1: one for each matrix of C, or for each term of a sum over matrices; 0: one for all
  int m, n, steps, steps_a_part;
  Divisor steps_a_matrix;  // more than all steps unless C is a sum over matrices
  Divisor parts, tiles_down, tiles_across;
  int tiles;
  int* taken;
  void* c;  // of a part: f32 [part][matrix][m][n]
  DType type_of_c;
  std::int64_t part_apart;  // elements
  const float* bias;        // null: none
  bool bias_of_rows, relu;
};

// C in tiles of 128 x Columns: each of two warpgroups has 64 rows. A step is 64 k.
template <class Half, int Columns, bool AAlongK, bool BAlongK>
struct NativeTask {
  using Arguments = NativeArguments;
  static constexpr int depth = 64, rows = 128, columns = Columns;
  template <bool AlongK, int Lines>
  using PanelOf = Panel<AlongK ? Layout::k_major_128 : Layout::mn_major_128, Lines, depth, 1>;
  using A = PanelOf<AAlongK, rows>;
  using B = PanelOf<BAlongK, columns>;
  static constexpr auto terms = real_terms<1>();
  static constexpr int k16s = depth / 16, sums = 1, sums_a_thread = Columns / 2;
  static constexpr bool keeps = true;
  static constexpr int producers = 1, consumers = 2, producer_registers = 40, consumer_registers = 232;

  struct Stage {
    char a[A::bytes], b[B::bytes];
  };
  static constexpr int stages = 193 * 1024 / static_cast<int>(sizeof(Stage));
  struct Extra {};
  using Shared = tensor_core::Shared<NativeTask>;

  // A tile of C and the part of k that is summed in it. Tiles of a row of tiles follow each other, so that they share
  // A.
  struct Work {
    int matrix, part, row, column, first_step, steps;
    __device__ Work(const Arguments& arguments, int tile) {
      const int strip = quotient(tile, arguments.tiles_across), slab = quotient(strip, arguments.tiles_down);
      row = (strip - slab * static_cast<int>(arguments.tiles_down.value())) * rows;
      column = (tile - strip * static_cast<int>(arguments.tiles_across.value())) * columns;
      matrix = quotient(slab, arguments.parts);
      part = slab - matrix * static_cast<int>(arguments.parts.value());
      first_step = part * arguments.steps_a_part;
      steps = min(arguments.steps_a_part, arguments.steps - first_step);
    }
    __device__ static int quotient(int number, const Divisor& divisor) {
      return static_cast<int>(divisor.quotient(number));
    }
  };

  class Loader {
   public:
    static constexpr int arrivals = 1;
    __device__ Loader(const Arguments& arguments, Shared&, int, int thread) : arguments_(arguments), thread_(thread) {}
    __device__ bool takes_part() const { return thread_ == 0; }
    __device__ void begin(const Work& work) { matrix_ = work.matrix, row_ = work.row, column_ = work.column; }
    __device__ void fill(Stage& stage, Barrier& full, int step) const {
      full.expect(sizeof(Stage));
      const int later = Work::quotient(step, arguments_.steps_a_matrix), matrix = matrix_ + later;
      const int k = (step - later * static_cast<int>(arguments_.steps_a_matrix.value())) * depth;
      copy<A>(stage.a, arguments_.a, k, row_, matrix * arguments_.a_matrices, full);
      copy<B>(stage.b, arguments_.b, k, column_, matrix * arguments_.b_matrices, full);
    }

   private:
    // A box has all lines, or a group of adjacent ones.
    template <class P>
    __device__ static void copy(char* panel, const CUtensorMap& map, int k, int line, int matrix, Barrier& full) {
      if constexpr (P::k_major) {
        copy_box(panel, map, k, line, matrix, full);
      } else {
#pragma unroll
        for (int first = 0; first < P::lines; first += P::group)
          copy_box(panel + first / P::group * P::group_bytes, map, line + first, k, matrix, full);
      }
    }
    __device__ static void copy_box(char* to, const CUtensorMap& map, int x, int y, int matrix, Barrier& full) {
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
          "[%5];" ::"r"(small_fft::shared_address(to)),
          "l"(&map), "r"(x), "r"(y), "r"(matrix), "r"(small_fft::shared_address(&full))
          : "memory");
    }

    const Arguments& arguments_;
    int thread_, matrix_ = 0, row_ = 0, column_ = 0;
  };

  // Both factors in shared memory.
  class Consumer {
   public:
    __device__ Consumer(const Arguments& arguments, Shared&, int group, int thread)
        : arguments_(arguments), row_(64 * group), thread_(thread) {}
    __device__ void fetch(int) {}
    __device__ void load(const Stage& stage) {
      a_ = small_fft::shared_address(stage.a), b_ = small_fft::shared_address(stage.b);
    }
    __device__ std::uint64_t a(int plane, int k16) const { return A::descriptor(a_, plane, row_, 16 * k16); }
    __device__ std::uint64_t b(int plane, int k16) const { return B::descriptor(b_, plane, 0, 16 * k16); }
    __device__ void store(const Work& work, float (&of_tile)[sums][sums_a_thread]) const {
      const int row = work.row + row_ + thread_ / 32 * 16 + thread_ % 32 / 4, column = work.column + thread_ % 4 * 2;
      const std::int64_t at =
          (work.part * arguments_.part_apart) + std::int64_t(work.matrix) * arguments_.m * arguments_.n;
      if (arguments_.type_of_c == DType::f32)
        store_as(static_cast<float*>(arguments_.c) + at, row, column, of_tile[0]);
      else
        store_as(static_cast<Half*>(arguments_.c) + at, row, column, of_tile[0]);
    }

   private:
    template <class To>
    __device__ void store_as(To* c, int first_row, int first_column, float (&values)[sums_a_thread]) const {
      struct alignas(2 * sizeof(To)) Two {
        To first, second;
      };
      const bool even = arguments_.n % 2 == 0;  // then two neighbours are aligned
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const int row = first_row + 8 * below;
        if (row >= arguments_.m) break;
        To* const line = c + std::int64_t(row) * arguments_.n;
#pragma unroll
        for (int i = 0; i < sums_a_thread / 4; ++i) {
          const int column = first_column + 8 * i;
          if (column >= arguments_.n) break;
          const bool both = column + 1 < arguments_.n;
          const To first = finished<To>(values[4 * i + 2 * below], row, column),
                   second = finished<To>(values[4 * i + 2 * below + 1], row, both ? column + 1 : column);
          if (even) {
            *reinterpret_cast<Two*>(line + column) = {first, second};
          } else {
            line[column] = first;
            if (both) line[column + 1] = second;
          }
        }
      }
    }
    template <class To>
    __device__ To finished(float value, int row, int column) const {
      if (arguments_.bias != nullptr) value += __ldg(arguments_.bias + (arguments_.bias_of_rows ? row : column));
      if (arguments_.relu) value = value < 0 ? 0 : value;  // NaN stays
      return static_cast<To>(value);
    }

    const Arguments& arguments_;
    int row_, thread_;
    unsigned a_ = 0, b_ = 0;
  };

  template <int Sign, bool Keep>
  __device__ static void multiply(float (&products)[sums_a_thread], std::uint64_t a, std::uint64_t b) {
    tensor_core::multiply<Half, Sign, Keep, AAlongK, BAlongK>(products, a, b);
  }
};

}  // namespace twiddle::tensor_core
