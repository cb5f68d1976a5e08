#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/formats/dataset.h"
#include "framework/context.h"
#include "layers/sequential.h"
#include "models/checkpoints/weights.h"
#include "models/config/experiment.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Images of one brightness per class, and a network for them.
class ClassNamesOfRun : public testing::Test {
 protected:
  ClassNamesOfRun() : folder_(fresh_folder("class_names")) {
    write_pictures("train", {"blue", "green", "red"});
    write_pictures("part", {"green", "red"});
  }
  ~ClassNamesOfRun() override { fs::remove_all(folder_); }

  void write_pictures(const std::string& set, const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      fs::create_directories(folder_ / set / name);
      for (int i = 0; i < 8; ++i) write_picture(folder_ / set / name / (std::to_string(i) + ".png"), name, i);
    }
  }

  static void write_picture(const fs::path& path, const std::string& name, int noise) {
    const std::size_t channel = name == "blue" ? 2 : name == "green" ? 1 : 0;
    Image image{3, 4, 4, std::vector<std::uint8_t>(48, static_cast<std::uint8_t>(20 + noise))};
    for (std::size_t i = 0; i < 16; ++i) image.pixels[16 * channel + i] = static_cast<std::uint8_t>(220 + noise);
    const std::vector<std::uint8_t> png = encode_png(image);
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(png.data()), std::ssize(png));
  }

  std::string config(const std::string& train_data) const {
    const fs::path file = folder_ / "net.yaml";
    std::ofstream(file) << "version: 1\ndevice: cpu\nmodel: {input: [3, 4, 4], layers: [linear: {outputs: 3}]}\n"
                        << "data:\n  train: " << train_data << "\n"
                        << "train: {epochs: 30, batch_size: 8, optimizer: adam, learning_rate: 0.03, out: "
                        << folder_.string() << "}\n";
    return file.string();
  }

  std::string folder_data(const std::string& set) const {
    return "{format: image_folder, path: " + (folder_ / set).string() + "}";
  }

  fs::path folder_;
};

TEST_F(ClassNamesOfRun, EvalMapsFolderWithoutSomeClasses) {
  const Finished trained = run_program({"train", config(folder_data("train")), "-q"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string run = (folder_ / "net-001").string();
  const Finished part = run_program({"eval", run, "--json", "-", "--set", "data.val=" + folder_data("part")});
  ASSERT_EQ(part.code, 0) << part.err;
  EXPECT_EQ(nlohmann::json::parse(part.out).at("top1"), 1.0) << part.out;

  write_pictures("other", {"green", "purple"});
  const Finished other = run_program({"eval", run, "--set", "data.val=" + folder_data("other")});
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_NE(other.err.find("does not have: 1 (purple)"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("3 (blue, green, red)"), std::string::npos) << other.err;
}

TEST_F(ClassNamesOfRun, PredictReadsNamesFromConfig) {
  std::ofstream(folder_ / "names.txt") << "blue\ngreen\nred\n";
  const std::string file =
      config("{format: image_list, file: not-there.txt, classes: " + (folder_ / "names.txt").string() + "}");
  const std::string weights = (folder_ / "unnamed.safetensors").string();
  const Experiment experiment = load_experiment(file);
  Context ctx;
  experiment.model.net->initialize(ctx);
  save_weights(weights, ctx, *experiment.model.net, {});
  const Finished said =
      run_program({"predict", weights, "--model", file, (folder_ / "train" / "red" / "0.png").string()});
  ASSERT_EQ(said.code, 0) << said.err;
  for (const char* name : {"blue", "green", "red"}) EXPECT_NE(said.out.find(name), std::string::npos) << said.out;
  EXPECT_EQ(said.out.find("output"), std::string::npos) << said.out;
}

TEST_F(ClassNamesOfRun, CheckWarnsOfClassesWithoutImages) {
  const std::string range = "{format: image_folder, path: " + (folder_ / "train").string() + ", count: 16}";
  const Finished checked = run_program({"check", config(range)});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_NE(checked.err.find(": data.train: 1 of 3 classes has no image here (red)"), std::string::npos) << checked.err;
}

// The validation set became smaller: its scores are not comparable.
TEST_F(ClassNamesOfRun, ResumeDiscardsBestOfOtherSet) {
  const std::string file = config(folder_data("train"));
  const std::string run = (folder_ / "net-001").string();
  const Finished trained =
      run_program({"train", file, "-q", "--epochs", "2", "--set", "data.val=" + folder_data("train")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Finished resumed =
      run_program({"train", "--resume", run, "--epochs", "3", "--lr", "0", "--set", "data.val=" + folder_data("part")});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("warning: data.val is not the validation set of the run so far: "), std::string::npos)
      << resumed.err;
  EXPECT_NE(resumed.out.find("at epoch 3"), std::string::npos) << resumed.out;
  EXPECT_NE(read_text(run + "/report.html").find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace twiddle
