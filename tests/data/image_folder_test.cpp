#include "framework/interrupted.h"
#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"

namespace twiddle {

namespace {

std::unique_ptr<Dataset> open_folder(const std::filesystem::path& folder, const char* channels = "3") {
  return open_dataset("image_folder", mapping({{"path", folder.string()}, {"channels", channels}}));
}

}  // namespace

TEST(ImageFolder, ReadsSubfoldersAsClassesInOrder) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "dog" / "b.PNG", png_of(3, 2, 3, 40));
  write_file(folder / "dog" / "a.Jpeg", small_jpeg());
  write_file(folder / "cat" / "deeper" / "c.png", png_of(1, 4, 5, 7));
  write_text(folder / "cat" / "notes.txt", "no image");
  write_text(folder / "cat" / "._c.png", "a file that some systems create");
  write_text(folder / "readme.png", "next to the classes");
  const auto data = open_folder(folder);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(data->size(), 3);
  Image image;
  EXPECT_EQ(data->get(0, image).label(), 0);
  EXPECT_EQ(image.channels * 100 + image.height * 10 + image.width, 345);
  EXPECT_EQ(image.pixels, Bytes(60, 7));
  EXPECT_EQ(data->get(1, image).label(), 1);
  EXPECT_EQ(image.width, 12);
  EXPECT_EQ(data->where(2), (folder / "dog" / "b.PNG").string());
  EXPECT_NE(data->describe().find("image_folder, 3 images, 2 classes"), std::string::npos);
  EXPECT_NE(data->describe().find("skipped 1 image in no class folder"), std::string::npos) << data->describe();
  open_folder(folder, "1")->get(2, image);
  EXPECT_EQ(image.channels, 1);
}

TEST(ImageFolder, ReportsInvalidFolders) {
  const std::filesystem::path folder = fresh_folder();
  const auto failure = [&](const std::filesystem::path& path) {
    return message_of(ErrorKind::data, [&] { open_folder(path); });
  };
  EXPECT_NE(failure(folder).find("has no sub-folders"), std::string::npos);
  EXPECT_NE(failure(folder / "gone").find("no such file or folder"), std::string::npos);
  EXPECT_NE(failure(write_text(folder / "file", "x")).find("Not a directory"), std::string::npos);
  std::filesystem::create_directories(folder / "empty");
  EXPECT_NE(failure(folder).find("empty' holds no .jpg"), std::string::npos);
  EXPECT_NE(message_of(ErrorKind::config, [&] { open_folder(folder, "2"); }).find("channels"), std::string::npos);
}

TEST(ImageFolder, ReportsProgressAndCanBeInterrupted) {
  const std::filesystem::path folder = fresh_folder();
  for (const char* name : {"a.png", "b.png", "c.png"}) write_file(folder / "cat" / name, png_of(3, 2, 3, 40));
  std::vector<std::int64_t> reported;
  DatasetSite site{"", {3, 8, 8}, 0};
  site.progress = [&](const std::string& name, std::int64_t images) {
    EXPECT_EQ(name, folder.string());
    reported.push_back(images);
    if (images == 2) throw Interrupted();
  };
  EXPECT_THROW(open_dataset("image_folder", mapping({{"path", folder.string()}}), site), Interrupted);
  EXPECT_EQ(reported, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(ImageFolder, CountsSkippedFiles) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "cat" / "a.png", png_of(3, 2, 3, 40));
  EXPECT_EQ(open_folder(folder)->describe().find("skipped"), std::string::npos);
  write_text(folder / "cat" / "b.webp", "");
  EXPECT_NE(open_folder(folder)->describe().find("; skipped 1 file that is not .jpg, .jpeg or .png"),
            std::string::npos);
  write_text(folder / "cat" / "deeper" / "c.bmp", "");
  write_text(folder / "cat" / "._a.png", "");
  EXPECT_NE(open_folder(folder)->describe().find(
                "; skipped 2 files that are not .jpg, .jpeg or .png, 1 hidden file or folder"),
            std::string::npos);
  EXPECT_EQ(open_folder(folder)->size(), 1);
}

