#include "tests/data/fixtures.h"

namespace twiddle {

TEST(Synthetic, MakesSameImageOfModelShape) {
  const auto data = open_dataset("synthetic", mapping({{"images", "6"}, {"classes", "4"}}), {"", {3, 5, 7}, 0});
  EXPECT_EQ(data->size(), 6);
  EXPECT_EQ(data->classes().size(), 4u);
  Image first, again, next;
  EXPECT_EQ(data->get(5, first).label(), 1);
  data->get(5, again);
  data->get(4, next);
  EXPECT_EQ(first.pixels.size(), 105u);
  EXPECT_EQ(first.pixels, again.pixels);
  EXPECT_NE(first.pixels, next.pixels);
}

TEST(Synthetic, UsesClassesOfModel) {
  EXPECT_EQ(open_dataset("synthetic", mapping({}), {"", {1, 4, 4}, 7})->classes().size(), 7u);
}

TEST(Synthetic, ClassMeansIgnoreSeed) {
  const DatasetSite site{"", {1, 8, 8}, 0};
  const auto options = [](const char* seed) { return mapping({{"images", "400"}, {"classes", "2"}, {"seed", seed}}); };
  const auto train = open_dataset("synthetic", options("1"), site),
             test = open_dataset("synthetic", options("2"), site);
  const auto class_means = [](const Dataset& data) {
    std::vector<double> means(128, 0);
    Image image;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const std::int64_t label = data.get(i, image).label();
      for (std::int64_t p = 0; p < 64; ++p) means[label * 64 + p] += image.pixels[p] / 200.0;
    }
    return means;
  };
  const std::vector<double> a = class_means(*train), b = class_means(*test);
  double same = 0, other = 0;  // squared distances between class means of the two sets
  for (std::size_t i = 0; i < 128; ++i) {
    same += (a[i] - b[i]) * (a[i] - b[i]);
    other += (a[i] - b[(i + 64) % 128]) * (a[i] - b[(i + 64) % 128]);
  }
  EXPECT_LT(2 * same, other);
}

}  // namespace twiddle
