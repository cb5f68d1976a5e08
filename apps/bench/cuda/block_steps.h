#pragma once
#include "fft/cuda/device/register_fft.h"

// Common parts of the FFTs of this folder. Each FFT is a struct with one object per thread of a block. Its data members
// are the numbers that the thread keeps in registers. forward(Index<i>, ...) and inverse(Index<i>, ...) run between two
// barriers. `threads` is the block size, `count` the number of rows or planes per block, Shared its shared memory.
// batched_launch.h turns it into kernels, and a test can run all threads on a CPU.
namespace twiddle::small_fft {

struct BlockThread {
  std::int64_t block;
  int thread;
  TWIDDLE_HD BlockThread(std::int64_t of_block, int number) : block(of_block), thread(number) {}
};

// Runs one step of one thread, in the direction given by the sign of the exponent.
template <int Sign, int Step, class Block, class Arguments>
TWIDDLE_HD void take_step(Block& thread, const Arguments& arguments, typename Block::Shared& shared) {
  if constexpr (Sign == forwards)
    thread.forward(Index<Step>{}, arguments, shared);
  else
    thread.inverse(Index<Step>{}, arguments, shared);
}
template <int Sign, class Block>
constexpr int steps_of = Sign == forwards ? Block::forward_steps : Block::inverse_steps;

// Batches as kernel arguments: two adjacent real numbers are loaded and stored as one complex number.
struct BatchForward {
  std::int64_t count;  // rows or planes
  std::int64_t pitch;  // from bin to bin, for [bin][row]; 0: [row or plane][bins]
  const Complex* source;
  Complex* spectrum;
};
struct BatchInverse {
  std::int64_t count, pitch;
  const Complex* spectrum;
  Complex* target;
};

template <int N>
struct Roots {
  Complex at[N];
};
template <int N>
TWIDDLE_HD constexpr Roots<N> roots_of_one() {
  Roots<N> all{};
  for (int k = 0; k < N; ++k)
    all.at[k] = {static_cast<float>(detail::turn_cos(k, N)), static_cast<float>(-detail::turn_sin(k, N))};
  return all;
}
// Returns e^(-2 pi i k / N), 0 <= k < N, from a table in global memory, because k depends on the thread and is not a
// compile-time constant.
template <int N>
TWIDDLE_HD const Complex* roots() {
  static constexpr Roots<N> all = roots_of_one<N>();
  return all.at;
}
template <int N>
TWIDDLE_HD Complex root(int k) {
  return roots<N>()[k];
}

TWIDDLE_HD constexpr Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
TWIDDLE_HD constexpr Complex conj(Complex a) {
  return {a.re, -a.im};
}
TWIDDLE_HD constexpr Complex scaled(Complex a, float by) {
  return {a.re * by, a.im * by};
}

// Runs between the two parts of a four-step FFT: stores numbers k of a column, `pitch` apart, times their twiddle
// factors factor(k). That of number 0 is one.
template <int Count, class Factor>
TWIDDLE_HD void store_twiddled(const Complex (&v)[Count], Complex* to, int pitch, const Factor& factor) {
  to[0] = v[0];
  unrolled<Count - 1>([&](auto before) {
    constexpr Index<decltype(before)::value + 1> k;
    to[k * pitch] = v[k] * factor(k);
  });
}

// Returns the index of a number in shared memory, where a contiguous range is stored as rows of Length, Pitch apart,
// against bank conflicts.
template <int Length, int Pitch>
TWIDDLE_HD constexpr int place_of(int number) {
  return Length == Pitch ? number : number + number / Length * (Pitch - Length);
}

// Loads a contiguous range into such rows, 16 bytes at a time: `source` must be 16-byte aligned. All loads are issued
// before the first number is stored.
template <int Length, int Pitch, int Most, int Threads>
TWIDDLE_HD void load_contiguous(Complex* rows, const Complex* source, int count, int thread) {
  constexpr int loads = (Most / 2 + Threads - 1) / Threads;
  ComplexPair pairs[loads];
  unrolled<loads>([&](auto i) {
    const int pair = thread + i * Threads;
    pairs[i] = {{0, 0}, {0, 0}};
    if (2 * pair + 1 < count) pairs[i] = reinterpret_cast<const ComplexPair*>(source)[pair];
  });
  unrolled<loads>([&](auto i) {
    const int first = 2 * (thread + i * Threads);
    if (first + 1 >= count) return;
    if constexpr (Length == Pitch) {
      *reinterpret_cast<ComplexPair*>(rows + first) = pairs[i];
    } else {
      rows[place_of<Length, Pitch>(first)] = pairs[i].first;
      rows[place_of<Length, Pitch>(first + 1)] = pairs[i].second;
    }
  });
  if (count % 2 == 1 && thread == 0) rows[place_of<Length, Pitch>(count - 1)] = source[count - 1];
}

template <int Length, int Pitch, int Threads>
TWIDDLE_HD void store_contiguous(const Complex* rows, Complex* target, int count, int thread) {
  for (int pair = thread; pair < count / 2; pair += Threads) {
    if constexpr (Length == Pitch)
      reinterpret_cast<ComplexPair*>(target)[pair] = reinterpret_cast<const ComplexPair*>(rows)[pair];
    else
      reinterpret_cast<ComplexPair*>(target)[pair] = {rows[place_of<Length, Pitch>(2 * pair)],
                                                      rows[place_of<Length, Pitch>(2 * pair + 1)]};
  }
  if (count % 2 == 1 && thread == 0) target[count - 1] = rows[place_of<Length, Pitch>(count - 1)];
}

// Returns the number of rows or planes of this block: at most Most, fewer at the end of the batch.
template <int Most>
TWIDDLE_HD int count_in_block(std::int64_t count, std::int64_t block) {
  const std::int64_t left = count - block * Most;
  return left < Most ? static_cast<int>(left) : Most;
}

}  // namespace twiddle::small_fft
