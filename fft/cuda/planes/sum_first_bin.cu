#include "fft/cuda/planes/fbfft_kernels.h"

namespace twiddle::small_fft {

namespace {

struct ColumnSum {
  std::int64_t columns;
  const Complex* bin;
  bool add;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return bin[row * columns + column].re; }
  TWIDDLE_HD void store(std::int64_t column, double sum) const {
    sums[column] = static_cast<float>(add ? sums[column] + sum : sum);
  }
};

}  // namespace

void sum_first_bin(Stream& stream, std::int64_t rows, std::int64_t columns, const Complex* bin, bool add, float* sums) {
  reduce_columns(stream, rows, columns, ColumnSum{columns, bin, add, sums});
}

}  // namespace twiddle::small_fft
