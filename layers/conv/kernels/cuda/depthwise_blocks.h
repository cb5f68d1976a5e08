#pragma once
#include "layers/conv/kernels/cuda/depthwise_staging.h"

// Depthwise kernels of up to 11 x 11: what the threads of one block do, in phases: between two of them is a barrier. A
// kernel runs them on a GPU (depthwise.cu), a test on a CPU, thread after thread.
//
// A block takes one channel: some images of it, or a tile of one image. It stages padded planes and the channel's taps
// in shared memory, where a float is read by many threads, and each thread computes a patch of results in registers, so
// that a float that it reads serves several multiply-adds.
namespace twiddle::depthwise {

// Floats by which rows of planes begin earlier than a window of K columns: with the usual padding of K / 2, rows of a
// plane then lie in shared memory as they do in global memory, as far as 16 bytes go.
template <int K>
constexpr int lead = (4 - K / 2 % 4) % 4;

// A block of several rounds has the planes of one brought to one buffer while it computes with the other.
TWIDDLE_HD constexpr int buffers_of(int rounds) {
  return rounds > 1 ? 2 : 1;
}

// A thread computes patch_h x patch_w results: neighbours along a row are neighbours in memory, and of a tall patch
// each row of the planes that is read serves up to K rows of results.
constexpr int patch_w = 4;
template <int K>
constexpr int patch_h = K <= 7 ? 7 : 4;

// results(r, c) = bias + sum over (i, j) of taps(i, j) planes(r S - pad_h + i, c S - pad_w + j), for K x K taps. Used
// for the forward pass, and for backward_input with rotated taps and the gradient of y instead of x.
template <int K, int S>
struct Correlation {
  static constexpr int R = patch_h<K>;  // rows of a patch
  Planes planes, taps;
  int batch, channels, pad_h, pad_w;
  float* results;
  int height, width;  // of a plane of results
  const float* bias;
  bool relu;
  int tile_h = R, tile_w = patch_w, images = 1, rounds = 1;  // of a block: a tile of each of `rounds` times `images`

  static constexpr int tap_pitch = in_fours(K), tap_floats = K * tap_pitch;

  TWIDDLE_HD int taps_staged() const { return tap_floats; }
  TWIDDLE_HD int tiles_h() const { return (height + tile_h - 1) / tile_h; }
  TWIDDLE_HD int tiles_w() const { return (width + tile_w - 1) / tile_w; }
  TWIDDLE_HD int across() const { return tile_w / patch_w; }
  TWIDDLE_HD int patches() const { return tile_h / R * across(); }
  TWIDDLE_HD int threads() const { return in_warps(images * patches()); }
  // The patches of adjacent images are read from different banks.
  static constexpr int most_padding = 4 * 7;
  TWIDDLE_HD Layout layout() const {
    const int rows = (tile_h - 1) * S + K, pitch = in_fours(lead<K> + (tile_w - 1) * S + K), fours = rows * pitch / 4;
    return {rows, pitch, 4 * (fours + ((across() - fours) & 7))};
  }
  TWIDDLE_HD int buffer_floats() const { return images * layout().plane; }
  TWIDDLE_HD int buffers() const { return buffers_of(rounds); }
  TWIDDLE_HD int staged_floats() const { return tap_floats + buffers() * buffer_floats(); }
  std::int64_t blocks() const {
    return std::int64_t((batch + images * rounds - 1) / (images * rounds)) * channels * tiles_h() * tiles_w();
  }

  struct Place {
    int image, channel, row, column;  // the first result of a block, or of a patch
  };
  TWIDDLE_HD Place place(int block) const {
    const int across = tiles_w(), tiles = across * tiles_h(), plane = block / tiles, tile = block % tiles;
    return {plane / channels * images * rounds, plane % channels, tile / across * tile_h, tile % across * tile_w};
  }

  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }

  TWIDDLE_HD void load_taps(const Place& at, const OneThread& thread, float* staged) const {
    stage(taps, {0, 1, at.channel, 0, 0}, {K, tap_pitch, 0}, thread, staged);
  }

