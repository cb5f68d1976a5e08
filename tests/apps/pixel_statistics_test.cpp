#include "apps/verbs/pixel_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twiddle {
namespace {

// An image of two channels and one of another size.
class TwoPictures : public Dataset {
 public:
  std::int64_t size() const override { return 2; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override {
    image = index == 0 ? Image{2, 1, 2, {0, 255, 51, 51}} : Image{2, 1, 1, {255, 102}};
    return 0;
  }
  std::vector<std::int64_t> labels(std::int64_t) const override { return {0}; }
  std::string where(std::int64_t) const override { return ""; }
  std::string describe() const override { return ""; }

 private:
  std::vector<std::string> classes_{"one"};
};

TEST(PixelStatistics, WeightImagesEqually) {
  const TwoPictures pictures;
  const PixelStatistics statistics(pictures);
  EXPECT_TRUE(statistics.mean().empty());
  Image image;
  for (const std::int64_t i : {0, 1}) statistics.get(i, image);
  EXPECT_DOUBLE_EQ(statistics.mean().at(0), 0.75);
  EXPECT_DOUBLE_EQ(statistics.deviation().at(0), std::sqrt(0.75 - 0.75 * 0.75));
  EXPECT_DOUBLE_EQ(statistics.mean().at(1), 0.3);
  EXPECT_NEAR(statistics.deviation().at(1), 0.1, 1e-12);
}

TEST(PixelStatistics, ReadsLabelsWithoutImages) {
  const TwoPictures pictures;
  const PixelStatistics statistics(pictures);
  EXPECT_EQ(statistics.labels(0), (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(statistics.mean().empty());
}

}  // namespace
}  // namespace twiddle
