#pragma once
#include <cmath>

#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "layers/conv/cuda/tap_shifts/sm_90a/wide_wgmma.h"
#include "layers/conv/cuda/tap_shifts/weight_arguments.h"

// Four warps load and split tiles of x and of y's gradient, by eight planes each; three groups of four warps, one a row
// of kernels, multiply them: rows are filters, columns are channels, k are positions.
namespace twiddle::tap_shifts {

// With pairs, half as many sums leave registers to load what comes next while numbers are split.
TWIDDLE_HD constexpr bool loads_ahead(bool pairs) {
  return pairs;
}
constexpr int registers_of_all = 128;  // at the start
TWIDDLE_HD constexpr int registers_of_summing(bool pairs) {
  return pairs ? 112 : 136;
}
TWIDDLE_HD constexpr int registers_of_splitting(bool pairs) {
  return pairs ? 176 : 104;
}
template <int Each>
__device__ void set_registers() {
  if constexpr (Each > registers_of_all)
    small_fft::take_registers<Each>();
  else
    small_fft::give_registers<Each>();
}

// A plane's numbers are multiplied by a power of two that fits all that a block has seen of it; where a larger number
// comes, the sums so far follow.
constexpr int first_exponent = 102;
constexpr int headroom = 3;  // exponents that numbers may grow by until then

struct WeightShared {
  char* stages;
  float* factors;  // [stage][x, y][64]: by how much sums so far are multiplied
  int* exponents;  // [x, y][64]
  int* changed;    // [stage][warp]: whether any of a warp's factors is not 1
  small_fft::Barrier *is_there, *is_free;
  __device__ WeightShared(char* base, const WeightPlaces& p)
      : stages(base),
        factors(reinterpret_cast<float*>(base + p.factors)),
        exponents(reinterpret_cast<int*>(base + p.exponents)),
        changed(reinterpret_cast<int*>(base + p.changed)),
        is_there(reinterpret_cast<small_fft::Barrier*>(base + p.barriers)),
        is_free(is_there + weight_stages) {}
};

// Blocks of the same tiles and filters follow each other, so that they find the gradient in the L2 cache.
__device__ inline int channel_block(const WeightArguments& g) {
  return static_cast<int>(blockIdx.x) % g.channel_blocks;
}
__device__ inline int part_of_block(const WeightArguments& g) {
  return static_cast<int>(blockIdx.x) / g.channel_blocks;
}
__device__ inline int parts(const WeightArguments& g) {
  return static_cast<int>(gridDim.x) / g.channel_blocks;
}
__device__ inline int filter_block() {
  return static_cast<int>(blockIdx.y);
}

// A warp loads eight planes' part of a tile into registers, brings them to scale and splits them; what it does next is
// on its way then. A lane has a number of each two rows of 16 columns. Whole: channels and filters are multiples of
// eight.
template <bool Pairs, bool Whole>
class Splitting {
 public:
  __device__ Splitting(const WeightArguments& g, const WeightPlaces& places, const WeightShared& s, int warp, int lane)
      : g_(g), places_(places), s_(s), warp_(warp), lane_(lane), row_(lane / columns), column_(lane % columns) {}

  __device__ void run() {
    Turn turn;
    const int step = parts(g_);
    int tile = part_of_block(g_);
    ValuesOfX x;
    if constexpr (ahead) load_x(tile, 0, x);
    for (; tile < g_.t.tiles(); tile += step) {
      s_.is_free[turn.stage].wait(turn.phase ^ 1);
      changed_ = 0;
      split_tile(tile, tile + step, turn.stage, x);
      if (lane_ == 0) s_.changed[turn.stage * splitting_warps + warp_] = changed_;
      small_fft::show_to_wgmma();
      s_.is_there[turn.stage].arrive();
      turn.advance(1, weight_stages);
    }
  }

