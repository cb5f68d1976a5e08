#pragma once
#include "layers/conv/kernels/cuda/depthwise_blocks.h"

// Planes of at most N x N with kernels of any size and stride 1. Blocks use only taps that overlap the plane. x(i, j)
// and y(r, c) are combined by tap (i - r + pad_h, j - c + pad_w): 2 N - 1 taps per row and per column. Each lane of a
// block has one image, so that all threads of a warp read the same taps. Each warp has one row of the results, or one
// in N of the pairs of rows of x and y.
namespace twiddle::depthwise {

template <int N>
struct WholePlane {
  static constexpr int taps = 2 * N - 1, lanes = 32, threads = N * lanes;
  static constexpr int pitch = in_fours(N), tap_pitch = in_fours(taps);
  // From plane to plane an odd number of 16 bytes, so that lanes side by side read from different banks.
  static constexpr int floats = (N * pitch / 4 | 1) * 4;
  TWIDDLE_HD static constexpr Layout layout() { return {N, pitch, floats}; }
  TWIDDLE_HD static constexpr Layout tap_layout() { return {taps, tap_pitch, 0}; }
};

// results(r, c) = bias + sum over (i, j) of taps(i - r + pad_h, j - c + pad_w) planes(i, j). Used for the forward pass,
// and for backward_input with rotated taps and the gradient of y instead of x.
template <int N>
struct WholeCorrelation {
  using Whole = WholePlane<N>;
  static constexpr int threads = Whole::threads;
  static constexpr int staged_floats = Whole::lanes * Whole::floats + Whole::taps * Whole::tap_pitch;
  Planes planes, taps;
  int batch, channels, pad_h, pad_w;
  float* results;
  int height, width;  // of a plane of results
  const float* bias;
  bool relu;

  std::int64_t blocks() const { return std::int64_t((batch + Whole::lanes - 1) / Whole::lanes) * channels; }

  struct Place {
    int image, images, channel;
  };
  TWIDDLE_HD Place place(int block) const {
    const int image = block / channels * Whole::lanes;
    return {image, batch - image < Whole::lanes ? batch - image : Whole::lanes, block % channels};
  }

  struct Row {
    float values[Whole::pitch];
  };

  TWIDDLE_HD void load(const Place& at, const OneThread& thread, float* staged) const {
    stage(planes, {at.image, at.images, at.channel, 0, 0}, Whole::layout(), thread, staged);
    stage(taps, {0, 1, at.channel, pad_h - (N - 1), pad_w - (N - 1)}, Whole::tap_layout(), thread,
          staged + Whole::lanes * Whole::floats);
  }

  TWIDDLE_HD void compute(const Place& at, const OneThread& thread, const float* staged, Row& results_of_row) const {
    const int image = thread.number % Whole::lanes, row = thread.number / Whole::lanes;
    const float added = bias == nullptr ? 0 : bias[at.channel];
    float(&sums)[Whole::pitch] = results_of_row.values;
#pragma unroll
    for (float& sum : sums) sum = added;
    if (image < at.images && row < height) {
      const float* from = staged + image * Whole::floats;
      const float* tap = staged + Whole::lanes * Whole::floats + (N - 1 - row) * Whole::tap_pitch;
#pragma unroll 1
      for (int i = 0; i < planes.height; ++i, from += Whole::pitch, tap += Whole::tap_pitch) {
        float values[Whole::pitch], weights[Whole::tap_pitch];
        load_fours(from, values);
        load_fours(tap, weights);
#pragma unroll
        for (int j = 0; j < N; ++j)
#pragma unroll
          for (int c = 0; c < N; ++c) sums[c] += values[j] * weights[j - c + N - 1];
      }
    }
#pragma unroll
    for (float& sum : sums) sum = relu && sum < 0 ? 0 : sum;
  }

  // To where the planes were, for all threads to store them as they lie in memory.
  TWIDDLE_HD void gather(const OneThread& thread, const Row& row, float* staged) const {
    float* const to =
        staged + thread.number % Whole::lanes * Whole::floats + thread.number / Whole::lanes * Whole::pitch;
#pragma unroll
    for (int c = 0; c < Whole::pitch; c += 4)
      *reinterpret_cast<Four*>(to + c) = {row.values[c], row.values[c + 1], row.values[c + 2], row.values[c + 3]};
  }

