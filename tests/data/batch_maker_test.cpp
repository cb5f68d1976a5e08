#include "data/batch_maker.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "data/loader.h"
#include "tests/data/numbers.h"

namespace twiddle {

namespace {

// 3x4 images whose pixels differ, and as targets their negatives; labels 1 and 2 of 4.
class Negatives : public Dataset {
 public:
  std::int64_t size() const override { return 5; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override {
    image = {1, 3, 4, Bytes(12)};
    for (std::size_t i = 0; i < 12; ++i) image.pixels[i] = static_cast<std::uint8_t>(20 * i + index);
    Target target;
    if (index > 0) target.labels = {1, 2};
    target.image = {1, height_of_target, 4, Bytes(std::size_t(4) * height_of_target)};
    for (std::size_t i = 0; i < target.image.pixels.size(); ++i)
      target.image.pixels[i] = static_cast<std::uint8_t>(255 - (20 * i + index));
    return target;
  }
  std::string where(std::int64_t index) const override { return join("negative ", index); }
  std::string describe() const override { return "negatives"; }
  int height_of_target = 3;

 private:
  std::vector<std::string> classes_{"0", "1", "2", "3"};
};

struct ImagesAndTargets {
  std::vector<float> images, targets;
};

ImagesAndTargets first_batch(const Dataset& data, const Augment& augment, LoaderOptions options,
                             std::int64_t epoch = 0) {
  const auto stream = make_stream({});
  options.batch_size = 5;
  Loader loader(data, augment, options);
  Batch batch;
  loader.start_epoch(*stream, epoch);
  loader.next(batch);
  return {batch.images.to_vector(*stream), batch.targets.to_vector(*stream)};
}

}  // namespace

TEST(BatchMaker, WritesMultiHotTargets) {
  const Negatives data;
  const ImagesAndTargets made =
      first_batch(data, read_augment(mapping({}), {1, 3, 4}), {.target = TargetKind::labels, .outputs = 6});
  ASSERT_EQ(made.targets.size(), 30u);
  EXPECT_EQ(std::vector<float>(made.targets.begin(), made.targets.begin() + 12),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0}));
}

TEST(BatchMaker, TransformsImageAndTargetTogether) {
  const Negatives data;
  const Augment augment = read_augment(mapping({{"augment", sequence({"random_crop", "hflip"})}}), {1, 2, 2});
  const ImagesAndTargets made = first_batch(data, augment, {.seed = 3, .target = TargetKind::image});
  ASSERT_EQ(made.targets.size(), made.images.size());
  for (std::size_t i = 0; i < made.images.size(); ++i) EXPECT_NEAR(made.images[i] + made.targets[i], 1, 1e-6) << i;
}

TEST(BatchMaker, KeepsColorsOfTarget) {
  const Negatives data;
  const auto made_with = [&](const Value& steps) {
    return first_batch(data, read_augment(mapping({{"augment", steps}}), {1, 3, 4}), {.target = TargetKind::image});
  };
  const Value jitter = mapping({{"color_jitter", mapping({{"brightness", "0.5"}})}});
  const Value erasing = mapping({{"random_erasing", mapping({{"probability", "1"}})}});
  const ImagesAndTargets plain_ones = made_with(sequence({"hflip"})),
                         coloured = made_with(sequence({"hflip", jitter, erasing}));
  EXPECT_EQ(coloured.targets, plain_ones.targets);
  EXPECT_NE(coloured.images, plain_ones.images);
  EXPECT_NE(message_of(ErrorKind::config, [&] { made_with(sequence({"rand_augment"})); }).find("rand_augment"),
            std::string::npos);
}

TEST(BatchMaker, RefusesTargetOfAnotherSize) {
  Negatives data;
  data.height_of_target = 2;
  const Augment augment = read_augment(mapping({}), {1, 3, 4});
  const auto failure = [&](const Dataset& set, const Augment& steps) {
    return message_of(ErrorKind::config, [&] { first_batch(set, steps, {.target = TargetKind::image}); });
  };
  EXPECT_NE(failure(data, augment).find("negative 0: the image is 3x4 and its target 2x4"), std::string::npos);
  EXPECT_NE(failure(Numbers(5), plain()).find("no image is its target"), std::string::npos);
}

TEST(BatchMaker, AddsNoiseOnlyToImage) {
  const Negatives data;
  const Augment augment = read_augment(mapping({}), {1, 3, 4});
  const ImagesAndTargets clean = first_batch(data, augment, {.target = TargetKind::input});
  EXPECT_EQ(clean.images, clean.targets);
  const LoaderOptions noisy{.target = TargetKind::input, .noise = 0.5};
  const ImagesAndTargets made = first_batch(data, augment, noisy);
  EXPECT_EQ(made.targets, clean.images);
  double squares = 0;
  for (std::size_t i = 0; i < made.images.size(); ++i) squares += std::pow(made.images[i] - clean.images[i], 2);
  EXPECT_NEAR(std::sqrt(squares / 60), 0.5, 0.15);
  EXPECT_EQ(first_batch(data, augment, noisy).images, made.images);
  EXPECT_NE(first_batch(data, augment, noisy, 1).images, made.images);
}

