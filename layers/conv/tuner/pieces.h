#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// A convolution that is a part of another: some of its images, channels or filters, or a rectangle of the outputs of
// one image with the window of x that these read.
struct Piece {
  ConvProblem problem;  // of the window; pad_h and pad_w are what is missing above it and on its left
  int out_height = 1, out_width = 1;
  auto operator<=>(const Piece&) const = default;
};

// A piece, and where in the whole's x, y and w its first elements are.
struct PlacedPiece {
  Piece piece;
  std::int64_t x = 0, y = 0, w = 0;
};

Piece whole(const ConvProblem& problem);

// The pieces whose weight gradients add up to the whole's, none with a sum of more terms than that. Outputs that see
// padding alone are left out: no pieces, where all do.
std::vector<PlacedPiece> pieces_of(const ConvProblem& problem, std::int64_t longest_sum);

// The pieces, of some channels each (forward) or some filters (backward_input), whose results add up to the whole's,
// none with a sum of more terms than that, or of one channel or filter if that alone has more. With groups there is
// only one part.
std::vector<PlacedPiece> parts_of_sum(const ConvProblem& problem, ConvPass pass, std::int64_t longest_sum);

}  // namespace twiddle
