#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

Bytes records(const std::vector<std::uint8_t>& labels) {
  Bytes bytes;
  for (const std::uint8_t label : labels) {
    bytes.push_back(label);
    for (int i = 0; i < 3072; ++i) bytes.push_back(static_cast<std::uint8_t>(i + label));
  }
  return bytes;
}

}  // namespace

TEST(Cifar10, ReadsFilesOfSplitInOrder) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "data_batch_2.bin", records({5}));
  write_file(folder / "data_batch_1.bin", records({3, 4}));
  write_file(folder / "test_batch.bin", records({9}));
  const auto train = open_dataset("cifar10", mapping({{"path", folder.string()}}));
  const auto test = open_dataset("cifar10", mapping({{"path", folder.string()}, {"split", "test"}}));
  ASSERT_EQ(train->size(), 3);
  ASSERT_EQ(test->size(), 1);
  Image image;
  EXPECT_EQ(train->get(0, image).label(), 3);
  EXPECT_EQ(train->get(2, image).label(), 5);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels.size(), 3072u);
  EXPECT_EQ(image.pixels[1], 6);
  EXPECT_NE(train->where(2).find("data_batch_2.bin image 0"), std::string::npos);
  EXPECT_EQ(test->classes()[9], "truck");
  EXPECT_NE(train->describe().find("3 images 3x32x32, 10 classes"), std::string::npos);
}

TEST(Cifar10, ReadsNamedFilesAndClassNames) {
  const std::filesystem::path folder = fresh_folder();
  const std::string one = write_file(folder / "one.bin", records({1})),
                    two = write_file(folder / "two.bin", records({2}));
  write_text(folder / "batches.meta.txt", "a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const auto both = open_dataset("cifar10", mapping({{"path", sequence({one, two})}}));
  EXPECT_EQ(both->size(), 2);
  EXPECT_EQ(both->classes()[0], "a");
  EXPECT_EQ(both->classes()[9], "j");
}

TEST(Cifar10, RefusesDamagedFiles) {
  const std::filesystem::path folder = fresh_folder();
  const auto failure = [&](const Bytes& bytes) {
    const std::string file = write_file(folder / "x.bin", bytes);
    return message_of(ErrorKind::data, [&] { open_dataset("cifar10", mapping({{"path", file}})); });
  };
  const Bytes whole = records({1, 2});
  for (const std::size_t length : {0, 1, 3072, 3074, 6145})
    EXPECT_NE(failure(Bytes(whole.begin(), whole.begin() + length)).find("x.bin"), std::string::npos) << length;
  EXPECT_NE(failure(records({1, 10})).find("record 1 has label 10"), std::string::npos);
  EXPECT_NE(message_of(ErrorKind::data,
                       [&] {
                         open_dataset("cifar10", mapping({{"path", folder.string()}}));
                       })
                .find("holds no data_batch_*.bin"),
            std::string::npos);
  EXPECT_NE(message_of(ErrorKind::config, [] { open_dataset("cifar10", mapping({})); }).find("path"),
            std::string::npos);
}

TEST(Cifar10, NamesOtherVersions) {
  const std::filesystem::path folder = fresh_folder();
  const auto failure = [&](const std::string& path) {
    return message_of(ErrorKind::data, [&] { open_dataset("cifar10", mapping({{"path", path}})); });
  };
  const auto expect = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(failure(write_file(folder / "train.bin", Bytes(2 * 3074))), "2 records of 3074 bytes: this is CIFAR-100");
  expect(failure(folder.string()), "holds no data_batch_*.bin but CIFAR-100's binary version");
  const std::filesystem::path python = folder / "python";
  expect(failure(write_text(python / "data_batch_1", "\x80\x02}q\x01(U")),
         "not CIFAR-10's binary version but a Python pickle");
  expect(failure(python.string()),
         "holds no data_batch_*.bin but the Python version; download CIFAR-10's binary version");
  expect(failure(write_text(folder / "x.bin", "version https://git-lfs.github.com/spec/v1\n")), "a git-lfs pointer");
}

TEST(Cifar10, ReadsTheRealFormat) {
  const std::string folder = shared_data("cifar10-small");
  if (folder.empty()) GTEST_SKIP() << "no cifar10-small next to the project";
  const auto train = open_dataset("cifar10", mapping({{"path", folder}}));
  EXPECT_EQ(train->size(), 10000);
  EXPECT_EQ(open_dataset("cifar10", mapping({{"path", folder}, {"split", "test"}}))->size(), 2000);
}

}  // namespace twiddle
