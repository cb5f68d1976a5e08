#pragma once
#include "fft/cuda/device/tensor_core.h"
#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "layers/conv/kernels/cuda/implicit_gemm/patch_block.h"

// w's gradient as a matrix product of which rows are filters, columns are taps, and k are positions.
namespace twiddle::implicit_gemm {

constexpr int weight_tile = 128;       // positions
constexpr int most_weight_warps = 16;  // of a block, and of all of a multiprocessor
constexpr int depth = 32;              // positions whose products are added from zero

// Offsets in a block's shared memory, in floats. A row of the gradient has four floats more than a tile has positions,
// so that rows use different banks.
struct WeightPlaces {
  int row, gradient, mask, tile, windows, back_of_taps, channels, largest, back_of_filters, bias, all;
  WeightPlaces(const Patches& p, bool masked, int buffers, int rows, int taps)
      : row(p.tile + 4),
        gradient(p.floats()),
        mask(gradient + rows * row),
        tile(mask + (masked ? rows * row : 0)),
        windows(buffers * tile),
        back_of_taps(windows + p.tile),
        channels(back_of_taps + taps),
        largest(channels + taps),
        back_of_filters(largest + p.channels),
        bias(back_of_filters + rows),
        all(bias + rows) {}
};

struct WeightArguments {
  Patches p;
  WeightPlaces places;
  int tiles, filters, taps, taps_a_channel;
  int warps_down, warps_across;    // warps of a block with other filters, or other taps; the rest: other positions
  bool by_fours;                   // whether four neighbours of the gradient may be copied at once
  int buffers;                     // tiles in shared memory: with two, the next one is loaded while one is multiplied
  const float *x, *grad_y, *mask;  // with a mask, what counts is where that is above zero
  float* partial;                  // [part][filter][tap]
  float* partial_bias;             // [block][filter]; null: not computed
};

// A warp has 16 Rows filters and 8 Columns taps.
template <int Warps, int Rows, int Columns, bool Pairs>
class WeightGradient {
 public:
  __device__ WeightGradient(const WeightArguments& g, float* shared)
      : g_(g),
        rows_(g.warps_down * Rows * 16),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % lanes),
        warp_(thread_ / lanes),
        first_filter_(static_cast<int>(blockIdx.y) * rows_) {
    const int across = warp_ % g.warps_across, further = warp_ / g.warps_across;
    first_column_ = across * Columns * 8;
    taps_ = g.warps_across * Columns * 8, first_tap_ = static_cast<int>(blockIdx.z) * taps_;
    first_row_ = further % g.warps_down * Rows * 16;
    part_ = further / g.warps_down, parts_ = Warps / (g.warps_across * g.warps_down);
  }

  __device__ void run() {
    for (int i = thread_; i < g_.p.channels; i += threads) largest()[i] = 0;
    for (int i = thread_; i < rows_; i += threads) shared_[g_.places.bias + i] = 0;
    const auto first_of = [&](unsigned block) { return static_cast<int>(std::int64_t(g_.tiles) * block / gridDim.x); };
    const int last = first_of(blockIdx.x + 1);
    int index = first_of(blockIdx.x), buffer = 0;
    find_taps();
    if (index < last) copy(index, shared_);
    for (; index < last; ++index) {
      float* const tile = shared_ + buffer * g_.places.tile;
      small_fft::wait_group<0>();
      __syncthreads();
      if (g_.buffers == 2) {
        buffer ^= 1;
        if (index + 1 < last) copy(index + 1, shared_ + buffer * g_.places.tile);
      }
      split(index, tile);
      multiply(tile);
      if (g_.buffers == 1 && index + 1 < last) {
        __syncthreads();
        copy(index + 1, shared_);
      }
    }
    store();
  }

 private:
  static constexpr int threads = Warps * lanes, threads_a_row = 8, positions_a_thread = weight_tile / threads_a_row;
  __device__ int* largest() const { return reinterpret_cast<int*>(shared_ + g_.places.largest); }
  __device__ int* channels() const { return reinterpret_cast<int*>(shared_ + g_.places.channels); }
  __device__ int* windows() const { return reinterpret_cast<int*>(shared_ + g_.places.windows); }

