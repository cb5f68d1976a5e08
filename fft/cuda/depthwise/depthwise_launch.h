#pragma once
#include <iterator>
#include <utility>

#include "fft/cuda/depthwise/depthwise_kernels.h"
#include "fft/cuda/depthwise/tuned_on_h200.h"
#include "fft/cuda/device/resident_blocks.h"
#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "framework/error.h"

namespace twiddle::small_fft {

// A plane of those in the order [channel][image].
struct PlaneIndex {
  int image, channel;
  TWIDDLE_HD PlaneIndex(const DepthwisePlanes& planes, std::int64_t index)
      : image(static_cast<int>(planes.images.remainder(index))),
        channel(static_cast<int>(planes.images.quotient(index))) {}
};

// Stores what a block made of its planes, from plane number `first` on.
template <class Block>
TWIDDLE_HD void store_elements(const ConvolveArguments& arguments, std::int64_t first, const Complex* shared,
                               int thread, const typename Block::Registers& v) {
  const PlaneWindow& window = arguments.to.window;
  const int of_block = Block::stored_plane(window, thread);
  if (of_block >= Block::planes || first + of_block >= arguments.to.count()) return;
  constexpr float scale = 1.f / (4.f * Block::pairs * Block::pairs);
  const PlaneIndex plane(arguments.to, first + of_block);
  const float bias = arguments.bias == nullptr ? 0 : arguments.bias[plane.channel];
  float* const target =
      arguments.target + arguments.to.at(plane.image, plane.channel) - window.top * window.width - window.left;
  Block::for_each_element(window, v, shared, thread, [&](int row, int column, Complex two) {
    if (!window.has_row(row)) return;
    const auto store = [&](int at, float value) {
      if (!window.has_column(at)) return;
      value = value * scale + bias;
      target[row * window.width + at] = arguments.relu && value < 0 ? 0 : value;  // NaN stays
    };
    store(column, two.re);
    store(column + 1, two.im);
  });
}

// From bins in registers to stored planes. `there`: the thread has bins.
template <class Block>
__device__ void bins_to_planes(const ConvolveArguments& arguments, std::int64_t first, Complex* shared, int thread,
                               bool there, typename Block::Registers& v) {
  if (there) Block::rows_back(v, thread, shared);
  __syncthreads();
  Block::columns_back(arguments.to.window, shared, thread, v);
  if constexpr (Block::split > 1) {
    __syncthreads();
    Block::put_shares(arguments.to.window, v, thread, shared);
    __syncthreads();
  }
  store_elements<Block>(arguments, first, shared, thread, v);
}

// Planes by way of their spectra to planes. The spectra are written to memory where `spectra` is not null; without a
// target they are all that is made.
template <class Block, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, (resident_blocks<Block::threads>(MinBlocks)))
    convolve_kernel(const ConvolveArguments arguments, Complex* spectra) {
  extern __shared__ ComplexPair memory[];
  auto* const shared = reinterpret_cast<Complex*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t(blockIdx.x) * Block::planes, plane = first + Block::plane_of(thread);
  const bool there = plane < arguments.from.count();
  const auto source_of = [&](int of_block) -> const float* {
    if (first + of_block >= arguments.from.count()) return nullptr;
    const PlaneIndex index(arguments.from, first + of_block);
    return arguments.source + arguments.from.at(index.image, index.channel);
  };
  Block::columns(arguments.from.window, source_of, thread, shared);
  __syncthreads();
  typename Block::Registers v;
  if (there) Block::rows(shared, thread, v);
  if (there && spectra != nullptr) {
    Complex* const spectrum = spectra + plane * Block::spectrum_numbers;
    unrolled<Block::points>([&](auto m) { spectrum[Block::spectrum_place(thread, m)] = v[m]; });
  }
  if (arguments.target == nullptr) return;
  if (there) {
    const int channel = PlaneIndex(arguments.from, plane).channel;
    const Complex* const kernel = arguments.kernels + channel * std::int64_t(Block::spectrum_numbers);
    const float sign = arguments.conjugate ? -1.f : 1.f;
    multiply_bins<Block>(
        v, thread, [&](auto m) { return kernel[Block::spectrum_place(thread, m)]; },
        [sign](Complex x, Complex w) {
          return x * Complex{w.re, sign * w.im};
        });
  }
  if constexpr (Block::split > 1) __syncthreads();  // both threads of a row have read it
  bins_to_planes<Block>(arguments, first, shared, thread, there, v);
}