  TWIDDLE_HD Part part(const Place& at, int round) const {
    const int first = at.image + round * images, left = batch - first;
    return {first, left < images ? left : images, at.channel, at.row * S - pad_h, at.column * S - pad_w - lead<K>};
  }
  // A thread's loads in each round. For 3 x 3 kernels there are not enough registers to keep them, as the compiler
  // issues most loads at once.
  TWIDDLE_HD auto loads_of(const Place& at, const OneThread& thread) const {
    if constexpr (K == 3)
      return thread;
    else
      return copies_of(planes, part(at, 0), layout(), thread);
  }
  template <class Loads>
  TWIDDLE_HD void load(const Place& at, int round, const Loads& loads, float* buffer) const {
    stage(planes, part(at, round), layout(), loads, buffer);
  }

  // A thread's results, counted from the first of its block and round.
  TWIDDLE_HD Place patch_of(const OneThread& thread) const {
    const int column = thread.number % across(), other = thread.number / across();
    return {other % images, 0, other / images * R, column * patch_w};
  }

  TWIDDLE_HD void compute(const Place& at, int round, const Place& patch, const float* buffer,
                          const float* staged_taps) const {
    const Place first{at.image + round * images + patch.image, at.channel, at.row + patch.row,
                      at.column + patch.column};
    if (patch.row >= tile_h || first.image >= batch || first.row >= height || first.column >= width) return;
    const int pitch = layout().pitch;
    Patch sums;
    const float added = bias == nullptr ? 0 : bias[at.channel];
#pragma unroll
    for (auto& sums_of_row : sums)
#pragma unroll
      for (float& sum : sums_of_row) sum = added;
    add_products(buffer + patch.image * layout().plane + patch.row * S * pitch + patch.column * S, pitch, staged_taps,
                 sums);
    store(first, sums);
  }

 private:
  using Patch = float[R][patch_w];

  TWIDDLE_HD static void add_products(const float* window, int pitch, const float* tap, Patch& sums) {
    constexpr int rows = (R - 1) * S + K, columns = in_fours(lead<K> + (patch_w - 1) * S + K);
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      float values[columns];
      load_fours(window + row * pitch, values);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const int ky = row - r * S;
        if (ky < 0 || ky >= K) continue;
        float weights[tap_pitch];
        load_fours(tap + ky * tap_pitch, weights);
#pragma unroll
        for (int kx = 0; kx < K; ++kx)
#pragma unroll
          for (int c = 0; c < patch_w; ++c) sums[r][c] += weights[kx] * values[lead<K> + c * S + kx];
      }
    }
  }

  TWIDDLE_HD void store(const Place& first, Patch& sums) const {
    if (relu)
#pragma unroll
      for (auto& sums_of_row : sums)
#pragma unroll
        for (float& sum : sums_of_row) sum = sum < 0 ? 0 : sum;
    float* const to =
        results + ((std::int64_t(first.image) * channels + first.channel) * height + first.row) * width + first.column;
    if (rows_hold<Four>(results, width))
      store_as<Four>(to, first, sums);
    else if (rows_hold<Two>(results, width))
      store_as<Two>(to, first, sums);
    else
      store_as<float>(to, first, sums);
  }

  // What lies in the plane of a patch, of which each row is one number or some.
  template <class Number>
  TWIDDLE_HD void store_as(float* to, const Place& first, const Patch& sums) const {
    constexpr int wide = floats_in<Number>;
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int c = 0; c < patch_w; c += wide) {
        if (first.row + r >= height || first.column + c >= width) continue;
        alignas(Number) float stored[wide];
#pragma unroll
        for (int k = 0; k < wide; ++k) stored[k] = sums[r][c + k];
        *reinterpret_cast<Number*>(to + r * width + c) = *reinterpret_cast<const Number*>(stored);
      }
  }
};

// Where the sums of a channel go, [tap, bias]: to the gradients of w and bias, or, of one part among several, to what
// SumParts adds up.
struct WeightResults {
  float *weight, *bias;  // bias: or null
  float* partial;        // [part][channel][tap, bias]
  TWIDDLE_HD bool sums_bias() const { return bias != nullptr; }
  TWIDDLE_HD void store(int part, int parts, int channel, int channels, int place, int taps, float sum) const {
    if (parts > 1)
      partial[(std::int64_t(part) * channels + channel) * (taps + 1) + place] = sum;
    else if (place < taps)
      weight[std::int64_t(channel) * taps + place] = sum;
    else if (sums_bias())
      bias[channel] = sum;
  }
};