  __device__ void copy(int index, float* to) {
    const Tile at = tile_of(g_.p, index);
    copy_patch<threads>(g_.p, g_.x, at, thread_, to);
    const std::int64_t image = std::int64_t(at.image) * g_.filters * g_.p.places();
    copy_planes(at, g_.grad_y + image, to + g_.places.gradient);
    if (g_.mask != nullptr) copy_planes(at, g_.mask + image, to + g_.places.mask);
    small_fft::commit_group();
  }
  __device__ void copy_planes(const Tile& at, const float* image, float* to) {
    if (g_.by_fours)
      copy_planes_by<Four>(at, image, to);
    else
      copy_planes_by<float>(at, image, to);
  }
  // A filter a warp; zeros beyond the last filter, and beyond the plane.
  template <class Number>
  __device__ void copy_planes_by(const Tile& at, const float* image, float* to) {
    constexpr int width = sizeof(Number) / sizeof(float);
#pragma unroll
    for (int i = 0; i < weight_tile; i += lanes * width) {
      const int position = i + lane_ * width, place = position_of(g_.p, at, position).place;
      const float* from = image + std::int64_t(first_filter_ + warp_) * g_.p.places() + place;
      float* put = to + warp_ * g_.places.row + position;
      for (int row = warp_; row < rows_; row += Warps) {
        const bool wanted = first_filter_ + row < g_.filters && place >= 0;
        small_fft::async_copy(reinterpret_cast<Number*>(put), reinterpret_cast<const Number*>(from), wanted);
        from += std::int64_t(Warps) * g_.p.places(), put += Warps * g_.places.row;
      }
    }
  }

  // Scales the patch by a power of two per channel, the gradient by one per filter.
  __device__ void split(int index, float* tile) {
    const Tile at = tile_of(g_.p, index);
    for (int i = thread_; i < weight_tile; i += threads) windows()[i] = position_of(g_.p, at, i).window * word_bytes;
    for (int channel = 0; channel < g_.p.channels; ++channel) {
      const float most = largest_of_thread<threads>(g_.p, tile + channel * g_.p.plane, thread_);
      const int of_warp = largest_of_warp(__float_as_int(most));
      if (lane_ == 0) atomicMax(largest() + channel, of_warp);
    }
    split_gradient(tile);
    __syncthreads();
    const auto exponent_of = [&](int channel) { return pairs::scale_of_row(__int_as_float(largest()[channel])); };
    for (int channel = 0; channel < g_.p.channels; ++channel)
      split_plane<threads>(g_.p, pairs::power_of_two(exponent_of(channel)), thread_, tile + channel * g_.p.plane);
    for (int i = thread_; i < taps_; i += threads)
      shared_[g_.places.back_of_taps + i] = pairs::power_of_two(-exponent_of(channels()[i]));
    __syncthreads();
    for (int i = thread_; i < g_.p.channels; i += threads) largest()[i] = 0;
  }

  // Splits in place: the high values of a row, then the low ones. Eight adjacent threads process a row.
  __device__ void split_gradient(float* tile) {
    constexpr int rows_at_once = threads / threads_a_row;
    for (int first = warp_ * (lanes / threads_a_row); first < rows_; first += rows_at_once)
      split_row(tile, first + lane_ / threads_a_row, lane_ % threads_a_row);
  }
  __device__ void split_row(float* tile, int row, int share) {
    float* const line = tile + g_.places.gradient + row * g_.places.row;
    const float* const mask = tile + g_.places.mask + row * g_.places.row;
    float values[positions_a_thread], most = 0, sum = 0;
#pragma unroll
    for (int i = 0; i < positions_a_thread; i += 4) {
      const int position = i * threads_a_row + share * 4;
      const Four four = *reinterpret_cast<const Four*>(line + position);
#pragma unroll
      for (int j = 0; j < 4; ++j) values[i + j] = four.at[j];
      if (g_.mask != nullptr) {
        const Four of_mask = *reinterpret_cast<const Four*>(mask + position);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (!(of_mask.at[j] > 0)) values[i + j] = 0;
      }
    }
#pragma unroll
    for (const float value : values) most = fmaxf(most, fabsf(value)), sum += value;
#pragma unroll
    for (int apart = threads_a_row / 2; apart > 0; apart /= 2) {
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, apart));
      sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    }
    const int exponent = pairs::scale_of_row(most);
    const float scale = pairs::power_of_two(exponent);
    if (share == 0) shared_[g_.places.back_of_filters + row] = pairs::power_of_two(-exponent);
    if (share == 0 && g_.partial_bias != nullptr) shared_[g_.places.bias + row] += sum;
    __syncwarp();
    auto* const fp16 = reinterpret_cast<__half*>(line);
