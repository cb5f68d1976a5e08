#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

// Three grey images of 2x2, and their labels.
const Bytes small_images{0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
const Bytes small_labels{0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1};

std::unique_ptr<Dataset> open_idx(const std::string& images, const std::string& labels) {
  return open_dataset("idx", mapping({{"images", images}, {"labels", labels}}));
}

std::unique_ptr<Dataset> open_idx(const Bytes& images, const Bytes& labels) {
  const std::filesystem::path folder = fresh_folder();
  return open_idx(write_file(folder / "images.idx", images), write_file(folder / "labels.idx", labels));
}

std::string failure(const Bytes& images, const Bytes& labels) {
  return message_of(ErrorKind::data, [&] { open_idx(images, labels); });
}

Bytes labels_of(const Dataset& data) {
  Bytes labels;
  Image image;
  for (std::int64_t i = 0; i < data.size(); ++i)
    labels.push_back(static_cast<std::uint8_t>(data.get(i, image).label()));
  return labels;
}

}  // namespace

TEST(Idx, ReadsImagesAndLabels) {
  const auto data = open_idx(small_images, small_labels);
  ASSERT_EQ(data->size(), 3);
  Image image;
  EXPECT_EQ(data->get(1, image).label(), 0);
  EXPECT_EQ(image.pixels, (Bytes{5, 6, 7, 8}));
  EXPECT_EQ(image.channels * 100 + image.height * 10 + image.width, 122);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_NE(data->where(1).find("images.idx image 1"), std::string::npos);
  EXPECT_EQ(data->describe().rfind("idx, 3 images 1x2x2, 3 classes (", 0), 0u) << data->describe();
}

TEST(Idx, ReadsFourDimensionsAsColor) {
  Bytes images = small_images;
  images[3] = 4;
  images.insert(images.begin() + 7, {3, 0, 0, 0});  // 3 x 3 x 2 x 2
  images.resize(20 + 36);
  const auto data = open_idx(images, small_labels);
  Image image;
  data->get(2, image);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels.size(), 12u);
}

TEST(Idx, ReadsTheShippedDigits) {
  const auto train = open_idx("data/digits/train-images.idx.gz", "data/digits/train-labels.idx.gz");
  const auto test = open_idx("data/digits/test-images.idx.gz", "data/digits/test-labels.idx.gz");
  EXPECT_EQ(train->size(), 1500);
  EXPECT_EQ(test->size(), 297);
  EXPECT_EQ(train->classes().size(), 10u);
  Image image;
  EXPECT_EQ(train->get(0, image).label(), 0);  // its first row: 0 0 5 13 9 1 0 0 of 16
  EXPECT_EQ(Bytes(image.pixels.begin(), image.pixels.begin() + 8), (Bytes{0, 0, 80, 207, 143, 16, 0, 0}));
}

TEST(Idx, RefusesEveryTruncation) {
  for (std::size_t length = 0; length < small_images.size(); ++length)
    EXPECT_NE(failure(Bytes(small_images.begin(), small_images.begin() + length), small_labels), "") << length;
  for (std::size_t length = 0; length < small_labels.size(); ++length)
    EXPECT_NE(failure(small_images, Bytes(small_labels.begin(), small_labels.begin() + length)), "") << length;
}

TEST(Idx, RefusesEveryTruncationOfGzip) {
  const std::string images = "data/digits/test-images.idx.gz";
  const Bytes whole = read_bytes("data/digits/test-labels.idx.gz");
  const std::filesystem::path folder = fresh_folder();
  EXPECT_EQ(open_idx(images, write_file(folder / "whole.gz", whole))->size(), 297);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut = write_file(folder / "cut.gz", Bytes(whole.begin(), whole.begin() + length));
    const std::string message = message_of(ErrorKind::data, [&] { open_idx(images, cut); });
    EXPECT_NE(message.find("cut.gz"), std::string::npos) << length << ": " << message;
  }
}