  TWIDDLE_HD void store(const Place& at, const OneThread& thread, const float* staged) const {
    const std::int64_t plane = std::int64_t(height) * width, image_floats = channels * plane;
    float* const to = results + at.image * image_floats + at.channel * plane;
    const Share share = share_of(height, width, thread);
    if (share.column >= width) return;
    for (int image = share.image; image < at.images; image += share.more_images)
      for (int row = share.row; row < height; row += share.more_rows)
        to[image * image_floats + row * width + share.column] =
            staged[image * Whole::floats + row * Whole::pitch + share.column];
  }
};

// The gradient of w. Warp t has the pairs of rows whose shift is t, and those whose shift is t - N: N together,
// whatever t is, and each shift has its own row of taps.
template <int N>
struct WholeWeightSums {
  using Whole = WholePlane<N>;
  static constexpr int sums_each = 2 * Whole::taps + 1, images = Whole::lanes;
  static constexpr bool padded = true;
  Planes x, gradient;
  int batch, channels, pad_h, pad_w, kernel_h, kernel_w;
  WeightResults results;
  int rounds = 1;  // a block takes `rounds` times `images`

  TWIDDLE_HD static constexpr int threads() { return Whole::threads; }
  TWIDDLE_HD static constexpr int warps() { return N; }
  TWIDDLE_HD static constexpr int buffer_floats() { return 2 * images * Whole::floats; }
  TWIDDLE_HD int buffers() const {
    constexpr bool two_fit = 2 * buffer_floats() <= 16 << 10;  // 64 KB, that every GPU since Turing has for a block
    return two_fit ? buffers_of(rounds) : 1;
  }
  TWIDDLE_HD int staged_floats() const { return buffers() * buffer_floats(); }
  TWIDDLE_HD int parts() const { return (batch + images * rounds - 1) / (images * rounds); }
  std::int64_t blocks() const { return std::int64_t(parts()) * channels; }

  struct Place {
    int part, channel, image;
  };
  TWIDDLE_HD Place place(int block) const {
    const int part = block / channels;
    return {part, block % channels, part * images * rounds};
  }

  struct Sums {
    float values[sums_each];  // of both rows of taps, and the bias
  };
  struct Share {
    int image, warp;
  };
  TWIDDLE_HD static Share share_of(const OneThread& thread) { return {thread.number % images, thread.number / images}; }

  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }
  TWIDDLE_HD int images_in(const Place& at, int round) const {
    const int left = batch - at.image - round * images;
    return left < images ? left : images;
  }

  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* staged) const {
    const Part part{at.image + round * images, images_in(at, round), at.channel, 0, 0};
    stage(x, part, Whole::layout(), thread, staged);
    stage(gradient, part, Whole::layout(), thread, staged + images * Whole::floats);
  }

  TWIDDLE_HD void add(const Place& at, int round, const OneThread&, const Share& share, const float* staged,
                      Sums& sums) const {
    const auto [image, warp] = share;
    if (image >= images_in(at, round)) return;
    const float* const of_x = staged + image * Whole::floats;
    const float* const of_gradient = of_x + images * Whole::floats;
    add_pairs<0>(of_x + warp * Whole::pitch, of_gradient, x.height - warp, gradient.height, sums);
    const int skipped = N - warp;
    add_pairs<Whole::taps>(of_x, of_gradient + skipped * Whole::pitch, x.height, gradient.height - skipped, sums);
    if (!results.sums_bias() || warp != 0) return;
    for (int row = 0; row < gradient.height; ++row)
#pragma unroll
      for (int c = 0; c < N; ++c) sums.values[2 * Whole::taps] += of_gradient[row * Whole::pitch + c];
  }

  // `staged` holds what the threads of each warp have summed together. Taps that meet no plane are zero.
  TWIDDLE_HD void store(const Place& at, const OneThread& thread, const float* staged) const {
    const int all = kernel_h * kernel_w;
    for (int i = thread.number; i <= all; i += thread.of) {
      const int shift = i / kernel_w - pad_h, column = i % kernel_w - pad_w + N - 1;
      const int warp = shift >= 0 ? shift : shift + N;
      const bool meets = shift > -N && shift < N && column >= 0 && column < Whole::taps;
      const int place = i == all ? 2 * Whole::taps : warp * sums_each + (shift >= 0 ? 0 : Whole::taps) + column;
      results.store(at.part, parts(), at.channel, channels, i, all, meets || i == all ? staged[place] : 0);
    }
  }

 private:
  // Combines rows of x with rows of the gradient, as far as both exist.
  template <int First>
  TWIDDLE_HD static void add_pairs(const float* of_x, const float* of_gradient, int rows_of_x, int rows_of_gradient,
                                   Sums& sums) {
    const int rows = rows_of_x < rows_of_gradient ? rows_of_x : rows_of_gradient;
#pragma unroll 1
    for (int row = 0; row < rows; ++row, of_x += Whole::pitch, of_gradient += Whole::pitch) {
      float values[Whole::pitch], gradients[Whole::pitch];
      load_fours(of_x, values);
      load_fours(of_gradient, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int c = 0; c < N; ++c) sums.values[First + j - c + N - 1] += values[j] * gradients[c];
    }
  }
};

}  // namespace twiddle::depthwise