// The gradient of w: each tap is a sum over images, rows and columns. A thread takes a strip of the gradient of y, four
// columns wide, and some rows of x, and holds the sums of G rows of taps in registers: a row of x meets G rows of the
// gradient, and with the next row of x all but one of them again. Then warps and blocks add up, in a fixed order.
template <int K, int G>
struct WeightSums {
  Planes x, gradient;
  int batch, channels, pad_h, pad_w, kernel_h, kernel_w;
  WeightResults results;
  int rows = 1, strips = 1;    // of a block: rows of x, and strips of the gradient
  int segment_rows = 1;        // of a thread
  int images = 1, rounds = 1;  // a block takes `rounds` times `images`

  static constexpr int strip = 4, lanes = 32, sums_each = G * K + 1;
  static constexpr bool padded = true;

  TWIDDLE_HD int groups() const { return (kernel_h + G - 1) / G; }  // of G rows of taps
  TWIDDLE_HD int segments() const { return (rows + segment_rows - 1) / segment_rows; }
  TWIDDLE_HD int items() const { return images * segments() * strips; }  // of each group
  TWIDDLE_HD int group_threads() const { return in_warps(items()); }
  TWIDDLE_HD int threads() const { return groups() * group_threads(); }
  TWIDDLE_HD int warps() const { return threads() / lanes; }
  TWIDDLE_HD int bands() const { return (x.height + rows - 1) / rows; }
  TWIDDLE_HD int gradient_width() const { return (gradient.width - 1) * gradient.spread + 1; }
  TWIDDLE_HD int tiles() const { return bands() * across(); }
  TWIDDLE_HD int across() const { return (gradient_width() + strips * strip - 1) / (strips * strip); }
  TWIDDLE_HD int slices() const { return (batch + images * rounds - 1) / (images * rounds); }
  TWIDDLE_HD int parts() const { return slices() * tiles(); }
  std::int64_t blocks() const { return std::int64_t(parts()) * channels; }

  TWIDDLE_HD int rows_above() const { return groups() * G - 1; }  // rows of the gradient that the first row of x meets
  TWIDDLE_HD Layout x_layout() const {
    const int pitch = in_fours(lead<K> + strips * strip - 1 + K);
    return {rows, pitch, rows * pitch};
  }
  TWIDDLE_HD Layout gradient_layout() const {
    const int met = rows + rows_above(), pitch = strips * strip;
    return {met, pitch, met * pitch};
  }
  TWIDDLE_HD int buffer_floats() const { return images * (x_layout().plane + gradient_layout().plane); }
  TWIDDLE_HD int buffers() const { return buffers_of(rounds); }
  TWIDDLE_HD int staged_floats() const {
    const int planes = buffers() * buffer_floats(), sums = warps() * sums_each;
    return planes > sums ? planes : sums;
  }

  struct Place {
    int part, channel, image, row, column;  // of the gradient's columns
  };
  TWIDDLE_HD Place place(int block) const {
    const int plane = block / tiles(), tile = block % tiles(), slice = plane / channels;
    return {slice * tiles() + tile, plane % channels, slice * images * rounds, tile / across() * rows,
            tile % across() * strips * strip};
  }

