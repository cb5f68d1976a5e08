#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/formats/dataset.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Runs whose targets are not single labels, from the config to the output of eval, predict and the report.
class Targets : public testing::Test {
 protected:
  Targets() : folder_(fresh_folder("targets")) {}
  ~Targets() override { fs::remove_all(folder_); }

  // An 8x8 image that is bright at the left, at the top, at both or nowhere, with some noise.
  std::string write_picture(int number, bool left, bool top) const {
    Image image{1, 8, 8, {}};
    for (int i = 0; i < 64; ++i) {
      const bool bright = (left && i % 8 < 4) || (top && i / 8 < 4);
      image.pixels.push_back(static_cast<std::uint8_t>((bright ? 180 : 20) + (7 * i + 13 * number) % 50));
    }
    const std::vector<std::uint8_t> png = encode_png(image);
    const std::string name = std::to_string(number) + ".png";
    std::ofstream(folder_ / name, std::ios::binary).write(reinterpret_cast<const char*>(png.data()), png.size());
    return name;
  }

  std::string write_config(const std::string& layers, const std::string& data, const std::string& train) const {
    const fs::path file = folder_ / "run.yaml";
    std::ofstream(file) << "version: 1\nmodel: {input: [1, 8, 8], layers: " << layers << "}\ndata:\n"
                        << "  train: {" << data << "}\n  val: {" << data << "}\ntrain: {out: " << folder_.string()
                        << ", batch_size: 8, optimizer: adam, learning_rate: 0.02, " << train << "}\n";
    return file.string();
  }

  void train(const std::string& config) const {
    const Finished trained = run_program({"train", config, "-q"});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }

  std::string run() const { return (folder_ / "run-001").string(); }

  fs::path folder_;
};

TEST_F(Targets, TrainsOnSeveralLabels) {
  std::ofstream list(folder_ / "list.txt");
  for (int i = 0; i < 40; ++i) {
    const bool left = i % 2 == 1, top = i % 4 > 1;
    list << write_picture(i, left, top) << (left || top ? " " : "") << (left ? "left" : "") << (left && top ? "," : "")
         << (top ? "top" : "") << "\n";
  }
  list.close();
  train(write_config("[linear: {outputs: 2}]",
                     "format: image_list, channels: 1, file: " + (folder_ / "list.txt").string(),
                     "epochs: 60, watch: loss, loss: {binary_cross_entropy: {positive_weight: 1.2}}"));
  const Finished eval = run_program({"eval", run(), "-q"});
  EXPECT_NE(eval.out.find("mAP    100.00%"), std::string::npos) << eval.out << eval.err;
  EXPECT_NE(eval.out.find("average precision"), std::string::npos) << eval.out;
  const Finished predict =
      run_program({"predict", run(), (folder_ / "1.png").string(), (folder_ / "3.png").string(), "--json", "-"});
  ASSERT_EQ(predict.code, 0) << predict.err;
  const auto said = nlohmann::json::parse(predict.out);
  ASSERT_EQ(said.at(0).at("labels").size(), 1u) << predict.out;
  EXPECT_EQ(said.at(0).at("labels").at(0).at("class"), "left");
  EXPECT_EQ(said.at(1).at("labels").size(), 2u);
  const std::string report = read_text(fs::path(run()) / "report.html");
  EXPECT_NE(report.find("Worst images"), std::string::npos);
  EXPECT_EQ(report.find("Confusion"), std::string::npos);
  EXPECT_NE(read_text(fs::path(run()) / "metrics.csv").find("val_loss,val_map,"), std::string::npos);
}

TEST_F(Targets, TrainsOnInputImages) {
  const std::string digits =
      "format: idx, count: 200, images: " + fs::absolute("data/digits/train-images.idx.gz").string() +
      ", labels: " + fs::absolute("data/digits/train-labels.idx.gz").string();
  train(write_config("[conv2d: {filters: 8, kernel: 3, pad: 1}, relu, conv2d: {filters: 1, kernel: 3, pad: 1}]", digits,
                     "epochs: 6, loss: {mean_squared_error: {denoise: 0.2}}"));
  const Finished eval = run_program({"eval", run(), "--json", "-", "-q"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const auto scores = nlohmann::json::parse(eval.out);
  EXPECT_GT(scores.at("psnr").get<double>(), 14.5);  // the noise alone leaves 14
  EXPECT_FALSE(scores.contains("top1"));
  const Finished predict =
      run_program({"predict", run(), "data/digits/picture.png", "--images", (folder_ / "made").string()});
  ASSERT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(read_image((folder_ / "made" / "picture.png").string(), 1).pixels.size(), 64u);
  for (const char* name : {"x.jpg", "x.png"}) fs::copy_file("data/digits/picture.png", folder_ / name);
  const std::string first = (folder_ / "x.jpg").string(), second = (folder_ / "x.png").string();
  EXPECT_EQ(run_program({"predict", run(), first, second, "--images", folder_.string()}).code, 2);
  EXPECT_EQ(read_text(second), read_text("data/digits/picture.png")) << "a picture that is read later";
  const std::string report = read_text(fs::path(run()) / "report.html");
  EXPECT_NE(report.find("Made of images"), std::string::npos);
  EXPECT_NE(report.find("PSNR, dB"), std::string::npos);
  EXPECT_EQ(report.find("Accuracy"), std::string::npos);
}

}  // namespace
}  // namespace twiddle
