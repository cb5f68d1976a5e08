#include "fft/cuda/planes/fbfft_transform.h"

#include <algorithm>
#include <iterator>

#include "fft/cuda/planes/fbfft_grids.h"
#include "fft/cuda/planes/tuned_on_h200.h"
#include "framework/error.h"

namespace twiddle {

std::vector<small_fft::PlaneKernels> small_fft::all_planes() {
  std::vector<PlaneKernels> all(std::size(plane_shapes));
  fill_group_of_planes<0>(all);
  fill_group_of_planes<1>(all);
  fill_group_of_planes<2>(all);
  fill_group_of_planes<3>(all);
  fill_group_of_planes<4>(all);
  return all;
}

FbfftTransform::FbfftTransform() : all_(small_fft::all_planes()) {}

const small_fft::PlaneKernels& FbfftTransform::kernels(const FrequencyGrid& grid) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const small_fft::PlaneKernels& each) {
    return each.height == grid.height && each.width == grid.width;
  });
  require(found != all_.end(), "fbfft has no transform of ", grid.height, "x", grid.width, " points");
  return *found;
}

std::vector<FrequencyGrid> FbfftTransform::grids(const ConvProblem& problem) const {
  std::vector<std::pair<int, int>> sizes;
  for (const small_fft::PlaneKernels& each : all_) sizes.emplace_back(each.height, each.width);
  return fbfft_grids(problem, sizes);
}

std::int64_t FbfftTransform::bins(const FrequencyGrid& grid) const {
  return kernels(grid).bins;
}

std::size_t FbfftTransform::spectrum_bytes(const Planes& planes) const {
  return static_cast<std::size_t>(bins(planes.grid) * planes.matrix_rows() * planes.columns) *
         sizeof(small_fft::Complex);
}

void FbfftTransform::forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void*) {
  kernels(planes.grid).forward(*ctx.stream, small_fft::forward_arguments(planes, source, spectrum));
}

void FbfftTransform::forward_as_halves(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum,
                                       int halves_a_float, const int* of_columns, const int* of_rows) {
  small_fft::ForwardArguments arguments = small_fft::forward_arguments(planes, source, spectrum);
  arguments.halves_a_float = halves_a_float;
  arguments.of_columns = of_columns, arguments.of_rows = of_rows;
  kernels(planes.grid).forward(*ctx.stream, arguments);
}

void FbfftTransform::sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) {
  small_fft::sum_first_bin(*ctx.stream, planes.matrix_rows(), planes.columns,
                           static_cast<const small_fft::Complex*>(spectrum), add, sums);
}

void FbfftTransform::inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                             const PlaneEpilogue& epilogue, void*) {
  small_fft::for_each_colour(planes, spectrum, target, epilogue, [&](const small_fft::InverseArguments& arguments) {
    kernels(planes.grid).inverse(*ctx.stream, arguments);
  });
}

}  // namespace twiddle
