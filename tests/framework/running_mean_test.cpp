#include "framework/running_mean.h"
#include "framework/context.h"

#include <cmath>

#include "tests/support/every_device.h"

namespace twiddle {

TEST_P(EveryDevice, RunningMeanMovesByMomentum) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const auto vector = [&](const std::vector<float>& values) {
    return Tensor::from<float>(stream, {static_cast<std::int64_t>(values.size())}, values);
  };
  std::vector<Tensor> means{vector({NAN, 2, 3, 4, 5}), vector({8})};
  move_means(stream, {vector({1, 2, 3, 4, 5}), vector({7})}, means, {vector({1}), {}});
  EXPECT_EQ(means[0].to_vector(stream), (std::vector<float>{1, 2, 3, 4, 5})) << "whatever the old value";
  move_means(stream, {vector({5, 6, 7, 8, 9}), vector({3})}, means, {vector({0.25f}), {}});
  EXPECT_EQ(means[0].to_vector(stream), (std::vector<float>{2, 3, 4, 5, 6}));
  EXPECT_EQ(means[1].to_vector(stream), (std::vector<float>{6}));
}

TEST_P(EveryDevice, RunningMeanRespectsGuard) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  std::vector<Tensor> means{Tensor::filled(stream, {2}, 1)};
  const Tensor share = Tensor::filled(stream, {1}, 0.5f), found_bad = Tensor::filled(stream, {1}, 0);
  move_means(stream, {Tensor::from<float>(stream, {2}, {3, INFINITY})}, means,
             {share, Tensor::filled(stream, {1}, 0), found_bad});
  EXPECT_EQ(means[0].to_vector(stream), (std::vector<float>{2, 1}));
  EXPECT_TRUE(std::isnan(found_bad.to_vector(stream)[0]));
  move_means(stream, {Tensor::filled(stream, {2}, 3)}, means, {share, Tensor::filled(stream, {1}, NAN), found_bad});
  EXPECT_EQ(means[0].to_vector(stream), (std::vector<float>{2, 1}));
}

}  // namespace twiddle
