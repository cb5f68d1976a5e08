#pragma once
#include <iterator>
#include <utility>

#include "fft/cuda/depthwise/depthwise_kernels.h"
#include "fft/cuda/depthwise/tuned_on_h200.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"

namespace twiddle::small_fft {

// What a launch of convolve_kernel does: planes to spectra, planes by way of their spectra to planes, sums of spectra
// to planes. One kernel for all, because they share most of their code.
enum class DepthwiseWork { transform, convolve, inverse_sum };

struct DepthwiseArguments {
  DepthwiseWork work;
  DepthwisePlanes from, to;
  const float* source = nullptr;
  float* target = nullptr;
  const Complex* read = nullptr;  // spectra of kernels, or sums
  Complex* write = nullptr;       // spectra
  int parts = 1;
  bool conjugate = false, relu = false;
  const float* bias = nullptr;

  // Of the planes, in the order [channel][image].
  TWIDDLE_HD const DepthwisePlanes& planes() const { return work == DepthwiseWork::inverse_sum ? to : from; }
  TWIDDLE_HD std::int64_t count() const { return std::int64_t(planes().images.value()) * planes().channels; }
  TWIDDLE_HD int image(std::int64_t plane) const { return static_cast<int>(planes().images.remainder(plane)); }
  TWIDDLE_HD int channel(std::int64_t plane) const { return static_cast<int>(planes().images.quotient(plane)); }
};

template <class Block>
TWIDDLE_HD void load_kernel_and_multiply(const DepthwiseArguments& arguments, std::int64_t plane, int thread,
                                         typename Block::Registers& v) {
  const Complex* const kernel = arguments.read + arguments.channel(plane) * std::int64_t(Block::spectrum_numbers);
  const auto of_kernel = [&](auto m) { return kernel[Block::spectrum_place(thread, m)]; };
  const float sign = arguments.conjugate ? -1.f : 1.f;
  multiply_bins<Block>(v, thread, of_kernel, [sign](Complex x, Complex w) { return x * Complex{w.re, sign * w.im}; });
}

template <class Block>
TWIDDLE_HD void sum_parts(const DepthwiseArguments& arguments, std::int64_t plane, int thread,
                          typename Block::Registers& v) {
  const std::int64_t apart = arguments.to.channels * std::int64_t(Block::spectrum_numbers);
  const Complex* const sums = arguments.read + arguments.channel(plane) * std::int64_t(Block::spectrum_numbers);
  unrolled<Block::points>([&](auto m) { v[m] = {0, 0}; });
  for (int part = 0; part < arguments.parts; ++part)
    unrolled<Block::points>([&](auto m) { v[m] = v[m] + sums[part * apart + Block::spectrum_place(thread, m)]; });
}

template <class Block>
TWIDDLE_HD void store_elements(const DepthwiseArguments& arguments, std::int64_t first, const Complex* shared,
                               int thread, const typename Block::Registers& v) {
  const PlaneWindow& window = arguments.to.window;
  const int of_block = Block::stored_plane(window, thread);
  const std::int64_t plane = first + of_block;
  if (of_block >= Block::planes || plane >= arguments.count()) return;
  constexpr float scale = 1.f / (4.f * Block::pairs * Block::pairs);
  const int channel = arguments.channel(plane);
  const float bias = arguments.bias == nullptr ? 0 : arguments.bias[channel];
  float* const target =
      arguments.target + arguments.to.at(arguments.image(plane), channel) - window.top * window.width - window.left;
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

template <class Block, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, (resident_blocks<Block::threads>(MinBlocks)))
    convolve_kernel(const DepthwiseArguments arguments, bool dependents_early) {
  extern __shared__ ComplexPair memory[];
  auto* const shared = reinterpret_cast<Complex*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t(blockIdx.x) * Block::planes, plane = first + Block::plane_of(thread);
  const bool there = plane < arguments.count();
  grid_dependency_wait();
  if (dependents_early) launch_dependents();

  typename Block::Registers v;
  if (arguments.work != DepthwiseWork::inverse_sum) {
    const auto source_of = [&](int of_block) -> const float* {
      const std::int64_t index = first + of_block;
      if (index >= arguments.count()) return nullptr;
      return arguments.source + arguments.from.at(arguments.image(index), arguments.channel(index));
    };
    Block::columns(arguments.from.window, source_of, thread, shared);
    __syncthreads();
    if (there) Block::rows(shared, thread, v);
  }
  if (arguments.work == DepthwiseWork::transform) {
    Complex* const spectrum = arguments.write + plane * Block::spectrum_numbers;
    if (there) unrolled<Block::points>([&](auto m) { spectrum[Block::spectrum_place(thread, m)] = v[m]; });
    return;
  }
  if (there) {
    if (arguments.work == DepthwiseWork::convolve)
      load_kernel_and_multiply<Block>(arguments, plane, thread, v);
    else
      sum_parts<Block>(arguments, plane, thread, v);
  }
  if constexpr (Block::threads > Block::lines) __syncthreads();  // both threads of a row have read it
  if (there) Block::rows_back(v, thread, shared);
  __syncthreads();
  Block::columns_back(arguments.to.window, shared, thread, v);
  if constexpr (Block::threads > Block::lines) {
    __syncthreads();
    Block::put_shares(arguments.to.window, v, thread, shared);
    __syncthreads();
  }
  store_elements<Block>(arguments, first, shared, thread, v);
}

// A block goes through the images of a part, `planes` of them at a time, each of these with a sum of its own. The
// spectrum of x stays in shared memory while that of y's gradient is made in registers.
template <class Block, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, (resident_blocks<Block::threads>(MinBlocks)))
    correlate_kernel(const CorrelateArguments arguments, bool dependents_early) {
  extern __shared__ ComplexPair memory[];
  auto* const shared_x = reinterpret_cast<Complex*>(memory);
  Complex* const shared_y = shared_x + Block::shared_numbers;
  const auto thread = static_cast<int>(threadIdx.x);
  const int channel = static_cast<int>(blockIdx.x) / (arguments.parts / Block::planes);
  const int first_part = static_cast<int>(blockIdx.x) % (arguments.parts / Block::planes) * Block::planes;
  const int images = static_cast<int>(arguments.x.images.value());
  // Part p has images p, p + parts, ...: so the planes of a block are of images that follow each other.
  grid_dependency_wait();
  if (dependents_early) launch_dependents();

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
    if constexpr (Block::threads > Block::lines) __syncthreads();
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
  Complex* const target =
      arguments.sums +
      ((first_part + Block::plane_of(thread)) * std::int64_t(arguments.x.channels) + channel) * Block::spectrum_numbers;
  unrolled<Block::points>([&](auto m) { target[Block::spectrum_place(thread, m)] = sum[m]; });
}

