#pragma once
#include <cuda_fp16.h>

#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/tensor_products/pair_block.h"

// How 128 threads bring half a step of a tile's factors to the panels of A and B: by async copies into slots of shared
// memory that are a thread's own, so that it needs no barrier to read them again, and from there, scaled and split into
// pairs of halves. While one step is split, the copies of the next ones are in flight.
namespace twiddle::half_pairs {

constexpr int splitting_threads = 128, slots_apart = splitting_threads;

// The numbers of two neighbours along k of one line become one store a plane.
struct SplitStore {
  char* panel;  // of the thread's first line and its place along k
  int to[planes];

  // Conjugate: the imaginary parts change sign.
  template <bool Conjugate>
  __device__ void operator()(int offset, Complex first, Complex second, float scale_first, float scale_second) const {
    split(offset, re_high, re_low, first.re, second.re, scale_first, scale_second);
    split(offset, im_high, im_low, first.im, second.im, Conjugate ? -scale_first : scale_first,
          Conjugate ? -scale_second : scale_second);
  }

  // That of the next line, where this one is even.
  __device__ SplitStore next_line() const {
    SplitStore next{panel + line_bytes, {}};
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) next.to[plane] = to[plane] ^ chunk_bytes;
    return next;
  }

 private:
  __device__ void split(int offset, Plane high_plane, Plane low_plane, float x, float y, float of_x, float of_y) const {
    const __half2 high = __floats2half2_rn(x * of_x, y * of_y);
    const float2 rounded = __half22float2(high);
    *reinterpret_cast<__half2*>(panel + to[high_plane] + offset) = high;
    *reinterpret_cast<__half2*>(panel + to[low_plane] + offset) =
        __floats2half2_rn(__fmaf_rn(x, of_x, -rounded.x), __fmaf_rn(y, of_y, -rounded.y));
  }
};

// Where the numbers of a step lie, and the scales of the tile's lines.
struct PanelSource {
  const Complex* numbers;  // of the tile's first line, at the step's first k
  const int* scales;
  int last_line;  // of the factor, counted from the tile's first one
};

// One factor's share of a thread. Lines that lie behind the last one are read from it, and never stored in C.
// AlongK: numbers of neighbouring k lie beside each other. Right: it is B, and else A. Factors are conjugated where
// they are transposed: A where it is not AlongK, and B where it is.
template <bool AlongK, bool Right, int Lines>
struct PanelPart {
  static constexpr bool conjugate = AlongK == Right;
  static constexpr int copies = Lines * half_depth / 2 / splitting_threads;

  // Along k a warp copies 128 bytes each of four lines: every other one, since these lie in banks of their own. Else it
  // copies 64 bytes each of 16 k: numbers of eight lines, two a thread.
  __device__ static int first_line(int thread) {
    const int warp = thread / 32, lane = thread % 32;
    return AlongK ? warp / 2 * 8 + warp % 2 + lane / 8 * 2 : warp * 8 + lane % 4 * 2;
  }
  // The thread's two k, of the 16, are twice this one and the next.
  __device__ static int pair_of_k(int thread) { return AlongK ? thread % 8 : thread % 32 / 4; }
  static constexpr int lines_apart = AlongK ? 16 : 32;

  __device__ static PanelSource source(const PairOperand& operand, const TilePlace& place, int line) {
    const std::int64_t k = place.first_k;
    return {operand.numbers + place.bin * operand.bin_size + place.group * operand.group_step +
                (AlongK ? line * operand.pitch + k : k * operand.pitch + line),
            operand.scales + place.group * operand.lines + line, operand.lines - 1 - line};
  }
  __device__ static void advance(PanelSource& source, const PairOperand& operand) {
    source.numbers += AlongK ? depth : depth * operand.pitch;
  }

  // The thread's copies of a step; `left`: how many k there are from the step on. What lies behind becomes zero.
  __device__ static void copy(const PanelSource& source, int pitch, int thread, int k, int left, ComplexPair* slots) {
#pragma unroll 4
    for (int i = 0; i < copies; ++i) {
      const int line = first_line(thread) + (AlongK ? i : i / 2) * lines_apart;
      const int at =
          AlongK ? min(line, source.last_line) * pitch + k : (k + i % 2) * pitch + min(line, source.last_line - 1);
      small_fft::async_copy_once(slots + i * slots_apart, reinterpret_cast<const ComplexPair*>(source.numbers + at),
                                 k + (AlongK ? 0 : i % 2) < left);
    }
  }

