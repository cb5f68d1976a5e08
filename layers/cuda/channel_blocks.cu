#include "layers/cuda/channel_blocks.h"

#include <cuda_pipeline.h>

#include <algorithm>

#include "framework/cuda/check.h"
#include "layers/cuda/cluster.h"
#include "layers/moments.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

// The fastest over all shapes of ResNet-50 on an H100: 512 threads per block and two blocks per multiprocessor,
// one of which loads while the other stores.
constexpr int most_threads = 512, most_warps = most_threads / 32, few_threads = 128, elements_a_thread = 8;
constexpr int most_blocks = 16, portable_blocks = 8;  // of a cluster; more than 8 need a kernel attribute
constexpr int in_flight = 4;                          // loads of a thread

template <class T, int Width>
struct alignas(sizeof(T) * Width) Pack {  // is moved at once
  T at[Width];
};

// Bytes of shared memory for a block's part of a tensor: a multiple of 16, so that the next part is aligned.
template <class T>
constexpr std::int64_t staged_bytes(std::int64_t elements) {
  return (elements * static_cast<std::int64_t>(sizeof(T)) + 15) / 16 * 16;
}

// How the blocks of a cluster share a channel: each holds some images.
struct ChannelShare {
  int batch, channels, inner, blocks, images_each;
  Divisor packs;  // of one plane
  int bytes;      // of shared memory that a block's part of a tensor takes

  struct Part {
    int channel, images;
    std::int64_t at;  // of the first image's plane
  };
  __device__ Part part() const {
    const int channel = static_cast<int>(blockIdx.x) / blocks, rank = static_cast<int>(blockIdx.x) - channel * blocks;
    const int first = rank * images_each;
    return {channel, max(0, min(images_each, batch - first)), (std::int64_t(first) * channels + channel) * inner};
  }
  // The offset from the first pack to a pack of the block's part, counted over its images.
  __device__ std::int64_t place(int pack, int width) const {
    const int image = static_cast<int>(packs.quotient(pack)), each = static_cast<int>(packs.value());
    return std::int64_t(image) * channels * inner + (pack - image * each) * width;
  }
  __device__ bool leads() const { return static_cast<int>(blockIdx.x) % blocks == 0; }
};

template <class T, int Width>
__device__ void stage(const T* from, const ChannelShare& share, int packs, Pack<T, Width>* staged) {
  constexpr std::size_t bytes = sizeof(Pack<T, Width>);
#pragma unroll 4
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const T* const pack = from + share.place(i, Width);
    if constexpr (bytes >= 4)  // asynchronous copies have 4, 8 or 16 bytes
      __pipeline_memcpy_async(staged + i, pack, bytes);
    else
      staged[i] = *reinterpret_cast<const Pack<T, Width>*>(pack);
  }
}

__device__ void wait_for_staged() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

// Over the block, in a fixed order: every thread gets the sum.
__device__ double sum_over_block(double value, double (&partial)[most_warps]) {
  const double sum = detail::warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  double all = 0;
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; ++warp) all += partial[warp];
  return all;
}

// Bitwise identical in all lanes of a warp.
__device__ double sum_over_lanes(double value) {
  for (int half = 16; half > 0; half /= 2) value += __shfl_xor_sync(0xffffffffu, value, half);
  return value;
}

// The result of each block of the cluster, one per lane of the first warp; `none` in the remaining lanes.
template <class Part>
__device__ Part of_blocks(const Part* own, const ChannelShare& share, const Part& none) {
  const int lane = static_cast<int>(threadIdx.x);
  return lane < share.blocks ? *cluster::in_block(own, lane) : none;
}

// The first thread has written something in shared memory that other blocks are to read.
__device__ void meet() {
  if (threadIdx.x == 0) cluster::fence();
  __syncwarp();
  cluster::arrive();
  cluster::wait();
}

// The moments of the block's numbers. Summing differences from the first number avoids cancellation.
template <class T, int Width>
__device__ Moments moments_of_block(const Pack<T, Width>* staged, int packs, double count) {
  __shared__ double sums[most_warps], squares[most_warps];
  const float first = packs > 0 ? to_float(staged[0].at[0]) : 0;
  double sum = 0, square = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    float few = 0;
#pragma unroll
    for (int k = 0; k < Width; ++k) few += to_float(staged[i].at[k]) - first;
    sum += few;
  }
  sum = sum_over_block(sum, sums);
  const double mean = first + (count > 0 ? sum / count : 0);
  const auto middle = static_cast<float>(mean);
