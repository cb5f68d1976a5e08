#include "fft/cuda/tensor_products/pair_mma.h"

#include "fft/cuda/device/resident_blocks.h"
#include "fft/cuda/tensor_products/pair_launch.h"
#include "fft/cuda/tensor_products/pair_split.h"

namespace twiddle::half_pairs {

namespace {

// An eighth of a warp's registers: fragments of 8 x 8 halves as the tensor cores take them, two a register.
using Fragment = unsigned;

#if __CUDA_ARCH__ >= 800
__device__ void load_fragments(Fragment (&fragments)[4], const char* line) {
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(line));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
               : "r"(shared)
               : "memory");
}
// 16 x 8 sums += 16 x 16 of A by 16 x 8 of B.
__device__ void multiply(float (&sums)[4], const Fragment (&a)[4], Fragment b0, Fragment b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#else
__device__ void load_fragments(Fragment (&)[4], const char*) {}
__device__ void multiply(float (&)[4], const Fragment (&)[4], Fragment, Fragment) {}
#endif

using Tile = PairTile<64, 64>;
constexpr int threads = 256, warps_across = 4, stages = 2, steps_ahead = 1;
constexpr int warp_rows = 32, warp_columns = 16;
constexpr int row_blocks = warp_rows / 16, column_blocks = warp_columns / 8;

// A warp's 32 x 16 of a tile, as blocks of 16 x 8.
class WarpSums {
 public:
  __device__ WarpSums()
      : row_(static_cast<int>(threadIdx.x) / 32 / warps_across * warp_rows),
        column_(static_cast<int>(threadIdx.x) / 32 % warps_across * warp_columns) {}

  __device__ void clear() {
#pragma unroll
    for (RowSums& row : sums_) clear(row);
  }

  // A row of blocks at a time, for whose sums and fragments there are registers enough.
  template <int HalfBytes>
  __device__ void add_step(const char* panels, int left) {
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
      RowSums step;
      clear(step);
      const int halves = left > half_depth ? 2 : 1;
#pragma unroll 1
      for (int half = 0; half < halves; ++half) multiply_half(step, i, panels + half * HalfBytes);
#pragma unroll
      for (int j = 0; j < column_blocks; ++j)
#pragma unroll
        for (int l = 0; l < 4; ++l) sums_[i].re[j][l] += step.re[j][l], sums_[i].im[j][l] += step.im[j][l];
    }
  }

  __device__ void store(const PairArguments& arguments, const TilePlace& place) const {
    const ResultStore store(arguments, place);
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < row_blocks; ++i)
#pragma unroll
      for (int j = 0; j < column_blocks; ++j)
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const auto &re = sums_[i].re[j], &im = sums_[i].im[j];
          store(place.row + row_ + 16 * i + 8 * below + lane / 4, place.column + column_ + 8 * j + lane % 4 * 2,
                re[2 * below], im[2 * below], re[2 * below + 1], im[2 * below + 1]);
        }
  }

 private:
  struct RowSums {
    float re[column_blocks][4], im[column_blocks][4];
  };
  struct Complexes {  // fragments of A, or of B for both blocks of columns
    Fragment re[4], im[4];
  };

  __device__ static void clear(RowSums& sums) {
#pragma unroll
    for (int j = 0; j < column_blocks; ++j)
#pragma unroll
      for (int l = 0; l < 4; ++l) sums.re[j][l] = sums.im[j][l] = 0;
  }

  __device__ Complexes of_a(const char* panels, int i, Plane re, Plane im) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = row_ + 16 * i + lane % 16;
    return load(panels + line * line_bytes, line, lane / 16, re, im);
  }
  __device__ Complexes of_b(const char* panels, Plane re, Plane im) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = column_ + lane / 16 * 8 + lane % 8;
    return load(panels + (Tile::rows + line) * line_bytes, line, lane / 8 % 2, re, im);
  }
  __device__ static Complexes load(const char* at, int line, int chunk, Plane re, Plane im) {
    Complexes loaded;
    load_fragments(loaded.re, at + chunk_at(line, re, chunk));
    load_fragments(loaded.im, at + chunk_at(line, im, chunk));
    return loaded;
  }

  // The small products first.
  __device__ void multiply_half(RowSums& step, int i, const char* panels) const {
    const Complexes a = of_a(panels, i, re_high, im_high), b = of_b(panels, re_high, im_high);
    add(step, of_a(panels, i, re_low, im_low), b);
    add(step, a, of_b(panels, re_low, im_low));
    add(step, a, b);
  }

  __device__ static void add(RowSums& sums, const Complexes& a, const Complexes& b) {
    constexpr unsigned signs = 0x80008000;  // of two halves
#pragma unroll
    for (int j = 0; j < column_blocks; ++j) {
      multiply(sums.re[j], a.re, b.re[2 * j], b.re[2 * j + 1]);
      multiply(sums.im[j], a.re, b.im[2 * j], b.im[2 * j + 1]);
      multiply(sums.re[j], a.im, b.im[2 * j] ^ signs, b.im[2 * j + 1] ^ signs);
      multiply(sums.im[j], a.im, b.re[2 * j], b.re[2 * j + 1]);
    }
  }

  int row_, column_;
  RowSums sums_[row_blocks];
};

template <bool TransposeA, bool TransposeB>
struct Shared {
  using Split = Splitter<Tile, TransposeA, TransposeB, steps_ahead>;
  char panels[stages][2][Split::panel_bytes];
  ComplexPair slots[2][Split::slots];
};

// All threads split the next step into the stage of shared memory that nobody reads, and then multiply it.
template <bool TransposeA, bool TransposeB>
__global__ void __launch_bounds__(threads, small_fft::resident_blocks<threads>(2))
    mma_kernel(const __grid_constant__ PairArguments arguments) {
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<Shared<TransposeA, TransposeB>*>(memory);
  using Split = typename Shared<TransposeA, TransposeB>::Split;
  const int thread = static_cast<int>(threadIdx.x), half = thread / splitting_threads;
  Split splitter(arguments, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), half, thread % splitting_threads,
                 shared.slots[half]);
  WarpSums sums;
  int stage = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < arguments.tiles; tile += static_cast<int>(gridDim.x)) {
    sums.clear();
    for (int left = TilePlace::of<Tile>(arguments, tile).k; left > 0; left -= depth) {
      splitter.store(shared.panels[stage][half]);
      __syncthreads();
      sums.add_step<Split::panel_bytes>(shared.panels[stage][0], left);
      stage = (stage + 1) % stages;
    }
    sums.store(arguments, TilePlace::of<Tile>(arguments, tile));
  }
}

template <bool TransposeA, bool TransposeB>
void launch(Stream& stream, const PairArguments& arguments) {
  launch_persistent(mma_kernel<TransposeA, TransposeB>, stream, arguments, threads,
                    sizeof(Shared<TransposeA, TransposeB>), 2);
}

}  // namespace

void multiply_by_mma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments) {
  cut<Tile>(gemm, arguments);
  if (gemm.transpose_a)
    launch<true, false>(stream, arguments);
  else if (gemm.transpose_b)
    launch<false, true>(stream, arguments);
  else
    launch<false, false>(stream, arguments);
}

}  // namespace twiddle::half_pairs