template <class Block, int MinBlocks>
void launch_convolve(Stream& stream, const DepthwiseArguments& arguments) {
  launch_dependent<convolve_kernel<Block, MinBlocks>>(
      stream, (arguments.count() + Block::planes - 1) / Block::planes, Block::threads,
      Block::shared_numbers * static_cast<int>(sizeof(Complex)), arguments);
}

template <DepthwiseShape Shape>
DepthwiseKernels depthwise_kernels() {
  using Block = DepthwiseBlock<Shape.size, Shape.split, Shape.planes>;
  constexpr int convolving = Shape.blocks_convolving, correlating = Shape.blocks_correlating;
  return {
      Shape.size,
      Block::spectrum_numbers,
      Block::planes,
      132 * correlating * Block::planes,
      [](Stream& stream, const TransformArguments& a) {
        launch_convolve<Block, convolving>(
            stream,
            {.work = DepthwiseWork::transform, .from = a.from, .to = a.from, .source = a.source, .write = a.spectra});
      },
      [](Stream& stream, const ConvolveArguments& a) {
        launch_convolve<Block, convolving>(stream, {.work = DepthwiseWork::convolve,
                                                    .from = a.from,
                                                    .to = a.to,
                                                    .source = a.source,
                                                    .target = a.target,
                                                    .read = a.kernels,
                                                    .conjugate = a.conjugate,
                                                    .relu = a.relu,
                                                    .bias = a.bias});
      },
      [](Stream& stream, const CorrelateArguments& a) {
        launch_dependent<correlate_kernel<Block, correlating>>(
            stream, std::int64_t(a.x.channels) * (a.parts / Block::planes), Block::threads,
            2 * Block::shared_numbers * static_cast<int>(sizeof(Complex)), a);
      },
      [](Stream& stream, const InverseSumArguments& a) {
        launch_convolve<Block, convolving>(stream, {.work = DepthwiseWork::inverse_sum,
                                                    .from = a.to,
                                                    .to = a.to,
                                                    .target = a.target,
                                                    .read = a.sums,
                                                    .parts = a.parts});
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
