#include "models/training/rank_means.h"

#include <gtest/gtest.h>

#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

TEST(RankMeans, WeightsMeansAndAddsSums) {
  on_ranks(2, [](const std::shared_ptr<Communicator>& ranks) {
    const auto stream = make_stream({});
    const bool first = ranks->rank() == 0;
    Tensor mean = Tensor::from<float>(*stream, {2}, first ? std::vector<float>{4, 8} : std::vector<float>{8, 0});
    Tensor sum = Tensor::from<float>(*stream, {17}, std::vector<float>(17, first ? 1 : 2));
    RankMeans means(*ranks, *stream);
    means.take(*stream, Tensor::filled(*stream, {1}, first ? 0.75F : 0.25F), {mean}, {sum});
    EXPECT_EQ(mean.to_vector(*stream), (std::vector<float>{5, 6}));
    EXPECT_EQ(sum.to_vector(*stream), std::vector<float>(17, 3));
  });
}

}  // namespace
}  // namespace twiddle