// Part p has images p, p + parts, and so on. A block has the same number of parts as planes, each with a separate sum:
// its planes are of consecutive images. The spectrum of x stays in shared memory while that of y's gradient is computed
// in registers.
template <class Block, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, (resident_blocks<Block::threads>(MinBlocks)))
    correlate_kernel(const CorrelateArguments arguments) {
  extern __shared__ ComplexPair memory[];
  auto* const shared_x = reinterpret_cast<Complex*>(memory);
  Complex* const shared_y = shared_x + Block::shared_numbers;
  const auto thread = static_cast<int>(threadIdx.x);
  const int blocks_a_channel = arguments.parts / Block::planes;
  const int channel = static_cast<int>(blockIdx.x) / blocks_a_channel;
  const int first_part = static_cast<int>(blockIdx.x) % blocks_a_channel * Block::planes;
  const int images = static_cast<int>(arguments.x.images.value());

  typename Block::Registers sum, v;
  unrolled<Block::points>([&](auto m) { sum[m] = {0, 0}; });
  for (int first = first_part; first < images; first += arguments.parts) {
    const bool there = first + Block::plane_of(thread) < images;
    const auto planes_of = [&](const DepthwisePlanes& planes, const float* source) {
      return [&planes, source, first, images, channel](int of_block) -> const float* {
        return first + of_block < images ? source + planes.at(first + of_block, channel) : nullptr;
      };
    };
    Block::columns(arguments.x.window, planes_of(arguments.x, arguments.source_x), thread, shared_x);
    Block::columns(arguments.y.window, planes_of(arguments.y, arguments.source_y), thread, shared_y);
    __syncthreads();
    if (there) Block::rows(shared_x, thread, v);
    if constexpr (Block::split > 1) __syncthreads();
    if (there) {
      Block::put_bins(v, thread, shared_x);
      Block::rows(shared_y, thread, v);
      const Complex* const bins = Block::bins_of(shared_x, thread);
      multiply_bins<Block>(
          v, thread, [&](auto m) { return bins[static_cast<int>(m)]; },
          [](Complex y, Complex x) { return conjugate(y) * x; });
      unrolled<Block::points>([&](auto m) { sum[m] = sum[m] + v[m]; });
    }
    __syncthreads();
  }
  const std::int64_t place = (first_part + Block::plane_of(thread)) * std::int64_t(arguments.x.channels) + channel;
  Complex* const target = arguments.sums + place * Block::spectrum_numbers;
  unrolled<Block::points>([&](auto m) { target[Block::spectrum_place(thread, m)] = sum[m]; });
}

template <class Block, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, (resident_blocks<Block::threads>(MinBlocks)))
    inverse_sum_kernel(const ConvolveArguments arguments, const Complex* sums, int parts) {
  extern __shared__ ComplexPair memory[];
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t(blockIdx.x) * Block::planes, channel = first + Block::plane_of(thread);
  const bool there = channel < arguments.to.channels;
  typename Block::Registers v;
  if (there) {
    const std::int64_t apart = arguments.to.channels * std::int64_t(Block::spectrum_numbers);
    const Complex* const of_channel = sums + channel * Block::spectrum_numbers;
    unrolled<Block::points>([&](auto m) { v[m] = {0, 0}; });
    for (int part = 0; part < parts; ++part)
      unrolled<Block::points>(
          [&](auto m) { v[m] = v[m] + of_channel[part * apart + Block::spectrum_place(thread, m)]; });
  }
  bins_to_planes<Block>(arguments, first, reinterpret_cast<Complex*>(memory), thread, there, v);
}

template <auto Kernel, class Block, class... Arguments>
void launch_depthwise(Stream& stream, std::int64_t blocks, int planes_in_memory, const Arguments&... arguments) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  const int bytes = planes_in_memory * Block::plane_pitch * static_cast<int>(sizeof(Complex));
  constexpr int granted = 48 << 10;  // more dynamic shared memory needs an opt-in
  if (bytes > granted) twiddle::detail::allow_all_shared_memory(Kernel, stream.device());
  require(blocks < std::int64_t(1) << 31, "depthwise transforms of ", blocks, " blocks are more than a launch takes");
  Kernel<<<static_cast<unsigned>(blocks), Block::threads, static_cast<std::size_t>(bytes), native>>>(arguments...);
  check(cudaGetLastError());
}

template <DepthwiseShape Shape>
DepthwiseKernels depthwise_kernels() {
  using Convolve = DepthwiseBlock<Shape.size, Shape.convolve.split, Shape.convolve.planes>;
  using Correlate = DepthwiseBlock<Shape.size, Shape.correlate.split, Shape.correlate.planes>;
  return {Shape.size,
          Convolve::spectrum_numbers,
          Shape.correlate.planes,
          Shape.correlate.min_blocks,
          [](Stream& stream, const ConvolveArguments& a, Complex* spectra) {
            launch_depthwise<convolve_kernel<Convolve, Shape.convolve.min_blocks>, Convolve>(
                stream, (a.from.count() + Convolve::planes - 1) / Convolve::planes, Convolve::planes, a, spectra);
          },
          [](Stream& stream, const CorrelateArguments& a) {
            launch_depthwise<correlate_kernel<Correlate, Shape.correlate.min_blocks>, Correlate>(
                stream, std::int64_t(a.x.channels) * (a.parts / Correlate::planes), 2 * Correlate::planes, a);
          },
          [](Stream& stream, const InverseSumArguments& a) {
            launch_depthwise<inverse_sum_kernel<Correlate, Shape.correlate.min_blocks>, Correlate>(
                stream, (a.to.channels + Correlate::planes - 1) / Correlate::planes, Correlate::planes,
                ConvolveArguments{.to = a.to, .target = a.target}, a.sums, a.parts);
          }};
}

template <int Group, std::size_t I>
void fill_if_of_depthwise_group(std::vector<DepthwiseKernels>& all) {
  if constexpr (I % depthwise_groups == Group) all[I] = depthwise_kernels<depthwise_shapes[I]>();
}
template <int Group, std::size_t... I>
void fill_group_of_depthwise(std::vector<DepthwiseKernels>& all, std::index_sequence<I...>) {
  (fill_if_of_depthwise_group<Group, I>(all), ...);
}
template <int Group>
void fill_group_of_depthwise(std::vector<DepthwiseKernels>& all) {
  fill_group_of_depthwise<Group>(all, std::make_index_sequence<std::size(depthwise_shapes)>());
}

}  // namespace twiddle::small_fft
