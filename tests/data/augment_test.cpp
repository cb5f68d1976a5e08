#include "data/augmentation/augment.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

// One channel, height x width, with the values 0, 1, 2 ...
Image counting(int height, int width) {
  Image image{1, height, width, {}};
  for (int i = 0; i < height * width; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i));
  return image;
}

std::vector<float> run(const Augment& augment, Image image, std::uint64_t seed = 1) {
  const auto& shape = augment.image_shape();
  std::vector<float> out(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
  augment(image, RandomSequence{seed, 0}, out.data());
  return out;
}

// The values 0..255 that the network receives.
std::vector<int> bytes(const std::vector<float>& values) {
  std::vector<int> result;
  for (const float value : values) result.push_back(static_cast<int>(value * 255 + 0.5f));
  return result;
}

std::vector<int> steps(const std::vector<Value>& list, std::vector<std::int64_t> shape, const Image& image,
                       std::uint64_t seed = 1) {
  return bytes(run(read_augment(mapping({{"augment", sequence(list)}}), std::move(shape)), image, seed));
}

std::string failure(const Value& data, std::vector<std::int64_t> shape = {3, 4, 4}) {
  return message_of(ErrorKind::config, [&] { read_augment(data, std::move(shape)); });
}

}  // namespace

TEST(Resized, HalvingUsesTriangleFilter) {
  // Output 0 is centred on 1.0 with reach 2: inputs at 0.5, 1.5, 2.5 weigh 0.75, 0.75, 0.25.
  const Image image{1, 1, 4, {0, 70, 140, 210}};
  EXPECT_EQ(resized(image, 1, 2).pixels, (Bytes{50, 160}));  // (0.75 * 70 + 0.25 * 140) / 1.75, and its mirror
}

TEST(Resized, EnlargingIsBilinear) {
  const Image image{1, 2, 1, {0, 100}};
  EXPECT_EQ(resized(image, 4, 1).pixels, (Bytes{0, 25, 75, 100}));
}

TEST(Resized, KeepsFlatColorsAndEqualSizes) {
  const Image flat{3, 7, 5, Bytes(105, 200)};
  EXPECT_EQ(resized(flat, 3, 11).pixels, Bytes(99, 200));
  EXPECT_EQ(resized(counting(3, 3), 3, 3).pixels, counting(3, 3).pixels);
}

TEST(Resized, WindowEqualsResizeOfCrop) {
  const Image image = counting(40, 37);
  for (const int side : {1, 7, 8, 9, 17, 24}) {
    const Window window{40 - side, 3, side, 33};
    const Image cut = cropped(image, window.top, window.left, window.height, window.width);
    for (const int width : {5, 16, 35, 70})
      EXPECT_EQ(resized(image, window, 13, width).pixels, resized(cut, 13, width).pixels) << side << " to " << width;
  }
}

TEST(Resized, StrongShrinkingAveragesAllPixels) {
  Image image{1, 600, 300, {}};
  for (int i = 0; i < 600 * 300; ++i) image.pixels.push_back(i % 2 ? 254 : 0);
  EXPECT_NEAR(resized(image, 1, 1).pixels[0], 127, 1);
  EXPECT_EQ(resized({1, 255, 1, Bytes(255, 255)}, 1, 1).pixels, Bytes{255});
}

TEST(Resized, KeepsBrightnessAtAnyRatio) {
  for (const int length : {60, 250, 255, 256, 1000, 5000, 32768})
    for (const int value : {255, 254, 128, 77, 1})
      EXPECT_EQ(resized({1, length, 1, Bytes(static_cast<std::size_t>(length), static_cast<std::uint8_t>(value))}, 1, 1)
                    .pixels[0],
                value)
          << length;
}

TEST(Resized, WeighsNoiseExactlyAtAnyRatio) {
  for (const int length : {4, 24, 60, 65, 256, 3000, 32768}) {
    Image image{1, length, 1, {}};
    double sum = 0, weights = 0;
    for (int i = 0; i < length; ++i) {
      image.pixels.push_back(static_cast<std::uint8_t>(RandomSequence{5}.below(i, 256)));
      const double weight = 1 - std::abs((i + 0.5) / length - 0.5);  // a triangle twice as wide as the image
      sum += weight * image.pixels.back(), weights += weight;
    }
    EXPECT_NEAR(resized(image, 1, 1).pixels[0], sum / weights, 0.6) << length;
  }
}

