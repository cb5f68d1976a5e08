#pragma once
#include <cmath>

#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "layers/conv/cuda/tap_shifts/sm_90a/wide_wgmma.h"
#include "layers/conv/cuda/tap_shifts/weight_arguments.h"

// Four warps load and split tiles of x and of y's gradient, by eight planes each; three groups of four warps, one a row
// of kernels, multiply them: rows are filters, columns are channels, k are positions.
namespace twiddle::tap_shifts {

constexpr int registers_of_summing = 136, registers_of_splitting = 104;  // of 128 each at the start

// A plane's numbers are multiplied by a power of two that fits all that a block has seen of it; where a larger number
// comes, the sums so far follow.
constexpr int first_exponent = 102;
constexpr int headroom = 3;  // exponents that numbers may grow by until then

struct WeightShared {
  char* stages;
  float* bias;
  float* factors;  // [stage][x, y][64]: by how much sums so far are multiplied
  int* exponents;  // [x, y][64]
  int* changed;    // [stage][warp]: whether any of a warp's factors is not 1
  small_fft::Barrier *is_there, *is_free;
  __device__ WeightShared(char* base, const WeightPlaces& p)
      : stages(base),
        bias(reinterpret_cast<float*>(base + p.bias)),
        factors(reinterpret_cast<float*>(base + p.factors)),
        exponents(reinterpret_cast<int*>(base + p.exponents)),
        changed(reinterpret_cast<int*>(base + p.changed)),
        is_there(reinterpret_cast<small_fft::Barrier*>(base + p.barriers)),
        is_free(is_there + weight_stages) {}
};

// A warp loads eight planes' part of a tile into registers, brings them to scale and splits them.
template <bool Pairs, bool Masked>
class Splitting {
 public:
  __device__ Splitting(const WeightArguments& g, const WeightPlaces& places, const WeightShared& s, int thread)
      : g_(g), places_(places), s_(s), warp_(thread / lanes), lane_(thread % lanes) {}

  __device__ void run() {
    Turn turn;
    for (int tile = static_cast<int>(blockIdx.x); tile < g_.t.tiles(); tile += static_cast<int>(gridDim.x)) {
      const Origin at = origin_of(g_.t, tile);
      s_.is_free[turn.stage].wait(turn.phase ^ 1);
      changed_ = 0;
#pragma unroll 1
      for (int o = warp_; o < channel_octets(Pairs); o += splitting_warps) split_x(at, o, turn.stage);
#pragma unroll 1
      for (int o = warp_; o < filter_octets; o += splitting_warps) split_y(at, o, turn.stage);
      if (lane_ == 0) s_.changed[turn.stage * splitting_warps + warp_] = changed_;
      small_fft::show_to_wgmma();
      __syncwarp();
      if (lane_ == 0) s_.is_there[turn.stage].arrive();
      turn.advance(1, weight_stages);
    }
    if (sums_bias()) store_bias();
  }

 private:
  static constexpr int rounds_of_x = quotient_up(most_pixels_of_x, lanes);
  static constexpr int rounds_of_y = quotient_up(octet * short_strip * strips, lanes);
  template <int Rounds>
  using Values = float[Rounds][octet];

  __device__ bool sums_bias() const {
    return g_.partial_bias != nullptr && blockIdx.z == 0;
  }

  __device__ void split_x(const Origin& at, int octet_of_block, int stage) {
    const Tiling& t = g_.t;
    const int first = (static_cast<int>(blockIdx.z) * channel_octets(Pairs) + octet_of_block) * octet;
    const Planes planes(t.channels, first, t.height, t.width, at.image);
    Values<rounds_of_x> v;
    const auto pixels = [&](int pixel) {
      return planes.place(pixel, t.pixels(), t.pitch(), at.row - t.pad_h, at.column - t.pad_w);
    };
    load(pixels, planes, g_.x, v);
    scale(v, s_.exponents + octet_of_block * octet, factors_of(stage) + octet_of_block * octet);
    store(v, t.pixels(), channel_octets(Pairs), octet_of_block, s_.stages + stage * places_.bytes_of_stage);
  }
  __device__ void split_y(const Origin& at, int octet_of_block, int stage) {
    const Tiling& t = g_.t;
    const int first = (static_cast<int>(blockIdx.y) * filter_octets + octet_of_block) * octet;
    const Planes planes(t.filters, first, t.out_h, t.out_w, at.image);
    Values<rounds_of_y> v;
    const auto pixels = [&](int pixel) {
      return planes.place(pixel, t.positions(), t.tile_columns(), at.row, at.column);
    };
    if constexpr (Masked)
      load_masked(pixels, planes, v);
    else
      load(pixels, planes, g_.grad_y, v);
    if (sums_bias()) add_to_bias(v, octet_of_block);
    const int plane = block_filters + octet_of_block * octet;
    scale(v, s_.exponents + plane, factors_of(stage) + plane);
    store(v, t.positions(), filter_octets, octet_of_block,
          s_.stages + stage * places_.bytes_of_stage + places_.bytes_of_x);
  }
  __device__ float* factors_of(int stage) const {
    return s_.factors + stage * 2 * block_filters;
  }

