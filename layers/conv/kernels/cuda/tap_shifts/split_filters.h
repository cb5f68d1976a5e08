#pragma once
#include "layers/conv/kernels/cuda/tap_shifts/forward_arguments.h"

// The filters as forward_kernel multiplies them, split once a pass.
namespace twiddle::tap_shifts {

constexpr int split_threads = 256;
constexpr int none = -(1 << 20);  // the exponent of zeros

struct Filters {
  const float* w;
  int filter_stride, channel_stride;  // floats from one to the next; a channel's taps follow each other
  bool turned;                        // by 180 degrees
  int filters, channels, chunks;
  int* means;       // of channels: their mean exponents
  float* scales;    // of channels: what the channel of x is multiplied by
  float* back;      // of filters
  __half* weights;  // layout as in ForwardArguments
};

__device__ inline float weight_of(const Filters& f, int filter, int channel, int tap) {
  const std::int64_t from = std::int64_t(filter) * f.filter_stride + std::int64_t(channel) * f.channel_stride;
  return f.w[from + (f.turned ? taps - 1 - tap : tap)];
}

// Computes the mean exponent of each channel, one block per channel.
__global__ void __launch_bounds__(split_threads) mean_exponents_kernel(const Filters f) {
  __shared__ int sum, count;
  if (threadIdx.x == 0) sum = count = 0;
  __syncthreads();
  pairs::ColumnExponent exponent;
  for (int i = static_cast<int>(threadIdx.x); i < f.filters * taps; i += split_threads)
    exponent.add(weight_of(f, i / taps, static_cast<int>(blockIdx.x), i % taps));
  atomicAdd(&sum, exponent.sum), atomicAdd(&count, exponent.count);
  __syncthreads();
  if (threadIdx.x == 0) f.means[blockIdx.x] = count == 0 ? none : sum / count;
}

// Channels whose weights differ by up to 2^8 from the mean of all are left as they are, so that a few filters, whatever
// they hold, change nothing of what is lost of others. Numbers of x times what a channel is brought to must be finite.
__device__ inline int exponent_of_channel(const Filters& f, int channel, int mean) {
  constexpr int near = 8, far = 40;
  const int own = f.means[channel];
  if (own == none) return 0;
  return own - mean >= -near && own - mean <= near ? 0 : pairs::limited(own - mean, far);
}

// Computes the mean of all channels, on all threads of a block.
__device__ inline int mean_of_channels(const Filters& f) {
  __shared__ int sum, count;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) sum = count = 0;
  __syncthreads();
  pairs::ColumnExponent exponent;
  for (int channel = thread; channel < f.channels; channel += split_threads)
    if (f.means[channel] != none) exponent.add({f.means[channel], 1});
  atomicAdd(&sum, exponent.sum), atomicAdd(&count, exponent.count);
  __syncthreads();
  return count == 0 ? 0 : sum / count;
}

// The largest magnitude of a block's.
__device__ inline float largest_of_block(float value) {
  __shared__ int largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  atomicMax(&largest, __float_as_int(value));
  __syncthreads();
  return __int_as_float(largest);
}

// A block has a filter. A thread splits a tap's weights of eight channels at a time.
template <bool Pairs>
__global__ void __launch_bounds__(split_threads) split_filters_kernel(const Filters f) {
  const int filter = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int mean = mean_of_channels(f);
  if (filter == 0)
    for (int channel = thread; channel < f.channels; channel += split_threads)
      f.scales[channel] = pairs::power_of_two(exponent_of_channel(f, channel, mean));
  const auto weight = [&](int channel, int tap) {
    if (filter >= f.filters || channel >= f.channels) return 0.0f;
    return weight_of(f, filter, channel, tap) * pairs::power_of_two(-exponent_of_channel(f, channel, mean));
  };
  float most = 0;
  for (int i = thread; i < f.channels * taps; i += split_threads) {
    const float magnitude = fabsf(weight(i / taps, i % taps));
    if (magnitude < INFINITY) most = fmaxf(most, magnitude);
  }
  constexpr int up = pairs::top_exponent + spare;  // applied to results last, in addition to the scale of their sums
  const int exponent = max(pairs::scale_of_row(largest_of_block(most)), up - 126);
  const float scale = pairs::power_of_two(exponent);
  if (thread == 0 && filter < f.filters) f.back[filter] = pairs::power_of_two(up - exponent);
  constexpr int octets = depth / octet, matrices = Pairs ? 2 : 1;
  for (int i = thread; i < f.chunks * octets * taps; i += split_threads) {
    const int of_eight = i / taps, tap = i - of_eight * taps;
    float eight[octet];
#pragma unroll
    for (int j = 0; j < octet; ++j) eight[j] = weight(of_eight * octet + j, tap) * scale;
    const SplitOctet split = split_octet(eight);
    const std::int64_t chunk = std::int64_t(filter / block_filters) * f.chunks + of_eight / octets;
    __half* const to = f.weights + chunk * values_of_chunk(Pairs) + tap * matrices * matrix_values;
    const int place = of_eight % octets * block_filters + filter % block_filters;
    reinterpret_cast<uint4*>(to)[place] = split.high;
    if constexpr (Pairs) reinterpret_cast<uint4*>(to + matrix_values)[place] = split.low;
  }
}

}  // namespace twiddle::tap_shifts