TEST(Cropped, FillsOutsideWithZeros) {
  EXPECT_EQ(cropped(counting(3, 3), 1, 1, 2, 2).pixels, (Bytes{4, 5, 7, 8}));
  EXPECT_EQ(cropped(counting(3, 3), -1, 2, 3, 2).pixels, (Bytes{0, 0, 2, 0, 5, 0}));
  EXPECT_EQ(cropped(counting(2, 2), 5, -9, 1, 2).pixels, (Bytes{0, 0}));
}

TEST(FlipHorizontally, ReversesEachRow) {
  Image image = counting(2, 3);
  flip_horizontally(image);
  EXPECT_EQ(image.pixels, (Bytes{2, 1, 0, 5, 4, 3}));
  for (const int width : {8, 13, 16, 20}) {
    image = counting(3, width);
    flip_horizontally(image);
    for (int i = 0; i < 3 * width; ++i)
      EXPECT_EQ(image.pixels[static_cast<std::size_t>(i)], i / width * width + width - 1 - i % width) << width;
  }
}

TEST(Augment, NormalizesByMeanAndDeviation) {
  const Image image{3, 1, 1, {0, 51, 255}};
  EXPECT_EQ(run(read_augment(mapping({}), {3, 1, 1}), image), (std::vector<float>{0, 51 * (1 / 255.0f), 1}));
  const auto values =
      run(read_augment(mapping({{"normalize", mapping({{"mean", sequence({"0.5", "0.2", "0"})}, {"std", "0.5"}})}}),
                       {3, 1, 1}),
          image);
  EXPECT_NEAR(values[0], -1, 1e-6);
  EXPECT_NEAR(values[1], 0, 1e-6);
  EXPECT_NEAR(values[2], 2, 1e-6);
  const auto imagenet = run(read_augment(mapping({{"normalize", "imagenet"}}), {3, 1, 1}), image);
  EXPECT_NEAR(imagenet[0], -0.485 / 0.229, 1e-5);
  const auto cifar = run(read_augment(mapping({{"normalize", "cifar10"}}), {3, 1, 1}), image);
  EXPECT_NEAR(cifar[2], (1 - 0.4465) / 0.2616, 1e-5);
}

TEST(Augment, RunsStepsInOrder) {
  const Image image = counting(4, 4);
  EXPECT_EQ(steps({mapping({{"center_crop", "2"}})}, {1, 2, 2}, image), (std::vector<int>{5, 6, 9, 10}));
  EXPECT_EQ(steps({mapping({{"center_crop", sequence({"2", "4"})}}), mapping({{"hflip", "1"}})}, {1, 2, 4}, image),
            (std::vector<int>{7, 6, 5, 4, 11, 10, 9, 8}));
  EXPECT_EQ(steps({"center_crop"}, {1, 2, 2}, image), (std::vector<int>{5, 6, 9, 10}));  // the model's size
}

TEST(Augment, ResizeByOneNumberKeepsRatio) {
  const Image flat{1, 6, 9, Bytes(54, 30)};
  EXPECT_EQ(steps({mapping({{"resize", "4"}})}, {1, 4, 6}, flat), std::vector<int>(24, 30));
  EXPECT_EQ(steps({mapping({{"resize", sequence({"2", "3"})}})}, {1, 2, 3}, flat), std::vector<int>(6, 30));
}

