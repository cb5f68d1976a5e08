#pragma once
#include "fft/cuda/pair_products/split_kernel.h"
#include "framework/cuda/check.h"

// C = A B by pairs of halves. A block has a tile of 128 rows and 64 columns of C.
namespace twiddle::pairs {

constexpr int columns = 64;
constexpr int resident = 2;  // blocks of a multiprocessor

struct Arguments {
  const SplitPart* a;   // [tile][step]
  const float* scales;  // of B's rows
  Factor b;             // by its columns
  std::int64_t m;
  int k, part, steps;  // k is summed in parts of that length, side by side
  int tiles_m;
  float* c;
  std::int64_t c_stride, c_piece_stride, c_part_stride;
  Divisor c_period;
  bool paired;  // whether columns 2 i and 2 i + 1 of C are adjacent and may be stored at once
  const float* bias;
  bool relu;
};

template <bool BAlongK>
struct Shared {
  SplitPart a[2];
  Halves<columns> b[2];
  Floats<BAlongK, columns> floats[2];
  alignas(16) float scales[2][depth];
  alignas(8) float back_b[2][columns];
};

// Four warps have 64 rows, each of them 16, as wgmma has it: c[4 j] to c[4 j + 3] are of columns 8 j to 8 j + 7, two
// adjacent ones of row lane / 4, then two of the row 8 below.
constexpr int sums_a_thread = columns / 2;
__device__ inline int first_row_of(int warp, int lane) {
  return warp * 16 + lane / 4;
}
__device__ inline int first_column_of(int lane) {
  return lane % 4 * 2;
}

// The products of a step, from zero: the tensor core cuts digits off where it adds, so it adds 32 k and no more. Small
// terms go first.
template <bool ByWgmma>
__device__ void begin_products(const Halves<rows_of_a>& a, const Halves<columns>& b, int warp, int lane,
                               float (&products)[sums_a_thread]) {
  constexpr int k_at_once = 16;
  if constexpr (ByWgmma) {
    const std::uint64_t a_high = small_fft::matrix_for_wgmma(a.high + warp / 4 * 64 * depth);
    const std::uint64_t b_high = small_fft::matrix_for_wgmma(b.high);
    constexpr int to_low_of_a = small_fft::steps_for_wgmma(rows_of_a * depth);
    constexpr int to_low_of_b = small_fft::steps_for_wgmma(columns * depth);
    small_fft::begin_wgmma();
#pragma unroll
    for (int first = 0; first < depth; first += k_at_once) {
      const int k = small_fft::steps_for_wgmma(first);
      small_fft::multiply_by_wgmma(a_high + to_low_of_a + k, b_high + k, first > 0, products);
      small_fft::multiply_by_wgmma(a_high + k, b_high + to_low_of_b + k, true, products);
      small_fft::multiply_by_wgmma(a_high + k, b_high + k, true, products);
    }
    small_fft::commit_wgmma();
  } else {
    small_fft::Fragment high[depth / k_at_once], low[depth / k_at_once];
#pragma unroll
    for (int step = 0; step < depth / k_at_once; ++step) {
      const int place = small_fft::place_of_piece(warp * 16 + lane % 16, step * 2 + lane / 16);
      high[step] = small_fft::load_fragment(a.high + place), low[step] = small_fft::load_fragment(a.low + place);
    }
#pragma unroll
    for (int j = 0; j < columns / 8; ++j) {
      const int place = small_fft::place_of_piece(j * 8 + lane % 8, lane / 8);
      const small_fft::Fragment b_high = small_fft::load_fragment(b.high + place);
      const small_fft::Fragment b_low = small_fft::load_fragment(b.low + place);
      float* const sums = products + 4 * j;
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] = 0;
#pragma unroll
      for (int step = 0; step < depth / k_at_once; ++step) {
        small_fft::multiply(low[step], b_high.at[2 * step], b_high.at[2 * step + 1], sums);
        small_fft::multiply(high[step], b_low.at[2 * step], b_low.at[2 * step + 1], sums);
        small_fft::multiply(high[step], b_high.at[2 * step], b_high.at[2 * step + 1], sums);
      }
    }
  }
}

__device__ inline void add_products(const float (&products)[sums_a_thread], const float* back_a, const float* back_b,
                                    int warp, int lane, float (&sums)[sums_a_thread]) {
  const int row = first_row_of(warp, lane);
  const float back[2] = {back_a[row], back_a[row + 8]};
#pragma unroll
  for (int j = 0; j < columns / 8; ++j) {
    const float2 back_of_columns = *reinterpret_cast<const float2*>(back_b + j * 8 + first_column_of(lane));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sums[4 * j + i] =
          fmaf(products[4 * j + i] * back[i / 2], i % 2 == 0 ? back_of_columns.x : back_of_columns.y, sums[4 * j + i]);
  }
}

