#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/report/html.h"
#include "data/augmentation/augment.h"
#include "data/formats/dataset.h"
#include "framework/printable.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Folders, images and a config whose names contain line breaks, escape codes and invalid UTF-8.
class Names : public testing::Test {
 protected:
  Names() : folder_(fresh_folder("names")), model_(folder_ / "lat\xe9\n.yaml") {
    for (const char* kind : {"latin\xe9", "8\nfake line: 100%"})
      for (const char* name : {"a\xff.png", "b\x1b[2J.png", "c\xc2\x9b.png"}) write(folder_ / "data" / kind / name);
    std::ofstream(folder_ / "data" / "latin\xe9" / "d\x1b.png") << "no picture";
    std::ofstream(model_) << "version: 1\nmodel: {input: [1, 8, 8], layers: [{linear: {outputs: 2}}]}\n"
                             "data:\n  on_error: skip\n  train: {format: image_folder, path: data, channels: 1}\n"
                             "  val: {format: image_folder, path: data, channels: 1}\n"
                             "train: {batch_size: 4, epochs: 1}\n";
  }
  ~Names() override { fs::remove_all(folder_); }

  static void write(const fs::path& file) {
    fs::create_directories(file.parent_path());
    const std::vector<std::uint8_t> bytes = encode_png({1, 8, 8, std::vector<std::uint8_t>(64, 9)});
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  // Checks that the text is printable as it is, and that no name adds a line.
  static void expect_clean(const std::string& text, const char* what) {
    EXPECT_EQ(text, printable_lines(text)) << what;
    EXPECT_EQ(text.find("\nfake line"), std::string::npos) << what << text;
  }

  fs::path folder_, model_;
};

TEST_F(Names, EveryVerbAcceptsAnyFileName) {
  const Finished train =
      run_program({"train", model_.string(), "--out", (folder_ / "runs").string(), "--device", "cpu"});
  ASSERT_EQ(train.code, 0) << train.err;
  expect_clean(train.err, "train");
  EXPECT_NE(train.err.find("latin\uFFFD/d\uFFFD.png' is not a JPEG or PNG file but text"), std::string::npos)
      << train.err;

  const fs::path run = fs::directory_iterator(folder_ / "runs")->path();
  for (const char* file : {"config.yaml", "train.log", "report.html", "metrics.jsonl", "environment.json"})
    expect_clean(read_text(run / file), file);

  const Finished eval = run_program({"eval", run.string()});
  ASSERT_EQ(eval.code, 0) << eval.err;
  expect_clean(eval.out + eval.err, "eval");
  const Finished eval_json = run_program({"eval", run.string(), "--json", "-"});
  ASSERT_EQ(eval_json.code, 0) << eval_json.err;
  EXPECT_EQ(nlohmann::json::parse(eval_json.out).at("classes").at(1).at("name"), "latin\uFFFD");

  fs::remove(folder_ / "data" / "latin\xe9" / "d\x1b.png");
  const Finished predict = run_program({"predict", run.string(), (folder_ / "data").string()});
  ASSERT_EQ(predict.code, 0) << predict.err;
  expect_clean(predict.out + predict.err, "predict");
  const Finished predict_json = run_program({"predict", run.string(), (folder_ / "data").string(), "--json", "-"});
  ASSERT_EQ(predict_json.code, 0) << predict_json.err;
  EXPECT_EQ(predict_json.out, printable_lines(predict_json.out));
  EXPECT_EQ(nlohmann::json::parse(predict_json.out).size(), 6u);

  const Finished resume = run_program({"train", "--resume", run.string(), "--epochs", "2"});
  ASSERT_EQ(resume.code, 0) << resume.err;
  expect_clean(resume.out + resume.err, "resume");
}

TEST_F(Names, NameOfMissingModelIsEscaped) {
  const Finished check = run_program({"check", (folder_ / "\x1b[2Jgone\xff.yaml").string()});
  EXPECT_EQ(check.code, 2);
  expect_clean(check.out + check.err, "check");
}

// A name in a config may contain characters that the file cannot hold as they are: they are escaped.
TEST_F(Names, EveryVerbEscapesNames) {
  const fs::path config = folder_ / "e\x1b[2J\nfake line.yaml", broken = folder_ / "\x1b[2J\nfake line.yaml";
  const std::string cache = (folder_ / "kept\\e\\nfake line").string();
  std::ofstream(config) << "version: 1\nname: \"bell\\a\\e[2J\\nfake line\"\nconvolution: {cache: \"" + cache +
                               "\"}\n" +
                               "model: {input: [1, 8, 8], layers: [conv2d: {filters: 2, kernel: 3}, "
                               "linear: {outputs: 2}]}\n"
                               "data:\n  on_error: skip\n  train: {format: image_folder, path: data, channels: 1}\n"
                               "train: {batch_size: 4, epochs: 1}\n";
  const std::string out = (folder_ / "runs").string();
  const std::vector<std::vector<std::string>> commands{
      {"check", config.string(), broken.string()},
      {"summary", config.string()},
      {"time", config.string(), "--steps", "1", "--device", "cpu"},
      {"tune", config.string(), "--device", "cpu"},
      {"train", config.string(), "--out", out, "--device", "cpu"},
      {"merge", out + "/bell___2J_fake_line-001", "--out", (folder_ / "merged\x1b\nfake line").string()}};
  for (const std::vector<std::string>& command : commands) {
    const Finished finished = run_program(command);
    EXPECT_EQ(finished.code, command.front() == "check" ? 2 : 0) << command.front() << finished.err;
    expect_clean(finished.out, command.front().c_str());
    expect_clean(finished.err, command.front().c_str());
  }
}

TEST_F(Names, PredictReportsResizedAndSkippedImages) {
  const Finished train =
      run_program({"train", model_.string(), "--out", (folder_ / "runs").string(), "--device", "cpu"});
  ASSERT_EQ(train.code, 0) << train.err;
  const fs::path run = fs::directory_iterator(folder_ / "runs")->path(), pictures = folder_ / "pictures";
  fs::create_directories(pictures);
  std::ofstream(pictures / "a.webp") << "another kind";
  const std::vector<std::uint8_t> bytes = encode_png({1, 9, 8, std::vector<std::uint8_t>(72, 9)});
  std::ofstream(pictures / "b.png", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const Finished predict = run_program({"predict", run.string(), pictures.string()});
  ASSERT_EQ(predict.code, 0) << predict.err;
  EXPECT_NE(predict.err.find("1 picture was not 8x8 and was resized to it"), std::string::npos) << predict.err;
  EXPECT_NE(predict.err.find("skipped 1 file that is not .jpg, .jpeg or .png"), std::string::npos) << predict.err;
}

TEST(EscapeHtml, ReturnsValidUtf8) {
  EXPECT_EQ(escape_html("<b\xe9\x1b>"), "&lt;b\uFFFD\uFFFD&gt;");
}

}  // namespace
}  // namespace twiddle
