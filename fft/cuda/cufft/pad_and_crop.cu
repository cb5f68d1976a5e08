#include "fft/cuda/cufft/pad_and_crop.h"

#include "framework/error.h"

namespace twiddle {

namespace {

template <class Work>
__global__ void __launch_bounds__(plane_threads) step_through_planes(Work work) {
  work(blockIdx.x, static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y));
}

template <class Work>
void launch(Stream& stream, const Work& work) {
  const PlaneBlocks& blocks = work.blocks;
  step_through_planes<<<detail::blocks_for(blocks.count(), 1), dim3(blocks.along, blocks.down), 0,
                        detail::native(stream)>>>(work);
  detail::check_launch();
}

void require_that_kernels_serve(const Planes& planes, std::int64_t first, std::int64_t count) {
  require(planes.grid.tiles() == 1, "expected a grid of one tile, got ", to_string(planes.grid));
  constexpr std::int64_t most = std::int64_t(1)
                                << 30;  // indices are 32 bits, and the last step runs past the last plane
  require((first + count) * std::max(planes.height, planes.grid.height) < most, first + count, " planes of ",
          to_string(planes.grid), " are more than are counted; a smaller workspace limit takes fewer at once");
}

}  // namespace

void pad_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* source,
                float* padded) {
  require_that_kernels_serve(planes, first, count);
  if (count == 0) return;
  if (in_pairs(planes, source))
    launch(stream, PadPlanes<2>(planes, first, count, source, padded));
  else
    launch(stream, PadPlanes<1>(planes, first, count, source, padded));
}

void crop_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* padded,
                 float* target, const PlaneEpilogue& epilogue) {
  require_that_kernels_serve(planes, first, count);
  if (count == 0) return;
  if (in_pairs(planes, target))
    launch(stream, CropPlanes<2>(planes, first, count, padded, target, epilogue));
  else
    launch(stream, CropPlanes<1>(planes, first, count, padded, target, epilogue));
}

}  // namespace twiddle