TEST(ImageFolder, SkipsHiddenFolders) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "cat" / "a.png", png_of(3, 2, 3, 40));
  write_file(folder / "cat" / ".ipynb_checkpoints" / "a-checkpoint.png", png_of(3, 2, 3, 40));
  write_file(folder / ".ipynb_checkpoints" / "b.png", png_of(3, 2, 3, 40));
  const auto data = open_folder(folder);
  EXPECT_EQ(data->classes(), std::vector<std::string>{"cat"});
  EXPECT_EQ(data->size(), 1);
  EXPECT_NE(data->describe().find("; skipped 1 hidden file or folder"), std::string::npos) << data->describe();
}

TEST(ImageFolder, FollowsLinksToFolders) {
  const std::filesystem::path folder = fresh_folder(), set = folder / "set";
  write_file(set / "cat" / "a.png", png_of(3, 2, 3, 40));
  write_file(folder / "elsewhere" / "deeper" / "b.png", png_of(3, 2, 3, 40));
  write_file(folder / "dogs" / "c.png", png_of(3, 2, 3, 40));
  std::filesystem::create_directory_symlink(folder / "elsewhere", set / "cat" / "more");
  std::filesystem::create_directory_symlink(folder / "dogs", set / "dog");
  const auto data = open_folder(set);
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->where(1), (set / "cat" / "more" / "deeper" / "b.png").string());
  EXPECT_EQ(data->where(2), (set / "dog" / "c.png").string());
  EXPECT_NE(data->describe().find("; followed 1 link to folders"), std::string::npos) << data->describe();
}

TEST(ImageFolder, ReadsCyclicLinksOnce) {
  const std::filesystem::path folder = fresh_folder(), cat = folder / "cat";
  write_file(cat / "z" / "b.png", png_of(3, 2, 3, 40));
  write_file(cat / "a.png", png_of(3, 2, 3, 40));
  std::filesystem::create_directory_symlink(cat, cat / "z" / "ring");
  std::filesystem::create_directory_symlink(cat / "z",
                                            cat / "link");  // before z in order, but z is read under its name
  const auto data = open_folder(folder);
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->where(1), (cat / "z" / "b.png").string());
  EXPECT_NE(data->describe().find("skipped 2 links to folders that were read already"), std::string::npos)
      << data->describe();
}

TEST(ImageFolder, IgnoresLinkToParentFolder) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "cat" / "a.png", png_of(3, 2, 3, 40));
  write_file(folder / "dog" / "b.png", png_of(3, 2, 3, 40));
  std::filesystem::create_directory_symlink(folder, folder / "cat" / "all");
  EXPECT_EQ(open_folder(folder)->size(), 2);
}

TEST(ImageFolder, ReadsAndEscapesAnyFileName) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "latin\xe9" / "p\x1b[2J\xff.png", png_of(3, 2, 3, 40));
  write_text(folder / "line\nbreak" / "broken\n.png", "");
  const auto data = open_folder(folder);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"latin\uFFFD", "line\uFFFDbreak"}));
  Image image;
  EXPECT_EQ(data->get(0, image).label(), 0);
  EXPECT_EQ(data->where(0), (folder / "latin\uFFFD" / "p\uFFFD[2J\uFFFD.png").string());
  const std::string message = message_of(ErrorKind::data, [&] { data->get(1, image); });
  EXPECT_NE(message.find("line\uFFFDbreak/broken\uFFFD.png' is not a readable image"), std::string::npos) << message;
}

TEST(ImageFolder, RefusesImagesAbovePixelLimit) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "cat" / "a.png", png_of(3, 2, 3, 40));
  DatasetSite site{"", {3, 8, 8}, 0};
  site.max_pixels = 5;
  const auto data = open_dataset("image_folder", mapping({{"path", folder.string()}}), site);
  Image image;
  const std::string message = message_of(ErrorKind::data, [&] { data->get(0, image); });
  EXPECT_NE(message.find("a.png' is not a readable image: 3x2 pixels are more than the 5"), std::string::npos)
      << message;
}

TEST(ImageFolder, ReadsPhotographs) {
  const std::string folder = shared_data("caltech20");
  if (folder.empty()) GTEST_SKIP() << "no caltech20 next to the project";
  const auto data = open_folder(folder + "/val");
  EXPECT_EQ(data->size(), 320);
  EXPECT_EQ(data->classes().size(), 20u);
  Image image;
  EXPECT_EQ(data->get(319, image).label(), 19);
  EXPECT_GT(image.height, 50);
}

}  // namespace twiddle
