#include "fft/cuda/complex_pairs/sm_90a/pair_wgmma.h"

#include "fft/cuda/complex_pairs/pair_launch.h"
#include "fft/cuda/complex_pairs/pair_split.h"
#include "fft/cuda/complex_pairs/sm_90a/panel_descriptor.h"
#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "fft/cuda/device/wgmma_of_registers.h"

namespace twiddle::complex_pairs {

namespace {

// Two of four warpgroups split half of the lines each, the two others multiply 64 x 64 or 64 x 128 of C each. Shared
// memory holds several steps, so that these need not run in lockstep: while one multiplying warpgroup adds or stores
// its sums, the tensor cores work for the other. Warpgroups that hold sums get more registers.
constexpr int multiplying = 2, splitting = 2, threads = (multiplying + splitting) * 128;
constexpr int stages = 2, steps_ahead = 2;

template <class Tile, bool TransposeA, bool TransposeB, int Fp16PerFloat>
struct WgmmaBlock {
  using Split = Splitter<Tile, TransposeA, TransposeB, Fp16PerFloat, steps_ahead>;

  // With 128 columns, products of a step are added 32 columns at a time: registers cannot hold all of them and the
  // sums.
  static constexpr int columns = Tile::rows > 64 ? Tile::columns : Tile::columns / multiplying;  // of a warpgroup
  static constexpr bool wide = columns > 64;
  static constexpr int columns_at_once = wide ? 32 : 64, sums_at_once = columns_at_once / 2;
  static constexpr int multiplying_registers = wide ? 200 : 168, splitting_registers = wide ? 56 : 88;
  static_assert(Fp16PerFloat == 1 || !wide);

  struct alignas(1024) Shared {
    char panels[stages][Fp16PerFloat][Split::panel_bytes];  // 1024-byte aligned for the swizzle
    LineScales<Tile> scales[stages];
    ComplexPair slots[2][Split::slots];
    small_fft::Barrier full[stages], empty[stages];
  };

  // A thread's numbers of 64 rows and columns_at_once columns, of two rows each.
  struct Products {
    float re[sums_at_once], im[sums_at_once];
  };

  // Undoes the scaling of these two rows and of the columns.
  class StepScales {
   public:
    __device__ StepScales(const LineScales<Tile>& scales, int row, int column)
        : of_rows_{scales.of_rows[row], scales.of_rows[row + 8]} {
#pragma unroll
      for (int i = 0; i < sums_at_once / 4; ++i)
        of_columns_[i] = *reinterpret_cast<const float2*>(scales.of_columns + column + 8 * i);
    }
    __device__ void add(const Products& step, Products& sums) const {
#pragma unroll
      for (int i = 0; i < sums_at_once; ++i) {
        const float2 of_columns = of_columns_[i / 4];
        const float scale = of_rows_[i / 2 % 2] * (i % 2 == 0 ? of_columns.x : of_columns.y);
        sums.re[i] = fmaf(step.re[i], scale, sums.re[i]), sums.im[i] = fmaf(step.im[i], scale, sums.im[i]);
      }
    }

   private:
    float of_rows_[2];
    float2 of_columns_[sums_at_once / 4];
  };

  // The stages in their order, again and again.
  struct Turn {
    int stage = 0, phase = 0;
    __device__ void next() {
      if (++stage == stages) stage = 0, phase ^= 1;
    }
  };

  __device__ static void split(const PairArguments& arguments, Shared& shared, int share, int thread) {
    Split splitter(arguments, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), share, thread,
                   shared.slots[share]);
    for (Turn turn; splitter.has_step(); turn.next()) {
      shared.empty[turn.stage].wait(turn.phase ^ 1);
      splitter.store(shared.panels[turn.stage][0], shared.scales[turn.stage]);
      small_fft::show_to_wgmma();
      shared.full[turn.stage].arrive();
    }
  }

  __device__ static void multiply(const PairArguments& arguments, Shared& shared, int group, int thread) {
    const int row = Tile::rows > 64 ? 64 * group : 0, column = Tile::rows > 64 ? 0 : columns * group;
    const int warp = thread / 32, lane = thread % 32, line = row + 16 * warp + lane % 16;
    const int first_row = 16 * warp + lane / 4, first_column = lane % 4 * 2;  // of a thread's sums in 64 x 64
    const int a_line = line * line_bytes, b_lines = (Tile::rows + column) * line_bytes;
    Turn turn;
    for (int tile = static_cast<int>(blockIdx.x); tile < arguments.tiles; tile += static_cast<int>(gridDim.x)) {
      Products sums[columns / columns_at_once] = {};
      for (int left = TilePlace::of<Tile>(arguments, tile).k; left > 0; left -= depth) {
        const char *const a = shared.panels[turn.stage][0] + a_line, *const b = shared.panels[turn.stage][0] + b_lines;
        shared.full[turn.stage].wait(turn.phase);
        OfA of_a(a, line, lane / 16);
#pragma unroll
        for (int first = 0; first < columns; first += columns_at_once) {
          Products step;
          multiply_panel<false>(of_a, b + first * line_bytes, step);
          if constexpr (Fp16PerFloat == 2)
            if (left > half_depth) {
              of_a = OfA(a + Split::panel_bytes, line, lane / 16);
              multiply_panel<true>(of_a, b + Split::panel_bytes, step);
            }
          const StepScales scales(shared.scales[turn.stage], row + first_row, column + first + first_column);
          if (first + columns_at_once == columns) shared.empty[turn.stage].arrive();
          scales.add(step, sums[first / columns_at_once]);
        }
        turn.next();
      }
      const TilePlace place = TilePlace::of<Tile>(arguments, tile);
      const ResultStore store(arguments, place);
#pragma unroll
      for (int first = 0; first < columns; first += columns_at_once) {
        const auto& [re, im] = sums[first / columns_at_once];
#pragma unroll
        for (int i = 0; i < sums_at_once; i += 2)
          store(place.row + row + first_row + i / 2 % 2 * 8, place.column + column + first + first_column + i / 4 * 8,
                {re[i], im[i]}, {re[i + 1], im[i + 1]});
      }
    }
  }

