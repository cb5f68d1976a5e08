#pragma once
#include <cuda.h>

#include "fft/cuda/tensor_core/native_work.h"
#include "fft/cuda/tensor_core/terms.h"
#include "fft/cuda/tensor_core/tile_kernel.h"
#include "framework/dtype.h"

// Products of 16-bit matrices as tasks: nothing is split or scaled.
namespace twiddle::tensor_core {

struct NativeArguments : NativeShape {
  CUtensorMap a, b;
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
  static constexpr int depth = native_depth, rows = native_rows, columns = Columns;
  using A = NativePanel<AAlongK, rows>;
  using B = NativePanel<BAlongK, columns>;
  static constexpr auto terms = real_terms<1>();
  static constexpr int k16s = depth / 16, k16s_at_once = k16s, pieces = 1, sums = 1, sums_a_thread = Columns / 2;
  static constexpr bool keeps = true;
  static constexpr int producers = 1, consumers = 2, producer_registers = 40, consumer_registers = 232;

  struct Stage {
    char a[A::bytes], b[B::bytes];
  };
  static constexpr int stages = 193 * 1024 / static_cast<int>(sizeof(Stage));
  struct Extra {};
  using Shared = tensor_core::Shared<NativeTask>;

  using Work = NativeWork<columns>;

  class Loader {
   public:
    static constexpr int arrivals = 1;
    __device__ Loader(const Arguments& arguments, Shared&, int, int) : arguments_(arguments), steps_(arguments) {}
    __device__ static bool takes_part(int thread) { return thread == 0; }
    __device__ bool has_step() const { return steps_.has_step(); }
    __device__ int tile() const { return steps_.tile(); }
    __device__ void fill(Stage& stage, Barrier& full) {
      full.expect(sizeof(Stage));
      const Work work = steps_.work();
      const NativeStep at(arguments_, work.matrix, steps_.step());
      copy<A>(stage.a, arguments_.a, work.row, at.k, at.matrix * arguments_.a_matrices, full);
      copy<B>(stage.b, arguments_.b, work.column, at.k, at.matrix * arguments_.b_matrices, full);
      steps_.advance();
    }

   private:
    template <class P>
    __device__ static void copy(char* panel, const CUtensorMap& map, int line, int k, int matrix, Barrier& full) {
#pragma unroll
      for (int i = 0; i < NativeBoxes<P>::count; ++i) {
        const auto box = NativeBoxes<P>::box(i, line, k);
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
            "%4}], [%5];" ::"r"(small_fft::shared_address(panel + box.to)),
            "l"(&map), "r"(box.x), "r"(box.y), "r"(matrix), "r"(small_fft::shared_address(&full))
            : "memory");
      }
    }

    const Arguments& arguments_;
    StepsOfBlock<Arguments, Work> steps_;
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
    __device__ bool has(int) const { return true; }
    __device__ void load_a(int) const {}
    __device__ std::uint64_t a(int plane, int k16) const { return A::descriptor(a_, plane, row_, 16 * k16); }
    __device__ std::uint64_t b(int plane, int k16, int) const { return B::descriptor(b_, plane, 0, 16 * k16); }
    __device__ void store(const Work& work, const Sums<NativeTask> (&of_tile)[pieces]) const {
      const std::int64_t at =
          work.part * arguments_.part_apart + std::int64_t(work.matrix) * arguments_.m * arguments_.n;
      const int row = work.row + row_;
      if (arguments_.type_of_c == DType::f32)
        store_as(static_cast<float*>(arguments_.c) + at, row, work.column, of_tile[0][0]);
      else
        store_as(static_cast<Half*>(arguments_.c) + at, row, work.column, of_tile[0][0]);
    }

   private:
    template <class To>
    __device__ void store_as(To* c, int first_row, int first_column, const float (&values)[sums_a_thread]) const {
      struct alignas(2 * sizeof(To)) Two {
        To first, second;
      };
      const bool even = arguments_.n % 2 == 0;  // then two neighbours are aligned
#pragma unroll
      for (int i = 0; i < sums_a_thread; i += 2) {
        const SumPlace place = place_of_sum(thread_, i);
        const int row = first_row + place.row, column = first_column + place.column;
        if (row >= arguments_.m || column >= arguments_.n) continue;
        To* const to = c + std::int64_t(row) * arguments_.n + column;
        const bool both = column + 1 < arguments_.n;
        const To first = finished<To>(values[i], row, column),
                 second = finished<To>(values[i + 1], row, both ? column + 1 : column);
        if (even) {
          *reinterpret_cast<Two*>(to) = {first, second};
        } else {
          to[0] = first;
          if (both) to[1] = second;
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
