#include "fft/frequency_buffers.h"

#include <gtest/gtest.h>

#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

class Buffers : public testing::Test {
 protected:
  Buffers() { planes_ = planes_of(problem_, ConvOperand::x, whole_plane(problem_, 8, 8)); }
  bool current(const Tensor& source, std::size_t bytes = 1000) {
    return buffers_.spectrum(*ctx_.stream, source, planes_, "way", bytes).current;
  }
  Context ctx_;
  ConvProblem problem_ = conv_problem("1x1x6x6 * 1x1x3x3 pad 1");
  Planes planes_;
  FrequencyBuffers buffers_{3000};
  Tensor x_ = Tensor::filled(*ctx_.stream, {36}, 0), y_ = Tensor::filled(*ctx_.stream, {36}, 0);
};

TEST_F(Buffers, KeepWhatIsStillTrue) {
  EXPECT_FALSE(current(x_));
  EXPECT_TRUE(current(x_));
  EXPECT_FALSE(current(y_));
  EXPECT_TRUE(current(x_.reshaped({6, 6})));  // the same elements
  x_.write();
  EXPECT_FALSE(current(x_));
  EXPECT_TRUE(current(y_));
  EXPECT_EQ(buffers_.use().computed, 3);
  EXPECT_EQ(buffers_.use().reused, 3);
  EXPECT_EQ(buffers_.use().held, 2000u);  // what x was before is not kept
}

TEST_F(Buffers, TellOtherCutsAndWaysApart) {
  EXPECT_FALSE(current(x_));
  EXPECT_FALSE(buffers_.spectrum(*ctx_.stream, x_, planes_, "another", 1000).current);
  planes_ = planes_of(problem_, ConvOperand::x, whole_plane(problem_, 8, 10));
  EXPECT_FALSE(current(x_));
}

TEST_F(Buffers, DropWhatWasUsedLongestAgo) {
  const Tensor z = Tensor::filled(*ctx_.stream, {36}, 0);
  current(x_), current(y_), current(x_);
  EXPECT_FALSE(current(z, 2000));
  EXPECT_TRUE(current(x_));
  EXPECT_FALSE(current(y_));
  EXPECT_LE(buffers_.use().peak, 3000u);
}

TEST_F(Buffers, LeaveWhatAPassWorksWith) {
  const auto held = buffers_.spectrum(*ctx_.stream, x_, planes_, "way", 1000);
  current(y_);
  { const auto scratch = buffers_.scratch(*ctx_.stream, 2000); }
  EXPECT_TRUE(current(x_));
  EXPECT_FALSE(current(y_));
}

TEST_F(Buffers, CountScratchUntilItIsGivenBack) {
  auto scratch = buffers_.scratch(*ctx_.stream, 500);
  EXPECT_EQ(buffers_.use().held, 500u);
  scratch.reset();
  EXPECT_EQ(buffers_.use().held, 0u);
  EXPECT_EQ(buffers_.use().peak, 500u);
  EXPECT_EQ(buffers_.scratch(*ctx_.stream, 0), nullptr);
}

}  // namespace
}  // namespace twiddle
