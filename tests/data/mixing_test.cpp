#include "data/augmentation/mixing.h"
#include "framework/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twiddle {
namespace {

// A batch whose image i has the value i everywhere and the one-hot target i.
struct MixedBatch {
  std::int64_t count;
  std::vector<std::int64_t> shape{2, 6, 8};
  std::vector<float> images, shares;

  MixedBatch(std::int64_t images_in_batch, const Mixing& mixing, std::uint64_t seed)
      : count(images_in_batch),
        images(static_cast<std::size_t>(count * 96)),
        shares(static_cast<std::size_t>(count * count)) {
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i / 96);
    for (std::int64_t i = 0; i < count; ++i) at(i, i) = 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::int64_t i = 0; i < count / 2; ++i) pairs.emplace_back(i, count - 1 - i);
    mix(mixing, RandomSequence{seed}, pairs, shape, images.data(), count, shares.data());
  }
  float& at(std::int64_t image, std::int64_t label) { return shares[static_cast<std::size_t>(image * count + label)]; }
};

TEST(Mixing, MixupBlendsImagesAndTargetsEqually) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MixedBatch batch(5, {.mixup = 0.2}, seed);
    const float lambda = batch.at(0, 0);
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int64_t j = 4 - i;
      EXPECT_FLOAT_EQ(batch.at(i, i) + (i == j ? 0 : batch.at(i, j)), 1);
      EXPECT_FLOAT_EQ(batch.at(i, i), i == j ? 1 : lambda);
      const float wanted = lambda * static_cast<float>(i) + (1 - lambda) * static_cast<float>(j);
      for (std::size_t k = 0; k < 96; ++k)
        EXPECT_NEAR(batch.images[static_cast<std::size_t>(i) * 96 + k], wanted, 1e-5);
    }
  }
}

TEST(Mixing, CutmixTargetWeightIsBoxArea) {
  std::int64_t boxes = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    MixedBatch batch(4, {.cutmix = 1}, seed);
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto partner = static_cast<float>(3 - i);
      std::int64_t of_partner = 0;
      for (std::size_t k = 0; k < 96; ++k) {
        const float value = batch.images[static_cast<std::size_t>(i) * 96 + k];
        ASSERT_TRUE(value == static_cast<float>(i) || value == partner) << value;
        of_partner += value == partner;
      }
      EXPECT_NEAR(batch.at(i, 3 - i), static_cast<float>(of_partner) / 96, 1e-6);
      boxes += of_partner > 0 && of_partner < 96;
    }
  }
  EXPECT_GT(boxes, 50);
}

TEST(Mixing, LeavesSingleImageAlone) {
  for (const Mixing& mixing : {Mixing{.mixup = 0.2}, Mixing{.cutmix = 1}, Mixing{.mixup = 1, .cutmix = 1}}) {
    MixedBatch batch(1, mixing, 3);
    EXPECT_EQ(batch.at(0, 0), 1);
    EXPECT_EQ(batch.images, std::vector<float>(96, 0));
  }
}

TEST(Mixing, UsesMixupOrCutmixPerBatch) {
  std::int64_t blended = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const MixedBatch batch(2, {.mixup = 1, .cutmix = 1}, seed);
    blended += batch.images[0] > 0 && batch.images[0] < 1;
  }
  EXPECT_NEAR(static_cast<double>(blended), 100, 30);
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)).
TEST(Mixing, BetaHasItsMeanAndVariance) {
  constexpr int draws = 20000;
  for (const double alpha : {0.01, 0.2, 1.0, 3.0}) {
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < draws; ++i) {
      const double value = beta(alpha, RandomSequence{5}.split(i));
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 1);
      sum += value, squares += (value - 0.5) * (value - 0.5);
    }
    EXPECT_NEAR(sum / draws, 0.5, 0.015) << alpha;
    EXPECT_NEAR(squares / draws * 4 * (2 * alpha + 1), 1, 0.05) << alpha;
  }
}

}  // namespace
}  // namespace twiddle
