#include "fft/grid.h"

#include <algorithm>
#include <utility>

#include "framework/error.h"

namespace twiddle {

namespace {

// Below plane + pad, the halos before and after the plane would share more than zeros; outputs and kernel must fit.
int least(int plane, int pad, int outputs, int kernel) {
  return std::max({plane + pad, outputs, kernel});
}

int divided_up(int whole, int part) {
  return (whole + part - 1) / part;
}

}  // namespace

std::string to_string(const FrequencyGrid& grid) {
  const std::string size = join(grid.height, "x", grid.width);
  return grid.tiles() == 1 ? size : join(size, " in ", grid.tiles_h, "x", grid.tiles_w, " tiles");
}

int least_height(const ConvProblem& problem) {
  return least(problem.height, problem.pad_h, problem.out_height(), problem.kernel_h);
}

int least_width(const ConvProblem& problem) {
  return least(problem.width, problem.pad_w, problem.out_width(), problem.kernel_w);
}

FrequencyGrid whole_plane(const ConvProblem& problem, int height, int width) {
  require(height >= least_height(problem) && width >= least_width(problem), "a Fourier transform of ", height, "x",
          width, " points is too small for ", to_string(problem), ": it needs ", least_height(problem), "x",
          least_width(problem));
  return {height, width, 1, 1, problem.out_height(), problem.out_width()};
}

FrequencyGrid tiled(const ConvProblem& problem, int height, int width) {
  require(height >= problem.kernel_h && width >= problem.kernel_w, "tiles of ", height, "x", width,
          " points are smaller than the kernel of ", to_string(problem));
  const int step_h = std::min(height - problem.kernel_h + 1, problem.out_height());
  const int step_w = std::min(width - problem.kernel_w + 1, problem.out_width());
  return {height, width, divided_up(problem.out_height(), step_h), divided_up(problem.out_width(), step_w),
          step_h, step_w};
}

std::string_view to_string(ConvOperand operand) {
  return operand == ConvOperand::x ? "x" : operand == ConvOperand::w ? "w" : "y";
}

Tensor& tensor_of(ConvOperands& operands, ConvOperand operand) {
  return operand == ConvOperand::x ? operands.x : operand == ConvOperand::w ? operands.w : operands.y;
}

bool is_depthwise(const ConvProblem& problem) {
  return problem.groups > 1 && problem.channels == problem.groups && problem.filters == problem.groups;
}

Planes planes_of(const ConvProblem& problem, ConvOperand operand, const FrequencyGrid& grid, int first_image,
                 int images) {
  Planes planes;
  planes.grid = grid;
  if (operand == ConvOperand::w) {
    planes.rows = problem.filters, planes.columns = problem.channels / problem.groups;
    if (is_depthwise(problem)) std::swap(planes.rows, planes.columns);
    planes.height = problem.kernel_h, planes.width = problem.kernel_w;
    planes.window_h = problem.kernel_h, planes.window_w = problem.kernel_w;
    planes.grid.tiles_h = planes.grid.tiles_w = 1;
    planes.column_stride = std::int64_t(planes.height) * planes.width;
    planes.row_stride = planes.columns * planes.column_stride;
    return planes;
  }
  const bool input = operand == ConvOperand::x;
  planes.rows = images == 0 ? problem.batch : images;
  planes.columns = input ? problem.channels : problem.filters;
  planes.groups = is_depthwise(problem) ? 1 : problem.groups;
  planes.height = input ? problem.height : problem.out_height();
  planes.width = input ? problem.width : problem.out_width();
  if (input) planes.first_h = -problem.pad_h, planes.first_w = -problem.pad_w;
  planes.window_h = input ? grid.height : grid.step_h;
  planes.window_w = input ? grid.width : grid.step_w;
  planes.column_stride = std::int64_t(planes.height) * planes.width;
  planes.row_stride = planes.columns * planes.column_stride;
  planes.offset = first_image * planes.row_stride;
  return planes;
}

}  // namespace twiddle