 private:
  static constexpr bool ahead = loads_ahead(Pairs);
  static constexpr int columns = strips * octet, pitch = columns + side - 1, rows_a_round = lanes / columns;
  static constexpr int rounds_of_y = short_strip / rows_a_round;
  static constexpr int rounds_of_rows = (short_strip + side - 1) / rows_a_round, rounds_of_x = rounds_of_rows + 1;
  static constexpr int octets_of_x = channel_octets(Pairs) / splitting_warps;  // of a warp
  static constexpr int octets_of_y = filter_octets / splitting_warps;
  template <int Rounds>
  using Values = float[Rounds][octet];
  using ValuesOfX = Values<rounds_of_x>;
  using ValuesOfY = Values<rounds_of_y>;

  __device__ void split_tile(int tile, int next_tile, int stage, ValuesOfX& x) {
    ValuesOfY y[octets_of_y];
    if constexpr (ahead) {
      static_assert(octets_of_x == 1 && octets_of_y == 2);
      load_y(tile, 0, y[0]);
      finish_x(x, 0, stage);
      load_y(tile, 1, y[1]);
      finish_y(y[0], 0, stage);
      load_x(next_tile, 0, x);
      finish_y(y[1], 1, stage);
    } else {
#pragma unroll 1
      for (int o = 0; o < octets_of_x; ++o) load_x(tile, o, x), finish_x(x, o, stage);
#pragma unroll 1
      for (int o = 0; o < octets_of_y; ++o) load_y(tile, o, y[0]), finish_y(y[0], o, stage);
    }
  }

  // Eight planes, of which behind the last of all that one is taken again.
  struct Planes {
    int height, width, left;
    std::int64_t first;
    __device__ Planes(int all, int plane, int its_height, int its_width, int image)
        : height(its_height), width(its_width), left(max(all - plane, 1)) {
      first = (std::int64_t(image) * all + min(plane, Whole ? all - octet : all - 1)) * area();
    }
    __device__ unsigned area() const { return static_cast<unsigned>(height) * static_cast<unsigned>(width); }
    __device__ unsigned to_next(int i) const { return Whole || i + 1 < left ? area() : 0; }
  };

  __device__ void load_x(int tile, int o, ValuesOfX& v) const {
    const Tiling& t = g_.t;
    const Origin at = origin_of(t, tile < t.tiles() ? tile : 0);  // behind the last, nobody needs them
    const int first = (channel_block(g_) * channel_octets(Pairs) + warp_ + o * splitting_warps) * octet;
    const Planes planes(t.channels, first, t.height, t.width, at.image);
    load_rounds<0, rounds_of_rows>(planes, g_.x, at.row - t.pad_h + row_, at.column - t.pad_w + column_, v);
    load_rounds<rounds_of_rows, rounds_of_x>(planes, g_.x, at.row - t.pad_h + row_at_the_end(),
                                             at.column - t.pad_w + column_at_the_end(), v);
  }
  __device__ void load_y(int tile, int o, ValuesOfY& v) const {
    const Tiling& t = g_.t;
    const Origin at = origin_of(t, tile);
    const int first = (filter_block() * filter_octets + warp_ + o * splitting_warps) * octet;
    const Planes planes(t.filters, first, t.out_h, t.out_w, at.image);
    load_rounds<0, rounds_of_y>(planes, g_.grad_y, at.row + row_, at.column + column_, v);
  }
  // The last columns of a patch of x, two of each row.
  __device__ int row_at_the_end() const {
    return lane_ / (side - 1);
  }
  __device__ int column_at_the_end() const {
    return columns + lane_ % (side - 1);
  }