#pragma unroll
    for (int i = 0; i < positions_a_thread; i += 4) {
      const int position = i * threads_a_row + share * 4;
      const SplitTwo first = split_two(values[i] * scale, values[i + 1] * scale);
      const SplitTwo second = split_two(values[i + 2] * scale, values[i + 3] * scale);
      *reinterpret_cast<uint2*>(fp16 + position) = {first.high, second.high};
      *reinterpret_cast<uint2*>(fp16 + weight_tile + position) = {first.low, second.low};
    }
  }

  // Replaces taps after the last one by 0; their results are not stored.
  __device__ int existing(int tap) const {
    return tap < g_.taps ? tap : 0;
  }
  __device__ void find_taps() {
#pragma unroll
    for (int j = 0; j < Columns; ++j)
      offsets_[j] = offset_of_tap(g_.p, existing(first_tap_ + first_column_ + j * 8 + lane_ / 4)) * word_bytes;
    for (int i = thread_; i < taps_; i += threads) channels()[i] = existing(first_tap_ + i) / g_.taps_a_channel;
  }

  __device__ void multiply(const float* tile) {
    const auto* const gradient = reinterpret_cast<const __half*>(tile + g_.places.gradient);
    for (int first = part_ * depth; first < weight_tile; first += parts_ * depth) multiply(tile, gradient, first);
  }

  // Computes the products of 32 positions, starting from zero: tensor cores truncate sums. Small terms are added first.
  __device__ void multiply(const float* patch, const __half* gradient, int first) {
    std::uint32_t high[Columns][4], low[Columns][4];
    const float* const back_of_taps = shared_ + g_.places.back_of_taps + first_column_ + lane_ % 4 * 2;
    int2 windows_of_pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      windows_of_pairs[i] = *reinterpret_cast<const int2*>(windows() + first + i * 8 + lane_ % 4 * 2);
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
      const char* const tap = bytes_from(patch, offsets_[j]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t a = word_at(tap, windows_of_pairs[i].x), b = word_at(tap, windows_of_pairs[i].y);
        high[j][i] = lower_halves(a, b), low[j][i] = upper_halves(a, b);
      }
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      const __half* const row =
          gradient + (first_row_ + i * 16 + lane_ % 16) * g_.places.row * 2 + first + lane_ / 16 * 8;
      const small_fft::Fragment a_high[2] = {small_fft::load_fragment(row), small_fft::load_fragment(row + 16)};
      small_fft::Fragment a_low[2] = {};
      if constexpr (Pairs)
        a_low[0] = small_fft::load_fragment(row + weight_tile),
        a_low[1] = small_fft::load_fragment(row + weight_tile + 16);
      const float* const back_of_filters = shared_ + g_.places.back_of_filters + first_row_ + i * 16 + lane_ / 4;
      const float back_of_rows[2] = {back_of_filters[0], back_of_filters[8]};
      float products[Columns][4] = {};
      const auto add = [&](const small_fft::Fragment& a, const std::uint32_t(&x)[Columns][4], int s) {
#pragma unroll
        for (int j = 0; j < Columns; ++j) small_fft::multiply(a, x[j][2 * s], x[j][2 * s + 1], products[j]);
      };
      if constexpr (Pairs) {
#pragma unroll
        for (int s = 0; s < 2; ++s) add(a_low[s], high, s), add(a_high[s], low, s);
      }
#pragma unroll
      for (int s = 0; s < 2; ++s) add(a_high[s], high, s);
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
        const float2 back = *reinterpret_cast<const float2*>(back_of_taps + j * 8);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& sum = sums_[(i * Columns + j) * 4 + e];
          sum = fmaf(products[j][e] * back_of_rows[e / 2], e % 2 == 0 ? back.x : back.y, sum);
        }
      }
    }
  }

  __device__ void store() {
    const std::int64_t part = std::int64_t(blockIdx.x) * parts_ + part_;
    float* const partial = g_.partial + part * g_.filters * g_.taps;
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int j = 0; j < Columns; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int filter = first_filter_ + first_row_ + i * 16 + lane_ / 4 + e / 2 * 8;
          const int tap = first_tap_ + first_column_ + j * 8 + lane_ % 4 * 2 + e % 2;
          if (filter < g_.filters && tap < g_.taps)
            partial[std::int64_t(filter) * g_.taps + tap] = sums_[(i * Columns + j) * 4 + e];
        }
    if (g_.partial_bias == nullptr || blockIdx.z != 0) return;
    __syncthreads();
    for (int i = thread_; i < rows_ && first_filter_ + i < g_.filters; i += threads)
      g_.partial_bias[std::int64_t(blockIdx.x) * g_.filters + first_filter_ + i] = shared_[g_.places.bias + i];
  }

  const WeightArguments& g_;
  int rows_, taps_ = 0;  // of the block
  float* shared_;
  int thread_, lane_, warp_, first_filter_, first_row_ = 0, first_tap_ = 0, first_column_ = 0, part_ = 0, parts_ = 0;
  int offsets_[Columns] = {};  // in bytes
  float sums_[Rows * Columns * 4] = {};
};

