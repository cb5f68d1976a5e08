#pragma once
#include <cuda.h>
#include <cuda_fp16.h>

#include "fft/cuda/complex_pairs/sm_90a/panel_descriptor.h"
#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "fft/cuda/device/wgmma_of_registers.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"

// The block's part of a product of factors in the storages of stored_spectrum.h.
namespace twiddle::stored_pairs {

using small_fft::Barrier;
using small_fft::Complex;
using small_fft::ComplexPair;
using small_fft::Fragment;
using small_fft::shared_address;

constexpr int depth = 32, half_depth = 16;  // k of a step and of an instruction

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

// A factor's part of a step in shared memory, as the tensor copy writes it. If numbers along k are adjacent: [high,
// low][line][re, im][32 k], lines of 128 bytes with the 128-byte swizzle. Otherwise: [line / 32][plane][k][32 lines],
// lines of 64 bytes with the 64-byte swizzle.
template <int Lines, bool AlongK, int Fp16PerFloat>
struct Panel {
  static constexpr int planes = 2 * Fp16PerFloat;
  static constexpr int bytes = Lines * depth * planes * 2;
  static constexpr int group_bytes = planes * depth * 64;

  // A box at a step and a line of a bin.
  __device__ static void copy(char* panel, const CUtensorMap& map, int step, int line, int bin, Barrier& barrier);

  __device__ static constexpr int plane_at(int plane) {
    return AlongK ? plane / 2 * Lines * 128 + plane % 2 * 64 : plane * depth * 64;
  }
  // 16 lines and 16 k of each plane.
  __device__ static void load(Fragment (&to)[planes], unsigned panel, int first_line, int half, int lane) {
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) {
      if constexpr (AlongK) {
        const int line = first_line + lane % 16, chunk = plane % 2 * 4 + half * 2 + lane / 16;
        to[plane] = load_fragment<false>(panel + plane / 2 * Lines * 128 + line * 128 + ((chunk ^ (line & 7)) << 4));
      } else {
        const int line = first_line + lane / 8 % 2 * 8, k = half * 16 + lane % 8 + lane / 16 * 8;
        to[plane] = load_fragment<true>(panel + line / 32 * group_bytes + plane * depth * 64 + k * 64 +
                                        ((line % 32 / 8 ^ (k >> 1 & 3)) << 4));
      }
    }
  }
  // 64 lines from a multiple of 64 on.
  __device__ static std::uint64_t descriptor(unsigned panel, int plane, int first_line, int half) {
    constexpr std::uint64_t swizzle_128 = std::uint64_t(1) << 62, swizzle_64 = std::uint64_t(2) << 62;
    const unsigned at = panel + plane_at(plane) +
                        (AlongK ? first_line * 128 + half * 32 : first_line / 32 * group_bytes + half * 16 * 64);
    const std::uint64_t start = (at & 0x3ffff) >> 4;
    if constexpr (AlongK) return start | std::uint64_t(1) << 16 | std::uint64_t(1024 >> 4) << 32 | swizzle_128;
    return start | std::uint64_t(group_bytes >> 4) << 16 | std::uint64_t(512 >> 4) << 32 | swizzle_64;
  }

 private:
  template <bool Transpose>
  __device__ static Fragment load_fragment(unsigned row) {
    Fragment to;
    if constexpr (Transpose)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
                   : "r"(row)
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
                   : "r"(row)
                   : "memory");
    return to;
  }
};

template <int Lines, bool AlongK, int Fp16PerFloat>
__device__ void Panel<Lines, AlongK, Fp16PerFloat>::copy(char* panel, const CUtensorMap& map, int step, int line,
                                                         int bin, Barrier& barrier) {
  const int y = AlongK ? line : step * depth, z = AlongK ? step * Fp16PerFloat : line / 32 * planes;
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(shared_address(panel)),
      "l"(&map), "r"(0), "r"(y), "r"(z), "r"(bin), "r"(shared_address(&barrier))
      : "memory");
}

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

// Warpgroups of a block.
constexpr int multiplying = 2, threads = (multiplying + 1) * 128;
constexpr int multiplying_registers = 240, copying_registers = 24;
// The L1 cache gets the part of a multiprocessor's 256 KB that shared memory does not use. A variant that left it less
// than 60 KB took up to 30 % longer if it stores much.
constexpr int most_shared = 194 * 1024;

