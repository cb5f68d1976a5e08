#pragma once
#include <cstdint>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// Which of `count` a flat index of a tensor belongs to: its image, its filter, its channel.
struct PlaceOf {
  std::int64_t elements, count;  // `elements` of each follow each other
  std::int64_t operator()(std::int64_t index) const { return index / elements % count; }
};

// A pass's result is a matrix of planes, of which each row comes from its own part of one factor and each column from
// its own part of the other:
//   forward          images x filters   of x's images and w's filters
//   backward_input   images x channels  of y's images and w's channels
//   backward_weight  filters x channels of y's filters and x's channels
// Channels are counted within their group. Rows never mix, and columns do not.
struct PassPlaces {
  PlaceOf result_row, result_column;  // in the pass's result
  PlaceOf row, column;                // in the factors
};
PassPlaces places_of(const ConvProblem& problem, ConvPass pass);

// Whether the random planes of this row or column are small: 8,192 times smaller than the others, in fp16 64 times.
// Half of them are, and of two that are neighbours (0 and 1, 2 and 3) or 16 apart (0 and 16) one.
bool is_small(std::int64_t place);

// The pass's inputs filled with random numbers (uniform, mean 0, deviation 1, rounded to the type that the problem
// stores), its result with NaN. Rows and columns of the result are large and small, so that what reaches one from
// another shows.
ConvOperands random_operands(Stream& stream, const ConvProblem& problem, ConvPass pass);

// The relative L2 error over some elements of a pass's result, `index` their places in it: each is measured by the norm
// of those like it, in rows and columns of large or of small planes. So a small image that takes an error from a large
// one next to it counts as much as the large one.
double relative_error(const ConvProblem& problem, ConvPass pass, const std::vector<std::int64_t>& index,
                      const std::vector<float>& found, const std::vector<double>& expected);

void fill_with_nan(Stream& stream, Tensor& tensor);

// Finds unwritten elements that the sample does not contain. Waits for the stream.
bool holds_nan(Stream& stream, const Tensor& result);

// A copy with NaN at that place: in one image, say. And whether the result holds a NaN at any other place than
// `index`. Waits for the stream.
Tensor with_nan_at(Stream& stream, const Tensor& factor, const PlaceOf& place, std::int64_t index);
bool holds_nan_elsewhere(Stream& stream, const Tensor& result, const PlaceOf& place, std::int64_t index);

// A sample of a pass's result, summed once on the operands' device, for any number of engines. Products are exact.
// Sums are in double on a GPU, in short runs of float on the CPU (1e-7 relative).
class ConvCheck {
 public:
  ConvCheck(Stream& stream, const ConvProblem& problem, ConvPass pass, const ConvOperands& operands, int samples);
  // relative_error of the sample; NaN where any element is, sampled or not. Waits for the stream.
  double error(Stream& stream, const Tensor& result) const;

 private:
  ConvProblem problem_;
  ConvPass pass_;
  std::int64_t count_;  // elements of the result
  std::vector<double> expected_;
};

}  // namespace twiddle