  struct Sums {
    float values[sums_each];  // of G rows of K taps, and the bias
  };

  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }
  TWIDDLE_HD int images_in(const Place& at, int round) const {
    const int left = batch - at.image - round * images;
    return left < images ? left : images;
  }

  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* staged) const {
    const int first = at.image + round * images, here = images_in(at, round);
    stage(x, {first, here, at.channel, at.row, at.column - pad_w - lead<K>}, x_layout(), thread, staged);
    stage(gradient, {first, here, at.channel, at.row + pad_h - rows_above(), at.column}, gradient_layout(), thread,
          staged + images * x_layout().plane);
  }

  // What a thread sums in each round.
  struct Share {
    int group, image, segment, column;
  };
  TWIDDLE_HD Share share_of(const OneThread& thread) const {
    const int item = thread.number % group_threads(), column = item % strips * strip, other = item / strips;
    return {thread.number / group_threads(), other / segments(), other % segments(), column};
  }

  TWIDDLE_HD void add(const Place& at, int round, const OneThread& thread, const Share& share, const float* staged,
                      Sums& sums) const {
    const Layout of_x = x_layout(), of_gradient = gradient_layout();
    const float* const gradients = staged + images * of_x.plane;
    if (results.sums_bias()) add_bias(at, images_in(at, round), thread, gradients, sums.values[G * K]);
    const auto [group, image, segment, column] = share;
    if (image >= images_in(at, round)) return;
    const int begin = segment * segment_rows, end = begin + segment_rows < rows ? begin + segment_rows : rows;
    const float* from = staged + image * of_x.plane + begin * of_x.pitch + column;
    const float* above =
        gradients + image * of_gradient.plane + (begin + rows_above() - group * G) * of_gradient.pitch + column;
    float met[G][strip];  // rows of the gradient that the row of x meets: row g by taps of row g
#pragma unroll
    for (int g = 0; g + 1 < G; ++g) load_fours(above - (g + 1) * of_gradient.pitch, met[g]);
#pragma unroll 1
    for (int row = begin; row < end; ++row, from += of_x.pitch, above += of_gradient.pitch) {
#pragma unroll
      for (int g = G - 1; g > 0; --g)
#pragma unroll
        for (int c = 0; c < strip; ++c) met[g][c] = met[g - 1][c];
      load_fours(above, met[0]);
      float values[in_fours(lead<K> + strip - 1 + K)];
      load_fours(from, values);
#pragma unroll
      for (int g = 0; g < G; ++g)
#pragma unroll
        for (int kx = 0; kx < K; ++kx)
#pragma unroll
          for (int c = 0; c < strip; ++c) sums.values[g * K + kx] += met[g][c] * values[lead<K> + c + kx];
    }
  }

  // `staged` holds what the threads of each warp have summed together.
  TWIDDLE_HD void store(const Place& at, const OneThread& thread, const float* staged) const {
    const int taps = kernel_h * kernel_w, group_warps = group_threads() / lanes;
    for (int i = thread.number; i <= taps; i += thread.of) {
      const bool is_tap = i < taps;
      const int row = i / kernel_w, column = i % kernel_w, group = is_tap ? row / G : 0;
      const int place = is_tap ? row % G * K + column : G * K, first = group * group_warps;
      const int last = is_tap ? first + group_warps : warps();
      float sum = 0;
      for (int other = first; other < last; ++other) sum += staged[other * sums_each + place];
      results.store(at.part, parts(), at.channel, channels, i, taps, sum);
    }
  }

 private:
  // Bands share rows of the gradient; each sums those that no other does.
  TWIDDLE_HD void add_bias(const Place& at, int here, const OneThread& thread, const float* gradients,
                           float& bias) const {
    const Layout layout = gradient_layout();
    const int skipped = at.row == 0 ? 0 : rows_above() * layout.pitch, own = layout.plane - skipped;
    for (int image = 0; image < here; ++image)
      for (int i = 4 * thread.number; i < own; i += 4 * thread.of) {
        float four[4];
        load_fours(gradients + image * layout.plane + skipped + i, four);
        bias += four[0] + four[1] + (four[2] + four[3]);
      }
  }
};

// Sums of one channel of all parts, by reduce_columns.
struct SumParts {
  const float* partial;
  std::int64_t columns;
  Divisor sums_each;  // the taps and the bias
  float *weight, *bias;
  TWIDDLE_HD float term(std::int64_t part, std::int64_t column) const { return partial[part * columns + column]; }
  TWIDDLE_HD void store(std::int64_t column, double sum) const {
    const std::int64_t channel = sums_each.quotient(column), taps = sums_each.value() - 1;
    const std::int64_t tap = column - channel * (taps + 1);
    if (tap < taps)
      weight[channel * taps + tap] = static_cast<float>(sum);
    else if (bias != nullptr)
      bias[channel] = static_cast<float>(sum);
  }
};

}  // namespace twiddle::depthwise
