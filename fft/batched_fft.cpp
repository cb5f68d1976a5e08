#include "fft/batched_fft.h"

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

std::int64_t bins_of(const FftBatch& batch) {
  const std::int64_t half_row = batch.width / 2 + 1;
  if (batch.layout != BinLayout::packed) return batch.height * half_row;
  return 2 * half_row + std::int64_t(batch.height / 2 - 1) * batch.width;
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

// Packed: rows 0 and height / 2, of which a half tells all; then rows 1 .. height / 2 - 1, whole.
BinPlace bin_place(const FftBatch& batch, std::int64_t plane, int row, int column) {
  const int half_row = batch.width / 2 + 1;
  std::int64_t bin = std::int64_t(row) * half_row + column;
  bool conjugate = false;
  if (batch.layout == BinLayout::packed) {
    conjugate = row > batch.height / 2;
    if (conjugate) row = batch.height - row, column = (batch.width - column) % batch.width;
    if (row % (batch.height / 2) == 0)
      bin = (row == 0 ? 0 : half_row) + column;
    else
      bin = 2 * half_row + std::int64_t(row - 1) * batch.width + column;
  }
  return {batch.layout == BinLayout::plane_major ? plane * bins_of(batch) + bin : bin * batch.count + plane, conjugate};
}

}  // namespace twiddle
