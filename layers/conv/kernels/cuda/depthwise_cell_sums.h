#pragma once
#include "layers/conv/kernels/cuda/depthwise_cells.h"

// The gradient of w of planes of 7 x 7 and 14 x 14 that keep their size: what the threads of one block do with cells of
// x and of the gradient of y, as they lie in memory.
namespace twiddle::depthwise {

// sums(kx) += sum over c of gradients(c) values(c + kx - K / 2), as far as there are values.
template <int N, int K>
TWIDDLE_HD void add_row_of_taps(const float* values, const float* gradients, float* sums) {
#pragma unroll
  for (int c = 0; c < N; ++c)
#pragma unroll
    for (int kx = 0; kx < K; ++kx)
      if (c + kx - K / 2 >= 0 && c + kx - K / 2 < N) sums[kx] += gradients[c] * values[c + kx - K / 2];
}

// The images of a block's round.
template <class Sums>
TWIDDLE_HD Part part_of_round(const Sums& sums, const typename Sums::Place& at, int round) {
  const int first = at.image + round * sums.images, left = sums.batch - first;
  return {first, left < sums.images ? left : sums.images, at.channel, 0, 0};
}

// Loads their cells of x, then those of the gradient of y.
template <class Sums>
TWIDDLE_HD void load_cells(const Sums& sums, const Part& part, const OneThread& thread, float* staged) {
  stage_runs<cell_floats>(sums.x, part, thread, staged);
  stage_runs<cell_floats>(sums.gradient, part, thread, staged + sums.images * cell_floats);
}

// The sums of K x K taps, K < N: a warp has two neighbouring rows of the gradient of y, and all taps in registers.
template <int N, int K>
struct TwoRowSums {
  static constexpr int plane_side = N, warps = N / 2, blocks_at_once = 3, sums_each = K * K + 1;  // the last: the bias
  static constexpr bool two_buffers = false;  // they would reduce the number of resident blocks

  TWIDDLE_HD static void add(const float* of_x, const float* of_gradient, int warp, bool sums_bias,
                             float (&sums)[sums_each]) {
    float gradients[2 * N];
    load_fours(of_gradient + warp * 2 * N, gradients);
    if (sums_bias)
#pragma unroll
      for (const float value : gradients) sums[K * K] += value;
    for_each_distance<K>([&]<int D>() {
      if (warp + D < 0 || warp + D >= N / 2) return;
      float values[2 * N];
      load_fours(of_x + (warp + D) * 2 * N, values);
      for_each_overlap<K, D>(
          [&](int i, int r, int ky) { add_row_of_taps<N, K>(values + i * N, gradients + r * N, sums + ky * K); });
    });
  }

  // Returns the sum of all warps for a tap at this offset from the middle one, or for the bias.
  TWIDDLE_HD static float tap(const float* of_warps, int down, int across) {
    return over_warps(of_warps + (down + K / 2) * K + across + K / 2);
  }
  TWIDDLE_HD static float bias(const float* of_warps) {
    return over_warps(of_warps + K * K);
  }

 private:
  TWIDDLE_HD static float over_warps(const float* of_first) {
    float sum = 0;
    for (int warp = 0; warp < warps; ++warp) sum += of_first[warp * sums_each];
    return sum;
  }
};

// The sums of all taps that overlap a plane: warp t has the pairs of rows of x and of the gradient of y whose shift is
// t, and those whose shift is t - N: N together, whatever t is, and each shift has its own row of taps.
template <int N>
struct ShiftSums {
  static_assert(N % 4 == 2);
  static constexpr int taps = 2 * N - 1;
  static constexpr int plane_side = N, warps = N, blocks_at_once = 1, sums_each = 2 * taps + 1;  // the last: the bias
  static constexpr bool two_buffers = true;

  TWIDDLE_HD static void add(const float* of_x, const float* of_gradient, int warp, bool sums_bias,
                             float (&sums)[sums_each]) {
    const int left = N - warp;
    if (warp % 2 == 0) {
      add_pairs<0, 0>(of_x + warp * N, of_gradient, left, sums);
      add_pairs<0, 0>(of_x, of_gradient + left * N, warp, sums + taps);
    } else {
      add_pairs<1, 0>(of_x + warp * N, of_gradient, left, sums);
      add_pairs<0, 1>(of_x, of_gradient + left * N, warp, sums + taps);
    }
    if (!sums_bias || warp != 0) return;
    for (int i = 0; i < N * N; i += 4) {
      float four[4];
      load_fours(of_gradient + i, four);
      sums[2 * taps] += four[0] + four[1] + (four[2] + four[3]);
    }
  }

