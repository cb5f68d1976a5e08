#include "fft/winograd/winograd_form.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace twiddle {
namespace {

// Lines of doubles, so that what is left of a difference is an error of the matrices.
template <int count>
struct Line {
  double at[count] = {};
};

template <int count>
Line<count> noisy_line() {
  static std::mt19937 random(3);
  std::normal_distribution<double> normal;
  Line<count> line;
  for (double& value : line.at) value = normal(random);
  return line;
}

template <auto line, int in, int out>
Line<out> apply(const Line<in>& from) {
  Line<out> to;
  line(from.at, to.at);
  return to;
}

template <int count>
double dot(const Line<count>& a, const Line<count>& b) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += a.at[i] * b.at[i];
  return sum;
}

template <class Form>
class WinogradFormTest : public testing::Test {};
using Forms = testing::Types<WinogradForm<2>, WinogradForm<4>>;
TYPED_TEST_SUITE(WinogradFormTest, Forms);

TYPED_TEST(WinogradFormTest, ProductsOfBinsAreCorrelations) {
  constexpr int outputs = TypeParam::outputs, points = TypeParam::points;
  const Line<points> x = noisy_line<points>();
  const Line<3> w = noisy_line<3>();
  const auto of_x = apply<TypeParam::template input<double>, points, points>(x);
  const auto of_w = apply<TypeParam::template filter<double>, 3, points>(w);
  Line<points> products;
  for (int i = 0; i < points; ++i) products.at[i] = of_x.at[i] * of_w.at[i];
  const auto y = apply<TypeParam::template output<double>, points, outputs>(products);
  for (int i = 0; i < outputs; ++i)
    EXPECT_NEAR(y.at[i], w.at[0] * x.at[i] + w.at[1] * x.at[i + 1] + w.at[2] * x.at[i + 2], 1e-6);
}

// <L a, b> = <a, L' b>.
template <auto line, auto transposed, int in, int out>
void expect_transposed() {
  const Line<in> a = noisy_line<in>();
  const Line<out> b = noisy_line<out>();
  EXPECT_NEAR((dot(apply<line, in, out>(a), b)), (dot(a, apply<transposed, out, in>(b))), 1e-6);
}

TYPED_TEST(WinogradFormTest, HasTransposeOfEachMatrix) {
  constexpr int outputs = TypeParam::outputs, points = TypeParam::points;
  expect_transposed<TypeParam::template input<double>, TypeParam::template input_transposed<double>, points, points>();
  expect_transposed<TypeParam::template filter<double>, TypeParam::template filter_transposed<double>, 3, points>();
  expect_transposed<TypeParam::template output<double>, TypeParam::template output_transposed<double>, points,
                    outputs>();
}

TYPED_TEST(WinogradFormTest, BinsGiveSumOfOutputs) {
  constexpr int outputs = TypeParam::outputs, points = TypeParam::points;
  const Line<outputs> y = noisy_line<outputs>();
  double sum = 0;
  for (const double value : y.at) sum += value;
  EXPECT_NEAR(TypeParam::sum(apply<TypeParam::template output_transposed<double>, outputs, points>(y).at), sum, 1e-6);
}

// to = L from L'.
TEST(Winograd, NestsLineInBothDimensions) {
  using Form = WinogradForm<4>;
  double w[3][3], bins[6][6];
  for (auto& row : w)
    for (double& value : row) value = noisy_line<1>().at[0];
  nest<Form::filter<double>>(w, bins);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) {
      double expected = 0;
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
          double unit_r[3] = {}, unit_c[3] = {}, of_r[6], of_c[6];
          unit_r[r] = unit_c[c] = 1;
          Form::filter(unit_r, of_r), Form::filter(unit_c, of_c);
          expected += of_r[i] * of_c[j] * w[r][c];
        }
      EXPECT_NEAR(bins[i][j], expected, 1e-12) << i << ", " << j;
    }
}

}  // namespace
}  // namespace twiddle
