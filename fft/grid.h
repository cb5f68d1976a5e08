#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "framework/convolution.h"

namespace twiddle {

// Divides a convolution's planes for Fourier transforms of height x width points. One grid serves all three passes and
// all three operands, so that a spectrum computed in one pass can be used in the next:
//   x: windows of height x width, overlapping where there are several tiles (overlap-save);
//   y: step_h x step_w outputs a tile, zeros up to height x width;
//   w: the kernel, zeros up to height x width, the same for all tiles.
// Tile t's x-window begins `pad` before the first input of its outputs. A single tile needs only height >= plane + pad:
// a transform is circular, so that the zeros after the plane also serve as those before it.
struct FrequencyGrid {
  int height = 0, width = 0;
  int tiles_h = 1, tiles_w = 1;
  int step_h = 0, step_w = 0;

  std::int64_t tiles() const { return std::int64_t(tiles_h) * tiles_w; }
  // A real plane's other bins are conjugates of these and never stored.
  std::int64_t bins() const { return std::int64_t(height) * (width / 2 + 1); }
  auto operator<=>(const FrequencyGrid&) const = default;
};
std::string to_string(const FrequencyGrid& grid);  // "32x32", "16x16 in 4x4 tiles"

// The smallest sizes that one tile for the whole plane can have; larger ones serve as well.
int least_height(const ConvProblem& problem);
int least_width(const ConvProblem& problem);
FrequencyGrid whole_plane(const ConvProblem& problem, int height, int width);  // throws where smaller than the least
FrequencyGrid tiled(const ConvProblem& problem, int height, int width);        // throws where smaller than the kernel

enum class ConvOperand : std::uint8_t { x, w, y };
std::string_view to_string(ConvOperand operand);
Tensor& tensor_of(ConvOperands& operands, ConvOperand operand);

// Returns whether each group is one channel and one filter. Then no bin is summed over channels, and there is one
// product per channel.
bool is_depthwise(const ConvProblem& problem);

// The planes of one operand, of all groups, as a matrix of planes, and how they are transformed. Their spectrum is one
// complex matrix per bin, of rows * tiles by columns.
struct Planes {
  // x: batch, channels; y: batch, filters; w: filters, channels of a group, or, if depthwise, one row of all channels.
  std::int64_t rows = 0, columns = 0;
  // The columns of x and y are divided into this number of adjacent groups. Products read each group separately. In
  // storages with blocks of columns, no block has columns of two groups. 1 if depthwise or ungrouped.
  std::int64_t groups = 1;
  std::int64_t row_stride = 0, column_stride = 0;  // floats from one plane to the next
  std::int64_t offset = 0;                         // floats before the first plane
  int height = 0, width = 0;                       // of a plane
  // Element (i, j) of tile (s, t) is the plane's (first_h + s * grid.step_h + i, first_w + t * grid.step_w + j). It is
  // zero outside of the plane and from window_h, window_w on. The inverse adds each tile's window to the plane.
  int first_h = 0, first_w = 0, window_h = 0, window_w = 0;
  FrequencyGrid grid;

  std::int64_t matrix_rows() const { return rows * grid.tiles(); }
  bool operator==(const Planes&) const = default;
};

// Returns the planes of images [first_image, first_image + images) of x or y, or of all of w.
Planes planes_of(const ConvProblem& problem, ConvOperand operand, const FrequencyGrid& grid, int first_image = 0,
                 int images = 0 /* all */);

}  // namespace twiddle
