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

// What a file of bf16 has lost is what a network of bf16 loses anyway.
TEST(Merge, StoresWeightsIn16Bits) {
  const fs::path out = fresh_folder("merge_16_bits");
  ASSERT_EQ(run_program({"train", "models/digits.yaml", "--out", out.string(), "--epochs", "1", "-q"}).code, 0);
  const std::string run = (out / "digits-001").string(), bf16 = (out / "bf16").string();
  ASSERT_EQ(run_program({"merge", run, "--out", (out / "fp32").string()}).code, 0);
  const Finished merge = run_program({"merge", run, "--out", bf16, "--store", "bf16", "--json", "-"});
  ASSERT_EQ(merge.code, 0) << merge.err;
  const double difference = nlohmann::json::parse(merge.out).at("difference").get<double>();
  EXPECT_GT(difference, 1e-4);
  EXPECT_LT(difference, 1e-2);
  EXPECT_LT(fs::file_size(bf16 + ".safetensors"), 0.6 * static_cast<double>(fs::file_size(out / "fp32.safetensors")));

  const auto loss = [&](const std::string& weights, const std::string& precision) {
    const Finished eval =
        run_program({"eval", (out / (weights + ".safetensors")).string(), (out / (weights + ".yaml")).string(),
                     "--precision", precision, "--json", "-", "-q"});
    EXPECT_EQ(eval.code, 0) << eval.err;
    return nlohmann::json::parse(eval.out).at("loss").get<double>();
  };
  EXPECT_EQ(loss("bf16", "bf16"), loss("fp32", "bf16"));
  EXPECT_NE(loss("bf16", "fp32"), loss("fp32", "fp32"));
  const Finished train = run_program({"train", "models/digits.yaml", "--out", out.string(), "--epochs", "1",
                                      "--weights", bf16 + ".safetensors", "--limit-batches", "1", "-q"});
  EXPECT_EQ(train.code, 0) << train.err;
  const Finished wrong = run_program({"merge", run, "--out", (out / "x").string(), "--store", "bf61"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("did you mean 'bf16'?"), std::string::npos) << wrong.err;
  fs::remove_all(out);
}

}  // namespace twiddle
