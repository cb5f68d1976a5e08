#pragma once
#include <array>
#include <string>

#include "framework/for_each.h"
#include "framework/sum_pairs.h"
#include "framework/tensor_ops.h"
#include "layers/layer.h"

namespace twiddle {

// A batch as [batch, channels, inner]: one row is one channel of one image, all its pixels; one number where images are
// rows of features.
struct BatchShape {
  std::int64_t batch, channels, inner;
  TWIDDLE_HD std::int64_t rows() const { return batch * channels; }
  TWIDDLE_HD std::int64_t values() const { return batch * inner; }  // per channel
};
BatchShape batch_shape_of(const Tensor& x);

// Throws where one image has no first axis.
void require_channels(const Site& site, const Params& params);

// Throws where one image is not channels x height x width.
void require_planes(const Site& site, const Params& params);

// A parameter of that name and shape that starts as one number and is not decayed: the factors and summands of norms,
// which decay would pull away from doing nothing.
Parameter undecayed(std::string name, Shape shape, double start);

namespace detail {

template <class Term>
struct RowPairs {
  Term element;
  float *first, *second;
  TWIDDLE_HD auto row(std::int64_t row) const { return element.row(row); }
  TWIDDLE_HD void store(std::int64_t row, const PairOf<double>& sums) const {
    first[row] = static_cast<float>(sums.first);
    second[row] = static_cast<float>(sums.second);
  }
};

template <class Term>
struct PairsDownTheBatch {  // if planes are single numbers: a row is a channel
  Term element;
  std::int64_t channels;
  struct Row {
    Term element;
    std::int64_t channels, channel;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t image) const { return element.row(image * channels + channel)(0); }
  };
  TWIDDLE_HD Row row(std::int64_t channel) const { return {element, channels, channel}; }
};

}  // namespace detail

// Two sums over each row at once: term.row(row) makes the function of a column, which gives a PairOf<float>.
template <class Term>
std::array<Tensor, 2> sum_pairs_by_row(Stream& stream, std::int64_t rows, std::int64_t columns, const Term& term) {
  Tensor first(stream, {rows}), second(stream, {rows});
  sum_pairs_of_rows(stream, rows, columns, detail::RowPairs<Term>{term, first.write(), second.write()});
  return {first, second};
}

// The same over each channel: the gradients of what a channel shares.
template <class Term>
std::array<Tensor, 2> sum_pairs_by_channel(Stream& stream, const BatchShape& planes, const Term& term) {
  if (planes.inner == 1)
    return sum_pairs_by_row(stream, planes.channels, planes.batch,
                            detail::PairsDownTheBatch<Term>{term, planes.channels});
  const auto [first, second] = sum_pairs_by_row(stream, planes.rows(), planes.inner, term);
  return {sum_over_channels(stream, first, planes.channels, 1), sum_over_channels(stream, second, planes.channels, 1)};
}

}  // namespace twiddle
