#include "models/training/epoch_span.h"

#include <gtest/gtest.h>

namespace twiddle {

TEST(EpochSpan, CountsShortLastBatch) {
  const EpochSpan span{90, 20, 5};
  EXPECT_EQ(span.end(), 90);
  EXPECT_EQ(span.batches(40), 2);
  EXPECT_EQ(span.batches(90), 5);
  for (int batch = 0; batch < 5; ++batch) EXPECT_EQ(span.share(20 * batch), batch / 5.0);
  EXPECT_EQ(span.share(90), 1);
  EXPECT_FALSE(span.over(80));
  EXPECT_TRUE(span.over(90));
}

TEST(EpochSpan, ResumesWithAnotherBatchSize) {
  const EpochSpan before{90, 20, 5}, after{90, 25, 4};
  EXPECT_EQ(before.share(40), 0.4);
  EXPECT_EQ(after.share(40), 0.4);
  EXPECT_EQ(after.batches(65), 3);
  EXPECT_FALSE(after.over(65));
}

TEST(EpochSpan, EndsEarlierIfStepsAreLimited) {
  EXPECT_EQ((EpochSpan{90, 20, 2}.end()), 40);
  EXPECT_EQ((EpochSpan{10, 20, 1, true}.end()), 20);  // of the same short batch each time
}

}  // namespace twiddle