#pragma unroll 4
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    float few = 0;
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      const float difference = to_float(staged[i].at[k]) - middle;
      few += difference * difference;
    }
    square += few;
  }
  square = sum_over_block(square, squares);
  return {count, mean, square - count * (mean - middle) * (mean - middle)};
}

template <class T, int Width, bool Sum>
__global__ void __launch_bounds__(most_threads) forward_kernel(ChannelForward<T> pass, ChannelShare share) {
  extern __shared__ Four memory[];
  __shared__ Moments of_block;
  __shared__ float of_channel[2];
  auto* const staged = reinterpret_cast<Pack<T, Width>*>(memory);
  const ChannelShare::Part part = share.part();
  const int packs = part.images * static_cast<int>(share.packs.value());
  stage(pass.x + part.at, share, packs, staged);
  wait_for_staged();

  const Moments own = moments_of_block(staged, packs, double(part.images) * share.inner);
  if (threadIdx.x == 0) of_block = own;
  meet();
  if (threadIdx.x < 32) {  // Chan's formula, as `joined`, for many parts at once
    const Moments each = of_blocks(&of_block, share, Moments{0, 0, 0});
    const double count = double(share.batch) * share.inner, mean = sum_over_lanes(each.count * each.mean) / count;
    const double off = each.mean - mean;
    const Moments all{count, mean, sum_over_lanes(each.deviations + each.count * off * off)};
    if (threadIdx.x == 0) {
      of_channel[0] = static_cast<float>(mean), of_channel[1] = inverse_deviation(all, pass.statistics.epsilon);
      if (share.leads()) store_statistics(pass.statistics, part.channel, all, of_channel[1]);
    }
  }
  __syncthreads();
  cluster::arrive();  // this block has read what it reads of others

  const float mean = of_channel[0], factor = of_channel[1] * pass.scale[part.channel], shift = pass.bias[part.channel];
  for (int begin = threadIdx.x; begin < packs; begin += in_flight * blockDim.x) {
    std::int64_t at[in_flight];
    Pack<T, Width> other[in_flight];
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const int i = begin + j * static_cast<int>(blockDim.x);
      at[j] = part.at + share.place(i, Width);
      if (Sum && i < packs) other[j] = *reinterpret_cast<const Pack<T, Width>*>(pass.other + at[j]);
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const int i = begin + j * static_cast<int>(blockDim.x);
      if (i >= packs) continue;
      Pack<T, Width> y = staged[i];
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        float value = (to_float(y.at[k]) - mean) * factor + shift;
        if (Sum) value += to_float(other[j].at[k]);
        if (pass.relu) value = ReluForward{}(value);
        y.at[k] = from_float<T>(value);
      }
      *reinterpret_cast<Pack<T, Width>*>(pass.y + at[j]) = y;
    }
  }
  cluster::wait();  // a block stays until no other reads its shared memory
}