  // Where it is written, and not where the number is used, which the compiler would like better.
  __device__ static float load_where(bool inside, const float* from) {
    float value;
    asm volatile(
        "{\n"
        ".reg .pred inside;\n"
        "setp.ne.s32 inside, %2, 0;\n"
        "mov.f32 %0, 0f00000000;\n"
        "@inside ld.global.nc.f32 %0, [%1];\n"
        "}"
        : "=f"(value)
        : "l"(from), "r"(static_cast<int>(inside)));
    return value;
  }
  template <int From, int To, int Rounds>
  __device__ static void load_rounds(const Planes& planes, const float* values, int row, int column,
                                     Values<Rounds>& v) {
    const float* of_round = values + planes.first + (row * planes.width + column);
    const bool in_columns = static_cast<unsigned>(column) < static_cast<unsigned>(planes.width);
#pragma unroll
    for (int r = From; r < To; ++r) {
      const int its_row = row + (r - From) * rows_a_round;
      const bool inside = in_columns && static_cast<unsigned>(its_row) < static_cast<unsigned>(planes.height);
      const float* from = of_round + std::int64_t(planes.width) * ((r - From) * rows_a_round);
#pragma unroll
      for (int i = 0; i < octet; ++i) {
        asm("" : "+l"(from));  // an address that goes on: places of eight planes would take registers
        v[r][i] = load_where(inside, from);
        from += planes.to_next(i);
      }
    }
  }

  __device__ void finish_x(ValuesOfX& v, int o, int stage) {
    const int octet_of_block = warp_ + o * splitting_warps;
    scale(v, s_.exponents + octet_of_block * octet, factors_of(stage) + octet_of_block * octet);
    char* const part = s_.stages + stage * places_.bytes_of_stage;
    constexpr int pixels = pitch * (short_strip + side - 1);
    uint4* const to = reinterpret_cast<uint4*>(part) + octet_of_block * pixels;
    constexpr int to_low = channel_octets(Pairs) * pixels;
    store<0, rounds_of_rows>(v, to + row_ * pitch + column_, rows_a_round * pitch, to_low);
    store<rounds_of_rows, rounds_of_x>(v, to + row_at_the_end() * pitch + column_at_the_end(), 0, to_low);
  }
  __device__ void finish_y(ValuesOfY& v, int o, int stage) {
    const int octet_of_block = warp_ + o * splitting_warps;
    const int plane = block_filters + octet_of_block * octet;
    scale(v, s_.exponents + plane, factors_of(stage) + plane);
    char* const part = s_.stages + stage * places_.bytes_of_stage + places_.bytes_of_x;
    constexpr int pixels = columns * short_strip;
    uint4* const to = reinterpret_cast<uint4*>(part) + octet_of_block * pixels;
    store<0, rounds_of_y>(v, to + lane_, lanes, filter_octets * pixels);
  }
  __device__ float* factors_of(int stage) const {
    return s_.factors + stage * 2 * block_filters;
  }

  // Where the exponents of planes do not fit the largest finite numbers, they are lowered.
  template <int Rounds>
  __device__ void scale(Values<Rounds>& v, int* exponents, float* factors) {
    float most_scaled = 0;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      float most = 0;
#pragma unroll
      for (int r = 0; r < Rounds; ++r) most = fmaxf(most, fabsf(v[r][i]));
      most_scaled = fmaxf(most_scaled, most * pairs::power_of_two(exponents[i]));
    }
    if (lane_ < octet) factors[lane_] = 1;
    constexpr float too_large = 1 << (pairs::top_exponent + 1);
    if (__any_sync(0xffffffffu, most_scaled >= too_large)) lower(v, exponents, factors);
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float by = pairs::power_of_two(exponents[i]);
#pragma unroll
      for (int r = 0; r < Rounds; ++r) v[r][i] *= by;
    }
  }
  template <int Rounds>
  __device__ void lower(const Values<Rounds>& v, int* exponents, float* factors) {
    changed_ = 1;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      float most = 0;
#pragma unroll
      for (int r = 0; r < Rounds; ++r)
        if (fabsf(v[r][i]) < INFINITY) most = fmaxf(most, fabsf(v[r][i]));
      const int of_warp = __reduce_max_sync(0xffffffffu, __float_as_int(most));
      const int top = pairs::exponent_of(__int_as_float(of_warp)), before = exponents[i];
      if (lane_ != i || top + before <= pairs::top_exponent) continue;
      exponents[i] = pairs::top_exponent - headroom - top;
      factors[i] = exponents[i] - before < -126 ? 0 : pairs::power_of_two(exponents[i] - before);
    }
    __syncwarp();
  }

  // [high, low][octet][pixel]
  template <int From, int To, int Rounds>
  __device__ static void store(const Values<Rounds>& v, uint4* to, int a_round, int to_low) {
#pragma unroll
    for (int r = From; r < To; ++r) {
      const SplitOctet split = split_octet(v[r]);
      uint4* const at = to + (r - From) * a_round;
      at[0] = split.high;
      if constexpr (Pairs) at[to_low] = split.low;
    }
  }

  const WeightArguments& g_;
  const WeightPlaces& places_;
  const WeightShared& s_;
  int warp_, lane_, row_, column_, changed_ = 0;
};