  // Some at a time: all loads before the first store, which might be to where another load is from, for all that the
  // compiler knows. Scales of lines behind the last one are anything.
  __device__ static void split(const PanelSource& source, char* panel, int thread, const int (&along)[2],
                               const ComplexPair* slots) {
    constexpr int at_once = 4, lines_at_once = AlongK ? at_once : at_once / 2;
    const SplitStore store = store_to(panel, thread);
    const int* const scales = source.scales + first_line(thread);
#pragma unroll
    for (int first = 0; first < copies; first += at_once) {
      const int first_of_lines = first * lines_at_once / at_once * lines_apart;
      ComplexPair numbers[at_once];
      int of_line[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        numbers[i] = slots[(first + i) * slots_apart];
        of_line[i] = __ldg(scales + first_of_lines + (AlongK ? i * lines_apart : i / 2 * lines_apart + i % 2));
      }
#pragma unroll
      for (int i = 0; i < lines_at_once; ++i) {
        const int offset = (first_of_lines + i * lines_apart) * line_bytes;
        if constexpr (AlongK) {
          store.template operator()<conjugate>(offset, numbers[i].first, numbers[i].second, scale(of_line[i], along[0]),
                                               scale(of_line[i], along[1]));
        } else {
          const ComplexPair &now = numbers[2 * i], &after = numbers[2 * i + 1];
          const int even = of_line[2 * i], odd = of_line[2 * i + 1];
          store.template operator()<conjugate>(offset, now.first, after.first, scale(even, along[0]),
                                               scale(even, along[1]));
          store.next_line().template operator()<conjugate>(offset, now.second, after.second, scale(odd, along[0]),
                                                           scale(odd, along[1]));
        }
      }
    }
  }

 private:
  __device__ static SplitStore store_to(char* panel, int thread) {
    const int line = first_line(thread), pair = pair_of_k(thread);
    SplitStore store{panel + line * line_bytes + pair % 4 * 4, {}};
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) store.to[plane] = chunk_at(line, plane, pair / 4);
    return store;
  }
  __device__ static float scale(int of_line, int along) {
    return power(Right ? of_line - along : of_line + along);
  }
};

// A block's steps, tile by tile.
template <class A, class B, class Tile>
struct Steps {
  int tile, tiles_apart;
  int left = 0;  // k of the tile from this step on; 0: there are no more steps
  const int* along = nullptr;
  PanelSource a = {}, b = {};

  __device__ Steps(const PairArguments& arguments, int first_tile, int apart) : tile(first_tile), tiles_apart(apart) {
    begin_tile(arguments);
  }
  __device__ void advance(const PairArguments& arguments) {
    left -= depth;
    if (left > 0) {
      A::advance(a, arguments.a), B::advance(b, arguments.b);
      along += depth;
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
    along = arguments.along + place.group * arguments.k + place.first_k;
  }
};

// Each store() puts the next of a block's steps into panels.
template <class Tile, bool TransposeA, bool TransposeB, int StepsAhead>
class Splitter {
 public:
  static constexpr int a_bytes = Tile::rows * line_bytes, panel_bytes = a_bytes + Tile::columns * line_bytes;
  static constexpr int slots = StepsAhead * panel_bytes / sizeof(ComplexPair);  // of 128 threads

  // One of the threads that do `half` of each step.
  __device__ Splitter(const PairArguments& arguments, int tile, int tiles_apart, int half, int thread,
                      ComplexPair* all_slots)
      : arguments_(arguments),
        copied_(arguments, tile, tiles_apart),
        split_(arguments, tile, tiles_apart),
        thread_(thread),
        k_a_(half * half_depth + 2 * A::pair_of_k(thread)),
        k_b_(half * half_depth + 2 * B::pair_of_k(thread)),
        slots_(all_slots + thread) {
    for (int ahead = 0; ahead < StepsAhead; ++ahead) copy_next();
    load_along();
  }

  __device__ bool has_step() const { return split_.left > 0; }

  __device__ void store(char* panels) {
    small_fft::wait_group<StepsAhead - 1>();
    const ComplexPair* const slots = slots_ + slot_ * slots_a_step;
    A::split(split_.a, panels, thread_, along_a_, slots);
    B::split(split_.b, panels + a_bytes, thread_, same_k ? along_a_ : along_b_, slots + A::copies * slots_apart);
    split_.advance(arguments_);
    load_along();
    copy_next();
  }

 private:
  using A = PanelPart<!TransposeA, false, Tile::rows>;
  using B = PanelPart<TransposeB, true, Tile::columns>;
  static constexpr bool same_k = TransposeA != TransposeB;  // then a thread has the same two k in both factors
  static constexpr int slots_a_step = (A::copies + B::copies) * slots_apart;

  // Into the slots that were split last. A group is committed even where no step is left, so that the number of groups
  // in flight tells which have arrived.
  __device__ void copy_next() {
    if (copied_.left > 0) {
      ComplexPair* const slots = slots_ + slot_ * slots_a_step;
      A::copy(copied_.a, static_cast<int>(arguments_.a.pitch), thread_, k_a_, copied_.left, slots);
      B::copy(copied_.b, static_cast<int>(arguments_.b.pitch), thread_, k_b_, copied_.left,
              slots + A::copies * slots_apart);
      copied_.advance(arguments_);
    }
    small_fft::commit_group();
    if (++slot_ == StepsAhead) slot_ = 0;
  }

  // The scales of the thread's k in the step that is split next, so that they are there by then.
  __device__ void load_along() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      along_a_[i] = along(k_a_ + i);
      if (!same_k) along_b_[i] = along(k_b_ + i);
    }
  }
  __device__ int along(int k) const {
    return k < split_.left ? __ldg(split_.along + k) : 0;
  }

  const PairArguments& arguments_;
  Steps<A, B, Tile> copied_, split_;
  int thread_, k_a_, k_b_;
  int along_a_[2], along_b_[2] = {};
  int slot_ = 0;
  ComplexPair* slots_;
};

}  // namespace twiddle::half_pairs
