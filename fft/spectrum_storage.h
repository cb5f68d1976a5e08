#pragma once
#include <cstdint>

namespace twiddle {

// How the numbers of a spectrum lie: a transform and a product go together where they name the same.
enum class SpectrumStorage : std::uint8_t {
  interleaved,          // [bin][matrix row][column][re, im]: complex floats without gaps
  interleaved_doubles,  // the same in doubles: that of references
  real,                 // [bin][matrix row][column]: floats without gaps
  real_apart,           // the same, but for gaps between bins that keep them apart in caches
  split_blocks,         // [bin][matrix row][block of columns][re of each, im of each]: blocks as wide as the vectors of
                        // the processor, the last one filled up; between bins gaps as above
  half_pairs,           // factors as sums of two halves (fft/cuda/stored_pairs/stored_spectrum.h); what is made of two
                        // such factors is interleaved
  halves,               // likewise, rounded to one half each
};

}  // namespace twiddle