// Sums of the three taps of a kernel's row. A thread has of each eight channels two adjacent ones, of two filters.
template <bool Pairs>
class Summing {
 public:
  __device__ Summing(const WeightArguments& g, const WeightPlaces& places, const WeightShared& s, int kernel_row,
                     int thread)
      : g_(g),
        places_(places),
        s_(s),
        kernel_row_(kernel_row),
        warp_(thread / lanes),
        lane_(thread % lanes),
        pitch_(g.t.pitch()),
        pixels_(g.t.pixels()) {}

  __device__ void run() {
    Turn turn;
    for (int tile = part_of_block(g_); tile < g_.t.tiles(); tile += parts(g_)) {
      s_.is_there[turn.stage].wait(turn.phase);
      const int4 changed = *reinterpret_cast<const int4*>(s_.changed + turn.stage * splitting_warps);
      if ((changed.x | changed.y | changed.z | changed.w) != 0) follow(turn.stage);
      add_tile(small_fft::shared_address(s_.stages) + turn.stage * places_.bytes_of_stage);
      s_.is_free[turn.stage].arrive();
      turn.advance(1, weight_stages);
    }
    store();
  }

 private:
  static constexpr int count = channel_octets(Pairs) * 4, steps = strips;  // of 16 positions each, in a turn

  __device__ int channel_of(int i) const { return i / 4 * octet + lane_ % 4 * 2 + i % 2; }  // of the block
  __device__ int filter_of(int i) const { return warp_ * 16 + lane_ / 4 + i / 2 % 2 * 8; }