// The formulas of torchvision 0.29, whose sizes and corners are these: int(side * long / short) and
// int(round((length - side) / 2.0)), in which Python divides doubles and rounds a half to the even number.
TEST(Augment, ResizeTruncatesTheLongSide) {
  const Augment augment =
      read_augment(mapping({{"augment", sequence({mapping({{"resize", "32"}})})}}), {1, 1000, 1000});
  for (int i = 0; i < 500; ++i) {
    const auto side = [i](std::int64_t draw) {
      return static_cast<int>(RandomSequence{3}.below(2 * i + draw, 80)) + 20;
    };
    const int height = side(0), width = side(1);
    const double shorter = std::min(height, width), longer = std::max(height, width);
    const int truncated = static_cast<int>(32 * longer / shorter);
    const std::string message = message_of(ErrorKind::config, [&] { run(augment, counting(height, width)); });
    const std::string size = height < width ? join("1x32x", truncated) : join("1x", truncated, "x32");
    EXPECT_EQ(message.rfind(join("the image is ", size, " after"), 0), 0u) << height << "x" << width << ": " << message;
  }
}

TEST(Augment, CenterCropRoundsHalfToEven) {
  const Augment augment = read_augment(mapping({{"augment", sequence({mapping({{"center_crop", "8"}})})}}), {1, 8, 8});
  for (int i = 0; i < 500; ++i) {
    const int height = 8 + i % 240, width = 8 + i * 7 % 240;
    Image rows{1, height, width, {}}, columns = rows;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        rows.pixels.push_back(static_cast<std::uint8_t>(y));
        columns.pixels.push_back(static_cast<std::uint8_t>(x));
      }
    const auto corner = [](int length) {
      const int half = (length - 8) / 2;
      return (length - 8) % 2 == 0 || half % 2 == 0 ? half : half + 1;
    };
    EXPECT_EQ(bytes(run(augment, rows))[0], corner(height)) << height;
    EXPECT_EQ(bytes(run(augment, columns))[0], corner(width)) << width;
  }
}

// torchvision's RandomResizedCrop with a single scale and ratio: no window fits, so it uses the largest one in the
// middle of the image. Its ratio makes one side 2.5 pixels, rounded to 2.
TEST(Augment, RandomResizedCropRoundsToEven) {
  const std::vector<Value> narrow{
      mapping({{"random_resized_crop", mapping({{"scale", sequence({"1", "1"})}, {"ratio", sequence({"2", "2"})}})}})};
  EXPECT_EQ(steps(narrow, {1, 2, 5}, counting(6, 5)), (std::vector<int>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
}

TEST(Augment, ResizesExtremeShapes) {
  const std::vector<std::pair<int, int>> shapes{{1, 2000}, {2000, 1}, {1, 1}};
  for (const auto& [height, width] : shapes) {
    const Image flat{1, height, width, Bytes(static_cast<std::size_t>(height * width), 9)};
    const std::vector<Value> by_side{mapping({{"resize", "8"}}), mapping({{"center_crop", "8"}})};
    EXPECT_EQ(steps(by_side, {1, 8, 8}, flat), std::vector<int>(64, 9)) << height << "x" << width;
    EXPECT_EQ(steps({"random_resized_crop"}, {1, 8, 8}, flat), std::vector<int>(64, 9)) << height << "x" << width;
  }
}

TEST(Augment, RandomCropReachesEveryWindow) {
  std::set<int> corners;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<int> window = steps({"random_crop"}, {1, 2, 2}, counting(3, 4), seed);
    EXPECT_EQ(window, (std::vector<int>{window[0], window[0] + 1, window[0] + 4, window[0] + 5}));
    corners.insert(window[0]);
  }
  EXPECT_EQ(corners, (std::set<int>{0, 1, 2, 4, 5, 6}));
}

TEST(Augment, PadCropShiftsUpToPad) {
  std::set<int> first;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    first.insert(steps({mapping({{"pad_crop", mapping({{"pad", "1"}})}})}, {1, 1, 1}, {1, 1, 1, {9}}, seed)[0]);
  EXPECT_EQ(first, (std::set<int>{0, 9}));
  EXPECT_EQ(steps({mapping({{"pad_crop", "0"}})}, {1, 3, 3}, counting(3, 3))[8], 8);
}

TEST(Augment, FlipsHalfOfImages) {
  int flipped = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) flipped += steps({"hflip"}, {1, 1, 2}, counting(1, 2), seed)[0];
  EXPECT_NEAR(flipped, 500, 60);
}

