#include "data/formats/relabeled.h"

#include "tests/data/numbers.h"

namespace twiddle {

TEST(Relabeled, MapsLabelsByName) {
  const Relabeled data(std::make_unique<Numbers>(10), {"9", "8", "7", "6", "5", "4", "3", "2", "1", "0", "more"});
  Image image;
  EXPECT_EQ(data.classes().back(), "more");
  EXPECT_EQ(data.get(2, image).label(), 7);
  EXPECT_EQ(data.labels(9), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(data.describe(), "numbers");
}

TEST(Relabeled, RefusesClassUnknownToNetwork) {
  EXPECT_THROW(Relabeled(std::make_unique<Numbers>(10), {"0", "1"}), Error);
  EXPECT_EQ(unknown_names({"a", "b", "c"}, {"c", "a"}), (std::vector<std::string>{"b"}));
}

// A wrong label must not become another class.
TEST(Relabeled, KeepsWrongLabelWrong) {
  auto numbers = std::make_unique<Numbers>(11);
  numbers->label_of_ten = 10;
  const Relabeled data(std::move(numbers), {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "more"});
  Image image;
  EXPECT_EQ(data.get(10, image).label(), -1);
}

}  // namespace twiddle
