#pragma once
#include <type_traits>

#include "layers/conv/kernels/cuda/depthwise_blocks.h"

// Planes of 7 x 7 and of 14 x 14 under kernels that keep their size: the last stages of most networks. 196 floats that
// follow each other in memory, a cell, are there a plane of 14 x 14 or four channels of 7 x 7, and 49 times 16 bytes:
// so a block copies the cells of 32 images as they lie, and as 49 is odd, lanes that have an image each read 16 bytes
// of their cells from different banks. Padding is nowhere: which products would meet it is known when the code is
// compiled, for columns, or is the same for all lanes, for rows.
namespace twiddle::depthwise {

constexpr int cell_floats = 196;
template <int N>
constexpr int planes_of_cell = cell_floats / (N * N);

constexpr int lanes_of_warp = 32;

// copy_one(from, to) for all numbers of runs of `Floats` floats, of which some images have one each: they lie
// `from_image` floats apart there and `to_image` here. A warp takes an image.
template <int Floats, class Number, class CopyOne>
TWIDDLE_HD void copy_runs(int images, const float* from, std::int64_t from_image, float* to, std::int64_t to_image,
                          const OneThread& thread, const CopyOne& copy_one) {
  constexpr int wide = floats_in<Number>, step = wide * lanes_of_warp;
  const int warp = thread.number / lanes_of_warp, warps = thread.of / lanes_of_warp;
  const int lane = thread.number % lanes_of_warp * wide;
  from += warp * from_image + lane;
  to += warp * to_image + lane;
  for (int image = warp; image < images; image += warps, from += warps * from_image, to += warps * to_image)
#pragma unroll
    for (int i = 0; i < Floats; i += step)
      if (i + step <= Floats || lane < Floats - i) copy_one(from + i, to + i);
}

template <class Number>
TWIDDLE_HD bool lie_as(const float* values) {
  return reinterpret_cast<std::uintptr_t>(values) % sizeof(Number) == 0;
}

TWIDDLE_HD inline Four masked(const Four& values, const Four& mask) {
  Four kept;
#pragma unroll
  for (int k = 0; k < 4; ++k) kept.at[k] = mask.at[k] > 0 ? values.at[k] : 0;
  return kept;
}

// What lies in memory from that channel on, of some images, to shared memory: [image][Floats].
template <int Floats>
TWIDDLE_HD void stage_runs(const Planes& planes, const Part& part, const OneThread& thread, float* staged) {
  const float* const first = planes.values + part.image * planes.image + part.channel * planes.channel;
  const auto mask_of = [&](const float* from) { return planes.mask + (from - planes.values); };
  const auto copy_all = [&]<class Number>(const auto& copy_one) {
    copy_runs<Floats, Number>(part.images, first, planes.image, staged, Floats, thread, copy_one);
  };
  if (planes.mask == nullptr && lie_as<Four>(first))
    copy_all.template operator()<Four>([](const float* from, float* to) {
      small_fft::async_copy_once(reinterpret_cast<Four*>(to), reinterpret_cast<const Four*>(from), true);
    });
  else if (planes.mask == nullptr)
    copy_all.template operator()<float>(copy<float>);
  else if (lie_as<Four>(first) && lie_as<Four>(mask_of(first)))
    copy_all.template operator()<Four>([&](const float* from, float* to) {
      *reinterpret_cast<Four*>(to) =
          masked(*reinterpret_cast<const Four*>(from), *reinterpret_cast<const Four*>(mask_of(from)));
    });
  else
    copy_all.template operator()<float>([&](const float* from, float* to) { *to = *mask_of(from) > 0 ? *from : 0; });
}

// The K x K taps around the middle of the kernels of some channels: those of larger kernels further out meet no plane,
// smaller kernels have zeros there.
template <int K>
TWIDDLE_HD void stage_middle_taps(const Planes& taps, int channel, int channels, const OneThread& thread,
                                  float* staged) {
  constexpr int pitch = in_fours(K);
  const int last = taps.height * taps.width - 1;
  for (int i = thread.number; i < channels * K * K; i += thread.of) {
    const int plane = i / (K * K), row = i / K % K, column = i % K;
    const int y = row + (taps.height - K) / 2, x = column + (taps.width - K) / 2;
    const bool there = y >= 0 && y < taps.height && x >= 0 && x < taps.width;
    const int tap = y * taps.width + x;
    float* const to = staged + (plane * K + row) * pitch + column;
    if (there)
      copy<float>(taps.values + (channel + plane) * taps.channel + (taps.turned ? last - tap : tap), to);
    else
      *to = 0;
  }
}

// sums(c) += sum over kx of weights(kx) values(c + kx - K / 2), as far as there are values.
template <int N, int K>
TWIDDLE_HD void add_row(const float* values, const float* weights, float* sums) {
#pragma unroll
  for (int kx = 0; kx < K; ++kx)
#pragma unroll
    for (int c = 0; c < N; ++c)
      if (c + kx - K / 2 >= 0 && c + kx - K / 2 < N) sums[c] += weights[kx] * values[c + kx - K / 2];
}

template <int Count>
TWIDDLE_HD void leave_positive(float (&sums)[Count]) {
#pragma unroll
  for (float& sum : sums) sum = sum < 0 ? 0 : sum;
}

// Combines two adjacent rows of y with the two rows of x that are D pairs further, as far as they overlap: run(row of x
// among the two, row of y among the two, row of taps).
template <int K, int D, class Run>
TWIDDLE_HD void for_each_overlap(const Run& run) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int r = 0; r < 2; ++r)
      if (2 * D + i - r + K / 2 >= 0 && 2 * D + i - r + K / 2 < K) run(i, r, 2 * D + i - r + K / 2);
}

