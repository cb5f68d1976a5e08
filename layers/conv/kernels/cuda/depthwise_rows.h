#pragma once
#include "layers/conv/kernels/cuda/depthwise_blocks.h"

// Planes of one row under kernels of one row, of any length: what the threads of one block do, as in
// depthwise_blocks.h. Rows have no neighbours above that would share what is read; here a float that a thread reads
// serves eight multiply-adds, of neighbouring results or of neighbouring taps.
namespace twiddle::depthwise {

constexpr int row_step = 4, row_sums = 8;  // floats of a load, and sums of a thread

// Zeros before the first tap, so that a window begins where 16 bytes divide.
TWIDDLE_HD inline int lead_of_row(int pad) {
  return -pad & (row_step - 1);
}

// The rows of some images to shared memory that was cleared, or holds the same columns of others.
TWIDDLE_HD inline void stage_rows(const Planes& planes, const Part& part, int pitch, const OneThread& thread,
                                  float* staged) {
  const Range columns = held(planes.width, 1, part.column, pitch);
  const int bits = copied_together(planes, part), across = (columns.end - columns.begin) >> bits;
  const int step = planes.turned ? -1 : 1, first = planes.turned ? planes.width - 1 : 0;
  for (int image = 0; image < part.images; ++image) {
    const std::int64_t row = (part.image + image) * planes.image + part.channel * planes.channel + first;
    float* const to = staged + image * pitch - part.column;
    for (int i = thread.number; i < across; i += thread.of) {
      const int x = columns.begin + (i << bits);
      const std::int64_t from = row + step * x;
      if (planes.mask != nullptr)
        to[x] = planes.mask[from] > 0 ? planes.values[from] : 0;
      else if (bits == 2)
        copy<Four>(planes.values + from, to + x);
      else if (bits == 1)
        copy<Two>(planes.values + from, to + x);
      else
        copy<float>(planes.values + from, to + x);
    }
  }
}

// A window of twelve floats over a row, which moves on by four.
struct RowWindow {
  float values[row_sums + row_step];

  TWIDDLE_HD void begin(const float* from) {
    float first[row_sums];
    load_fours(from, first);
#pragma unroll
    for (int i = 0; i < row_sums; ++i) values[i + row_step] = first[i];
  }
  TWIDDLE_HD void move(const float* from) {
    float next[row_step];
    load_fours(from, next);
#pragma unroll
    for (int i = 0; i < row_sums; ++i) values[i] = values[i + row_step];
#pragma unroll
    for (int i = 0; i < row_step; ++i) values[row_sums + i] = next[i];
  }
  // sums(r) += sum over j of factors(j) values(r + j)
  TWIDDLE_HD void add(const float (&factors)[row_step], float* sums) const {
#pragma unroll
    for (int j = 0; j < row_step; ++j)
#pragma unroll
      for (int r = 0; r < row_sums; ++r) sums[r] += factors[j] * values[r + j];
  }
};

// results(c) = bias + sum over j of taps(j) planes(c - pad + j): the forward pass and, with turned taps,
// backward_input.
struct RowCorrelation {
  Planes planes, taps;
  int batch, channels, pad_h, pad_w;  // pad_h: 0
  float* results;
  int height, width;
  const float* bias;
  bool relu;
  int tile = row_sums, images = 1, rounds = 1;  // of a block: a tile of each of `rounds` times `images`

  TWIDDLE_HD int lead() const { return lead_of_row(pad_w); }
  TWIDDLE_HD int taps_staged() const { return in_fours(lead() + taps.width); }
  TWIDDLE_HD int tiles() const { return (width + tile - 1) / tile; }
  TWIDDLE_HD int across() const { return tile / row_sums; }
  TWIDDLE_HD int threads() const { return in_warps(images * across()); }
  TWIDDLE_HD int pitch() const { return tile + taps_staged(); }
  TWIDDLE_HD int buffer_floats() const { return images * pitch(); }
  TWIDDLE_HD int buffers() const { return buffers_of(rounds); }
  TWIDDLE_HD int staged_floats() const { return taps_staged() + buffers() * buffer_floats(); }
  std::int64_t blocks() const {
    return std::int64_t((batch + images * rounds - 1) / (images * rounds)) * channels * tiles();
  }

