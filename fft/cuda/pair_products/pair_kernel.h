#pragma once
#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/pair_products/split_kernel.h"
#include "framework/cuda/check.h"

// C = A B by split fp16. A block computes a tile of 128 rows and 64 columns of C.
namespace twiddle::pairs {

constexpr int columns = rows_of_b;
constexpr int resident = 2;  // blocks per multiprocessor
constexpr int stages = 3;    // steps of A and of B's floats in shared memory; two of them are in flight

struct Arguments {
  const SplitPart<rows_of_a>* a;        // [matrix][tile][step]
  const SplitPart<rows_of_b>* split_b;  // the same; null: B is split in the product
  const float* scales;                  // of B's rows
  Factor b;                             // by its columns
  std::int64_t m;
  int k, part, steps;  // k is summed in parallel parts of this length
  int tiles_m, tiles_n;
  float* c;
  std::int64_t c_stride, c_piece_stride, c_part_stride, c_matrix_step;
  Divisor c_period;
  bool transpose;  // whether adjacent elements of C differ in m
  bool paired;     // else whether columns 2 i and 2 i + 1 of C are adjacent and may be stored at once
  const float* bias;
  bool bias_of_columns, relu;
};

template <bool BAlongK>
struct Shared {
  SplitPart<rows_of_a> a[stages];
  Fp16Tile<columns> b[2];
  Floats<BAlongK, columns> floats[stages];
  alignas(16) float scales[stages][depth];
  alignas(8) float back_b[2][columns];
  small_fft::Barrier a_is_there[stages];
};

// Four warps compute 64 rows, 16 each, in wgmma's layout: c[4 j] to c[4 j + 3] are of columns 8 j to 8 j + 7, two
// adjacent ones of row lane / 4, then two of the row 8 below.
constexpr int sums_a_thread = columns / 2;
__device__ inline int first_row_of(int warp, int lane) {
  return warp * 16 + lane / 4;
}
__device__ inline int first_column_of(int lane) {
  return lane % 4 * 2;
}

// Starts the products of a step from zero: tensor cores truncate sums, so that they add only 32 k. Small terms go
// first.
template <bool ByWgmma>
__device__ void begin_products(const Fp16Tile<rows_of_a>& a, const Fp16Tile<columns>& b, int warp, int lane,
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

__device__ inline void add_bias(const Arguments& g, std::int64_t m, std::int64_t first_n, int lane,
                                float (&sums)[sums_a_thread]) {
  const auto bias_of = [&](std::int64_t line, std::int64_t lines) { return line < lines ? g.bias[line] : 0; };
  if (g.bias_of_columns) {
#pragma unroll
    for (int i = 0; i < sums_a_thread; ++i)
      sums[i] += bias_of(first_n + i / 4 * 8 + first_column_of(lane) + i % 2, g.b.rows);
  } else {
    const float bias[2] = {bias_of(m, g.m), bias_of(m + 8, g.m)};
#pragma unroll
    for (int i = 0; i < sums_a_thread; ++i) sums[i] += bias[i / 2 % 2];
  }
}

// C as [n][m]: eight lanes store adjacent rows m.
__device__ inline void store_transposed(const Arguments& g, const float (&sums)[sums_a_thread], float* c,
                                        std::int64_t m, std::int64_t first_n, int lane) {
#pragma unroll
  for (int i = 0; i < sums_a_thread; ++i) {
    const std::int64_t n = first_n + i / 4 * 8 + first_column_of(lane) + i % 2, row = m + i / 2 % 2 * 8;
    if (n < g.b.rows && row < g.m) c[n * g.c_stride + row] = sums[i];
  }
}

// Each thread has two adjacent columns of each eight.
__device__ inline void store(const Arguments& g, float (&sums)[sums_a_thread], std::int64_t first_m,
                             std::int64_t first_n, int warp, int lane) {
  const std::int64_t m = first_m + first_row_of(warp, lane);
  float* const matrix = g.c + blockIdx.y * g.c_part_stride + blockIdx.z * g.c_matrix_step;
  if (g.bias != nullptr) add_bias(g, m, first_n, lane, sums);
  if (g.relu) {
#pragma unroll
    for (float& sum : sums) sum = sum < 0 ? 0 : sum;
  }
  if (g.transpose) return store_transposed(g, sums, matrix, m, first_n, lane);
  float* const c = matrix + m * g.c_stride;
  const auto place_of = [&](std::int64_t n) {
    const std::int64_t piece = g.c_period.quotient(n);
    return n + piece * (g.c_piece_stride - g.c_period.value());
  };
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

// While tensor cores multiply a step, the next one's part of B is split and those after it are copied. A step's A and
// the next one's floats are one group of copies and arrive two steps after they are issued. One barrier per step is
// enough.
template <bool ByWgmma, bool BAlongK, int Width>
__global__ void __launch_bounds__(threads, resident) pair_kernel(const Arguments g) {
  extern __shared__ SplitPart<rows_of_a> memory[];
  auto& shared = *reinterpret_cast<Shared<BAlongK>*>(memory);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int tile_m = static_cast<int>(blockIdx.x) % g.tiles_m;
  const std::int64_t first_n = std::int64_t(blockIdx.x / g.tiles_m) * columns, matrix = blockIdx.z;
  const int first_k = static_cast<int>(blockIdx.y) * g.part, last_k = min(first_k + g.part, g.k);
  const StepCopy<BAlongK, Width, columns> copy_b(g.b, matrix, first_n, thread);
  const SplitPart<rows_of_a>* next_a = g.a + (matrix * g.tiles_m + tile_m) * g.steps + first_k / depth;
  const float* const scales = g.scales + matrix * g.steps * depth;

  // Uses the copy engine if the GPU has one.
  const auto copy_a = [&](int k, int stage) {
    if (k >= last_k) return;
    const auto* const from = next_a++;
    if constexpr (ByWgmma) {
      if (thread == 0)
        shared.a_is_there[stage].expect(sizeof *from),
            shared.a_is_there[stage].load(&shared.a[stage], from, sizeof *from);
    } else {
      constexpr int fours = sizeof(SplitPart<rows_of_a>) / sizeof(Four);
#pragma unroll
      for (int i = 0; i < fours; i += threads)
        if (i + threads <= fours || thread < fours - i)
          small_fft::async_copy_once(reinterpret_cast<Four*>(&shared.a[stage]) + i + thread,
                                     reinterpret_cast<const Four*>(from) + i + thread, true);
    }
  };
  const auto copy_floats = [&](int k, int stage) {
    if (k >= last_k) return;
    copy_b.copy(k, last_k, shared.floats[stage]);
    if (thread < depth) small_fft::async_copy(shared.scales[stage] + thread, scales + k + thread, true);
  };
  const auto split_b = [&](int stage, int buffer) {
    split_rows(shared.floats[stage], thread, shared.scales[stage], shared.b[buffer], shared.back_b[buffer]);
  };

  if constexpr (ByWgmma) {
    if (thread < stages) shared.a_is_there[thread].begin(1);
    small_fft::show_to_wgmma();  // makes the stores visible to wgmma and the copy engine
    __syncthreads();
  }
  copy_floats(first_k, 0);
  small_fft::commit_group();
  for (int i = 0; i + 1 < stages; ++i) {
    copy_a(first_k + i * depth, i);
    copy_floats(first_k + (i + 1) * depth, i + 1);
    small_fft::commit_group();
  }
  small_fft::wait_group<stages - 1>();
  __syncthreads();
  split_b(0, 0);
  float sums[sums_a_thread] = {}, products[sums_a_thread];
  int stage = 0, phase = 0, buffer = 0;
#pragma unroll 1
  for (int k = first_k; k < last_k; k += depth, buffer ^= 1) {
    const int next = stage + 1 == stages ? 0 : stage + 1, last = stage == 0 ? stages - 1 : stage - 1;
    small_fft::wait_group<stages - 2>();
    if constexpr (ByWgmma) small_fft::show_to_wgmma();
    __syncthreads();  // B's fp16 values and the next step's floats are ready; the last step's buffers are free
    if constexpr (ByWgmma) shared.a_is_there[stage].wait(phase);
    begin_products<ByWgmma>(shared.a[stage].fp16, shared.b[buffer], warp, lane, products);
    copy_a(k + (stages - 1) * depth, last);
    copy_floats(k + stages * depth, stage);
    small_fft::commit_group();
    if (k + depth < last_k) split_b(next, buffer ^ 1);
    if constexpr (ByWgmma) small_fft::wait_for_wgmma();
    add_products(products, shared.a[stage].back, shared.back_b[buffer], warp, lane, sums);
    stage = next, phase ^= stage == 0;
  }
  store(g, sums, std::int64_t(tile_m) * rows_of_a, first_n, warp, lane);
}

template <class Shared>
void launch(Stream& stream, void (*kernel)(Arguments), const Arguments& arguments, dim3 grid) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)));
  kernel<<<grid, threads, sizeof(Shared), twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

// Selects the kernel by B's layout: adjacent along k or not, and copied by four floats or one by one.
template <bool ByWgmma>
void launch_pairs(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours) {
  if (along_k)
    launch<Shared<true>>(stream, by_fours ? pair_kernel<ByWgmma, true, 4> : pair_kernel<ByWgmma, true, 1>, arguments,
                         grid);
  else
    launch<Shared<false>>(stream, by_fours ? pair_kernel<ByWgmma, false, 4> : pair_kernel<ByWgmma, false, 1>, arguments,
                          grid);
}

// The first is compiled only for sm_90a (sm_90a/), the second for all architectures; below sm_80 it does nothing.
void multiply_by_wgmma(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours);
void multiply_by_mma(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours);

}  // namespace twiddle::pairs