template <class T, int Width, ReluGate gate>
__global__ void __launch_bounds__(most_threads) backward_kernel(ChannelBackward<T> pass, ChannelShare share) {
  extern __shared__ Four memory[];
  __shared__ double sums[most_warps], products[most_warps];
  __shared__ PairOf<double> of_block;
  __shared__ float of_channel[2];
  auto* const x = reinterpret_cast<Pack<T, Width>*>(memory);
  auto* const gradient = reinterpret_cast<Pack<T, Width>*>(reinterpret_cast<char*>(memory) + share.bytes);
  const ChannelShare::Part part = share.part();
  const int packs = part.images * static_cast<int>(share.packs.value()), channel = part.channel;
  stage(pass.x + part.at, share, packs, x);
  stage(pass.grad_y + part.at, share, packs, gradient);
  const float mean = pass.mean[channel], inverse = pass.inverse[channel], factor = inverse * pass.scale[channel];
  const float shift = pass.bias[channel];
  wait_for_staged();

  double sum = 0, product = 0;  // of the gradient before the ReLU, and of it times (x - mean)
  for (int begin = threadIdx.x; begin < packs; begin += in_flight * blockDim.x) {
    std::int64_t at[in_flight];
    Pack<T, Width> y[in_flight];
    if (gate == ReluGate::output) {
#pragma unroll
      for (int j = 0; j < in_flight; ++j) {
        const int i = begin + j * static_cast<int>(blockDim.x);
        at[j] = part.at + share.place(i, Width);
        if (i < packs) y[j] = *reinterpret_cast<const Pack<T, Width>*>(pass.y + at[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const int i = begin + j * static_cast<int>(blockDim.x);
      if (i >= packs) continue;
      Pack<T, Width> passed = gradient[i];  // by the ReLU, which rounds nothing
      const Pack<T, Width> here = x[i];
      float few = 0, few_products = 0;
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        const float difference = to_float(here.at[k]) - mean;
        float g = to_float(passed.at[k]);
        if (gate == ReluGate::input) g = ReluBackward{}(difference * factor + shift, g);
        if (gate == ReluGate::output) g = ReluBackward{}(to_float(y[j].at[k]), g);
        few += g;
        few_products += g * difference;
        if (gate != ReluGate::none) passed.at[k] = from_float<T>(g);
      }
      sum += few;
      product += few_products;
      if (gate != ReluGate::none) gradient[i] = passed;
      if (gate == ReluGate::output) *reinterpret_cast<Pack<T, Width>*>(pass.passed + at[j]) = passed;
    }
  }
  sum = sum_over_block(sum, sums);
  product = sum_over_block(product, products);
  if (threadIdx.x == 0) of_block = {sum, product};
  meet();
  if (threadIdx.x < 32) {
    const PairOf<double> each = of_blocks(&of_block, share, PairOf<double>{0, 0});
    const auto grad_bias = static_cast<float>(sum_over_lanes(each.first));
    const float grad_scale = static_cast<float>(sum_over_lanes(each.second)) * inverse;
    if (threadIdx.x == 0) {
      of_channel[0] = grad_bias, of_channel[1] = grad_scale;
      if (share.leads()) pass.grad_bias[channel] = grad_bias, pass.grad_scale[channel] = grad_scale;
    }
  }
  __syncthreads();
  cluster::arrive();

  // grad_x = scale / deviation * (g - mean(g) - x' mean(g x')), x' the normalised x and g the gradient before the ReLU.
  const float values = static_cast<float>(share.batch) * static_cast<float>(share.inner);
  const float mean_gradient = of_channel[0] / values, slope = of_channel[1] * inverse / values;
#pragma unroll 4
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    const Pack<T, Width> g = gradient[i], here = x[i];
    Pack<T, Width> grad_x;
#pragma unroll
    for (int k = 0; k < Width; ++k)
      grad_x.at[k] =
          from_float<T>(factor * (to_float(g.at[k]) - mean_gradient - (to_float(here.at[k]) - mean) * slope));
    *reinterpret_cast<Pack<T, Width>*>(pass.grad_x + part.at + share.place(i, Width)) = grad_x;
  }
  cluster::wait();
}

template <class T>
ChannelShare share_of(const BatchShape& planes, int blocks, int width) {
  const auto batch = static_cast<int>(planes.batch), channels = static_cast<int>(planes.channels);
  const auto inner = static_cast<int>(planes.inner);
  const int images_each = (batch + blocks - 1) / blocks;
  const auto bytes = static_cast<int>(staged_bytes<T>(std::int64_t(images_each) * inner));
  return {batch, channels, inner, blocks, images_each, Divisor(inner / width), bytes};
}

int attribute(const Stream& stream, cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, stream.device().index));
  return value;
}

// The smallest cluster whose blocks hold `tensors` of a channel in so much memory, or a larger one that keeps the whole
// GPU busy; 0: there is none.
template <class T>
int blocks_within(std::int64_t bytes, const BatchShape& planes, int tensors, int most, int processors) {
  const auto fits = [&](std::int64_t blocks) {
    return staged_bytes<T>((planes.batch + blocks - 1) / blocks * planes.inner) * tensors <= bytes;
  };
  const auto most_of_use = static_cast<int>(std::min<std::int64_t>(most, planes.batch));
  int blocks = 1;
  while (blocks <= most_of_use && !fits(blocks)) blocks *= 2;
  if (blocks > most_of_use) return 0;
  while (planes.channels * blocks < processors && 2 * blocks <= most_of_use) blocks *= 2;
  return blocks;
}

// What a kernel can have of its GPU.
struct Limits {
  bool clusters;
  std::int64_t half, whole;  // bytes of shared memory per block if two are to fit, and for one alone