// One thread issues copies, and two warpgroups multiply 64 x 64 of C each.
template <int Rows, int Columns, bool AAlongK, bool BAlongK, int Fp16PerFloat>
struct StoredBlock {
  using A = Panel<Rows, AAlongK, Fp16PerFloat>;
  using B = Panel<Columns, BAlongK, Fp16PerFloat>;
  static constexpr int planes = 2 * Fp16PerFloat;
  static constexpr int sign_a = AAlongK ? 1 : -1, sign_b = BAlongK ? -1 : 1;  // conjugated where transposed
  static constexpr int stage_bytes = A::bytes + B::bytes, stages = (most_shared - 1024) / stage_bytes;
  static_assert(Rows * Columns == multiplying * 64 * 64);

  struct alignas(1024) Shared {
    struct Stage {
      char a[A::bytes], b[B::bytes];
    } of_steps[stages];
    int tiles[stages];  // tiles of the steps; arguments.tiles after the last one
    Barrier full[stages], empty[stages];
    KRange found[multiplying * 4];  // by each warp
  };

  // The stages in their order, again and again.
  struct Turn {
    int stage = 0, phase = 0;
    __device__ void next() {
      if (++stage == stages) stage = 0, phase ^= 1;
    }
  };

  // A tile of C and the part of k that is summed in it.
  struct Place {
    int bin, part, row, column, first_step, steps;
    __device__ Place(const StoredArguments& arguments, int tile) {
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

  // With the static schedule, a block that starts late, because another kernel occupies its multiprocessor, delays its
  // tiles. A dynamic schedule avoids this.
  __device__ static int first_tile(const StoredArguments& arguments) {
    return arguments.taken != nullptr ? atomicAdd(arguments.taken, 1) : static_cast<int>(blockIdx.x);
  }
  __device__ static int next_tile(int tile, const StoredArguments& arguments) {
    return arguments.taken != nullptr ? atomicAdd(arguments.taken, 1) : tile + static_cast<int>(gridDim.x);
  }

  __device__ static void copy(const StoredArguments& arguments, Shared& shared) {
    Turn turn;
    int tile = first_tile(arguments);
    for (int next; tile < arguments.tiles; tile = next) {
      next = next_tile(tile, arguments);
      const Place place(arguments, tile);
      for (int step = 0; step < place.steps; ++step, turn.next()) {
        Barrier& full = shared.full[turn.stage];
        auto& to = shared.of_steps[turn.stage];
        shared.empty[turn.stage].wait(turn.phase ^ 1);
        shared.tiles[turn.stage] = tile;
        full.expect(stage_bytes);
        A::copy(to.a, arguments.a, place.first_step + step, place.row, place.bin, full);
        B::copy(to.b, arguments.b, place.first_step + step, place.column, place.bin, full);
      }
    }
    shared.empty[turn.stage].wait(turn.phase ^ 1);
    shared.tiles[turn.stage] = arguments.tiles;
    shared.full[turn.stage].arrive();
  }

  __device__ static void multiply(const StoredArguments& arguments, Shared& shared, int group, int thread) {
    const int row = Rows == 64 ? 0 : 64 * group, column = Rows == 64 ? 64 * group : 0;
    const int warp = thread / 32, lane = thread % 32, line = row + 16 * warp;
    const KRange range = range_of_k(arguments, shared.found, 128 * group + thread);
    const bool differ = range.smallest < range.largest;
    Turn turn;
    while (true) {
      shared.full[turn.stage].wait(turn.phase);
      const int tile = shared.tiles[turn.stage];
      if (tile == arguments.tiles) break;
      float re[32] = {}, im[32] = {};
      int step = Place(arguments, tile).first_step;
      for (int left = Place(arguments, tile).steps; left > 0; --left, ++step, turn.next()) {
        Fragment of_a[2][planes];
        Multipliers multipliers = {};
        if (differ) multipliers = multipliers_of(arguments, step * depth + lane % 4 * 2, range.largest);
        shared.full[turn.stage].wait(turn.phase);
        const unsigned a = shared_address(shared.of_steps[turn.stage].a);
        const unsigned b = shared_address(shared.of_steps[turn.stage].b);
#pragma unroll
        for (int half = 0; half < 2; ++half) A::load(of_a[half], a, line, half, lane);
        if (differ) scale(of_a, multipliers);
        const auto of_b = [&](int half) { return [=](int plane) { return B::descriptor(b, plane, column, half); }; };
        const auto release = [&] { shared.empty[turn.stage].arrive(); };
        if constexpr (Fp16PerFloat == 2)
          add_step(re, im, of_a, of_b, release);
        else
          multiply_step(re, im, of_a, of_b, release);
      }
      store(arguments, Place(arguments, tile), range.largest, row + 16 * warp + lane / 4, column + lane % 4 * 2, re,
            im);
    }
  }

 private:
  __device__ static void wait_for_multiplying() {
    asm volatile("bar.sync 1, %0;" ::"n"(multiplying * 128) : "memory");
  }

  // Found by all threads that multiply.
  __device__ static KRange range_of_k(const StoredArguments& arguments, KRange* found, int thread) {
    KRange range;
    for (int k = thread; k < arguments.k; k += multiplying * 128) {
      const int of_a = arguments.a_of_k[k], of_b = arguments.b_of_k[k];
      if (of_a > no_exponent && of_b > no_exponent) range.add({of_a + of_b, of_a + of_b});
    }
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2)
      range.add({__shfl_xor_sync(~0u, range.largest, apart), __shfl_xor_sync(~0u, range.smallest, apart)});
    if (thread % 32 == 0) found[thread / 32] = range;
    wait_for_multiplying();
    for (int warp = 0; warp < multiplying * 4; ++warp) range.add(found[warp]);
    return range;
  }

