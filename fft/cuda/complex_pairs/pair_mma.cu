#include "fft/cuda/complex_pairs/pair_mma.h"

#include "fft/cuda/complex_pairs/pair_launch.h"
#include "fft/cuda/complex_pairs/pair_split.h"
#include "fft/cuda/device/resident_blocks.h"
#include "fft/cuda/device/tensor_core.h"

namespace twiddle::complex_pairs {

namespace {

using small_fft::Fragment;

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
  template <int Fp16PerFloat, int PanelBytes>
  __device__ void add_step(const char* panels, const LineScales<Tile>& scales, int left) {
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
      RowSums step;
      clear(step);
      const int halves = left > half_depth ? 2 : 1;
#pragma unroll 1
      for (int half = 0; half < halves; ++half)
        multiply_half<Fp16PerFloat>(step, i, panels + panel_of<Fp16PerFloat>(half) * PanelBytes,
                                    plane_of<Fp16PerFloat>(half));
      add_scaled(step, scales, i);
    }
  }

  __device__ void store(const PairArguments& arguments, const TilePlace& place) const {
    const ResultStore store(arguments, place);
#pragma unroll
    for (int i = 0; i < row_blocks; ++i)
#pragma unroll
      for (int j = 0; j < column_blocks; ++j)
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const auto &re = sums_[i].re[j], &im = sums_[i].im[j];
          store(place.row + sum_row(i) + 8 * below, place.column + sum_column(j), {re[2 * below], im[2 * below]},
                {re[2 * below + 1], im[2 * below + 1]});
        }
  }

 private:
  struct RowSums {
    float re[column_blocks][4], im[column_blocks][4];
  };
  struct Complexes {  // of A 16 x 16, of B 16 for both blocks of columns
    Fragment re, im;
  };

  // The first of a thread's sums: two neighbours, and two in the row 8 below.
  __device__ int sum_row(int i) const {
    return row_ + 16 * i + static_cast<int>(threadIdx.x) % 32 / 4;
  }
  __device__ int sum_column(int j) const {
    return column_ + 8 * j + static_cast<int>(threadIdx.x) % 4 * 2;
  }

  __device__ static void clear(RowSums& sums) {
#pragma unroll
    for (int j = 0; j < column_blocks; ++j)
#pragma unroll
      for (int l = 0; l < 4; ++l) sums.re[j][l] = sums.im[j][l] = 0;
  }

  // `re`: the plane of the real parts; the plane of the imaginary parts follows.
  __device__ Complexes of_a(const char* panels, int i, int re) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = row_ + 16 * i + lane % 16;
    return load(panels + line * line_bytes, line, lane / 16, re);
  }
  __device__ Complexes of_b(const char* panels, int re) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, line = column_ + lane / 16 * 8 + lane % 8;
    return load(panels + (Tile::rows + line) * line_bytes, line, lane / 8 % 2, re);
  }
  __device__ static Complexes load(const char* at, int line, int chunk, int re) {
    const auto plane = [&](int which) {
      return small_fft::load_fragment(reinterpret_cast<const __half*>(at + chunk_at(line, which, chunk)));
    };
    return {plane(re), plane(re + 1)};
  }

  // The small products first.
  template <int Fp16PerFloat>
  __device__ void multiply_half(RowSums& step, int i, const char* panels, int high) const {
    const Complexes a = of_a(panels, i, high), b = of_b(panels, high);
    if constexpr (Fp16PerFloat == 2) {
      add(step, of_a(panels, i, re_low), b);
      add(step, a, of_b(panels, re_low));
    }
    add(step, a, b);
  }

  __device__ static void add(RowSums& sums, const Complexes& a, const Complexes& b) {
    constexpr unsigned signs = 0x80008000;  // of two fp16 values
    using small_fft::multiply;
#pragma unroll
    for (int j = 0; j < column_blocks; ++j) {
      const std::uint32_t re[2] = {b.re.at[2 * j], b.re.at[2 * j + 1]}, im[2] = {b.im.at[2 * j], b.im.at[2 * j + 1]};
      multiply(a.re, re[0], re[1], sums.re[j]);
      multiply(a.re, im[0], im[1], sums.im[j]);
      multiply(a.im, im[0] ^ signs, im[1] ^ signs, sums.re[j]);
      multiply(a.im, re[0], re[1], sums.im[j]);
    }
  }

  __device__ void add_scaled(const RowSums& step, const LineScales<Tile>& scales, int i) {
    const float of_rows[2] = {scales.of_rows[sum_row(i)], scales.of_rows[sum_row(i) + 8]};
#pragma unroll
    for (int j = 0; j < column_blocks; ++j) {
      const float2 of_columns = *reinterpret_cast<const float2*>(scales.of_columns + sum_column(j));
#pragma unroll
      for (int l = 0; l < 4; ++l) {
        const float scale = of_rows[l / 2] * (l % 2 == 0 ? of_columns.x : of_columns.y);
        sums_[i].re[j][l] = fmaf(step.re[j][l], scale, sums_[i].re[j][l]);
        sums_[i].im[j][l] = fmaf(step.im[j][l], scale, sums_[i].im[j][l]);
      }
    }
  }

  int row_, column_;
  RowSums sums_[row_blocks];
};

