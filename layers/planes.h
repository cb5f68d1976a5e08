#pragma once
#include <string>

#include "framework/for_each.h"
#include "framework/tensor_ops.h"
#include "layers/layer.h"

namespace twiddle {

// A batch as [batch, channels, inner]: one row is one channel of one image, all its pixels; one number where images are
// rows of features.
struct Planes {
  std::int64_t batch, channels, inner;
  TWIDDLE_HD std::int64_t rows() const { return batch * channels; }
  TWIDDLE_HD std::int64_t values() const { return batch * inner; }  // per channel
};
Planes planes_of(const Tensor& x);

// Throws where one image has no first axis.
void require_channels(const Site& site, const Params& params);

// A parameter of that name and shape that starts as one number and is not decayed: the factors and summands of norms,
// which decay would pull away from doing nothing.
Parameter undecayed(std::string name, Shape shape, double start);

namespace detail {

template <class Term>
struct RowSums {  // of term(row, column), for each channel of each image
  Term element;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return element(row, column); }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

template <class Term>
struct FeatureSums {  // where a row is but one number: down the batch
  Term element;
  std::int64_t channels;
  float* sums;
  TWIDDLE_HD float term(std::int64_t image, std::int64_t channel) const {
    return element(image * channels + channel, 0);
  }
  TWIDDLE_HD void store(std::int64_t channel, double sum) const { sums[channel] = static_cast<float>(sum); }
};

}  // namespace detail

// For each channel the sum of term(row, column) over batch and pixels: the gradient of what a channel shares.
template <class Term>
Tensor sum_by_channel(Stream& stream, const Planes& planes, const Term& term) {
  if (planes.inner == 1) {
    Tensor sums(stream, {planes.channels});
    reduce_columns(stream, planes.batch, planes.channels,
                   detail::FeatureSums<Term>{term, planes.channels, sums.write()});
    return sums;
  }
  Tensor row_sums(stream, {planes.rows()});
  reduce_rows(stream, planes.rows(), planes.inner, detail::RowSums<Term>{term, row_sums.write()});
  return sum_over_channels(stream, row_sums, planes.channels, 1);
}

}  // namespace twiddle