  // A thread's powers of two for a step, of two neighbours along k each.
  struct Multipliers {
    __half2 of[2][2];
  };
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

  // Tensor cores truncate sums: they add one step, starting from zero, and fp32 adders add the steps.
  template <class OfB, class Release>
  __device__ static void add_step(float (&re)[32], float (&im)[32], const Fragment (&a)[2][planes], const OfB& of_b,
                                  const Release& release) {
    float step_re[32], step_im[32];
    small_fft::begin_wgmma();
    multiply_half<false>(step_re, step_im, a[0], of_b(0));
    multiply_half<true>(step_re, step_im, a[1], of_b(1));
    small_fft::commit_wgmma();
    small_fft::wait_for_wgmma();
    release();
#pragma unroll
    for (int i = 0; i < 32; ++i) re[i] += step_re[i], im[i] += step_im[i];
  }

  // For rounded factors, whose error exceeds that of truncated sums.
  template <class OfB, class Release>
  __device__ static void multiply_step(float (&re)[32], float (&im)[32], const Fragment (&a)[2][planes],
                                       const OfB& of_b, const Release& release) {
    small_fft::begin_wgmma();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      add_products<true>(re, im, a[half][re_high], a[half][im_high], of_b(half)(re_high), of_b(half)(im_high));
    small_fft::commit_wgmma();
    small_fft::wait_for_wgmma();
    release();
  }

  // (ar + i ai)(br + i bi) of 16 k, the small products first.
  template <bool Keep, class OfB>
  __device__ static void multiply_half(float (&re)[32], float (&im)[32], const Fragment (&a)[planes], const OfB& b) {
    add_products<Keep>(re, im, a[re_low], a[im_low], b(re_high), b(im_high));
    add_products<true>(re, im, a[re_high], a[im_high], b(re_low), b(im_low));
    add_products<true>(re, im, a[re_high], a[im_high], b(re_high), b(im_high));
  }
  template <bool Keep>
  __device__ static void add_products(float (&re)[32], float (&im)[32], const Fragment& a_re, const Fragment& a_im,
                                      std::uint64_t b_re, std::uint64_t b_im) {
    small_fft::multiply_by_wgmma<1, Keep, BAlongK>(re, a_re, b_re);
    small_fft::multiply_by_wgmma<sign_a, Keep, BAlongK>(im, a_im, b_re);
    small_fft::multiply_by_wgmma<-sign_a * sign_b, true, BAlongK>(re, a_im, b_im);
    small_fft::multiply_by_wgmma<sign_b, true, BAlongK>(im, a_re, b_im);
  }

  // Stores a thread's numbers: two rows, and two neighbors of each eight columns. All scales are loaded before the
  // first store: the compiler must assume that they may alias.
  __device__ static void store(const StoredArguments& arguments, const Place& place, int of_k, int first_row,
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

template <class Block>
__global__ void __launch_bounds__(threads, 1)
    stored_kernel(const __grid_constant__ StoredArguments arguments, bool /*dependents_early*/) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Block::stages; ++stage)
      shared.full[stage].begin(1), shared.empty[stage].begin(128 * multiplying);
    small_fft::show_to_wgmma();
  }
  small_fft::grid_dependency_wait();
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / 128, thread = static_cast<int>(threadIdx.x) % 128;
  if (group < multiplying) {
    small_fft::take_registers<multiplying_registers>();
    Block::multiply(arguments, shared, group, thread);
  } else {
    small_fft::give_registers<copying_registers>();
    if (thread == 0) Block::copy(arguments, shared);
  }
}

}  // namespace twiddle::stored_pairs
