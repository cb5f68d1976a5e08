#pragma once
#include <cuda_fp16.h>

#include "fft/cuda/complex_pairs/balance.h"
#include "fft/cuda/complex_pairs/pair_block.h"
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/pair_products/pair_scales.h"

// 128 threads bring half of the lines of a step to the panels of A and B. Async copies write to slots of shared memory
// that are private to a thread, which needs no barrier to read them. From there, numbers are scaled along k, scaled per
// line and split into fp16 values. While one step is split, copies of the next ones are in flight.
namespace twiddle::complex_pairs {

constexpr int splitting_threads = 128, slots_apart = splitting_threads;
constexpr int halves_a_step = depth / half_depth;

// Powers of two for a thread's k, as bits: two neighbours in each half of the step.
struct Balance {
  int bits[halves_a_step][2];
};
// That of the other factor.
__device__ inline Balance inverse(const Balance& balance) {
  constexpr int bits_of_product = 2 * 127 << 23;
  Balance other;
#pragma unroll
  for (int half = 0; half < halves_a_step; ++half)
#pragma unroll
    for (int i = 0; i < 2; ++i) other.bits[half][i] = bits_of_product - balance.bits[half][i];
  return other;
}

// A thread's numbers of one line, which it has together with seven other threads.
struct LineShare {
  Complex of[halves_a_step][2];

  __device__ void balance(const Balance& powers) {
#pragma unroll
    for (int half = 0; half < halves_a_step; ++half)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float power = __int_as_float(powers.bits[half][i]);
        of[half][i].re *= power, of[half][i].im *= power;
      }
  }

  // Returns the largest of the 32 numbers of a line. The line's threads differ in the bits of Lanes, 2 Lanes and 4
  // Lanes.
  template <int Lanes>
  __device__ float largest_of_line() const {
    float largest = 0;
#pragma unroll
    for (int half = 0; half < halves_a_step; ++half)
#pragma unroll
      for (int i = 0; i < 2; ++i) largest = fmaxf(largest, fmaxf(fabsf(of[half][i].re), fabsf(of[half][i].im)));
#pragma unroll
    for (int apart = Lanes; apart < 8 * Lanes; apart *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, apart));
    return largest;
  }
};

// Destination of a thread's fp16 values of a line: two neighbors along k are one store per plane.
template <int Fp16PerFloat>
struct SplitStore {
  char* panel;  // of the step's first half, the thread's first line and its place along k
  int to[planes];

  // Conjugate: the imaginary parts change sign.
  template <bool Conjugate, int PanelBytes>
  __device__ void store(int offset, const LineShare& line, float scale) const {
#pragma unroll
    for (int half = 0; half < halves_a_step; ++half) {
      const Complex first = line.of[half][0], second = line.of[half][1];
      const int at = offset + panel_of<Fp16PerFloat>(half) * PanelBytes, re = plane_of<Fp16PerFloat>(half), im = re + 1;
      split(at, re, first.re, second.re, scale);
      split(at, im, first.im, second.im, Conjugate ? -scale : scale);
    }
  }

  // That of the next line, where this one is even.
  __device__ SplitStore next_line() const {
    SplitStore next{panel + line_bytes, {}};
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) next.to[plane] = to[plane] ^ chunk_bytes;
    return next;
  }

 private:
  __device__ void split(int offset, int high_plane, float x, float y, float scale) const {
    constexpr int to_low = re_low - re_high;
    const __half2 high = __floats2half2_rn(x * scale, y * scale);
    *reinterpret_cast<__half2*>(panel + to[high_plane] + offset) = high;
    if constexpr (Fp16PerFloat == 2) {
      const float2 rounded = __half22float2(high);
      *reinterpret_cast<__half2*>(panel + to[high_plane + to_low] + offset) =
          __floats2half2_rn(__fmaf_rn(x, scale, -rounded.x), __fmaf_rn(y, scale, -rounded.y));
    }
  }
};

// Where the numbers of a step lie.
struct PanelSource {
  const Complex* numbers;  // of the tile's first line, at the step's first k
  int last_line;           // of the factor, counted from the tile's first one
};

// A thread's part of one factor. For lines beyond the last one, the last one is read; their results are not stored in
// C. AlongK: numbers of neighboring k are adjacent. Right: this is B, otherwise A. Transposed factors are conjugated: A
// if not AlongK, and B if AlongK.
template <bool AlongK, bool Right, int Lines, int PanelBytes, int Fp16PerFloat>
struct PanelPart {
  static constexpr bool conjugate = AlongK == Right;
  static constexpr int copies = Lines / 2 * depth / 2 / splitting_threads;
  static_assert(Lines / 2 % 32 == 0);

