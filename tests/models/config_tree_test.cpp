#include "models/config/config_tree.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/models/config_text.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

std::string file_complaint(const std::string& path) {
  try {
    load_experiment(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

class ConfigTree : public testing::Test {
 protected:
  ConfigTree() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "nets");
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  const std::filesystem::path folder_ = temp_path("config_tree");
};

TEST_F(ConfigTree, RefusesOtherFiles) {
  EXPECT_EQ(complaint_about(""),
            "a.yaml: error: the config is empty\n"
            "  it needs at least 'version: 1' and 'model:'; models/digits.yaml is an example\n"
            "1 error; nothing was run.");
  EXPECT_TRUE(holds(complaint_about("# nothing\n"), "the config is empty"));
  EXPECT_TRUE(holds(complaint_about("- a\n- b\n"), "a config is a mapping of keys to values"));
  EXPECT_TRUE(holds(complaint_about("just words\n"), "a config is a mapping of keys to values"));
  EXPECT_TRUE(holds(complaint_about(std::string(100000, '[')), "nested more than 64 levels deep"));
  EXPECT_TRUE(holds(complaint_about(std::string("\x89PNG\r\n\x1a\n")), "not a UTF-8 text"));
}

TEST_F(ConfigTree, ReportsUnreadableFiles) {
  EXPECT_EQ(file_complaint("no/such.yaml"),
            "error: cannot read 'no/such.yaml': No such file or directory\n1 error; nothing was run.");
  EXPECT_TRUE(holds(file_complaint(folder_.string()), "it is a folder, not a config file"));
  EXPECT_TRUE(holds(file_complaint(write("empty.yaml", "")), "the config is empty"));
  EXPECT_TRUE(holds(file_complaint(write("big.yaml", std::string((4u << 20) + 1, '#'))), "more than 4 MiB"));
  EXPECT_TRUE(holds(file_complaint(write("pointer.yaml", "version https://git-lfs.github.com/spec/v1\n")),
                    "it is not a config but a git-lfs pointer; run `git lfs pull`"));
  EXPECT_TRUE(holds(file_complaint("/dev/zero"), "it is not a regular file"));
}

TEST_F(ConfigTree, MergesBaseFile) {
  write("nets/base.yaml",
        "version: 1\nseed: 5\nmodel: {input: [1, 8, 8], layers: [relu, linear: {outputs: 4}]}\n"
        "data: {train: {format: synthetic, images: 10}, workers: 1}\n"
        "train: {optimizer: {sgd: {momentum: 0.9}}, epochs: 3, batch_size: 7}\n");
  const Config config = load_experiment(write("top.yaml",
                                              "version: 1\nbase: nets/base.yaml\nmodel: {layers: [flatten]}\ndata: "
                                              "{train: {format: cifar10, path: x}}\n"
                                              "train: {optimizer: {adam: {beta1: 0.8}}, epochs: 4}\n"))
                            .config;
  EXPECT_EQ(config.seed, 5u);
  EXPECT_EQ(config.input, (Shape{1, 8, 8}));
  EXPECT_EQ(names_of_layers(config), std::vector<std::string>{"flatten1"});
  EXPECT_EQ(config.data.workers, 1);
  EXPECT_EQ(config.tree.find("data")->find("train")->find("images"),
            nullptr);  // another format's options are not mixed in
  EXPECT_EQ(config.tree.find("train")->find("optimizer")->entries.size(), 1u);
  EXPECT_EQ(config.train.epochs, 4);
  EXPECT_EQ(config.train.batch_size, 7);
  EXPECT_EQ(config.tree.find("base"), nullptr);
  EXPECT_EQ(config.name, "top");
}

TEST_F(ConfigTree, ReplacesOptionsOfAnotherLoss) {
  write("base.yaml", smallest_config + "train: {loss: {cross_entropy: {label_smoothing: 0.1}}}\n");
  const Config config =
      load_experiment(write("top.yaml", "base: base.yaml\ntrain: {loss: {binary_cross_entropy: {}}}\n")).config;
  EXPECT_EQ(config.tree.find("train")->find("loss")->entries.front().key, "binary_cross_entropy");
}

TEST_F(ConfigTree, RefusesInvalidBases) {
  const std::string missing =
      file_complaint(write("a.yaml", "version: 1\nbase: none.yaml\n" + smallest_config.substr(11)));
  EXPECT_TRUE(holds(missing, "a.yaml:2:7: error: cannot read '" + (folder_ / "none.yaml").string() + "': No such file"))
      << missing;
  write("b.yaml", "version: 1\nbase: c.yaml\n" + smallest_config.substr(11));
  const std::string circle =
      file_complaint(write("c.yaml", "version: 1\nbase: nets/../b.yaml\n" + smallest_config.substr(11)));
  EXPECT_TRUE(holds(circle, "b.yaml:2:7: error: 'base' goes round in a circle")) << circle;
  EXPECT_TRUE(
      holds(file_complaint(write("d.yaml", "version: 1\nbase: d.yaml\n" + smallest_config.substr(11))), "in a circle"));
  EXPECT_TRUE(holds(file_complaint(write("e.yaml", "version: 1\nbase: [x]\n" + smallest_config.substr(11))),
                    "'base' must be the path of another config"));
  write("nets/wrong.yaml", "version: 1\nmodel: {input: [1, 8, 8], layers: [relu]}\nepochs: 3\n");
  const std::string inner = file_complaint(write("f.yaml", "version: 1\nbase: nets/wrong.yaml\n"));
  EXPECT_TRUE(holds(inner, "nets/wrong.yaml:3:1: error: unknown key 'epochs'")) << inner;
}

TEST_F(ConfigTree, ExpandsEnvironmentInDataPaths) {
  ::setenv("TWIDDLE_TEST_FOLDER", "/mnt/${X}", 1);
  const Config config = config_of(
      smallest_config + "data: {train: {format: idx, images: \"${TWIDDLE_TEST_FOLDER}/a.gz\", labels: b.gz}}\n");
  EXPECT_EQ(config.tree.find("data")->find("train")->find("images")->text, "/mnt/${X}/a.gz");
  EXPECT_TRUE(holds(complaint_about(smallest_config + "data: {train: {format: idx, images: \"${TWIDDLE\"}}\n"),
                    "a.yaml:7:37: error: '${' without its '}'"));
  EXPECT_TRUE(
      holds(complaint_about(smallest_config + "data: {train: {images: ${DATA}/a}}\n"), "put quotes around ${...}"));
}

// Otherwise another user's config could copy the value of a variable into reports, weights and checkpoints.
TEST_F(ConfigTree, DoesNotExpandEnvironmentElsewhere) {
  ::setenv("TWIDDLE_TEST_SECRET", "hunter2", 1);
  const Config config =
      config_of("name: ${TWIDDLE_TEST_SECRET}\n" + smallest_config +
                "data:\n"
                "  train: {format: idx, images: a.gz, labels: b.gz, classes: [\"${TWIDDLE_TEST_SECRET}\"]}\n"
                "  val: {format: image_list, file: a}\n");
  EXPECT_FALSE(holds(to_yaml(config.tree), "hunter2")) << to_yaml(config.tree);
}

TEST_F(ConfigTree, MakesPathsAbsolute) {
  write("nets/images.gz", "");
  write("nets/base.yaml",
        "version: 1\ndata: {train: {format: idx, images: ../nets/images.gz, labels: not/there.gz}}\n");
  const Config config = load_experiment(write("top.yaml", "base: nets/base.yaml\n" + smallest_config)).config;
  const ConfigNode& train = *config.tree.find("data")->find("train");
  EXPECT_EQ(train.find("images")->text, (folder_ / "nets" / "images.gz").string());  // relative to that file
  EXPECT_EQ(train.find("labels")->text, "not/there.gz");
}

}  // namespace
}  // namespace twiddle
