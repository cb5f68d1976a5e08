#include "framework/config/registry.h"

#include <gtest/gtest.h>

namespace twiddle {
namespace {

struct Shape2 {
  virtual ~Shape2() = default;
  virtual int sides() const = 0;
};
struct Polygon : Shape2 {
  explicit Polygon(int count) : count_(count) {}
  int sides() const override { return count_; }
  int count_;
};

Registry<Shape2, int> shapes() {
  Registry<Shape2, int> registry("shape");
  registry.add<Polygon>("polygon");
  return registry;
}

TEST(Registry, MakesByName) {
  EXPECT_EQ(shapes().make("polygon", 5)->sides(), 5);
  EXPECT_TRUE(shapes().has("polygon"));
  EXPECT_EQ(shapes().names(), std::vector<std::string>{"polygon"});
}

TEST(Registry, SuggestsSimilarName) {
  try {
    shapes().make("poligon", 5);
    FAIL() << "made a poligon";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown shape 'poligon'; did you mean 'polygon'?");
    EXPECT_EQ(error.kind(), ErrorKind::config);
  }
}

TEST(Registry, RefusesDuplicateName) {
  Registry<Shape2, int> registry = shapes();
  EXPECT_THROW(registry.add<Polygon>("polygon"), Error);
}

}  // namespace
}  // namespace twiddle
