#include "framework/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace twiddle {

TEST(Text, NearestNameAllowsTypo) {
  const std::vector<std::string> known{"relu", "leaky_relu", "conv2d", "max_pool", "dropout"};
  EXPECT_EQ(nearest_name("rellu", known), "relu");
  EXPECT_EQ(nearest_name("erlu", known), "relu");  // neighbours swapped
  EXPECT_EQ(nearest_name("Conv2D", known), "conv2d");
  EXPECT_EQ(nearest_name("conv", known), "conv2d");  // a part of the name
  EXPECT_EQ(nearest_name("pool", known), "max_pool");
  EXPECT_EQ(nearest_name("transformer", known), std::nullopt);
  EXPECT_EQ(nearest_name("", known), std::nullopt);
  EXPECT_EQ(nearest_name("x", known), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'r'), known), std::nullopt);
}

TEST(Text, UnknownNameSuggestsOrLists) {
  EXPECT_EQ(unknown_name("layer", "rellu", {"relu", "tanh"}), "unknown layer 'rellu'; did you mean 'relu'?");
  EXPECT_EQ(unknown_name("layer", "transformer", {"relu", "tanh"}),
            "unknown layer 'transformer'; known are: relu, tanh");
}

TEST(Text, UnknownNameSuggestsEquivalentLayer) {
  const std::vector<std::string> losses{"cross_entropy", "mean_squared_error"};
  EXPECT_EQ(unknown_name("loss", "mse", losses), "there is no loss 'mse': it is called 'mean_squared_error'");
  EXPECT_EQ(unknown_name("loss", "nn.MSELoss", losses),
            "there is no loss 'nn.MSELoss': it is called 'mean_squared_error'");
  EXPECT_EQ(unknown_name("loss", "CrossEntropy", losses),
            "there is no loss 'CrossEntropy': it is called 'cross_entropy'");
  EXPECT_EQ(unknown_name("layer", "ReflectionPad2d", {"pad"}),
            "there is no layer 'ReflectionPad2d': it is called 'pad', with 'mode: mirror'");
  EXPECT_EQ(unknown_name("layer", "softmax", {"relu"}),
            "there is no layer 'softmax': leave it out: the loss includes softmax");
  EXPECT_EQ(unknown_name("layer", "relu6", {"relu"}), "there is no layer 'relu6' yet; known are: relu");
  EXPECT_EQ(nearest_name("lr", {"learning_rate", "out"}), "learning_rate");
  EXPECT_EQ(nearest_name("cifar100", {"cifar10"}), std::nullopt);
}

TEST(Text, FormatBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1 << 20), "1 MiB");
  EXPECT_EQ(format_bytes(1546188227), "1.44 GiB");
  EXPECT_EQ(format_bytes(774144), "756 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.00 MiB");  // not 1024 KiB
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16384 PiB");
}

TEST(Text, FormatCount) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(61100840), "61,100,840");
  EXPECT_EQ(format_count(-1000), "-1,000");
}

TEST(Text, CountsOfOneAreSingular) {
  EXPECT_EQ(format_count(1, "class"), "1 class");
  EXPECT_EQ(format_count(2, "epoch"), "2 epochs");
  EXPECT_EQ(format_count(2, "batch"), "2 batches");
  EXPECT_EQ(format_count(2, "class"), "2 classes");
  EXPECT_EQ(format_count(0, "image"), "0 images");
  EXPECT_EQ(format_count(9000, "image"), "9,000 images");
}

TEST(Text, ParseBytes) {
  EXPECT_EQ(parse_bytes("1000"), 1000u);
  EXPECT_EQ(parse_bytes("512MiB"), 512u << 20);
  EXPECT_EQ(parse_bytes("2 GiB"), std::uint64_t(2) << 30);
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536u);
  EXPECT_EQ(parse_bytes("3kB"), 3000u);
  for (const char* wrong : {"", "MiB", "-1", "1.5", "12 parsecs", "1MiBs", "99999999999999999999", "nan", "1e3"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
}

TEST(Text, FormatNumberRoundTrips) {
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(5e-4), "5e-4");
  EXPECT_EQ(format_number(1e6), "1e6");
  EXPECT_EQ(format_number(0), "0");
  for (const double value : {1.0 / 3, 2.5e-300, 123456789.123}) EXPECT_EQ(std::stod(format_number(value)), value);
}

}  // namespace twiddle