  TWIDDLE_HD static float tap(const float* of_warps, int down, int across) {
    if (down <= -N || down >= N || across <= -N || across >= N) return 0;
    return of_warps[(down < 0 ? down + N : down) * sums_each + (down < 0 ? taps : 0) + across + N - 1];
  }
  TWIDDLE_HD static float bias(const float* of_warps) { return of_warps[2 * taps]; }

 private:
  // Rows of x and of the gradient; the template arguments are 1 if the first row is odd. Odd rows start two floats
  // after a 16-byte boundary.
  template <int OddX, int OddGradient>
  TWIDDLE_HD static void add_pairs(const float* of_x, const float* of_gradient, int rows, float* sums) {
#pragma unroll 1
    for (int row = 0; row < rows; row += 2, of_x += 2 * N, of_gradient += 2 * N) {
      add_pair<OddX, OddGradient>(of_x, of_gradient, sums);
      if (row + 1 < rows) add_pair<1 - OddX, 1 - OddGradient>(of_x + N, of_gradient + N, sums);
    }
  }
  template <int OddX, int OddGradient>
  TWIDDLE_HD static void add_pair(const float* of_x, const float* of_gradient, float* sums) {
    float values[N + 2], gradients[N + 2];
    load_fours(of_x - 2 * OddX, values);
    load_fours(of_gradient - 2 * OddGradient, gradients);
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
      for (int c = 0; c < N; ++c) sums[j - c + N - 1] += values[j + 2 * OddX] * gradients[c + 2 * OddGradient];
  }
};

// The gradient of w of N x N planes, a cell each: each lane has another image.
template <class Work>
struct CellWeightSums {
  static constexpr int N = Work::plane_side, images = lanes_of_warp, sums_each = Work::sums_each;
  static constexpr bool padded = false;
  Planes x, gradient;
  int batch, channels, pad_h, pad_w, kernel_h, kernel_w;
  WeightResults results;
  int rounds = 1;            // a block takes `rounds` times `images`
  bool two_buffers = false;  // where there is shared memory for two, and it pays

  TWIDDLE_HD static constexpr int warps() { return Work::warps; }
  TWIDDLE_HD static constexpr int threads() { return warps() * lanes_of_warp; }
  TWIDDLE_HD static constexpr int buffer_floats() { return 2 * images * cell_floats; }
  TWIDDLE_HD int buffers() const { return two_buffers ? buffers_of(rounds) : 1; }
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
    float values[sums_each];
  };
  struct Share {
    int image, warp;
  };
  TWIDDLE_HD static Share share_of(const OneThread& thread) {
    return {thread.number % lanes_of_warp, thread.number / lanes_of_warp};
  }

  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }
  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* staged) const {
    load_cells(*this, part_of_round(*this, at, round), thread, staged);
  }

  TWIDDLE_HD void add(const Place& at, int round, const OneThread&, const Share& share, const float* staged,
                      Sums& sums) const {
    if (share.image >= part_of_round(*this, at, round).images) return;
    const float* const of_x = staged + share.image * cell_floats;
    Work::add(of_x, of_x + images * cell_floats, share.warp, results.sums_bias(), sums.values);
  }

  // `staged` holds what the threads of each warp have summed together.
  TWIDDLE_HD void store(const Place& at, const OneThread& thread, const float* staged) const {
    const int taps = kernel_h * kernel_w;
    for (int i = thread.number; i <= taps; i += thread.of) {
      const int down = i / kernel_w - kernel_h / 2, across = i % kernel_w - kernel_w / 2;
      const float sum = i < taps ? Work::tap(staged, down, across) : Work::bias(staged);
      results.store(at.part, parts(), at.channel, channels, i, taps, sum);
    }
  }
};

// The gradient of w of 7 x 7 planes. Each lane has another channel of a cell or another image: with 49 and 196 floats
// to the next, all of them read from different banks. Warps share the pairs of rows of x and of the gradient of y by
// their shift, as in ShiftSums.
template <int N, int K>
struct ChannelWeightSums {
  static_assert(N == 7);
  static constexpr int channels_each = planes_of_cell<N>, images_of_warp = lanes_of_warp / channels_each;
  static constexpr int warps_of_shift = 2, images = images_of_warp * warps_of_shift;
  static constexpr int blocks_at_once = 2, pads = K / 2;
  static constexpr int rows_of_taps = K > N ? 2 : 1, sums_each = rows_of_taps * K + 1;
  static constexpr bool padded = false;
  Planes x, gradient;
  int batch, channels, pad_h, pad_w, kernel_h, kernel_w;
  WeightResults results;
  int rounds = 1;  // a block takes `rounds` times `images`