  // If AlongK, a warp copies 128 bytes of every other line, four lines in total, which use distinct banks. Otherwise it
  // copies 64 bytes of each of 16 k: numbers of eight lines, two per thread.
  __device__ static int first_line(int share, int thread) {
    const int warp = thread / 32, lane = thread % 32;
    return share * (Lines / 2) + (AlongK ? warp / 2 * 8 + warp % 2 + lane / 8 * 2 : warp * 8 + lane % 4 * 2);
  }
  // The thread's two k, of 16, are twice this one and the next.
  __device__ static int pair_of_k(int thread) { return AlongK ? thread % 8 : thread % 32 / 4; }
  static constexpr int lines_apart = AlongK ? 16 : 32;

  __device__ static PanelSource source(const PairOperand& operand, const TilePlace& place, int line) {
    const std::int64_t k = place.first_k;
    return {operand.numbers + place.bin * operand.bin_size + place.group * operand.group_step +
                (AlongK ? line * operand.pitch + k : k * operand.pitch + line),
            operand.lines - 1 - line};
  }
  __device__ static void advance(PanelSource& source, const PairOperand& operand) {
    source.numbers += AlongK ? depth : depth * operand.pitch;
  }

  // Issues the thread's copies of a step. `left`: number of k from this step on; numbers beyond them become zero. Four
  // copies are two lines: if AlongK, two copies per line, otherwise one per k of both lines.
  __device__ static void copy(const PanelSource& source, int pitch, int share, int thread, int left,
                              ComplexPair* slots) {
#pragma unroll 4
    for (int i = 0; i < copies; ++i) {
      const int line = first_line(share, thread) + (AlongK ? i / 2 : i / 4) * lines_apart;
      const int k = 2 * pair_of_k(thread) + (AlongK ? i % 2 * half_depth : i / 2 % 2 * half_depth + i % 2);
      const int at = AlongK ? min(line, source.last_line) * pitch + k : k * pitch + min(line, source.last_line - 1);
      small_fft::async_copy_once(slots + i * slots_apart, reinterpret_cast<const ComplexPair*>(source.numbers + at),
                                 k < left);
    }
  }

  // Splits two lines at a time. All loads precede the first store: the compiler must assume that they may alias.
  // `scales` undo the lines' scales.
  template <bool Balanced>
  __device__ static void split(char* panel, float* scales, int share, int thread, const Balance& balance,
                               const ComplexPair* slots) {
    const int first = first_line(share, thread), pair = pair_of_k(thread);
    SplitStore<Fp16PerFloat> store{panel + first * line_bytes + pair % 4 * 4, {}};
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) store.to[plane] = chunk_at(first, plane, pair / 4);
#pragma unroll
    for (int i = 0; i < copies; i += 4) {
      LineShare lines[2];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const ComplexPair numbers = slots[(i + j) * slots_apart];
        if constexpr (AlongK)
          lines[j / 2].of[j % 2][0] = numbers.first, lines[j / 2].of[j % 2][1] = numbers.second;
        else
          lines[0].of[j / 2][j % 2] = numbers.first, lines[1].of[j / 2][j % 2] = numbers.second;
      }
      float back[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if constexpr (Balanced) lines[j].balance(balance);
        const int exponent = pairs::scale_of_row(lines[j].template largest_of_line < AlongK ? 1 : 4 > ());
        back[j] = pairs::power_of_two(-exponent);
        const int line = AlongK ? (i / 2 + j) * lines_apart : i / 4 * lines_apart;
        const SplitStore<Fp16PerFloat> to = AlongK || j == 0 ? store : store.next_line();
        to.template store<conjugate, PanelBytes>(line * line_bytes, lines[j], pairs::power_of_two(exponent));
        if (pair == 0) scales[first + line + (AlongK ? 0 : j)] = back[j];
      }
    }
  }
};

// A block's steps, tile by tile.
template <class A, class B, class Tile>
struct Steps {
  int tile, tiles_apart;
  int left = 0;  // k of the tile from this step on; 0: there are no more steps
  const int* balance = nullptr;
  PanelSource a = {}, b = {};

  __device__ Steps(const PairArguments& arguments, int first_tile, int apart) : tile(first_tile), tiles_apart(apart) {
    begin_tile(arguments);
  }
  __device__ void advance(const PairArguments& arguments) {
    left -= depth;
    if (left > 0) {
      A::advance(a, arguments.a), B::advance(b, arguments.b);
      balance += depth;
    } else {
      tile += tiles_apart;
      begin_tile(arguments);
    }
  }

