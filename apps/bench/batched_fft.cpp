#include "apps/bench/batched_fft.h"

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

std::string_view to_string(BinLayout layout) {
  switch (layout) {
    case BinLayout::plane_major:
      return "plane-major";
    case BinLayout::frequency_major:
      return "frequency-major";
    case BinLayout::packed:
      return "packed";
  }
  return "?";
}

std::string to_string(const FftBatch& batch) {
  const bool rows = batch.height == 1;
  const std::string size = rows ? std::to_string(batch.width) : join(batch.height, "x", batch.width);
  return join(format_count(batch.count), rows ? " rows of " : " planes of ", size, ", ", to_string(batch.layout));
}

std::size_t plane_bytes(const FftBatch& batch) {
  return static_cast<std::size_t>(batch.count * batch.height * batch.width) * sizeof(float);
}

std::size_t spectrum_bytes(const FftBatch& batch) {
  return static_cast<std::size_t>(batch.count * bins_of(batch)) * 2 * sizeof(float);
}

Planes planes_of(const FftBatch& batch) {
  Planes planes;
  planes.rows = 1, planes.columns = batch.count;
  planes.column_stride = std::int64_t(batch.height) * batch.width;
  planes.row_stride = planes.column_stride * batch.count;
  planes.height = planes.window_h = planes.grid.height = planes.grid.step_h = batch.height;
  planes.width = planes.window_w = planes.grid.width = planes.grid.step_w = batch.width;
  return planes;
}

}  // namespace twiddle