// run.operator()<D>() for all pairs of rows of x that a pair of rows of y may meet.
template <int K, class Run, int... D>
TWIDDLE_HD void for_each_distance(const Run& run, std::integer_sequence<int, D...>) {
  (run.template operator()<D - (K / 2 + 1) / 2>(), ...);
}
template <int K, class Run>
TWIDDLE_HD void for_each_distance(const Run& run) {
  for_each_distance<K>(run, std::make_integer_sequence<int, 2 * ((K / 2 + 1) / 2) + 1>());
}

// Each warp has two neighbouring rows of results of a plane, the cell: two rows begin where 16 bytes do.
template <int N, int K>
struct TwoRows {
  static constexpr int warps = N / 2, blocks_at_once = K == 2 * N - 1 ? 2 : 3, tap_pitch = in_fours(K);
  struct Held {
    float sums[2][N];
  };

  TWIDDLE_HD static void take(const float* cell, int warp, const float* taps, const float* bias, Held& held) {
#pragma unroll
    for (auto& sums_of_row : held.sums)
#pragma unroll
      for (float& sum : sums_of_row) sum = bias == nullptr ? 0 : *bias;
    if constexpr (K == 2 * N - 1)
      take_all(cell, warp, taps, held);
    else
      for_each_distance<K>([&]<int D>() {
        if (warp + D < 0 || warp + D >= N / 2) return;
        float values[2 * N];
        load_fours(cell + (warp + D) * 2 * N, values);
        for_each_overlap<K, D>([&](int i, int r, int ky) {
          float weights[tap_pitch];
          load_fours(taps + ky * tap_pitch, weights);
          add_row<N, K>(values + i * N, weights, held.sums[r]);
        });
      });
  }

  // To where the warp's rows of the plane were.
  TWIDDLE_HD static void put(Held& held, int warp, const float* /*taps*/, const float* /*bias*/, bool relu,
                             float* cell) {
    if (relu) leave_positive(held.sums[0]), leave_positive(held.sums[1]);
#pragma unroll
    for (int i = 0; i < 2 * N; i += 4) {
      Four four;
#pragma unroll
      for (int k = 0; k < 4; ++k) four.at[k] = held.sums[(i + k) / N][(i + k) % N];
      *reinterpret_cast<Four*>(cell + warp * 2 * N + i) = four;
    }
  }

 private:
  // Where all rows meet: one code for all pairs of them.
  TWIDDLE_HD static void take_all(const float* cell, int warp, const float* taps, Held& held) {
#pragma unroll 1
    for (int pair = 0; pair < N / 2; ++pair) {
      const float* const tap = taps + (2 * (pair - warp) + K / 2) * tap_pitch;  // of a row and the same one
      float values[2 * N], weights[tap_pitch];
      load_fours(cell + pair * 2 * N, values);
      load_fours(tap - tap_pitch, weights);
      add_row<N, K>(values, weights, held.sums[1]);
      load_fours(tap, weights);
      add_row<N, K>(values, weights, held.sums[0]);
      add_row<N, K>(values + N, weights, held.sums[1]);
      load_fours(tap + tap_pitch, weights);
      add_row<N, K>(values + N, weights, held.sums[0]);
    }
  }
};

// Each warp has one channel of a cell of four, and each thread a whole plane of it in registers.
template <int N, int K>
struct OnePlane {
  static constexpr int warps = planes_of_cell<N>, blocks_at_once = 4, tap_pitch = in_fours(K);
  struct Held {
    float values[N * N];
  };

  TWIDDLE_HD static void take(const float* cell, int warp, const float* /*taps*/, const float* /*bias*/, Held& held) {
    if (warp == 0) load_plane<0>(cell, held.values);
    if (warp == 1) load_plane<1>(cell, held.values);
    if (warp == 2) load_plane<2>(cell, held.values);
    if (warp == 3) load_plane<3>(cell, held.values);
  }