  // Eight planes; behind the last of all it is taken again.
  struct Planes {
    int height, width, left;
    std::int64_t first;
    __device__ Planes(int all, int plane, int its_height, int its_width, int image)
        : height(its_height), width(its_width), left(max(all - plane, 1)) {
      first = (std::int64_t(image) * all + min(plane, all - 1)) * height * width;
    }
    __device__ unsigned plane(int i) const {
      return static_cast<unsigned>(min(i, left - 1)) * static_cast<unsigned>(height * width);
    }
    // In a plane; -1: nowhere.
    __device__ int place(int pixel, int pixels, int pitch, int first_row, int first_column) const {
      const int in_row = pixel * ((pixels_of_inverse + pitch - 1) / pitch) / pixels_of_inverse;
      const int row = first_row + in_row, column = first_column + pixel - in_row * pitch;
      const bool inside = pixel < pixels && static_cast<unsigned>(row) < static_cast<unsigned>(height) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(width);
      return inside ? row * width + column : -1;
    }
    static constexpr int pixels_of_inverse = 1 << 16;
  };

  template <int Rounds, class Pixels>
  __device__ void load(const Pixels& place_of, const Planes& planes, const float* values, Values<Rounds>& v) const {
#pragma unroll
    for (int r = 0; r < Rounds; ++r) {
      const int place = place_of(r * lanes + lane_);
      const float* from = values + planes.first + place;
      asm("" : "+l"(from));  // an address: as a sum it would be added up anew for each plane
#pragma unroll
      for (int i = 0; i < octet; ++i) {
        v[r][i] = 0;
        if (place >= 0) v[r][i] = __ldg(from + planes.plane(i));
      }
    }
  }
  // The mask first, as a bit a number: both at once would not fit into registers.
  template <int Rounds, class Pixels>
  __device__ void load_masked(const Pixels& place_of, const Planes& planes, Values<Rounds>& v) const {
    load(place_of, planes, g_.mask, v);
    std::uint32_t wanted[(Rounds + 3) / 4] = {};
#pragma unroll
    for (int r = 0; r < Rounds; ++r)
#pragma unroll
      for (int i = 0; i < octet; ++i) wanted[r / 4] |= v[r][i] > 0 ? 1u << (r % 4 * octet + i) : 0;
#pragma unroll
    for (int r = 0; r < Rounds; ++r) {
      const float* from = g_.grad_y + planes.first + place_of(r * lanes + lane_);
      asm("" : "+l"(from));
#pragma unroll
      for (int i = 0; i < octet; ++i) {
        v[r][i] = 0;
        if ((wanted[r / 4] >> (r % 4 * octet + i) & 1) != 0) v[r][i] = __ldg(from + planes.plane(i));
      }
    }
  }