 private:
  // A warp's 16 lines of a panel of A.
  struct OfA {
    small_fft::Fragment plane[planes];
    __device__ OfA(const char* a, int line, int chunk) {
#pragma unroll
      for (int i = 0; i < planes; ++i)
        plane[i] = small_fft::load_fragment(reinterpret_cast<const __half*>(a + chunk_at(line, i, chunk)));
    }
  };

  // (ar + i ai)(br + i bi) of a panel's k, the small products first.
  template <bool Keep>
  __device__ static void multiply_panel(const OfA& a, const char* b, Products& step) {
    const unsigned panel = small_fft::shared_address(b);
    small_fft::begin_wgmma();
    if constexpr (Fp16PerFloat == 2) {
      add_products<Keep>(a, re_low, panel, re_high, step);
      add_products<true>(a, re_high, panel, re_low, step);
      add_products<true>(a, re_high, panel, re_high, step);
    } else {
      add_products<Keep>(a, plane_of<1>(0), panel, plane_of<1>(0), step);
      add_products<true>(a, plane_of<1>(1), panel, plane_of<1>(1), step);
    }
    small_fft::commit_wgmma();
    small_fft::wait_for_wgmma();
  }

  // For the planes of A and B that start with these planes of the real parts.
  template <bool Keep>
  __device__ static void add_products(const OfA& a, int a_plane, unsigned b, int b_plane, Products& step) {
    const small_fft::Fragment &a_re = a.plane[a_plane], &a_im = a.plane[a_plane + 1];
    const std::uint64_t b_re = descriptor(b + b_plane * 2 * chunk_bytes);
    const std::uint64_t b_im = descriptor(b + (b_plane + 1) * 2 * chunk_bytes);
    small_fft::multiply_by_wgmma<1, Keep>(step.re, a_re, b_re);
    small_fft::multiply_by_wgmma<1, Keep>(step.im, a_im, b_re);
    small_fft::multiply_by_wgmma<-1, true>(step.re, a_im, b_im);
    small_fft::multiply_by_wgmma<1, true>(step.im, a_re, b_im);
  }
};

template <class Tile, bool TransposeA, bool TransposeB, int Fp16PerFloat>
__global__ void __launch_bounds__(threads, 1) wgmma_kernel(const __grid_constant__ PairArguments arguments) {
  using Block = WgmmaBlock<Tile, TransposeA, TransposeB, Fp16PerFloat>;
  extern __shared__ __align__(1024) char memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  if (threadIdx.x == 0) {
    // Every thread arrives, not one per warp: racecheck follows only threads that do, and the times are the same.
    for (int stage = 0; stage < stages; ++stage)
      shared.full[stage].begin(128 * splitting), shared.empty[stage].begin(128 * multiplying);
    small_fft::show_to_wgmma();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / 128, thread = static_cast<int>(threadIdx.x) % 128;
  if (group < multiplying) {
    small_fft::take_registers<Block::multiplying_registers>();
    Block::multiply(arguments, shared, group, thread);
  } else {
    small_fft::give_registers<Block::splitting_registers>();
    Block::split(arguments, shared, group - multiplying, thread);
  }
}

template <class Tile, bool TransposeA, bool TransposeB, int Fp16PerFloat>
void launch(Stream& stream, const PairArguments& arguments) {
  launch_persistent(wgmma_kernel<Tile, TransposeA, TransposeB, Fp16PerFloat>, stream, arguments, threads,
                    sizeof(typename WgmmaBlock<Tile, TransposeA, TransposeB, Fp16PerFloat>::Shared), 1);
}

}  // namespace

template <class Tile, int Fp16PerFloat>
void multiply_by_wgmma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments) {
  set_tiling<Tile>(gemm, arguments);
  if (gemm.transpose_a)
    launch<Tile, true, false, Fp16PerFloat>(stream, arguments);
  else if (gemm.transpose_b)
    launch<Tile, false, true, Fp16PerFloat>(stream, arguments);
  else
    launch<Tile, false, false, Fp16PerFloat>(stream, arguments);
}

template void multiply_by_wgmma<PairTile<128, 64>, 2>(Stream&, const FrequencyGemm&, PairArguments);
template void multiply_by_wgmma<PairTile<64, 128>, 2>(Stream&, const FrequencyGemm&, PairArguments);
template void multiply_by_wgmma<PairTile<128, 64>, 1>(Stream&, const FrequencyGemm&, PairArguments);
template void multiply_by_wgmma<PairTile<64, 128>, 1>(Stream&, const FrequencyGemm&, PairArguments);
template void multiply_by_wgmma<PairTile<128, 128>, 1>(Stream&, const FrequencyGemm&, PairArguments);

}  // namespace twiddle::complex_pairs
