#include "layers/conv/engines/epilogue.h"

#include <algorithm>
#include <cmath>

#include "framework/random.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// Small whole numbers around zero, so that sums of them are exact.
std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(RandomSequence{seed}.below(i, 9)) - 4;
  return values;
}

// Rows shorter and longer than a warp, and than a block's step.
constexpr std::int64_t widths[] = {1, 7, 33, 169, 729, 1024, 1025, 3025, 9001};

}  // namespace

TEST_P(EveryDevice, EpilogueAddsBiasAndAppliesRelu) {
  const auto stream = make_stream(GetParam());
  const std::vector<float> bias = {1, -2, 0.5f};
  for (const std::int64_t width : widths) {
    const std::vector<float> y = numbers(2 * 3 * width, 1);
    for (const bool biased : {true, false})
      for (const bool relu : {true, false}) {
        ConvOperands operands;
        operands.y = Tensor::from(*stream, {2, 3, 1, width}, y);
        if (biased) operands.bias = Tensor::from(*stream, {3}, bias);
        operands.relu = relu;
        add_bias_and_relu(*stream, operands);
        std::vector<float> expected = y;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          if (biased) expected[i] += bias[i / static_cast<std::size_t>(width) % 3];
          if (relu) expected[i] = std::max(expected[i], 0.0f);
        }
        EXPECT_EQ(operands.y.to_vector(*stream), expected) << width << " wide, bias " << biased << ", relu " << relu;
      }
  }
}

TEST_P(EveryDevice, EpilogueComputesReluAndBiasGradients) {
  const auto stream = make_stream(GetParam());
  for (const std::int64_t width : widths) {
    const std::vector<float> y = numbers(2 * 3 * width, 1), grad = numbers(2 * 3 * width, 2);
    for (const bool relu : {true, false}) {
      std::vector<float> passed = grad, sums(3, 0.0f);
      for (std::size_t i = 0; i < grad.size(); ++i) {
        if (relu && !(y[i] > 0)) passed[i] = 0;
        sums[i / static_cast<std::size_t>(width) % 3] += passed[i];
      }
      const Tensor output = Tensor::from(*stream, {2, 3, 1, width}, y),
                   given = Tensor::from(*stream, output.shape(), grad);
      for (const bool wants_bias : {true, false}) {
        Tensor grad_y = given;
        const Tensor bias = relu_and_bias_backward(*stream, output, relu, wants_bias, grad_y);
        EXPECT_EQ(grad_y.to_vector(*stream), passed) << width << " wide";
        EXPECT_EQ(given.to_vector(*stream), grad) << "another owner's gradient was changed";
        ASSERT_EQ(bias.defined(), wants_bias);
        if (wants_bias) {
          EXPECT_EQ(bias.to_vector(*stream), sums) << width << " wide, relu " << relu;
        }
      }
    }
  }
}

TEST_P(EveryDevice, EpilogueKeepsNan) {
  const auto stream = make_stream(GetParam());
  Tensor y = Tensor::from<float>(*stream, {2}, {NAN, -1});
  relu_in_place(*stream, y);
  EXPECT_TRUE(std::isnan(y.to_vector(*stream)[0]));
  EXPECT_EQ(y.to_vector(*stream)[1], 0);
}

}  // namespace twiddle
