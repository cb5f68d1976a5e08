#pragma once
#include <cmath>
#include <cstdint>

#include "framework/host_device.h"

namespace twiddle {

// Random numbers by position: number i is a function of (seed, first + i) alone, so that the order in which threads or
// devices request them does not matter. SplitMix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators,
// 2014.
struct RandomSequence {
  std::uint64_t seed = 0, first = 0;
  const std::uint64_t* start = nullptr;  // where it is set, `first` counts from this number, which may lie on a device

  TWIDDLE_HD static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  TWIDDLE_HD std::uint64_t bits(std::int64_t i) const {
    const std::uint64_t position = first + (start ? *start : 0) + static_cast<std::uint64_t>(i);
    return mix(mix(seed + 0x9e3779b97f4a7c15u) + (position + 1) * 0x9e3779b97f4a7c15u);
  }
  TWIDDLE_HD float uniform(std::int64_t i) const {  // [0, 1), 24 bits
    return static_cast<float>(bits(i) >> 40) * 0x1p-24f;
  }
  TWIDDLE_HD double uniform_double(std::int64_t i) const {  // (0, 1), 52 bits
    return (static_cast<double>(bits(i) >> 12) + 0.5) * 0x1p-52;
  }
  TWIDDLE_HD float normal(std::int64_t i) const {  // Box-Muller, from two numbers that no other i uses
    const double radius = sqrt(-2 * log(uniform_double(2 * i)));
    return static_cast<float>(radius * cos(6.283185307179586 * uniform_double(2 * i + 1)));
  }
  TWIDDLE_HD std::int64_t below(std::int64_t i, std::int64_t limit) const {  // 0 .. limit - 1; limit < 2^32
    return static_cast<std::int64_t>(((bits(i) >> 32) * static_cast<std::uint64_t>(limit)) >> 32);
  }
  // Returns a separate sequence for a node of a tree: split(epoch).split(index).
  RandomSequence split(std::uint64_t branch) const {
    return {mix(bits(static_cast<std::int64_t>(branch)) ^ 0x5851f42d4c957f2du), 0, nullptr};
  }
};

// Returns contiguous ranges of one sequence. Its position is its only state.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  RandomSequence take(std::int64_t count) {
    const RandomSequence numbers{seed_, start_ ? position_ - position_at_start_ : position_, start_};
    position_ += static_cast<std::uint64_t>(count);
    return numbers;
  }
  // The same for rows of a batch, `numbers` per row. If this process has only some of the batch's rows, they get the
  // same numbers as in the complete batch, and the position advances by the numbers of all rows.
  RandomSequence take_rows(std::int64_t rows, std::int64_t numbers) {
    RandomSequence own = take((rows_of_all_ > 0 ? rows_of_all_ : rows) * numbers);
    own.first += static_cast<std::uint64_t>(first_row_ * numbers);
    return own;
  }
  // From now on, rows start at first_row of a batch of `of_all` rows; 0: this process has all rows.
  void share_rows(std::int64_t first_row, std::int64_t of_all) { first_row_ = first_row, rows_of_all_ = of_all; }

  std::uint64_t seed() const { return seed_; }
  std::uint64_t position() const { return position_; }
  void restore(std::uint64_t seed, std::uint64_t position) { seed_ = seed, position_ = position; }
  void skip(std::uint64_t count) { position_ += count; }  // as if they had been drawn

  // from now on ranges count from *start, read where they are used: a captured step that is replayed finds new
  // numbers there. Null: from the position itself.
  void count_from(const std::uint64_t* start) { start_ = start, position_at_start_ = position_; }

 private:
  std::uint64_t seed_, position_ = 0, position_at_start_ = 0;
  const std::uint64_t* start_ = nullptr;
  std::int64_t first_row_ = 0, rows_of_all_ = 0;
};

}  // namespace twiddle