TEST(Idx, SurvivesEveryFlippedBitOfGzip) {
  const std::string images = "data/digits/test-images.idx.gz";
  const Bytes whole = read_bytes("data/digits/test-labels.idx.gz");
  const std::filesystem::path folder = fresh_folder();
  const Bytes labels = labels_of(*open_idx(images, "data/digits/test-labels.idx.gz"));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    const std::string file = write_file(folder / "flipped.gz", flipped);
    try {
      EXPECT_EQ(labels_of(*open_idx(images, file)), labels) << bit;  // a bit that carries nothing, or says the same
    } catch (const Error& error) {
      EXPECT_EQ(int(error.kind()), int(ErrorKind::data)) << error.what();
    }
  }
}

TEST(Idx, RefusesEveryFlippedBitOfHeader) {
  for (std::size_t bit = 0; bit < 8 * 16; ++bit) {
    Bytes flipped = small_images;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_NE(failure(flipped, small_labels).find("images.idx"), std::string::npos) << bit;
  }
}

TEST(Idx, ReportsInvalidFiles) {
  EXPECT_NE(failure(small_labels, small_images).find("are `images` and `labels` swapped?"), std::string::npos);
  Bytes huge = small_images;
  std::fill(huge.begin() + 4, huge.begin() + 16, std::uint8_t(255));
  EXPECT_NE(failure(huge, small_labels).find("damaged header"), std::string::npos);
  Bytes longer = small_images;
  longer.push_back(0);
  EXPECT_NE(failure(longer, small_labels).find("the header promises 28 bytes, the file has 29"), std::string::npos);
  EXPECT_NE(failure(small_images, {0, 0, 8, 1, 0, 0, 0, 2, 0, 1}).find("2 labels for the 3 images"), std::string::npos);
  EXPECT_NE(failure({'P', 'K', 3, 4, 5}, small_labels).find("not an IDX file"), std::string::npos);
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n";
  EXPECT_NE(failure(Bytes(pointer.begin(), pointer.end()), small_labels)
                .find("images.idx: not an IDX file but a git-lfs pointer; run `git lfs pull`"),
            std::string::npos);
}

TEST(Idx, NamesClassesAndChecksTheirNumber) {
  const std::filesystem::path folder = fresh_folder();
  const std::string images = write_file(folder / "i", small_images), labels = write_file(folder / "l", small_labels);
  const auto with = [&](const Value& names) {
    return open_dataset("idx", mapping({{"images", images}, {"labels", labels}, {"classes", names}}));
  };
  EXPECT_EQ(with(sequence({"cat", "dog", "cow"}))->classes()[2], "cow");
  EXPECT_NE(message_of(ErrorKind::data,
                       [&] {
                         with(sequence({"cat", "dog"}));
                       })
                .find("image 0 has label 2"),
            std::string::npos);
  EXPECT_EQ(with(sequence({"cat", "dog", "cow"}))->largest_label(), "");
  EXPECT_EQ(open_dataset("idx", mapping({{"images", images}, {"labels", labels}}))->largest_label(),
            labels + ": image 0 has label 2");
}

TEST(Idx, NamesMissingFilesAndWrongOptions) {
  const std::string gone = message_of(ErrorKind::data, [] { open_idx("gone/images.idx", "gone/labels.idx"); });
  EXPECT_NE(gone.find("'gone/images.idx'"), std::string::npos) << gone;
  const std::string message = message_of(ErrorKind::config, [] { open_dataset("idx", mapping({{"images", "a"}})); });
  EXPECT_NE(message.find("labels"), std::string::npos) << message;
}

TEST(Idx, ReadsMnist) {
  const std::string folder = shared_data("mnist-t10k");
  if (folder.empty()) GTEST_SKIP() << "no mnist-t10k next to the project";
  const auto data = open_idx(folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz");
  Image image;
  EXPECT_EQ(data->size(), 10000);
  EXPECT_EQ(data->get(0, image).label(), 7);
  EXPECT_EQ(image.height, 28);
}

}  // namespace twiddle
