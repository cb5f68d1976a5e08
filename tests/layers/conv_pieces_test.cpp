#include "layers/conv/tuner/pieces.h"

#include <gtest/gtest.h>

#include "layers/conv/engines/engines.h"

namespace twiddle {

namespace {

constexpr ConvPass weight_gradient = ConvPass::backward_weight;

std::vector<float> ramp(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 23) - 11;
  return values;
}

// Returns the elements of a piece of a plain tensor, contiguously.
std::vector<float> cut(const std::vector<float>& plain, const Shape& shape, std::int64_t begin, const Shape& piece) {
  std::vector<float> values;
  for (std::int64_t image = 0; image < piece[0]; ++image)
    for (std::int64_t channel = 0; channel < piece[1]; ++channel)
      for (std::int64_t row = 0; row < piece[2]; ++row)
        for (std::int64_t column = 0; column < piece[3]; ++column)
          values.push_back(plain.at(
              static_cast<std::size_t>(begin + ((image * shape[1] + channel) * shape[2] + row) * shape[3] + column)));
  return values;
}

// Computes one element of the weight gradient of a piece. The bottom and right padding is not given, so it is not used.
double gradient_of(const Piece& piece, const std::vector<float>& x, const std::vector<float>& y, int filter,
                   int channel, int kernel_row, int kernel_column) {
  const ConvProblem& p = piece.problem;
  double sum = 0;
  for (int image = 0; image < p.batch; ++image)
    for (int row = 0; row < piece.out_height; ++row)
      for (int column = 0; column < piece.out_width; ++column) {
        const int from_row = row * p.stride_h - p.pad_h + kernel_row * p.dilation;
        const int from_column = column * p.stride_w - p.pad_w + kernel_column * p.dilation;
        if (from_row < 0 || from_row >= p.height || from_column < 0 || from_column >= p.width) continue;
        sum +=
            double(y[static_cast<std::size_t>(
                ((image * p.filters + filter) * piece.out_height + row) * piece.out_width + column)]) *
            x[static_cast<std::size_t>(((image * p.channels + channel) * p.height + from_row) * p.width + from_column)];
      }
  return sum;
}

void expect_pieces_add_up(const ConvProblem& problem, std::int64_t longest_sum) {
  SCOPED_TRACE(to_string(problem) + " in sums of " + std::to_string(longest_sum));
  const std::vector<float> x = ramp(problem.input_shape()), y = ramp(problem.output_shape());
  std::vector<double> sums(static_cast<std::size_t>(count_of(problem.weight_shape())));
  for (const auto& [piece, x_begin, y_begin, unmoved] : pieces_of(problem, longest_sum)) {
    const ConvProblem& p = piece.problem;
    EXPECT_LE(std::int64_t(p.batch) * piece.out_height * piece.out_width, longest_sum);
    const auto x_piece = cut(x, problem.input_shape(), x_begin, {p.batch, p.channels, p.height, p.width});
    const auto y_piece =
        cut(y, problem.output_shape(), y_begin, {p.batch, p.filters, piece.out_height, piece.out_width});
    std::size_t i = 0;
    for (int filter = 0; filter < p.filters; ++filter)
      for (int channel = 0; channel < p.channels; ++channel)
        for (int row = 0; row < p.kernel_h; ++row)
          for (int column = 0; column < p.kernel_w; ++column)
            sums[i++] += gradient_of(piece, x_piece, y_piece, filter, channel, row, column);
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(sums[i], conv_reference(problem, weight_gradient, x.data(), nullptr, y.data(), nullptr,
                                      static_cast<std::int64_t>(i)));
}

}  // namespace

TEST(ConvPieces, ShortSumsAreNotSplit) {
  const ConvProblem problem{.batch = 4, .height = 10, .width = 10, .kernel_h = 3, .kernel_w = 3};
  const auto pieces = pieces_of(problem, 4 * 8 * 8);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].piece, whole(problem));
}

TEST(ConvPieces, LongSumsSplitIntoEqualBatches) {
  const ConvProblem problem{.batch = 64, .height = 28, .width = 28, .kernel_h = 5, .kernel_w = 5};
  const auto pieces = pieces_of(problem, 17 * 24 * 24);
  ASSERT_EQ(pieces.size(), 4u);
  for (const PlacedPiece& placed : pieces) EXPECT_EQ(placed.piece.problem.batch, 16);
  EXPECT_EQ(pieces[3].x, 48 * 28 * 28);
  EXPECT_EQ(pieces[3].y, 48 * 24 * 24);
}

TEST(ConvPieces, SumToWholeResult) {
  ConvProblem plain{.batch = 7, .channels = 2, .height = 9, .width = 8, .filters = 3, .kernel_h = 3, .kernel_w = 2};
  for (const std::int64_t longest : {1, 5, 7, 13, 49, 100, 1000}) expect_pieces_add_up(plain, longest);
  ConvProblem odd{.batch = 2, .channels = 1, .height = 13, .width = 11, .filters = 2, .kernel_h = 3, .kernel_w = 4};
  odd.stride_h = 2, odd.stride_w = 3, odd.pad_h = 4, odd.pad_w = 5, odd.dilation = 2;
  for (const std::int64_t longest : {1, 2, 3, 6, 12, 40}) expect_pieces_add_up(odd, longest);
}

TEST(ConvPieces, OmitOutputsThatOnlyReadPadding) {
  const ConvProblem framed{.height = 2, .width = 2, .pad_h = 3, .pad_w = 3};
  EXPECT_EQ(pieces_of(framed, 1).size(), 4u);  // of 8x8 outputs
  expect_pieces_add_up(framed, 1);
  const ConvProblem unseen{.height = 1, .width = 1, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
  EXPECT_TRUE(pieces_of(unseen, 1).empty());
}

TEST(ConvPieces, PartsCoverChannelsOrFiltersOnce) {
  const ConvProblem problem{
      .batch = 2, .channels = 50, .height = 6, .width = 5, .filters = 70, .kernel_h = 3, .kernel_w = 2};
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input})
    for (const std::int64_t longest : {1, 40, 100, 250, 100000}) {
      const bool forward = pass == ConvPass::forward;
      const std::int64_t planes = forward ? 50 : 70, plane = forward ? 30 : 16, taps = 6;
      std::int64_t done = 0;
      for (const auto& [piece, x, y, w] : parts_of_sum(problem, pass, longest)) {
        const std::int64_t own = forward ? piece.problem.channels : piece.problem.filters;
        EXPECT_TRUE(own == 1 || own * taps <= longest) << own;
        EXPECT_EQ(forward ? x : y, done * plane);
        EXPECT_EQ(forward ? y : x, 0);
        EXPECT_EQ(w, done * taps * (forward ? 1 : 50));
        done += own;
      }
      EXPECT_EQ(done, planes);
    }
}

TEST(ConvPieces, GroupsAreNotSplit) {
  const ConvProblem grouped{.channels = 50, .height = 6, .width = 6, .filters = 50, .groups = 2};
  EXPECT_EQ(parts_of_sum(grouped, ConvPass::forward, 10).size(), 1u);
}

}  // namespace twiddle
