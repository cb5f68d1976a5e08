#pragma once
#include "fft/cuda/device/tensor_core.h"
#include "layers/conv/kernels/cuda/implicit_gemm/patch_block.h"

// The filters as forward_kernel reads them, split once a pass.
namespace twiddle::implicit_gemm {

constexpr int split_threads = 256;

// k = 16 s + 4 j + q of step s is number j of the threads whose lane is q modulo 4: then four neighbours among threads
// read neighbours among taps, which lie in different banks. Offsets of taps, in bytes: [step][q][j].
struct Filters {
  const float* w;
  int filter_stride, channel_stride;  // floats from one to the next; a channel's taps follow each other
  bool turned;                        // by 180 degrees
  int filters, taps, taps_a_channel, channels;
  int turns;       // of 32 k
  int rows;        // filters of a block of forward_kernel
  int* means;      // of channels: their mean exponents
  int* exponents;  // of channels: what the channel of x is multiplied by
  int* offsets;
  float* back;   // of filters
  __half* fp16;  // [block][turn]: the matrix [row][32 k] of high values, then of low ones (tensor_core.h)
};

__device__ inline float weight_of(const Filters& f, int filter, int channel, int tap) {
  const std::int64_t from = std::int64_t(filter) * f.filter_stride + std::int64_t(channel) * f.channel_stride;
  return f.w[from + (f.turned ? f.taps_a_channel - 1 - tap : tap)];
}

// Computes the mean exponent of each channel, one block per channel.
__global__ void __launch_bounds__(split_threads) mean_exponents_kernel(const Filters f) {
  __shared__ int sum, count;
  if (threadIdx.x == 0) sum = count = 0;
  __syncthreads();
  const int channel = static_cast<int>(blockIdx.x);
  pairs::ColumnExponent exponent;
  for (int i = static_cast<int>(threadIdx.x); i < f.filters * f.taps_a_channel; i += split_threads) {
    const int filter = i / f.taps_a_channel;
    exponent.add(weight_of(f, filter, channel, i - filter * f.taps_a_channel));
  }
  atomicAdd(&sum, exponent.sum), atomicAdd(&count, exponent.count);
  __syncthreads();
  if (threadIdx.x == 0) f.means[channel] = count == 0 ? none : sum / count;
}

// Channels whose weights differ by up to 2^8 from the mean of all are left as they are, so that a few filters, whatever
// they hold, change nothing of what is lost of others. Beyond that all filters share a channel's exponent: where half
// of them have weights 1e-18 of the others' in one channel, those others lose digits (1.6e-3 in an emulation).
__device__ inline int exponent_of_channel(const Filters& f, int channel, int mean) {
  constexpr int near = 8, far = 60;
  const int own = f.means[channel];
  if (own == none) return -far;
  return own - mean >= -near && own - mean <= near ? 0 : pairs::limited(own - mean, far);
}

__device__ inline int mean_of_channels(const Filters& f) {
  int sum = 0, count = 0;
  for (int channel = 0; channel < f.channels; ++channel)
    if (f.means[channel] != none) sum += f.means[channel], ++count;
  return count == 0 ? 0 : sum / count;
}

// A warp has a filter.
__global__ void __launch_bounds__(split_threads) split_filters_kernel(const Filters f, const Patches p) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes;
  const int filter = static_cast<int>(blockIdx.x) * (split_threads / lanes) + thread / lanes;
  const int mean = mean_of_channels(f);
  if (blockIdx.x == 0) {
    for (int channel = thread; channel < f.channels; channel += split_threads)
      f.exponents[channel] = exponent_of_channel(f, channel, mean);
    for (int i = thread; i < f.turns * depth_of_turn; i += split_threads) {
      const int k = i / step * step + i % 4 * 4 + i % step / 4;
      f.offsets[i] = offset_of_tap(p, k < f.taps ? k : 0) * word_bytes;  // beyond the last weights are zero
    }
  }
  const auto weight = [&](int k) {
    if (filter >= f.filters || k >= f.taps) return 0.0f;
    const int channel = k / f.taps_a_channel;
    const float scale = pairs::power_of_two(-exponent_of_channel(f, channel, mean));
    return weight_of(f, filter, channel, k - channel * f.taps_a_channel) * scale;
  };
  float largest = 0;
  for (int k = lane; k < f.taps; k += lanes) largest = fmaxf(largest, fabsf(weight(k)));
  const int exponent = pairs::scale_of_row(__int_as_float(largest_of_warp(__float_as_int(largest))));
  const float scale = pairs::power_of_two(exponent);
  if (lane == 0 && filter < f.filters) f.back[filter] = pairs::power_of_two(-exponent);
  const int block = filter / f.rows, row = filter % f.rows, matrix = f.rows * depth_of_turn;
  for (int i = lane; i < f.turns * steps_a_turn * 4; i += lanes) {
    const int s = i / 4, q = i % 4, k = s * step + q;
    __half* const high = f.fp16 + (std::int64_t(block) * f.turns + s / steps_a_turn) * 2 * matrix;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // tensor cores read k 2 q and 2 q + 1 from this lane, then k 8 further
      const SplitTwo two = split_two(weight(k + 8 * half) * scale, weight(k + 8 * half + 4) * scale);
      const int place = small_fft::place_of_piece(row, s % steps_a_turn * 2 + half) + 2 * q;
      *reinterpret_cast<std::uint32_t*>(high + place) = two.high;
      *reinterpret_cast<std::uint32_t*>(high + matrix + place) = two.low;
    }
  }
}

}  // namespace twiddle::implicit_gemm