template <bool TransposeA, bool TransposeB, int Fp16PerFloat>
struct Shared {
  using Split = Splitter<Tile, TransposeA, TransposeB, Fp16PerFloat, steps_ahead>;
  char panels[stages][Fp16PerFloat][Split::panel_bytes];
  LineScales<Tile> scales[stages];
  ComplexPair slots[2][Split::slots];
};

// All threads split the next step into the stage of shared memory that is not being read, and then multiply it.
template <bool TransposeA, bool TransposeB, int Fp16PerFloat>
__global__ void __launch_bounds__(threads, small_fft::resident_blocks<threads>(2))
    mma_kernel(const __grid_constant__ PairArguments arguments) {
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<Shared<TransposeA, TransposeB, Fp16PerFloat>*>(memory);
  using Split = typename Shared<TransposeA, TransposeB, Fp16PerFloat>::Split;
  const int thread = static_cast<int>(threadIdx.x), share = thread / splitting_threads;
  Split splitter(arguments, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), share,
                 thread % splitting_threads, shared.slots[share]);
  WarpSums sums;
  int stage = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < arguments.tiles; tile += static_cast<int>(gridDim.x)) {
    sums.clear();
    for (int left = TilePlace::of<Tile>(arguments, tile).k; left > 0; left -= depth) {
      splitter.store(shared.panels[stage][0], shared.scales[stage]);
      __syncthreads();
      sums.add_step<Fp16PerFloat, Split::panel_bytes>(shared.panels[stage][0], shared.scales[stage], left);
      stage = (stage + 1) % stages;
    }
    sums.store(arguments, TilePlace::of<Tile>(arguments, tile));
  }
}

template <bool TransposeA, bool TransposeB, int Fp16PerFloat>
void launch(Stream& stream, const PairArguments& arguments) {
  launch_persistent(mma_kernel<TransposeA, TransposeB, Fp16PerFloat>, stream, arguments, threads,
                    sizeof(Shared<TransposeA, TransposeB, Fp16PerFloat>), 2);
}

}  // namespace

template <int Fp16PerFloat>
void multiply_by_mma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments) {
  set_tiling<Tile>(gemm, arguments);
  if (gemm.transpose_a)
    launch<true, false, Fp16PerFloat>(stream, arguments);
  else if (gemm.transpose_b)
    launch<false, true, Fp16PerFloat>(stream, arguments);
  else
    launch<false, false, Fp16PerFloat>(stream, arguments);
}

template void multiply_by_mma<1>(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);
template void multiply_by_mma<2>(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);

}  // namespace twiddle::complex_pairs
