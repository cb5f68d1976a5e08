#pragma once
#include <cstdint>

namespace twiddle {

// Layout of the numbers of a spectrum. A transform and a product work together if they have the same storage.
enum class SpectrumStorage : std::uint8_t {
  interleaved,          // [bin][matrix row][column][re, im]: complex floats without gaps
  interleaved_doubles,  // the same in doubles: for references
  real,                 // [bin][matrix row][column]: floats without gaps
  real_apart,           // the same with gaps between bins, so that they do not map to the same cache sets
  split_blocks,         // [bin][matrix row][block of columns][re of each, im of each]: blocks as wide as the vectors of
                        // the processor, the last one padded; gaps between bins as above
  half_pairs,           // factors as split fp16 (fft/cuda/stored_pairs/stored_spectrum.h); the product of two such
                        // factors is interleaved
  halves,               // the same, rounded to one fp16 value each
};

}  // namespace twiddle