 private:
  __device__ void begin_tile(const PairArguments& arguments) {
    left = 0;
    if (tile >= arguments.tiles) return;
    const TilePlace place = TilePlace::of<Tile>(arguments, tile);
    left = place.k;
    a = A::source(arguments.a, place, place.row), b = B::source(arguments.b, place, place.column);
    balance = arguments.balance + (place.bin * arguments.groups.value() + place.group) * arguments.k + place.first_k;
  }
};

// Each store() writes the block's next step to panels: as many panels as a float has fp16 values.
template <class Tile, bool TransposeA, bool TransposeB, int Fp16PerFloat, int StepsAhead>
class Splitter {
 public:
  static constexpr int a_bytes = Tile::rows * line_bytes, panel_bytes = a_bytes + Tile::columns * line_bytes;
  static constexpr int slots = StepsAhead * panel_bytes / sizeof(ComplexPair);  // of 128 threads

  // One of the threads that have that share of the lines, the first half or the second one.
  __device__ Splitter(const PairArguments& arguments, int tile, int tiles_apart, int share, int thread,
                      ComplexPair* all_slots)
      : arguments_(arguments),
        copied_(arguments, tile, tiles_apart),
        split_(arguments, tile, tiles_apart),
        share_(share),
        thread_(thread),
        slots_(all_slots + thread) {
    for (int ahead = 0; ahead < StepsAhead; ++ahead) copy_next();
    load_balance();
  }

  __device__ bool has_step() const { return split_.left > 0; }

  __device__ void store(char* panels, LineScales<Tile>& scales) {
    small_fft::wait_group<StepsAhead - 1>();
    const ComplexPair* const slots = slots_ + slot_ * slots_a_step;
    A::template split<balanced>(panels, scales.of_rows, share_, thread_, of_a_, slots);
    B::template split<balanced>(panels + a_bytes, scales.of_columns, share_, thread_, inverse(same_k ? of_a_ : of_b_),
                                slots + A::copies * slots_apart);
    split_.advance(arguments_);
    load_balance();
    copy_next();
  }

 private:
  using A = PanelPart<!TransposeA, false, Tile::rows, panel_bytes, Fp16PerFloat>;
  using B = PanelPart<TransposeB, true, Tile::columns, panel_bytes, Fp16PerFloat>;
  static constexpr bool balanced = is_balanced(Fp16PerFloat, TransposeA);
  static constexpr bool same_k = TransposeA != TransposeB;  // then a thread has the same k in both factors
  static constexpr int slots_a_step = (A::copies + B::copies) * slots_apart;

  // Into the slots that were split last. A group is committed even where no step is left, so that the number of groups
  // in flight tells which have arrived.
  __device__ void copy_next() {
    if (copied_.left > 0) {
      ComplexPair* const slots = slots_ + slot_ * slots_a_step;
      A::copy(copied_.a, static_cast<int>(arguments_.a.pitch), share_, thread_, copied_.left, slots);
      B::copy(copied_.b, static_cast<int>(arguments_.b.pitch), share_, thread_, copied_.left,
              slots + A::copies * slots_apart);
      copied_.advance(arguments_);
    }
    small_fft::commit_group();
    if (++slot_ == StepsAhead) slot_ = 0;
  }

  // Loads the factors of the next step to split, so that they arrive in time.
  __device__ void load_balance() {
    if constexpr (balanced) {
      of_a_ = balance_of(2 * A::pair_of_k(thread_));
      if constexpr (!same_k) of_b_ = balance_of(2 * B::pair_of_k(thread_));
    }
  }
  // k is even, and so is their number.
  __device__ Balance balance_of(int k) const {
    Balance balance = {};
#pragma unroll
    for (int half = 0; half < halves_a_step; ++half) {
      const int at = k + half * half_depth;
      if (at >= split_.left) continue;
      const int2 both = __ldg(reinterpret_cast<const int2*>(split_.balance + at));
      balance.bits[half][0] = both.x, balance.bits[half][1] = both.y;
    }
    return balance;
  }

  const PairArguments& arguments_;
  Steps<A, B, Tile> copied_, split_;
  int share_, thread_;
  Balance of_a_ = {}, of_b_ = {};
  int slot_ = 0;
  ComplexPair* slots_;
};

}  // namespace twiddle::complex_pairs
