#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {

TEST(Merge, WritesSmallerNetworkWithSamePredictions) {
  const fs::path out = fresh_folder("merge");
  const std::vector<std::string> train = {
      "train", "models/cifar10.yaml",  "--out", out.string(),         "--epochs", "1",
      "--set", "data.train.images=64", "--set", "data.val.images=32", "-q"};
  ASSERT_EQ(run_program(train).code, 0);
  const std::string run = (out / "cifar10-001").string(), merged = (out / "merged").string();
  const Finished merge = run_program({"merge", run, "--out", merged, "--json", "-"});
  ASSERT_EQ(merge.code, 0) << merge.err;
  const auto facts = nlohmann::json::parse(merge.out);
  EXPECT_EQ(facts.at("norms"), 3);
  EXPECT_EQ(facts.at("sums"), 0);
  EXPECT_EQ(facts.at("layers").get<int>(), facts.at("layers_before").get<int>() - 3);
  EXPECT_LT(facts.at("difference").get<double>(), 1e-5);

  const Finished before = run_program({"eval", run, "--json", "-", "-q"});
  const Finished after = run_program({"eval", merged + ".safetensors", merged + ".yaml", "--json", "-", "-q"});
  ASSERT_EQ(after.code, 0) << after.err;
  EXPECT_NEAR(nlohmann::json::parse(after.out).at("loss").get<double>(),
              nlohmann::json::parse(before.out).at("loss").get<double>(), 1e-4);

  const Finished over = run_program({"merge", run, "--out", merged});
  EXPECT_EQ(over.code, 2) << over.err;
  EXPECT_NE(over.err.find("merged.yaml' exists; remove it, or give another name"), std::string::npos) << over.err;

  const std::string notes = (out / "notes").string();
  std::ofstream(notes + ".safetensors") << "another program's";
  EXPECT_EQ(run_program({"merge", run, "--out", notes}).code, 2);
  EXPECT_EQ(read_text(notes + ".safetensors"), "another program's");
  EXPECT_FALSE(fs::exists(notes + ".yaml"));
  fs::remove_all(out);
}

}  // namespace twiddle