TEST(Augment, RandomResizedCropDependsOnSeed) {
  const std::vector<Value> list{mapping({{"random_resized_crop", "8"}})};
  const Image image = counting(12, 20);
  EXPECT_EQ(steps(list, {1, 8, 8}, image, 3), steps(list, {1, 8, 8}, image, 3));
  EXPECT_NE(steps(list, {1, 8, 8}, image, 3), steps(list, {1, 8, 8}, image, 4));
  // The whole image at its own ratio: nothing is random.
  const std::vector<Value> whole{
      mapping({{"random_resized_crop", mapping({{"scale", sequence({"1", "1"})}, {"ratio", sequence({"1", "1"})}})}})};
  EXPECT_EQ(steps(whole, {1, 4, 4}, counting(4, 4)), bytes(run(read_augment(mapping({}), {1, 4, 4}), counting(4, 4))));
  // No window of this ratio has the whole area: the largest one in the middle is used.
  EXPECT_EQ(steps(whole, {1, 2, 2}, counting(2, 4)), (std::vector<int>{1, 2, 5, 6}));
}

TEST(Augment, SuggestsStepIfShapeDiffers) {
  const auto failed = [](const Image& image, std::vector<std::int64_t> shape) {
    return message_of(ErrorKind::config, [&] { run(read_augment(mapping({}), shape), image); });
  };
  EXPECT_NE(failed(counting(5, 6), {1, 4, 4})
                .find("the image is 1x5x6, the model's input is 1x4x4; add `resize: [4, 4]` "
                      "or `center_crop: 4` to data.augment"),
            std::string::npos);
  EXPECT_NE(failed(counting(4, 4), {3, 4, 4}).find("set `channels: 3`"), std::string::npos);
}

