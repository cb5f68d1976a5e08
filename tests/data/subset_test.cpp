#include "data/formats/subset.h"

#include <gtest/gtest.h>

#include "framework/error.h"

namespace twiddle {
namespace {

// Ten images whose label is their index.
class Numbered : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image&) const override { return index; }
  std::string where(std::int64_t index) const override { return "image " + std::to_string(index); }
  std::string describe() const override { return "ten numbers"; }

 private:
  std::vector<std::string> classes_ = std::vector<std::string>(10, "a");
};

TEST(Subset, ShiftsTheIndex) {
  const Subset subset(std::make_unique<Numbered>(), 3, 4);
  Image image;
  EXPECT_EQ(subset.size(), 4);
  EXPECT_EQ(subset.get(0, image).label(), 3);
  EXPECT_EQ(subset.get(3, image).label(), 6);
  EXPECT_EQ(subset.where(1), "image 4");
}

TEST(Subset, ZeroCountSelectsRest) {
  EXPECT_EQ(Subset(std::make_unique<Numbered>(), 8, 0).size(), 2);
}

TEST(Subset, RefusesRangeOutsideDataset) {
  for (const auto& [first, count] : {std::pair(10, 0), std::pair(0, 11), std::pair(9, 2), std::pair(-1, 2)}) {
    EXPECT_THROW(Subset(std::make_unique<Numbered>(), first, count), Error) << first << " " << count;
  }
}

}  // namespace
}  // namespace twiddle
