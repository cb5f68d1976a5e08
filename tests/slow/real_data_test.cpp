// Training on real images that do not ship with the project: searched for in $TWIDDLE_DATA, then in ../shared/data;
// skipped if absent.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "models/config/config.h"
#include "models/config/experiment.h"
#include "models/evaluation/evaluate.h"
#include "models/training/trainer.h"

namespace twiddle {
namespace {

std::string data_folder(const std::string& name) {
  const char* chosen = std::getenv("TWIDDLE_DATA");
  return std::filesystem::absolute(std::filesystem::path(chosen != nullptr ? chosen : "../shared/data") / name)
      .string();
}

double trained_top1(const std::string& model, const std::vector<Override>& overrides) {
  Trainer trainer(load_experiment(model, overrides), {});
  const std::atomic<bool> stop = false;
  trainer.run({}, stop);
  return trainer.last_validation()->scores.top1;
}

TEST(RealData, LenetLearnsMnist) {
  const std::string folder = data_folder("mnist-t10k");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const std::string files =
      "format: idx, images: " + folder + "/t10k-images-idx3-ubyte.gz, labels: " + folder + "/t10k-labels-idx1-ubyte.gz";
  EXPECT_GE(trained_top1("models/lenet.yaml", {{"data.train", "{" + files + ", count: 8000}", "--set"},
                                               {"data.val", "{" + files + ", first: 8000}", "--set"}}),
            0.975);
}

TEST(RealData, Cifar10NetLearnsCifar) {
  const std::string folder = data_folder("cifar10-small");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  EXPECT_GE(trained_top1("models/cifar10.yaml",
                         {{"data.train", "{format: cifar10, path: " + folder + ", split: train}", "--set"},
                          {"data.val", "{format: cifar10, path: " + folder + ", split: test}", "--set"}}),
            0.60);
}

}  // namespace
}  // namespace twiddle
