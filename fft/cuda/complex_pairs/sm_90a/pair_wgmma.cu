#include "fft/cuda/complex_pairs/sm_90a/pair_wgmma.h"

#include "fft/cuda/complex_pairs/pair_launch.h"
#include "fft/cuda/complex_pairs/pair_split.h"
#include "fft/cuda/complex_pairs/sm_90a/wgmma.h"

namespace twiddle::complex_pairs {

namespace {

// Of four warpgroups two split, half of the lines each, and two multiply, 64 x 64 of C each. Shared memory holds
// several steps, so that these run apart: while one of the multiplying warpgroups adds up or stores its sums, the
// tensor cores work for the other. Registers go to where the sums are.
constexpr int multiplying = 2, splitting = 2, threads = (multiplying + splitting) * 128;
constexpr int stages = 2, steps_ahead = 2;
constexpr int multiplying_registers = 168, splitting_registers = 88;

template <class Tile, bool TransposeA, bool TransposeB>
struct WgmmaBlock {
  using Split = Splitter<Tile, TransposeA, TransposeB, steps_ahead>;
  static_assert(Tile::rows * Tile::columns == multiplying * 64 * 64);

  struct alignas(1024) Shared {
    char panels[stages][2][Split::panel_bytes];  // each at a place that 1024 divides, for the swizzle
    LineScales<Tile> scales[stages];
    ComplexPair slots[2][Split::slots];
    Barrier full[stages], empty[stages];
  };

  // Takes back the scales of a thread's two rows and 16 columns.
  class StepScales {
   public:
    __device__ StepScales(const LineScales<Tile>& scales, int row, int column)
        : of_rows_{scales.of_rows[row], scales.of_rows[row + 8]} {
#pragma unroll
      for (int i = 0; i < 8; ++i) of_columns_[i] = *reinterpret_cast<const float2*>(scales.of_columns + column + 8 * i);
    }
    __device__ void add(const float (&step_re)[32], const float (&step_im)[32], float (&re)[32],
                        float (&im)[32]) const {
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const float2 of_columns = of_columns_[i / 4];
        const float scale = of_rows_[i / 2 % 2] * (i % 2 == 0 ? of_columns.x : of_columns.y);
        re[i] = fmaf(step_re[i], scale, re[i]), im[i] = fmaf(step_im[i], scale, im[i]);
      }
    }

   private:
    float of_rows_[2];
    float2 of_columns_[8];
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
    const int row = Tile::rows > 64 ? 64 * group : 0, column = Tile::rows > 64 ? 0 : 64 * group;
    const int warp = thread / 32, lane = thread % 32, line = row + 16 * warp + lane % 16;
    const int first_row = 16 * warp + lane / 4, first_column = lane % 4 * 2;  // of a thread's sums in 64 x 64
    const int a_line = line * line_bytes, b_lines = (Tile::rows + column) * line_bytes;
    Turn turn;
    for (int tile = static_cast<int>(blockIdx.x); tile < arguments.tiles; tile += static_cast<int>(gridDim.x)) {
      float re[32] = {}, im[32] = {};
      for (int left = TilePlace::of<Tile>(arguments, tile).k; left > 0; left -= depth) {
        float step_re[32], step_im[32];
        const char* const panels = shared.panels[turn.stage][0];
        shared.full[turn.stage].wait(turn.phase);
        multiply_half<false>(step_re, step_im, panels + a_line, panels + b_lines, line, lane / 16);
        if (left > half_depth)
          multiply_half<true>(step_re, step_im, panels + Split::panel_bytes + a_line,
                              panels + Split::panel_bytes + b_lines, line, lane / 16);
        const StepScales scales(shared.scales[turn.stage], row + first_row, column + first_column);
        shared.empty[turn.stage].arrive();
        scales.add(step_re, step_im, re, im);
        turn.next();
      }
      const TilePlace place = TilePlace::of<Tile>(arguments, tile);
      const ResultStore store(arguments, place);
#pragma unroll
      for (int i = 0; i < 32; i += 2)
        store(place.row + row + first_row + i / 2 % 2 * 8, place.column + column + first_column + i / 4 * 8,
              {re[i], im[i]}, {re[i + 1], im[i + 1]});
    }
  }

