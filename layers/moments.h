#pragma once
#include <cmath>

#include "framework/for_each.h"
#include "framework/tensor.h"

namespace twiddle {

// The mean of some numbers and the sum of their squared deviations from it.
struct Moments {
  double count, mean, deviations;
};

// The moments of both sets together: Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances, 1979. No digits are lost, however far from zero the mean is.
TWIDDLE_HD inline Moments joined(const Moments& a, const Moments& b) {
  if (a.count == 0) return b;
  const double count = a.count + b.count, step = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + step * share, a.deviations + b.deviations + step * step * a.count * share};
}

// 1 / deviation. NaN if the variance overflows a float, so that the outputs become NaN and not zeros without a warning.
TWIDDLE_HD inline float inverse_deviation(float variance, float epsilon) {
  return variance - variance == 0 ? 1 / sqrtf(variance + epsilon) : NAN;
}
TWIDDLE_HD inline float inverse_deviation(const Moments& all, float epsilon) {
  return inverse_deviation(static_cast<float>(all.deviations / all.count), epsilon);
}

// The moments of a matrix's rows, two numbers per row.
struct RowMoments {
  double columns;
  const float* values;
  TWIDDLE_HD Moments of(std::int64_t row) const { return {columns, values[2 * row], values[2 * row + 1]}; }
};

// The part of an operation of fold_rows that joins moments.
struct JoinMoments {
  TWIDDLE_HD Moments start() const { return {0, 0, 0}; }
  TWIDDLE_HD Moments join(const Moments& a, const Moments& b) const { return joined(a, b); }
};

// x as a matrix, also of bf16 or f16: the mean of each row and the squared deviations from it, as f32 [rows, 2]. Memory
// is read once.
Tensor row_moments(Stream& stream, const Tensor& x, std::int64_t rows, std::int64_t columns);

}  // namespace twiddle
