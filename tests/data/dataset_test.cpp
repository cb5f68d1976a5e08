#include "data/formats/dataset.h"

#include "data/formats/subset.h"
#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

// A small dataset of each kind.
std::vector<std::unique_ptr<Dataset>> one_of_each() {
  const std::filesystem::path folder = fresh_folder();
  const std::string images = write_file(folder / "images.idx", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 8});
  const std::string labels = write_file(folder / "labels.idx", {0, 0, 8, 1, 0, 0, 0, 2, 1, 0});
  const std::string records = write_file(folder / "data_batch_1.bin", Bytes(3073));
  write_file(folder / "set" / "cat" / "a.png", png_of(3, 2, 2, 9));
  const std::string list = write_text(folder / "list.txt", "set/cat/a.png cat\n");
  const Value idx = mapping({{"images", images}, {"labels", labels}});
  std::vector<std::unique_ptr<Dataset>> all;
  all.push_back(open_dataset("idx", idx));
  all.push_back(open_dataset("cifar10", mapping({{"path", records}})));
  all.push_back(open_dataset("image_folder", mapping({{"path", (folder / "set").string()}})));
  all.push_back(open_dataset("image_list", mapping({{"file", list}})));
  all.push_back(open_dataset("synthetic", mapping({{"images", "5"}})));
  all.push_back(std::make_unique<Subset>(open_dataset("idx", idx), 0, 1));
  return all;
}

}  // namespace

TEST(Dataset, RefusesIndexOutOfRange) {
  Image image;
  for (const std::unique_ptr<Dataset>& data : one_of_each())
    for (const std::int64_t index : {std::int64_t(-1), data->size(), std::int64_t(1000000000000000)}) {
      const std::string message = message_of(ErrorKind::data, [&] { data->get(index, image); });
      EXPECT_NE(message.find("there is no image " + std::to_string(index)), std::string::npos) << message;
      message_of(ErrorKind::data, [&] { data->labels(index); });
    }
}

TEST(Dataset, ReturnsLabelsWithoutReadingImages) {
  Image image;
  for (const std::unique_ptr<Dataset>& data : one_of_each())
    EXPECT_EQ(data->labels(0), data->get(0, image).labels) << data->describe();
}

TEST(Dataset, ListsClassesWithoutImages) {
  const auto data = open_dataset("synthetic", mapping({{"images", "3"}, {"classes", "5"}}));
  EXPECT_EQ(empty_classes(*data), (std::vector<std::int64_t>{3, 4}));
}

}  // namespace twiddle
