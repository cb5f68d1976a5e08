#include "layers/cuda/pixel_blocks.h"

#include "layers/moments.h"

namespace twiddle {

namespace {

// A block takes 32 pixels, a warp a row of them, so that its loads lie side by side; `Lanes` warps share the channels.
constexpr int block_pixels = 32, few_lanes = 8, many_lanes = 32, many_channels = 256;

// The sum over the warps of each pixel's `value`, in a fixed order.
template <int Lanes>
__device__ float sum_of_lanes(float (&partial)[Lanes][block_pixels], float value) {
  const int lane = static_cast<int>(threadIdx.y), pixel = static_cast<int>(threadIdx.x);
  partial[lane][pixel] = value;
  __syncthreads();
#pragma unroll
  for (int half = Lanes / 2; half > 0; half /= 2) {
    if (lane < half) partial[lane][pixel] += partial[lane + half][pixel];
    __syncthreads();
  }
  return partial[0][pixel];
}

// The pixel of a thread: its place in [batch, inner], and that of its first channel. Threads past the end take the last
// pixel again and store nothing.
struct BlockPixel {
  bool exists;
  int index;
  std::int64_t at;
  __device__ BlockPixel(const BatchShape& planes, const Divisor& inner) {
    const std::int64_t wanted = std::int64_t(blockIdx.x) * block_pixels + threadIdx.x, last = planes.values() - 1;
    exists = wanted <= last;
    index = static_cast<int>(exists ? wanted : last);
    const std::int64_t image = inner.quotient(index);
    at = image * planes.channels * planes.inner + index - image * planes.inner;
  }
};

template <int Lanes, class T>
__global__ void __launch_bounds__(block_pixels* Lanes) forward_kernel(PixelForward<T> pass, Divisor inner) {
  __shared__ float sums[Lanes][block_pixels], squares[Lanes][block_pixels];
  const BlockPixel pixel(pass.planes, inner);
  const int channels = static_cast<int>(pass.planes.channels), pitch = static_cast<int>(pass.planes.inner);
  const T* const x = pass.x + pixel.at;
  const int lane = static_cast<int>(threadIdx.y);
  const float first = to_float(x[0]);  // what the numbers differ from it adds up without losing digits far from zero
  float sum = 0, square = 0;
#pragma unroll 4
  for (int c = lane; c < channels; c += Lanes) sum += to_float(x[c * pitch]) - first;
  const float mean = first + sum_of_lanes<Lanes>(sums, sum) / static_cast<float>(channels);
#pragma unroll 4
  for (int c = lane; c < channels; c += Lanes) {
    const float difference = to_float(x[c * pitch]) - mean;
    square += difference * difference;
  }
  const float variance = sum_of_lanes<Lanes>(squares, square) / static_cast<float>(channels);
  const float inverse = inverse_deviation(variance, pass.epsilon);
  if (!pixel.exists) return;
  T* const y = pass.y + pixel.at;
#pragma unroll 4
  for (int c = lane; c < channels; c += Lanes)
    y[c * pitch] = from_float<T>((to_float(x[c * pitch]) - mean) * inverse * pass.scale[c] + pass.bias[c]);
  if (lane > 0) return;
  pass.mean[pixel.index] = mean;
  pass.inverse[pixel.index] = inverse;
}

template <int Lanes, class T>
__global__ void __launch_bounds__(block_pixels* Lanes) backward_kernel(PixelBackward<T> pass, Divisor inner) {
  __shared__ float sums[Lanes][block_pixels], products[Lanes][block_pixels];
  const BlockPixel pixel(pass.planes, inner);
  const int channels = static_cast<int>(pass.planes.channels), pitch = static_cast<int>(pass.planes.inner);
  const T *const x = pass.x + pixel.at, *const grad_y = pass.grad_y + pixel.at;
  const float mean = pass.mean[pixel.index], inverse = pass.inverse[pixel.index];
  const int lane = static_cast<int>(threadIdx.y);
  float sum = 0, product = 0;
#pragma unroll 4
  for (int c = lane; c < channels; c += Lanes) {
    const float g = to_float(grad_y[c * pitch]) * pass.scale[c];
    sum += g;
    product += g * (to_float(x[c * pitch]) - mean);
  }
  const float share = sum_of_lanes<Lanes>(sums, sum) / static_cast<float>(channels);
  const float slope = sum_of_lanes<Lanes>(products, product) * inverse * inverse / static_cast<float>(channels);
  if (!pixel.exists) return;
  T* const grad_x = pass.grad_x + pixel.at;
#pragma unroll 4
  for (int c = lane; c < channels; c += Lanes)
    grad_x[c * pitch] = from_float<T>(
        inverse * (to_float(grad_y[c * pitch]) * pass.scale[c] - share - (to_float(x[c * pitch]) - mean) * slope));
}

// The kernel for few or for many channels, if an int can count the pixels and the numbers of an image.
template <class Pass>
bool launch(Stream& stream, void (*few)(Pass, Divisor), void (*many)(Pass, Divisor), const Pass& pass) {
  constexpr std::int64_t limit = std::int64_t(1) << 31;
  const BatchShape& planes = pass.planes;
  if (planes.values() >= limit || planes.channels * planes.inner >= limit) return false;
  const bool is_few = planes.channels < many_channels;
  auto* const kernel = is_few ? few : many;
  kernel<<<detail::blocks_for(planes.values(), block_pixels), dim3(block_pixels, is_few ? few_lanes : many_lanes), 0,
           detail::native(stream)>>>(pass, Divisor(planes.inner));
  detail::check_launch();
  return true;
}

}  // namespace

template <class T>
bool normalize_pixels_in_blocks(Stream& stream, const PixelForward<T>& pass) {
  return launch(stream, &forward_kernel<few_lanes, T>, &forward_kernel<many_lanes, T>, pass);
}

template <class T>
bool normalize_pixels_backward_in_blocks(Stream& stream, const PixelBackward<T>& pass) {
  return launch(stream, &backward_kernel<few_lanes, T>, &backward_kernel<many_lanes, T>, pass);
}

template bool normalize_pixels_in_blocks(Stream&, const PixelForward<float>&);
template bool normalize_pixels_in_blocks(Stream&, const PixelForward<Bf16>&);
template bool normalize_pixels_in_blocks(Stream&, const PixelForward<Half>&);
template bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<float>&);
template bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<Bf16>&);
template bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<Half>&);

}  // namespace twiddle