// Each thread has two adjacent columns of each eight.
__device__ inline void store(const Arguments& g, float (&sums)[sums_a_thread], std::int64_t first_m,
                             std::int64_t first_n, int warp, int lane) {
  const std::int64_t m = first_m + first_row_of(warp, lane);
  float* const c = g.c + blockIdx.y * g.c_part_stride + m * g.c_stride;
  const auto place_of = [&](std::int64_t n) {
    const std::int64_t piece = g.c_period.quotient(n);
    return n + piece * (g.c_piece_stride - g.c_period.value());
  };
  if (g.bias != nullptr) {
    const float bias[2] = {m < g.m ? g.bias[m] : 0, m + 8 < g.m ? g.bias[m + 8] : 0};
#pragma unroll
    for (int i = 0; i < sums_a_thread; ++i) sums[i] += bias[i / 2 % 2];
  }
  if (g.relu) {
#pragma unroll
    for (float& sum : sums) sum = sum < 0 ? 0 : sum;
  }
#pragma unroll
  for (int j = 0; j < columns / 8; ++j) {
    const std::int64_t n = first_n + j * 8 + first_column_of(lane);
    if (n >= g.b.rows) return;
    if (g.paired) {
      float* const column = c + place_of(n);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (m + 8 * i < g.m)
          *reinterpret_cast<float2*>(column + i * 8 * g.c_stride) = {sums[4 * j + 2 * i], sums[4 * j + 2 * i + 1]};
    } else {
      for (int e = 0; e < 2 && n + e < g.b.rows; ++e) {
        float* const column = c + place_of(n + e);
        if (m < g.m) *column = e == 0 ? sums[4 * j] : sums[4 * j + 1];
        if (m + 8 < g.m) column[8 * g.c_stride] = e == 0 ? sums[4 * j + 2] : sums[4 * j + 3];
      }
    }
  }
}

// While tensor cores multiply a step, the next one's part of B is split and the one after it is copied: floats and
// halves have two buffers each, and a barrier a step is enough.
template <bool ByWgmma, bool BAlongK, int Width>
__global__ void __launch_bounds__(threads, resident) pair_kernel(const Arguments g) {
  extern __shared__ SplitPart memory[];
  auto& shared = *reinterpret_cast<Shared<BAlongK>*>(memory);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int tile_m = static_cast<int>(blockIdx.x) % g.tiles_m;
  const std::int64_t first_n = std::int64_t(blockIdx.x / g.tiles_m) * columns;
  const int first_k = static_cast<int>(blockIdx.y) * g.part, last_k = min(first_k + g.part, g.k);
  const StepCopy<BAlongK, Width, columns> copy_b(g.b, first_n, thread);
  const SplitPart* next_a = g.a + std::int64_t(tile_m) * g.steps + first_k / depth;

  const auto copy_a = [&](SplitPart& to) {
    constexpr int fours = sizeof(SplitPart) / sizeof(Four);
    const auto* const from = reinterpret_cast<const Four*>(next_a++);
#pragma unroll
    for (int i = 0; i < fours; i += threads)
      if (i + threads <= fours || thread < fours - i)
        small_fft::async_copy(reinterpret_cast<Four*>(&to) + i + thread, from + i + thread, true);
  };
  const auto copy_floats = [&](int k, int buffer) {
    if (k >= last_k) return;
    copy_b.copy(k, last_k, shared.floats[buffer]);
    if (thread < depth) small_fft::async_copy(shared.scales[buffer] + thread, g.scales + k + thread, true);
  };
  const auto split_b = [&](int buffer) {
    split_rows(shared.floats[buffer], thread, shared.scales[buffer], shared.b[buffer], shared.back_b[buffer]);
  };

  copy_floats(first_k, 0);
  small_fft::commit_group();
  copy_a(shared.a[0]);
  copy_floats(first_k + depth, 1);
  small_fft::commit_group();
  small_fft::wait_group<1>();
  __syncthreads();
  split_b(0);
  float sums[sums_a_thread] = {}, products[sums_a_thread];
  int buffer = 0;
#pragma unroll 1
  for (int k = first_k; k < last_k; k += depth, buffer ^= 1) {
    small_fft::wait_group<0>();
    if constexpr (ByWgmma) small_fft::show_to_wgmma();
    __syncthreads();  // this step's halves and the next one's floats are there, and what the last step used is free
    begin_products<ByWgmma>(shared.a[buffer].halves, shared.b[buffer], warp, lane, products);
    const bool has_next = k + depth < last_k;
    if (has_next) copy_a(shared.a[buffer ^ 1]);
    copy_floats(k + 2 * depth, buffer);
    small_fft::commit_group();
    if (has_next) split_b(buffer ^ 1);
    if constexpr (ByWgmma) small_fft::wait_for_wgmma();
    add_products(products, shared.a[buffer].back, shared.back_b[buffer], warp, lane, sums);
  }
  store(g, sums, std::int64_t(tile_m) * rows_of_a, first_n, warp, lane);
}

template <bool ByWgmma, bool BAlongK, int Width>
void launch_pairs(Stream& stream, const Arguments& arguments, dim3 grid) {
  constexpr int bytes = sizeof(Shared<BAlongK>);
  const auto kernel = pair_kernel<ByWgmma, BAlongK, Width>;
  const cudaStream_t native = twiddle::detail::native(stream);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<grid, threads, bytes, native>>>(arguments);
  twiddle::detail::check_launch();
}

// By how a factor lies: along k or not, and copied by four floats or one by one.
template <bool ByWgmma>
void launch_pairs(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours) {
  const auto launch = along_k ? (by_fours ? launch_pairs<ByWgmma, true, 4> : launch_pairs<ByWgmma, true, 1>)
                              : (by_fours ? launch_pairs<ByWgmma, false, 4> : launch_pairs<ByWgmma, false, 1>);
  launch(stream, arguments, grid);
}

// The first is compiled for sm_90a alone (sm_90a/), the second for every architecture, to do nothing below sm_80.
void multiply_by_wgmma(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours);
void multiply_by_mma(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours);

}  // namespace twiddle::pairs