TEST(Augment, ReportsAllErrors) {
  const std::string all =
      failure(mapping({{"augment", sequence({"hflop", mapping({{"resize", "0"}}),
                                             mapping({{"pad_crop", mapping({{"pud", "1"}})}}), sequence({"hflip"})})},
                       {"normalize", mapping({{"mean", sequence({"1", "2"})}})}}));
  for (const char* part :
       {"hflop", "did you mean 'hflip'", "resize", "pud", "one name with its options", "has 2 values"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in:\n" << all;
  EXPECT_NE(failure(mapping({{"augment", "hflip"}})).find("must be a list"), std::string::npos);
  EXPECT_NE(failure(mapping({{"normalize", mapping({{"std", "0"}})}})).find("above 0"), std::string::npos);
  const std::string both =
      failure(mapping({{"normalize", mapping({{"mean", sequence({"1", "2"})}, {"std", "0"}})}}), {3, 4, 4});
  EXPECT_NE(both.find("'mean' of 'normalize' has 2 values, the model's input 3 channels"), std::string::npos) << both;
  EXPECT_NE(both.find("'std' of 'normalize' must be above 0"), std::string::npos) << both;
  EXPECT_NE(failure(mapping({{"normalize", "imagenet"}}), {1, 4, 4}).find("1 channel"), std::string::npos);
  EXPECT_NE(failure(mapping({{"normalize", "imagnet"}})).find("imagenet"), std::string::npos);
  EXPECT_NE(
      failure(mapping({{"augment",
                        sequence({mapping({{"random_resized_crop", mapping({{"scale", sequence({"2", "1"})}})}})})}}))
          .find("'scale' must be two numbers"),
      std::string::npos);
}

// Erased pixels are 0 for the network at any position of the step in the list; all other pixels are white, 1.
TEST(Augment, ErasesAfterNormalization) {
  const Augment augment = read_augment(
      mapping({{"augment", sequence({mapping({{"random_erasing", mapping({{"probability", "1"}})}}), "center_crop"})},
               {"normalize", mapping({{"mean", "0.5"}, {"std", "0.5"}})}}),
      {1, 8, 8});
  const std::vector<float> values = run(augment, {1, 10, 10, Bytes(100, 255)});
  const auto erased = std::count(values.begin(), values.end(), 0.0f);
  EXPECT_GT(erased, 0);
  EXPECT_EQ(std::count(values.begin(), values.end(), 1.0f), 64 - erased);
}

TEST(Augment, ReadsRandomOperations) {
  const Augment augment = read_augment(
      mapping({{"augment",
                sequence({"rand_augment", mapping({{"color_jitter", mapping({{"brightness", "0.4"}, {"hue", "0.1"}})}}),
                          mapping({{"random_erasing", mapping({{"fill", "noise"}})}})})}}),
      {3, 8, 8});
  EXPECT_EQ(augment.describe(),
            "rand_augment 2 of magnitude 9, color_jitter 0.4, 0, 0, 0.1, random_erasing 0.25, noise");
  const Image image{3, 8, 8, Bytes(192, 80)};
  EXPECT_EQ(run(augment, image, 5), run(augment, image, 5));
  EXPECT_NE(run(augment, image, 5), run(augment, image, 6));
  const std::string all = failure(
      mapping({{"augment", sequence({"color_jitter", mapping({{"rand_augment", mapping({{"magnitude", "31"}})}}),
                                     mapping({{"random_erasing", mapping({{"area", sequence({"0.5", "0.1"})}})}}),
                                     mapping({{"color_jitter", mapping({{"hue", "0.6"}})}})})}}));
  for (const char* part :
       {"'color_jitter' changes nothing", "'magnitude' must be", "'area' must be two numbers", "'hue' must be"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in:\n" << all;
}

TEST(Augment, DescribesItself) {
  const Augment augment = read_augment(
      mapping({{"augment", sequence({mapping({{"pad_crop", "2"}}), "hflip"})}, {"normalize", "cifar10"}}), {3, 32, 32});
  EXPECT_EQ(augment.describe(), "pad_crop 2, 32, hflip, normalize cifar10");
}

TEST(Augment, ErrorHasLineOfOptionlessStep) {
  auto source = std::make_shared<SourceText>();
  source->name = "cats.yaml";
  Value step("color_jitter");
  step.place = {source, 9, 7, 1};
  const std::string message = failure(mapping({{"augment", sequence({"hflip", step})}}));
  EXPECT_NE(message.find("cats.yaml:9:7: error: 'color_jitter' changes nothing"), std::string::npos) << message;
}

TEST(Augment, RefusesCropLargerThanImage) {
  for (const char* step : {"random_crop", "center_crop"}) {
    const Augment augment = read_augment(mapping({{"augment", sequence({mapping({{step, "4"}})})}}), {1, 4, 4});
    const std::string message = message_of(ErrorKind::config, [&] { run(augment, counting(4, 3)); });
    EXPECT_NE(message.find(join("the image is 4x3, too small for `", step, ": 4`")), std::string::npos) << message;
    run(augment, counting(4, 4));
  }
  const Augment padded = read_augment(mapping({{"augment", sequence({mapping({{"pad_crop", "1"}})})}}), {1, 4, 4});
  run(padded, counting(2, 2));
  const std::string message = message_of(ErrorKind::config, [&] { run(padded, counting(4, 1)); });
  EXPECT_NE(message.find("6x3, too small for `pad_crop: 4`"), std::string::npos) << message;
}

TEST(Augment, ErrorHasLineOfStep) {
  auto source = std::make_shared<SourceText>();
  source->name = "cats.yaml";
  Value data = mapping({{"augment", sequence({"hflip"})}});
  data.entries[0].value.place = {source, 7, 3, 1};
  const Augment augment = read_augment(data, {1, 4, 4});
  const auto refusal = [&](const Image& image) { return message_of(ErrorKind::config, [&] { run(augment, image); }); };
  EXPECT_NE(refusal(counting(4, 3)).find("to data.augment (cats.yaml:7:3)"), std::string::npos);
  EXPECT_NE(refusal({3, 4, 4, Bytes(48)}).find("has 3 channels, the model's input has 1; change"), std::string::npos);
  EXPECT_NE(refusal({3, 4, 4, Bytes(48)}).find("(cats.yaml:7:3)"), std::string::npos);
}

}  // namespace twiddle
