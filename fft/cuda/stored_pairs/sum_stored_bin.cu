#include <cuda_fp16.h>

#include "fft/cuda/stored_pairs/line_exponents.h"

namespace twiddle::stored_pairs {

namespace {

struct ColumnSum {
  StoredSpectrum of;
  const __half* halves;
  const int *of_columns, *of_rows;
  bool add;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    const int planes = 2 * of.halves_a_float;
    const __half* const high =
        halves + (row * of.columns + column / columns_a_group * columns_a_group) * planes + column % columns_a_group;
    const float low = of.halves_a_float == 2 ? __half2float(high[re_low * columns_a_group]) : 0;
    const float sum = __half2float(high[0]) + low;
    return sum * scale_back(of_columns[column] + of_rows[row]);
  }
  TWIDDLE_HD void store(std::int64_t column, double sum) const {
    sums[column] = static_cast<float>(add ? sums[column] + sum : sum);
  }
};

}  // namespace

void sum_first_bin(Stream& stream, const StoredSpectrum& of, const void* spectrum, bool add, float* sums) {
  reduce_columns(
      stream, of.rows, of.columns,
      ColumnSum{of, static_cast<const __half*>(spectrum), of.of_columns(spectrum), of.of_rows(spectrum), add, sums});
}

}  // namespace twiddle::stored_pairs