  __device__ void follow(int stage) {
    const float* const factors = s_.factors + stage * 2 * block_filters;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float factor = factors[channel_of(i)] * factors[block_filters + filter_of(i)];
#pragma unroll
      for (auto& tap : sums_) tap[i] *= factor;
    }
  }

  // Of 16 positions, k of a wgmma: eight columns of two rows.
  struct Operands {
    small_fft::Fragment high, low;  // of filters
    std::uint64_t x;
  };
  __device__ void add_tile(unsigned stage) {
    constexpr int columns = strips * octet;
    // Of this lane: a row of a matrix of eight pixels and eight filters; of four matrices, those of odd number have the
    // next filters, and the last two the next row of pixels.
    const int of_lane = (2 * warp_ + lane_ / 8 % 2) * g_.t.positions() + lane_ / 16 * columns + lane_ % 8;
    const unsigned y = stage + places_.bytes_of_x + of_lane * 16, low = filter_octets * g_.t.positions() * 16;
    const std::uint64_t x = matrix_of_vectors(stage + kernel_row_ * pitch_ * 16, pitch_, pixels_);
#pragma unroll 1
    for (int turn = 0; turn < short_strip / 2; ++turn) {
      Operands operands[steps];
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        const unsigned from = y + (2 * turn * columns + k * octet) * 16;
        operands[k].high = load_turned(from);
        if constexpr (Pairs) operands[k].low = load_turned(from + low);
        operands[k].x = x + 2 * turn * pitch_ + k * octet;
      }
      add_turn(operands);
    }
  }
  __device__ static small_fft::Fragment load_turned(unsigned address) {
    small_fft::Fragment to;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
                 : "r"(address)
                 : "memory");
    return to;
  }
  __device__ void add_turn(const Operands (&o)[steps]) {
    if constexpr (Pairs) {  // while the next tap is multiplied, sums follow those of the last
      float even[count], odd[count];
      small_fft::begin_wgmma();
      multiply_pairs(o, 0, even);
      small_fft::commit_wgmma();
      multiply_pairs(o, 1, odd);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma<1>();
      add(even, 0);
      small_fft::begin_wgmma();
      multiply_pairs(o, 2, even);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma<1>();
      add(odd, 1);
      small_fft::wait_for_wgmma();
      add(even, 2);
    } else {
      small_fft::begin_wgmma();
#pragma unroll
      for (int k = 0; k < steps; ++k)
#pragma unroll
        for (int tap = 0; tap < side; ++tap) multiply_pixels<true>(sums_[tap], o[k].high, o[k].x + tap);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma();
    }
  }
  __device__ void add(const float (&products)[count], int tap) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums_[tap][i] += products[i];
  }
  // From zero, small terms first, for tensor cores cut digits off where they add.
  __device__ void multiply_pairs(const Operands (&o)[steps], int tap, float (&products)[count]) const {
    const int low = channel_octets(Pairs) * pixels_;
    multiply_pixels<false>(products, o[0].low, o[0].x + tap);
    multiply_pixels<true>(products, o[1].low, o[1].x + tap);
    multiply_pixels<true>(products, o[0].high, o[0].x + tap + low);
    multiply_pixels<true>(products, o[1].high, o[1].x + tap + low);
    multiply_pixels<true>(products, o[0].high, o[0].x + tap);
    multiply_pixels<true>(products, o[1].high, o[1].x + tap);
  }

  __device__ void store() const {
    const int first_channel = channel_block(g_) * channel_octets(Pairs) * octet;
    const int first_filter = filter_block() * block_filters;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int channel = first_channel + channel_of(i), filter = first_filter + filter_of(i);
      if (channel >= g_.t.channels || filter >= g_.t.filters) continue;
      // Two powers of two, as one might not be finite.
      const int back = -s_.exponents[channel_of(i)] - s_.exponents[block_filters + filter_of(i)], half = back / 2;
      const std::int64_t kernel = (std::int64_t(part_of_block(g_)) * g_.t.filters + filter) * g_.t.channels + channel;
      float* const to = g_.partial + kernel * taps + kernel_row_ * side;
#pragma unroll
      for (int tap = 0; tap < side; ++tap)
        to[tap] = sums_[tap][i] * pairs::power_of_two(half) * pairs::power_of_two(back - half);
    }
  }

  const WeightArguments& g_;
  const WeightPlaces& places_;
  const WeightShared& s_;
  int kernel_row_, warp_, lane_, pitch_, pixels_;
  float sums_[side][count] = {};
};

template <bool Pairs>
__global__ void __launch_bounds__(weight_threads, 1) weight_kernel(const __grid_constant__ WeightArguments g) {
  extern __shared__ __align__(128) char memory[];
  const WeightPlaces places(g.t, Pairs);
  const WeightShared s(memory, places);
  const int number = static_cast<int>(threadIdx.x);
  if (number < weight_stages)
    s.is_there[number].begin(group_threads), s.is_free[number].begin(summing_groups * group_threads);
  if (number < 2 * block_filters) s.exponents[number] = first_exponent;
  small_fft::show_to_wgmma();
  __syncthreads();
  const int thread = number % group_threads, group = __shfl_sync(0xffffffffu, number / group_threads, 0);
  if (group < summing_groups) {
    set_registers<registers_of_summing(Pairs)>();
    Summing<Pairs>(g, places, s, group, thread).run();
  } else {
    set_registers<registers_of_splitting(Pairs)>();
    const int warp = __shfl_sync(0xffffffffu, thread / lanes, 0), lane = thread % lanes;
    if (g.t.channels % octet == 0 && g.t.filters % octet == 0)
      Splitting<Pairs, true>(g, places, s, warp, lane).run();
    else
      Splitting<Pairs, false>(g, places, s, warp, lane).run();
  }
}

}  // namespace twiddle::tap_shifts
