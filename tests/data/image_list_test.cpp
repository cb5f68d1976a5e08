#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

std::unique_ptr<Dataset> open_list(const std::string& text, std::vector<std::pair<std::string, Value>> more = {}) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "my cats" / "one 1.png", png_of(3, 2, 2, 9));
  more.emplace_back("file", write_text(folder / "list.txt", text));
  return open_dataset("image_list", mapping(more));
}

}  // namespace

TEST(ImageList, AcceptsCrlfBlankLinesAndSpaces) {
  const auto data = open_list("\xef\xbb\xbfmy cats/one 1.png 2\r\n\r\n   \n  gone.png\t0  \r\nother.jpg 1");
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"0", "1", "2"}));
  Image image;
  EXPECT_EQ(data->get(0, image).label(), 2);
  EXPECT_EQ(image.pixels, Bytes(12, 9));
  const std::string message = message_of(ErrorKind::data, [&] { data->get(1, image); });
  EXPECT_NE(message.find("list.txt:4: "), std::string::npos) << message;
  EXPECT_NE(message.find("gone.png': No such file"), std::string::npos) << message;
  EXPECT_NE(data->where(2).find("list.txt:5 (other.jpg)"), std::string::npos);
}

TEST(ImageList, ReadsClassNames) {
  Image image;
  const auto found = open_list("x.png dog\nmy cats/one 1.png cat\n");
  EXPECT_EQ(found->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(found->get(1, image).label(), 0);
  const auto given = open_list("x.png 0\nmy cats/one 1.png cat\n", {{"classes", sequence({"dog", "cat"})}});
  EXPECT_EQ(given->classes()[0], "dog");
  EXPECT_EQ(given->get(1, image).label(), 1);
}

TEST(ImageList, NamesTheBadLine) {
  const auto failure = [](const std::string& text, std::vector<std::pair<std::string, Value>> more = {}) {
    return message_of(ErrorKind::data, [&] { open_list(text, more); });
  };
  EXPECT_NE(failure("a.png 1\nb.png\n").find("list.txt:2: expected 'path label'"), std::string::npos);
  EXPECT_NE(failure("a.png 1\nb.png 1O\n").find("list.txt:2: label '1O'"), std::string::npos);
  EXPECT_NE(failure("a.png -1\n").find("list.txt:1: label '-1'"), std::string::npos);
  EXPECT_NE(failure("a.png 4000000000\n").find("list.txt:1: label"), std::string::npos);
  EXPECT_NE(failure("a.png 2\n", {{"classes", sequence({"dog", "cat"})}}).find("neither one of the 2 classes"),
            std::string::npos);
  EXPECT_NE(failure(" \r\n\n").find("no line 'path label'"), std::string::npos);
  EXPECT_NE(failure(std::string("a\0.png 1", 8)).find("list.txt:1"), std::string::npos);
}

namespace {

std::unique_ptr<Dataset> open_list_for(TargetKind target, const std::string& text) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "one.png", png_of(1, 2, 2, 9));
  write_file(folder / "my cats" / "two.png", png_of(1, 2, 2, 7));
  DatasetSite site{"", {1, 2, 2}, 0};
  site.target = target;
  return open_dataset("image_list", mapping({{"file", write_text(folder / "list.txt", text)}, {"channels", "1"}}),
                      site);
}

std::vector<std::int64_t> labels_of(const Dataset& data, std::int64_t index) {
  Image image;
  return data.get(index, image).labels;
}

}  // namespace

TEST(ImageList, RefusesFilesOfOtherKinds) {
  const std::filesystem::path folder = fresh_folder();
  const auto failure = [&](const std::string& text) {
    const std::string file = write_text(folder / "list.txt", text);
    return message_of(ErrorKind::data, [&] { open_dataset("image_list", mapping({{"file", file}})); });
  };
  EXPECT_NE(failure("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n")
                .find("list.txt: not an image list but a git-lfs pointer; run `git lfs pull`"),
            std::string::npos);
  EXPECT_NE(failure("<!DOCTYPE html>\n<p> 404\n").find("a web page (HTML)"), std::string::npos);
}

TEST(ImageList, ReadsAnyNumberOfLabels) {
  const auto numbers = open_list_for(TargetKind::labels, "one.png 3,7,0\none.png\nmy cats/two.png -\none.png 2\n");
  EXPECT_EQ(numbers->classes().size(), 8u);
  EXPECT_EQ(labels_of(*numbers, 0), (std::vector<std::int64_t>{3, 7, 0}));
  EXPECT_EQ(labels_of(*numbers, 1), (std::vector<std::int64_t>{}));
  EXPECT_EQ(labels_of(*numbers, 2), (std::vector<std::int64_t>{}));
  EXPECT_EQ(labels_of(*numbers, 3), (std::vector<std::int64_t>{2}));
  const auto names = open_list_for(TargetKind::labels, "one.png dog,cat\none.png cat\n");
  EXPECT_EQ(names->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(labels_of(*names, 0), (std::vector<std::int64_t>{1, 0}));
  EXPECT_NE(message_of(ErrorKind::data, [] { open_list_for(TargetKind::labels, "one.png 3,x\n"); })
                .find("list.txt:1: label 'x'"),
            std::string::npos);
}

TEST(ImageList, ReadsTargetImage) {
  const auto data = open_list_for(TargetKind::image, "my cats/two.png one.png\n");
  Image image;
  const Target target = data->get(0, image);
  EXPECT_EQ(image.pixels, Bytes(4, 7));
  EXPECT_EQ(target.image.pixels, Bytes(4, 9));
  EXPECT_NE(message_of(ErrorKind::data, [] { open_list_for(TargetKind::image, "one.png\n"); })
                .find("list.txt:1: expected 'path target-path'"),
            std::string::npos);
}

TEST(ImageList, NeedsNoLabelsForInputTargets) {
  const auto data = open_list_for(TargetKind::input, "one.png\nmy cats/two.png 4\n");
  Image image;
  data->get(0, image);
  EXPECT_EQ(image.pixels, Bytes(4, 9));
  data->get(1, image);
  EXPECT_EQ(image.pixels, Bytes(4, 7));
}

TEST(ImageList, EscapesLinesInMessages) {
  const auto failure = [](const std::string& text) { return message_of(ErrorKind::data, [&] { open_list(text); }); };
  EXPECT_NE(failure("a.png 1\n\x1b[2J\n").find("found '\uFFFD[2J'"), std::string::npos);
  EXPECT_NE(failure("a.png 1\nb.png \x9b"
                    "2J\n")
                .find("label '\uFFFD2J'"),
            std::string::npos);
  const auto data = open_list("my\x1b[2J.png d\xf6g\n");
  EXPECT_EQ(data->classes(), std::vector<std::string>{"d\uFFFDg"});
  EXPECT_NE(data->where(0).find("(my\uFFFD[2J.png)"), std::string::npos);
}

TEST(ImageList, TruncatesLongLinesInMessages) {
  const std::string text(5000000, 'x');
  const auto data = open_list(text + " 1\n");
  Image image;
  EXPECT_LT(message_of(ErrorKind::data, [&] { data->get(0, image); }).size(), 1000u);
  EXPECT_LT(data->where(0).size(), 1000u);
  for (const std::string& line : {text, "a.png 1\nb.png " + text})
    EXPECT_LT(message_of(ErrorKind::data, [&] { open_list(line); }).size(), 1000u);
}

}  // namespace twiddle