  template <class Kernel>
  Limits(const Stream& stream, Kernel* kernel) {
    cudaFuncAttributes code{};
    check(cudaFuncGetAttributes(&code, kernel));
    clusters = code.ptxVersion >= 90 && attribute(stream, cudaDevAttrClusterLaunch) != 0;  // its PTX may be older
    const auto fixed = static_cast<std::int64_t>(code.sharedSizeBytes);
    constexpr int reserved = 1 << 10;  // of each block, by the driver
    whole = attribute(stream, cudaDevAttrMaxSharedMemoryPerBlockOptin) - fixed;
    half = std::min(attribute(stream, cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - reserved - fixed, whole);
  }
};

template <class T>
int blocks_of_channel(const Stream& stream, const Limits& limits, const BatchShape& planes, int tensors) {
  const int most = limits.clusters ? most_blocks : 1, processors = multiprocessors(stream.device());
  const int blocks = blocks_within<T>(limits.half, planes, tensors, most, processors);
  return blocks > 0 ? blocks : blocks_within<T>(limits.whole, planes, tensors, most, processors);
}

int threads_for(int elements) {
  int threads = most_threads;
  while (threads > few_threads && elements < elements_a_thread * threads) threads /= 2;
  return threads;
}

// Whether the GPU can run a cluster of that shape.
template <class Kernel>
bool fits_device(Kernel* kernel, const cudaLaunchConfig_t& config) {
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess) return clusters > 0;
  static_cast<void>(cudaGetLastError());  // an answer, and no later launch's error
  return false;
}

template <class Pass>
using Kernel = void (*)(Pass, ChannelShare);

// Whether the kernel could be launched, which works on `tensors` of T in shared memory.
template <class T, class Pass>
bool launch(Stream& stream, Kernel<Pass> kernel, const Pass& pass, int tensors, int width) {
  const Limits limits(stream, kernel);
  const int blocks = blocks_of_channel<T>(stream, limits, pass.planes, tensors);
  if (blocks == 0 || pass.planes.channels * blocks >= std::int64_t(1) << 31) return false;
  const ChannelShare share = share_of<T>(pass.planes, blocks, width);
  const int bytes = tensors * share.bytes;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(blocks), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(share.channels * blocks);
  config.blockDim = static_cast<unsigned>(threads_for(bytes / static_cast<int>(sizeof(T))));
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes), config.stream = detail::native(stream);
  config.attrs = &cluster, config.numAttrs = limits.clusters ? 1 : 0;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(limits.whole)));
  if (blocks > portable_blocks) check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  if (blocks > 1 && !fits_device(kernel, config)) return false;
  check(cudaLaunchKernelEx(&config, kernel, pass, share));
  return true;
}

bool served(const BatchShape& planes) {
  return planes.inner > 1 && planes.batch < (std::int64_t(1) << 31) && planes.channels < (std::int64_t(1) << 31);
}

template <int Width, class T>
bool run(Stream& stream, const ChannelForward<T>& pass) {
  const Kernel<ChannelForward<T>> kernel =
      pass.other != nullptr ? &forward_kernel<T, Width, true> : &forward_kernel<T, Width, false>;
  return launch<T>(stream, kernel, pass, 1, Width);
}

template <int Width, class T>
bool run(Stream& stream, const ChannelBackward<T>& pass) {
  Kernel<ChannelBackward<T>> kernel = &backward_kernel<T, Width, ReluGate::none>;
  if (pass.gate == ReluGate::input) kernel = &backward_kernel<T, Width, ReluGate::input>;
  if (pass.gate == ReluGate::output) kernel = &backward_kernel<T, Width, ReluGate::output>;
  return launch<T>(stream, kernel, pass, 2, Width);
}

}  // namespace

template <class T>
bool normalize_channels_in_blocks(Stream& stream, const ChannelForward<T>& pass) {
  if (!served(pass.planes)) return false;
  const bool wide = pass.planes.inner % 4 == 0 && detail::aligned_for_four(pass.x, pass.other, pass.y);
  return wide ? run<4>(stream, pass) : run<1>(stream, pass);
}

template <class T>
bool normalize_channels_backward_in_blocks(Stream& stream, const ChannelBackward<T>& pass) {
  if (!served(pass.planes)) return false;
  const bool wide =
      pass.planes.inner % 4 == 0 && detail::aligned_for_four(pass.x, pass.y, pass.grad_y, pass.passed, pass.grad_x);
  return wide ? run<4>(stream, pass) : run<1>(stream, pass);
}

template bool normalize_channels_in_blocks(Stream&, const ChannelForward<float>&);
template bool normalize_channels_in_blocks(Stream&, const ChannelForward<Bf16>&);
template bool normalize_channels_in_blocks(Stream&, const ChannelForward<Half>&);
template bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<float>&);
template bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<Bf16>&);
template bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<Half>&);

}  // namespace twiddle