  struct Place {
    int image, channel, column;  // the first result of a block, or of a thread
  };
  TWIDDLE_HD Place place(int block) const {
    const int plane = block / tiles();
    return {plane / channels * images * rounds, plane % channels, block % tiles() * tile};
  }
  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }
  TWIDDLE_HD void load_taps(const Place& at, const OneThread& thread, float* staged) const {
    stage_rows(taps, {0, 1, at.channel, 0, -lead()}, taps_staged(), thread, staged);
  }
  TWIDDLE_HD static OneThread loads_of(const Place&, const OneThread& thread) { return thread; }
  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* buffer) const {
    const int first = at.image + round * images, left = batch - first;
    stage_rows(planes, {first, left < images ? left : images, at.channel, 0, at.column - pad_w - lead()}, pitch(),
               thread, buffer);
  }
  TWIDDLE_HD Place patch_of(const OneThread& thread) const {
    return {thread.number / across(), 0, thread.number % across() * row_sums};
  }

  TWIDDLE_HD void compute(const Place& at, int round, const Place& patch, const float* buffer,
                          const float* staged_taps) const {
    const int image = at.image + round * images + patch.image, column = at.column + patch.column;
    if (patch.image >= images || image >= batch || column >= width) return;
    const float* const from = buffer + patch.image * pitch() + patch.column;
    const float added = bias == nullptr ? 0 : bias[at.channel];
    float sums[row_sums];
#pragma unroll
    for (float& sum : sums) sum = added;
    RowWindow window;
    window.begin(from);
    const int staged = taps_staged();
#pragma unroll 3
    for (int tap = 0; tap < staged; tap += row_step) {
      float weights[row_step];
      load_fours(staged_taps + tap, weights);
      window.move(from + tap + row_sums);
      window.add(weights, sums);
    }
    store(results + (std::int64_t(image) * channels + at.channel) * width + column, width - column, sums);
  }

 private:
  TWIDDLE_HD void store(float* to, int left, float (&sums)[row_sums]) const {
    if (relu)
#pragma unroll
      for (float& sum : sums) sum = sum < 0 ? 0 : sum;
    const bool in_fours = rows_hold<Four>(results, width);
#pragma unroll
    for (int i = 0; i < row_sums; i += row_step) {
      if (in_fours && i < left) *reinterpret_cast<Four*>(to + i) = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
      if (in_fours) continue;
#pragma unroll
      for (int k = i; k < i + row_step; ++k)
        if (k < left) to[k] = sums[k];
    }
  }
};

// The gradient of w: a thread sums eight taps over a segment of the gradient of y, of each image; then the segments of
// a block and the parts of a channel are added, in a fixed order.
struct RowWeightSums {
  Planes x, gradient;
  int batch, channels, pad_h, pad_w, kernel_h, kernel_w;
  WeightResults results;
  int tile = row_step, segment = row_step, rounds = 1;  // columns of a block and of a thread, and images

  static constexpr int images = 1, sums_each = row_sums + 1;
  static constexpr bool padded = true;

  TWIDDLE_HD int lead() const { return lead_of_row(pad_w); }
  TWIDDLE_HD int groups() const { return (lead() + kernel_w + row_sums - 1) / row_sums; }  // of eight taps
  TWIDDLE_HD int segments() const { return (tile + segment - 1) / segment; }
  TWIDDLE_HD int threads() const { return in_warps(groups() * segments()); }
  TWIDDLE_HD int tiles() const { return (gradient.width + tile - 1) / tile; }
  TWIDDLE_HD int slices() const { return (batch + rounds - 1) / rounds; }
  TWIDDLE_HD int parts() const { return slices() * tiles(); }
  std::int64_t blocks() const { return std::int64_t(parts()) * channels; }
  TWIDDLE_HD int x_pitch() const { return tile + groups() * row_sums; }
  TWIDDLE_HD int buffer_floats() const { return x_pitch() + tile; }
  TWIDDLE_HD int buffers() const { return buffers_of(rounds); }
  TWIDDLE_HD int staged_floats() const {
    const int rows = buffers() * buffer_floats(), sums = in_fours(threads() * sums_each);
    return rows > sums ? rows : sums;
  }

  struct Place {
    int part, channel, image, column;
  };
  TWIDDLE_HD Place place(int block) const {
    const int plane = block / tiles(), tile_of_row = block % tiles(), slice = plane / channels;
    return {slice * tiles() + tile_of_row, plane % channels, slice * rounds, tile_of_row * tile};
  }
  TWIDDLE_HD bool has_round(const Place& at, int round) const { return round < rounds && at.image + round < batch; }
  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* staged) const {
    stage_rows(x, {at.image + round, 1, at.channel, 0, at.column - pad_w - lead()}, x_pitch(), thread, staged);
    stage_rows(gradient, {at.image + round, 1, at.channel, 0, at.column}, tile, thread, staged + x_pitch());
  }

  struct Sums {
    float values[sums_each];  // of eight taps, and the bias
  };
  struct Share {
    int group, segment;
  };
  TWIDDLE_HD Share share_of(const OneThread& thread) const {
    return {thread.number % groups(), thread.number / groups()};
  }
  TWIDDLE_HD void add(const Place&, int /*round*/, const Share& share, const float* staged, Sums& sums) const {
    const int begin = share.segment * segment, end = begin + segment < tile ? begin + segment : tile;
    if (begin >= tile) return;
    const float *const from = staged + share.group * row_sums, *const gradients = staged + x_pitch();
    RowWindow window;
    window.begin(from + begin);
#pragma unroll 3
    for (int column = begin; column < end; column += row_step) {
      float factors[row_step];
      load_fours(gradients + column, factors);
      window.move(from + column + row_sums);
      window.add(factors, sums.values);
      if (share.group == 0) sums.values[row_sums] += factors[0] + factors[1] + (factors[2] + factors[3]);
    }
  }

  TWIDDLE_HD void gather(const OneThread& thread, const Sums& sums, float* staged) const {
#pragma unroll
    for (int i = 0; i < sums_each; ++i) staged[thread.number * sums_each + i] = sums.values[i];
  }
  TWIDDLE_HD void store(const Place& at, const OneThread& thread, const float* staged) const {
    for (int i = thread.number; i <= kernel_w; i += thread.of) {
      const int tap = lead() + i, group = i < kernel_w ? tap / row_sums : 0;
      const int place = i < kernel_w ? tap % row_sums : row_sums;
      float sum = 0;
      for (int other = 0; other < segments(); ++other) sum += staged[(other * groups() + group) * sums_each + place];
      results.store(at.part, parts(), at.channel, channels, i, kernel_w, sum);
    }
  }
};

}  // namespace twiddle::depthwise