// A resumed run must find the same batches.
TEST(BatchMaker, MixesIdenticallyIfEpochIsResumed) {
  const Numbers data(12);
  const Augment augment = plain();
  const auto batches = [&](std::int64_t epoch, std::int64_t first_image) {
    const auto stream = make_stream({});
    Loader loader(data, augment, {.batch_size = 4, .outputs = 10, .mixing = {.mixup = 0.5, .cutmix = 1}});
    loader.start_epoch(*stream, epoch, first_image);
    std::vector<std::vector<float>> all;
    for (Batch batch; loader.next(batch);) {
      EXPECT_EQ(batch.targets.shape(), (Shape{4, 10}));
      all.push_back(batch.images.to_vector(*stream));
      all.push_back(batch.targets.to_vector(*stream));
    }
    return all;
  };
  const auto whole = batches(0, 0), rest = batches(0, 8);
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_EQ(whole[4], rest[0]);
  EXPECT_EQ(whole[5], rest[1]);
  EXPECT_NE(batches(1, 0), whole);
}

// The images, targets and indices that the ranks receive in an epoch, batch by batch.
struct Dealt {
  std::vector<float> images, targets;
  std::vector<std::int64_t> indices;
  std::vector<std::size_t> rows;  // of each rank in each batch
};

Dealt dealt(const Dataset& data, LoaderOptions options, int ranks) {
  const auto stream = make_stream({});
  const Augment augment = plain();
  std::vector<std::unique_ptr<Loader>> loaders;
  options.ranks = ranks;
  for (options.rank = 0; options.rank < ranks; ++options.rank) {
    loaders.push_back(std::make_unique<Loader>(data, augment, options));
    loaders.back()->start_epoch(*stream, 3);
  }
  Dealt all;
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (std::int64_t number = 0; number < loaders.front()->batches_per_epoch(); ++number)
    for (const auto& loader : loaders) {
      Batch batch;
      EXPECT_TRUE(loader->next(batch));
      all.rows.push_back(batch.indices.size());
      EXPECT_EQ(loader->position(), std::min((number + 1) * options.batch_size, data.size()));
      append(all.indices, batch.indices);
      if (batch.indices.empty()) continue;
      append(all.images, batch.images.to_vector(*stream));
      if (options.outputs > 0) append(all.targets, batch.targets.to_vector(*stream));
    }
  return all;
}

TEST(BatchMaker, SplitsRowsAcrossRanks) {
  const Numbers data(30);
  const LoaderOptions options{.batch_size = 12, .shuffle = true};
  const Dealt whole = dealt(data, options, 1);
  for (const int ranks : {2, 3, 4}) {
    const Dealt shares = dealt(data, options, ranks);
    EXPECT_EQ(shares.indices, whole.indices) << ranks;
    EXPECT_EQ(shares.images, whole.images) << ranks;
  }
  EXPECT_EQ(dealt(data, options, 4).rows, (std::vector<std::size_t>{3, 3, 3, 3, 3, 3, 3, 3, 2, 1, 2, 1}));
}

TEST(BatchMaker, AllowsRankWithoutRows) {
  const Numbers data(14);
  EXPECT_EQ(dealt(data, {.batch_size = 12}, 4).rows, (std::vector<std::size_t>{3, 3, 3, 3, 1, 0, 1, 0}));
}

// Includes bad images: an image whose partner is bad stays unmixed.
TEST(BatchMaker, MixesImagesAcrossRanks) {
  for (const std::set<std::int64_t>& bad : {std::set<std::int64_t>{}, {0, 17}}) {
    const Numbers data(30, bad);
    const LoaderOptions options{
        .batch_size = 12, .shuffle = true, .skip_bad = true, .outputs = 10, .mixing = {.mixup = 0.5, .cutmix = 1}};
    const Dealt whole = dealt(data, options, 1);
    EXPECT_EQ(whole.indices.size(), 30 - bad.size());
    for (const int ranks : {2, 3}) {
      const Dealt shares = dealt(data, options, ranks);
      EXPECT_EQ(shares.indices, whole.indices) << ranks;
      EXPECT_EQ(shares.images, whole.images) << ranks;
      EXPECT_EQ(shares.targets, whole.targets) << ranks;
    }
  }
}

}  // namespace twiddle