  // Where the exponents of planes do not fit the largest finite numbers, they are lowered.
  template <int Rounds>
  __device__ void scale(Values<Rounds>& v, int* exponents, float* factors) {
    float most[octet] = {}, most_scaled = 0;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
#pragma unroll
      for (int r = 0; r < Rounds; ++r) most[i] = fmaxf(most[i], fabsf(v[r][i]));
      most_scaled = fmaxf(most_scaled, most[i] * pairs::power_of_two(exponents[i]));
    }
    if (lane_ < octet) factors[lane_] = 1;
    constexpr float too_large = 1 << (pairs::top_exponent + 1);
    if (__any_sync(0xffffffffu, most_scaled >= too_large)) lower(v, most, exponents, factors);
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float by = pairs::power_of_two(exponents[i]);
#pragma unroll
      for (int r = 0; r < Rounds; ++r) v[r][i] *= by;
    }
  }
  template <int Rounds>
  __device__ void lower(const Values<Rounds>& v, float (&most)[octet], int* exponents, float* factors) {
    changed_ = 1;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      if (most[i] == INFINITY) {
        most[i] = 0;
#pragma unroll
        for (int r = 0; r < Rounds; ++r)
          if (fabsf(v[r][i]) < INFINITY) most[i] = fmaxf(most[i], fabsf(v[r][i]));
      }
      const int of_warp = __reduce_max_sync(0xffffffffu, __float_as_int(most[i]));
      const int top = pairs::exponent_of(__int_as_float(of_warp)), before = exponents[i];
      if (lane_ != i || top + before <= pairs::top_exponent) continue;
      exponents[i] = pairs::top_exponent - headroom - top;
      factors[i] = exponents[i] - before < -126 ? 0 : pairs::power_of_two(exponents[i] - before);
    }
    __syncwarp();
  }

  // [high, low][octet][pixel]
  template <int Rounds>
  __device__ void store(const Values<Rounds>& v, int pixels, int octets, int octet_of_block, char* part) const {
    uint4* const to = reinterpret_cast<uint4*>(part) + octet_of_block * pixels + lane_;
#pragma unroll
    for (int r = 0; r < Rounds; ++r) {
      const SplitOctet split = split_octet(v[r]);
      if (r * lanes + lane_ >= pixels) continue;
      to[r * lanes] = split.high;
      if constexpr (Pairs) to[octets * pixels + r * lanes] = split.low;
    }
  }

  template <int Rounds>
  __device__ void add_to_bias(const Values<Rounds>& v, int octet_of_block) const {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      float total = 0;
#pragma unroll
      for (int r = 0; r < Rounds; ++r) total += v[r][i];
#pragma unroll
      for (int by = lanes / 2; by > 0; by /= 2) total += __shfl_xor_sync(0xffffffffu, total, by);
      if (lane_ == i) s_.bias[octet_of_block * octet + i] += total;
    }
  }
  __device__ void store_bias() const {
    group_barrier(1);
    const int of_block = warp_ * lanes + lane_, filter = static_cast<int>(blockIdx.y) * block_filters + of_block;
    if (of_block < block_filters && filter < g_.t.filters)
      g_.partial_bias[std::int64_t(blockIdx.x) * g_.t.filters + filter] = s_.bias[of_block];
  }

  const WeightArguments& g_;
  const WeightPlaces& places_;
  const WeightShared& s_;
  int warp_, lane_, changed_ = 0;
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
    for (int tile = static_cast<int>(blockIdx.x); tile < g_.t.tiles(); tile += static_cast<int>(gridDim.x)) {
      s_.is_there[turn.stage].wait(turn.phase);
      const int4 changed = *reinterpret_cast<const int4*>(s_.changed + turn.stage * splitting_warps);
      if ((changed.x | changed.y | changed.z | changed.w) != 0) follow(turn.stage);
      add_tile(small_fft::shared_address(s_.stages) + turn.stage * places_.bytes_of_stage);
      if (lane_ == 0) s_.is_free[turn.stage].arrive();
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
    if constexpr (Pairs) {
      float products[side][count];
      small_fft::begin_wgmma();
#pragma unroll
      for (int tap = 0; tap < side; ++tap) multiply_pairs(o, tap, products[tap]);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma();
#pragma unroll
      for (int tap = 0; tap < side; ++tap)
#pragma unroll
        for (int i = 0; i < count; ++i) sums_[tap][i] += products[tap][i];
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
    const int first_channel = static_cast<int>(blockIdx.z) * channel_octets(Pairs) * octet;
    const int first_filter = static_cast<int>(blockIdx.y) * block_filters;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int channel = first_channel + channel_of(i), filter = first_filter + filter_of(i);
      if (channel >= g_.t.channels || filter >= g_.t.filters) continue;
      // Two powers of two, as one might not be finite.
      const int back = -s_.exponents[channel_of(i)] - s_.exponents[block_filters + filter_of(i)], half = back / 2;
      const std::int64_t kernel = (std::int64_t(blockIdx.x) * g_.t.filters + filter) * g_.t.channels + channel;
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

template <bool Pairs, bool Masked>
__global__ void __launch_bounds__(weight_threads, 1) weight_kernel(const __grid_constant__ WeightArguments g) {
  extern __shared__ __align__(128) char memory[];
  const WeightPlaces places(g.t, Pairs);
  const WeightShared s(memory, places);
  const int number = static_cast<int>(threadIdx.x);
  if (number < weight_stages) s.is_there[number].begin(splitting_warps), s.is_free[number].begin(4 * summing_groups);
  if (number < 2 * block_filters) s.exponents[number] = first_exponent;
  if (number < block_filters) s.bias[number] = 0;
  small_fft::show_to_wgmma();
  __syncthreads();
  const int thread = number % group_threads, group = __shfl_sync(0xffffffffu, number / group_threads, 0);
  if (group < summing_groups) {
    small_fft::take_registers<registers_of_summing>();
    Summing<Pairs>(g, places, s, group, thread).run();
  } else {
    small_fft::give_registers<registers_of_splitting>();
    Splitting<Pairs, Masked>(g, places, s, thread).run();
  }
}

}  // namespace twiddle::tap_shifts