  TWIDDLE_HD static constexpr int threads() { return N * warps_of_shift * lanes_of_warp; }
  TWIDDLE_HD static constexpr int buffer_floats() { return 2 * images * cell_floats; }
  TWIDDLE_HD int buffers() const { return buffers_of(rounds); }
  TWIDDLE_HD int staged_floats() const {
    const int planes = buffers() * buffer_floats(), sums = in_fours(sum_pitch() * sums_each);
    return planes > sums ? planes : sums;
  }
  TWIDDLE_HD int parts() const { return (batch + images * rounds - 1) / (images * rounds); }
  TWIDDLE_HD int groups() const { return channels / channels_each; }
  std::int64_t blocks() const { return std::int64_t(parts()) * groups(); }

  struct Place {
    int part, channel, image;
  };
  TWIDDLE_HD Place place(int block) const {
    const int part = block / groups();
    return {part, block % groups() * channels_each, part * images * rounds};
  }

  struct Sums {
    float values[sums_each];  // of one row of taps or two, and the bias
  };
  struct Share {
    int shift, image, channel;
  };
  TWIDDLE_HD static Share share_of(const OneThread& thread) {
    const int lane = thread.number % lanes_of_warp, warp = thread.number / lanes_of_warp;
    return {warp % N, warp / N * images_of_warp + lane / channels_each, lane % channels_each};
  }

  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }
  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* staged) const {
    load_cells(*this, part_of_round(*this, at, round), thread, staged);
  }

  TWIDDLE_HD void add(const Place& at, int round, const Share& share, const float* staged, Sums& sums) const {
    const auto [shift, image, channel] = share;
    if (image >= part_of_round(*this, at, round).images) return;
    const float* const of_x = staged + image * cell_floats + channel * N * N;
    const float* const of_gradient = of_x + images * cell_floats;
    if (shift <= pads) add_pairs(of_x + shift * N, of_gradient, N - shift, sums.values);
    if (N - shift <= pads) add_pairs(of_x, of_gradient + (N - shift) * N, shift, sums.values + (rows_of_taps - 1) * K);
    if (shift != 0 || !results.sums_bias()) return;
#pragma unroll
    for (int i = 0; i < N * N; ++i) sums.values[sums_each - 1] += of_gradient[i];
  }

  // [sum][thread]: one float more than threads, so that neighbours among taps lie in different banks.
  TWIDDLE_HD static constexpr int sum_pitch() {
    return threads() + 1;
  }
  TWIDDLE_HD void gather(const OneThread& thread, const Sums& sums, float* staged) const {
#pragma unroll
    for (int i = 0; i < sums_each; ++i) staged[i * sum_pitch() + thread.number] = sums.values[i];
  }
  TWIDDLE_HD void store(const Place& at, const OneThread& thread, const float* staged) const {
    const int taps = kernel_h * kernel_w;
    for (int i = thread.number; i < channels_each * (taps + 1); i += thread.of) {
      const int channel = i / (taps + 1), tap = i % (taps + 1);
      const int down = tap / kernel_w - kernel_h / 2, across = tap % kernel_w - kernel_w / 2;
      const bool meets = down >= -pads && down <= pads && across >= -pads && across <= pads;
      const int shift = down >= 0 ? down : down + N, first = down >= 0 ? 0 : (rows_of_taps - 1) * K;
      float sum = 0;
      if (tap == taps)
        sum = sum_of(staged + (sums_each - 1) * sum_pitch(), 0, channel);
      else if (meets)
        sum = sum_of(staged + (first + across + pads) * sum_pitch(), shift, channel);
      results.store(at.part, parts(), at.channel + channel, channels, tap, taps, sum);
    }
  }

 private:
  TWIDDLE_HD static void add_pairs(const float* of_x, const float* of_gradient, int rows, float* sums) {
#pragma unroll 1
    for (int row = 0; row < rows; ++row, of_x += N, of_gradient += N) {
      float values[N], gradients[N];
#pragma unroll
      for (int c = 0; c < N; ++c) values[c] = of_x[c], gradients[c] = of_gradient[c];
      add_row_of_taps<N, K>(values, gradients, sums);
    }
  }

  // Over all images of the block.
  TWIDDLE_HD static float sum_of(const float* of_threads, int shift, int channel) {
    float sum = 0;
    for (int warp = shift; warp < N * warps_of_shift; warp += N)
#pragma unroll
      for (int image = 0; image < images_of_warp; ++image)
        sum += of_threads[warp * lanes_of_warp + image * channels_each + channel];
    return sum;
  }
};

}  // namespace twiddle::depthwise
