#pragma once
#include <cmath>

#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/weight_shared.h"

namespace twiddle::tap_shifts {

// A warp loads eight planes' part of a tile into registers, scales and splits them; the next part is in flight
// meanwhile. A lane has a number of each two rows of 16 columns. Whole: channels and filters are multiples of eight.
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

  // Eight planes; after the last plane, the last one is read again.
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
    const Origin at = origin_of(t, tile < t.tiles() ? tile : 0);  // after the last tile, the values are not used
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
        asm("" : "+l"(from));  // an incremented address: separate addresses of eight planes would use registers
        v[r][i] = load_where(inside, from);
        from += planes.to_next(i);
      }
    }
  }

  __device__ void finish_x(ValuesOfX& v, int o, int stage) {
    const int octet_of_block = warp_ + o * splitting_warps;
    scale(v, octet_of_block * octet, stage);
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
    scale(v, plane, stage);
    char* const part = s_.stages + stage * places_.bytes_of_stage + places_.bytes_of_x;
    constexpr int pixels = columns * short_strip;
    uint4* const to = reinterpret_cast<uint4*>(part) + octet_of_block * pixels;
    store<0, rounds_of_y>(v, to + lane_, lanes, filter_octets * pixels);
  }

  // Scales eight planes from `plane` on, of x or of y's gradient.
  template <int Rounds>
  __device__ void scale(Values<Rounds>& v, int plane, int stage) {
    const int* const exponents = s_.exponents + plane;
    float* const factors = s_.factors + stage * 2 * block_filters + plane;
    constexpr float too_large = 1 << (pairs::top_exponent + 1);
    unsigned seen = 0;  // a bit a plane: not zero; then: large enough; and one of all: too large
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      float most = 0;
#pragma unroll
      for (int r = 0; r < Rounds; ++r) most = fmaxf(most, fabsf(v[r][i]));
      const float scaled = most * pairs::power_of_two(exponents[i]);
      if (most > 0) seen |= 1u << i;
      if (scaled >= 1) seen |= 1u << (octet + i);
      if (scaled >= too_large) seen |= 1u << 2 * octet;
    }
    if (lane_ < octet) factors[lane_] = 1;
    seen = __reduce_or_sync(0xffffffffu, seen);
    const unsigned too_small = seen & ~(seen >> octet) & ((1u << octet) - 1);
    if (too_small != 0 || seen >> 2 * octet != 0) fit_exponents(v, plane, factors);
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float by = pairs::power_of_two(exponents[i]);
#pragma unroll
      for (int r = 0; r < Rounds; ++r) v[r][i] *= by;
    }
  }
  // To the largest finite number of each plane, whose lane is the only one that reads what it may write.
  template <int Rounds>
  __device__ void fit_exponents(const Values<Rounds>& v, int plane, float* factors) {
    __syncwarp();
    bool changed = false;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      float most = 0;
#pragma unroll
      for (int r = 0; r < Rounds; ++r)
        if (fabsf(v[r][i]) < INFINITY) most = fmaxf(most, fabsf(v[r][i]));
      const int of_warp = __reduce_max_sync(0xffffffffu, __float_as_int(most));
      if (lane_ != i || of_warp == 0) continue;
      const int top = pairs::exponent_of(__int_as_float(of_warp)), before = s_.exponents[plane + i];
      if (top + before >= 0 && top + before <= pairs::top_exponent) continue;
      const int fitting = min(pairs::top_exponent - headroom - top, first_exponent);
      const int lowest = min(s_.lowest[plane + i], fitting), after = min(fitting, lowest + most_raised);
      s_.exponents[plane + i] = after;
      s_.lowest[plane + i] = lowest;
      factors[i] = after - before < -126 ? 0 : pairs::power_of_two(after - before);
      changed = after != before;
    }
    if (__any_sync(0xffffffffu, changed)) changed_ = 1;
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

}  // namespace twiddle::tap_shifts