 private:
  // (ar + i ai)(br + i bi) of 16 k, the small products first.
  template <bool Keep>
  __device__ static void multiply_half(float (&re)[32], float (&im)[32], const char* a, const char* b, int line,
                                       int chunk) {
    small_fft::Fragment of_a[planes];
#pragma unroll
    for (int plane = 0; plane < planes; ++plane)
      of_a[plane] = small_fft::load_fragment(reinterpret_cast<const __half*>(a + chunk_at(line, plane, chunk)));
    const auto of_b = [panel = shared_address(b)](int plane) { return descriptor(panel + plane * 2 * chunk_bytes); };
    small_fft::begin_wgmma();
    complex_pairs::multiply<1, Keep>(re, of_a[re_low], of_b(re_high));
    complex_pairs::multiply<1, Keep>(im, of_a[im_low], of_b(re_high));
    complex_pairs::multiply<-1, true>(re, of_a[im_low], of_b(im_high));
    complex_pairs::multiply<1, true>(im, of_a[re_low], of_b(im_high));
    add_products(re, im, of_a[re_high], of_a[im_high], of_b(re_low), of_b(im_low));
    add_products(re, im, of_a[re_high], of_a[im_high], of_b(re_high), of_b(im_high));
    small_fft::commit_wgmma();
    small_fft::wait_for_wgmma();
  }

  __device__ static void add_products(float (&re)[32], float (&im)[32], const small_fft::Fragment& a_re,
                                      const small_fft::Fragment& a_im, std::uint64_t b_re, std::uint64_t b_im) {
    complex_pairs::multiply<1, true>(re, a_re, b_re);
    complex_pairs::multiply<1, true>(im, a_im, b_re);
    complex_pairs::multiply<-1, true>(re, a_im, b_im);
    complex_pairs::multiply<1, true>(im, a_re, b_im);
  }
};

template <class Tile, bool TransposeA, bool TransposeB>
__global__ void __launch_bounds__(threads, 1) wgmma_kernel(const __grid_constant__ PairArguments arguments) {
  using Block = WgmmaBlock<Tile, TransposeA, TransposeB>;
  extern __shared__ __align__(1024) char memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  if (threadIdx.x == 0) {
    // Every thread arrives, not one a warp: racecheck follows only threads that do, and the times are the same.
    for (int stage = 0; stage < stages; ++stage)
      shared.full[stage].begin(128 * splitting), shared.empty[stage].begin(128 * multiplying);
    small_fft::show_to_wgmma();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / 128, thread = static_cast<int>(threadIdx.x) % 128;
  if (group < multiplying) {
    ask_for_registers<multiplying_registers>();
    Block::multiply(arguments, shared, group, thread);
  } else {
    give_up_registers<splitting_registers>();
    Block::split(arguments, shared, group - multiplying, thread);
  }
}

template <class Tile, bool TransposeA, bool TransposeB>
void launch(Stream& stream, const PairArguments& arguments) {
  launch_persistent(wgmma_kernel<Tile, TransposeA, TransposeB>, stream, arguments, threads,
                    sizeof(typename WgmmaBlock<Tile, TransposeA, TransposeB>::Shared), 1);
}

template <class Tile>
void multiply_tiles(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments) {
  cut<Tile>(gemm, arguments);
  if (gemm.transpose_a)
    launch<Tile, true, false>(stream, arguments);
  else if (gemm.transpose_b)
    launch<Tile, false, true>(stream, arguments);
  else
    launch<Tile, false, false>(stream, arguments);
}

}  // namespace

// In the tiles that C fills best.
void multiply_by_wgmma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments) {
  const auto area = [&](std::int64_t rows, std::int64_t columns) {
    return (gemm.m + rows - 1) / rows * rows * ((gemm.n + columns - 1) / columns * columns);
  };
  if (area(64, 128) < area(128, 64))
    multiply_tiles<PairTile<64, 128>>(stream, gemm, arguments);
  else
    multiply_tiles<PairTile<128, 64>>(stream, gemm, arguments);
}

}  // namespace twiddle::complex_pairs