template <int Warps, int Rows, int Columns, bool Pairs>
__global__ void __launch_bounds__(Warps* lanes, most_weight_warps / Warps) weight_kernel(const WeightArguments g) {
  extern __shared__ Four weight_memory[];
  WeightGradient<Warps, Rows, Columns, Pairs>(g, reinterpret_cast<float*>(weight_memory)).run();
}

// What a warp can have in registers.
constexpr int fewest_rows = 2, most_rows = 4, fewest_columns = 2;
constexpr int most_columns(int rows) {
  return rows == 2 ? 5 : rows == 3 ? 4 : 3;
}

struct WeightTile {
  int rows, columns;  // of a warp
  bool pairs;
};

template <int Warps, int Rows = fewest_rows, int Columns = fewest_columns>
void launch_weight(Stream& stream, const WeightArguments& arguments, const WeightTile& tile, dim3 grid,
                   std::size_t shared) {
  if constexpr (Columns > most_columns(Rows)) {
    if constexpr (Rows < most_rows) launch_weight<Warps, Rows + 1>(stream, arguments, tile, grid, shared);
  } else if (tile.rows != Rows || tile.columns != Columns) {
    launch_weight<Warps, Rows, Columns + 1>(stream, arguments, tile, grid, shared);
  } else {
    const auto kernel =
        tile.pairs ? weight_kernel<Warps, Rows, Columns, true> : weight_kernel<Warps, Rows, Columns, false>;
    twiddle::detail::allow_all_shared_memory(kernel, stream.device());
    kernel<<<grid, Warps * lanes, shared, twiddle::detail::native(stream)>>>(arguments);
    twiddle::detail::check_launch();
  }
}

// Each is compiled by itself.
void launch_weight_of_8_warps(Stream& stream, const WeightArguments& arguments, const WeightTile& tile, dim3 grid,
                              std::size_t shared);
void launch_weight_of_16_warps(Stream& stream, const WeightArguments& arguments, const WeightTile& tile, dim3 grid,
                               std::size_t shared);

}  // namespace twiddle::implicit_gemm