  TWIDDLE_HD static void put(const Held& held, int warp, const float* taps, const float* bias, bool relu, float* cell) {
    const float added = bias == nullptr ? 0 : bias[warp];
#pragma unroll 1
    for (int r = 0; r < N; ++r) {
      float sums[N];
#pragma unroll
      for (float& sum : sums) sum = added;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const int ky = i - r + K / 2;
        if (K < 2 * N - 1 && (ky < 0 || ky >= K)) continue;
        float weights[tap_pitch];
        load_fours(taps + (warp * K + ky) * tap_pitch, weights);
        add_row<N, K>(held.values + i * N, weights, sums);
      }
      if (relu) leave_positive(sums);
#pragma unroll
      for (int c = 0; c < N; ++c) cell[(warp * N + r) * N + c] = sums[c];
    }
  }

 private:
  // The plane starts `Channel` floats after a 16-byte boundary.
  template <int Channel>
  TWIDDLE_HD static void load_plane(const float* cell, float (&values)[N * N]) {
    static_assert(N * N % 4 == 1 && Channel < 4);
    float all[in_fours(N * N + Channel)];
    load_fours(cell + Channel * (N * N - 1), all);
#pragma unroll
    for (int i = 0; i < N * N; ++i) values[i] = all[i + Channel];
  }
};

// results(r, c) = bias + sum over (i, j) of taps(i, j) planes(r - pad + i, c - pad + j), of N x N planes: the forward
// pass, and backward_input with rotated taps and the gradient of y instead of x. K: taps that overlap a plane.
template <int N, int K>
struct CellCorrelation {
  using Work = std::conditional_t<N % 2 == 0, TwoRows<N, K>, OnePlane<N, K>>;
  using Held = typename Work::Held;
  Planes planes, taps;
  int batch, channels, pad_h, pad_w;  // pad: half a kernel
  float* results;
  int height, width;  // N
  const float* bias;
  bool relu;
  int rounds = 1;  // a block takes `rounds` times `images`

  static constexpr int images = lanes_of_warp, planes_each = planes_of_cell<N>, blocks_at_once = Work::blocks_at_once;

  TWIDDLE_HD static constexpr int threads() { return Work::warps * lanes_of_warp; }
  TWIDDLE_HD static constexpr int taps_staged() { return planes_each * K * Work::tap_pitch; }
  TWIDDLE_HD static constexpr int buffer_floats() { return images * cell_floats; }
  TWIDDLE_HD int buffers() const { return buffers_of(rounds); }
  TWIDDLE_HD int staged_floats() const { return taps_staged() + buffers() * buffer_floats(); }
  TWIDDLE_HD int cells() const { return channels / planes_each; }
  std::int64_t blocks() const { return std::int64_t((batch + images * rounds - 1) / (images * rounds)) * cells(); }

  struct Place {
    int image, channel;
  };
  TWIDDLE_HD Place place(int block) const { return {block / cells() * images * rounds, block % cells() * planes_each}; }
  TWIDDLE_HD bool has_round(const Place& at, int round) const {
    return round < rounds && at.image + round * images < batch;
  }
  TWIDDLE_HD Part part(const Place& at, int round) const {
    const int first = at.image + round * images, left = batch - first;
    return {first, left < images ? left : images, at.channel, 0, 0};
  }

  TWIDDLE_HD void load_taps(const Place& at, const OneThread& thread, float* staged) const {
    stage_middle_taps<K>(taps, at.channel, planes_each, thread, staged);
  }
  TWIDDLE_HD void load(const Place& at, int round, const OneThread& thread, float* buffer) const {
    stage_runs<cell_floats>(planes, part(at, round), thread, buffer);
  }
  TWIDDLE_HD void take(const Place& at, const OneThread& thread, const float* buffer, const float* staged_taps,
                       Held& held) const {
    Work::take(buffer + thread.number % lanes_of_warp * cell_floats, thread.number / lanes_of_warp, staged_taps,
               bias_of(at), held);
  }
  // Results take the place of planes in shared memory, for all threads to store them as they lie in memory.
  TWIDDLE_HD void put(const Place& at, const OneThread& thread, Held& held, const float* staged_taps,
                      float* buffer) const {
    Work::put(held, thread.number / lanes_of_warp, staged_taps, bias_of(at), relu,
              buffer + thread.number % lanes_of_warp * cell_floats);
  }
  TWIDDLE_HD void store(const Place& at, int round, const OneThread& thread, const float* buffer) const {
    const std::int64_t image_floats = std::int64_t(channels) * N * N;
    const Part stored = part(at, round);
    float* const to = results + stored.image * image_floats + at.channel * N * N;
    const auto copy_all = [&]<class Number>() {
      copy_runs<cell_floats, Number>(stored.images, buffer, cell_floats, to, image_floats, thread,
                                     [](const float* from, float* result) {
                                       *reinterpret_cast<Number*>(result) = *reinterpret_cast<const Number*>(from);
                                     });
    };
    if (lie_as<Four>(to))
      copy_all.template operator()<Four>();
    else
      copy_all.template operator()<float>();
  }

 private:
  TWIDDLE_HD const float* bias_of(const Place& at) const { return bias == nullptr ? nullptr : bias + at.channel; }
};

}  // namespace twiddle::depthwise
