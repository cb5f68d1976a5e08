#include "models/checkpoints/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "tests/models/small_run.h"
#include "tests/models/small_training.h"

namespace twiddle {

namespace {

std::string load_error(const std::string& path, SmallRun& run) {
  try {
    load_weights(path, run.ctx, run.net);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
}

template <class T>
void expect_stored_in() {
  const std::string path = fresh_path("weights_16_bits.safetensors");
  const Experiment experiment = small_experiment();
  const Sequential& net = *experiment.model.net;
  Context ctx;
  net.initialize(ctx);
  save_weights(path, ctx, net, {}, {}, dtype_of<T>);
  const ArraySource saved = open_safetensors(path);
  for (const Parameter* parameter : net.parameters()) {
    std::vector<float> values = parameter->variable.value().to_vector(*ctx.stream);
    if (parameter->name == "conv1.weight" || parameter->name == "fc1.weight")
      for (float& value : values) value = to_float(from_float<T>(value));
    EXPECT_EQ(read_tensor(*ctx.stream, saved, parameter->name).to_vector(*ctx.stream), values) << parameter->name;
  }
}

}  // namespace

TEST(Weights, RoundTripWithClasses) {
  const std::string path = fresh_path("weights_round.safetensors");
  SmallRun run, other;
  run.set(5);
  save_weights(path, run.ctx, run.net, {"cat", "a \"dog\"", "latin \xe9"});
  const WeightsInfo info = load_weights(path, other.ctx, other.net);
  EXPECT_EQ(info.classes, (std::vector<std::string>{"cat", "a \"dog\"", "latin \uFFFD"}));
  for (const Parameter* parameter : other.net.parameters())
    EXPECT_EQ(parameter->variable.value().to_vector(*other.ctx.stream)[0], 5) << parameter->name;
}

TEST(Weights, StoreOnlyWeightsOfConvolutionsIn16Bits) {
  expect_stored_in<Bf16>();
  expect_stored_in<Half>();
}

// 65,519 is rounded to the largest number of fp16.
TEST(Weights, NameWeightThatOverflowsFp16) {
  const std::string path = fresh_path("weights_overflow.safetensors");
  const Experiment experiment = small_experiment();
  const Sequential& net = *experiment.model.net;
  Context ctx;
  net.initialize(ctx);
  const std::vector<Parameter*> parameters = net.parameters();
  const auto set_first_of = [&](std::size_t from_end, float value) {
    ctx.stream->fill(parameters.at(parameters.size() - from_end)->variable.value().write(), 1, value);
  };
  set_first_of(1, 1e6f);  // fc1.bias, which stays f32
  set_first_of(2, 65519);
  save_weights(path, ctx, net, {}, {}, DType::f16);
  set_first_of(2, 65520);
  save_weights(path, ctx, net, {}, {}, DType::bf16);
  std::filesystem::remove(path);
  try {
    save_weights(path, ctx, net, {}, {}, DType::f16);
    FAIL() << "an infinite weight was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_STREQ(error.what(), "'fc1.weight' has a value that overflows fp16: use --store bf16 or fp32");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Weights, RefuseNonFiniteValues) {
  const std::string path = fresh_path("weights_nan.safetensors");
  SmallRun run;
  run.set(NAN);
  save_weights(path, run.ctx, run.net, {});
  run.set(1);
  try {
    load_weights(path, run.ctx, run.net);
    FAIL() << "weights of NaN were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
    EXPECT_EQ(error.what(), path +
                                ": 6 of the 6 values of 'conv1.weight' are nan or infinite: the training that made " +
                                "them went wrong");
  }
  EXPECT_TRUE(run.all_are(1));
}

TEST(Weights, ReportEveryTensorThatMismatches) {
  const std::string path = fresh_path("weights_misfit.safetensors");
  SmallRun run;
  run.set(5);
  save_weights(path, run.ctx, run.net, {});
  SafeTensors contents = read_safetensors(path);
  contents.arrays.erase("conv1.bias");
  contents.arrays["conv1.weight"].shape = {3, 2};
  contents.arrays["norm1.mean"].type = DType::i32;
  contents.arrays["zz"] = {DType::f32, {}, {0, 0, 0, 0}};
  write_safetensors(path, contents);

  run.set(1);
  EXPECT_EQ(load_error(path, run), path +
                                       ": does not fit this model\n"
                                       "  'conv1.weight' is 3x2 in the file, 2x3 in the model\n"
                                       "  missing: 'conv1.bias' 2\n"
                                       "  'norm1.mean' has dtype I32 in the file; F32 is needed\n"
                                       "  unexpected: 'zz' scalar");
  EXPECT_TRUE(run.all_are(1));
}

TEST(Weights, LoadLayerByLayer) {
  const std::string path = fresh_path("weights_taken.safetensors");
  SmallRun run, wider(4);
  run.set(5);
  save_weights(path, run.ctx, run.net, {});
  SafeTensors contents = read_safetensors(path);
  contents.arrays["zz"] = {DType::f32, {}, {0, 0, 0, 0}};
  write_safetensors(path, contents);

  wider.set(1);
  const TakenWeights taken = take_weights(path, wider.ctx, wider.net);
  EXPECT_EQ(taken.taken(), 1u);
  ASSERT_EQ(taken.layers.size(), 2u);
  EXPECT_EQ(taken.layers[0].name, "conv1");
  EXPECT_EQ(taken.layers[0].misfits, "'conv1.weight' is 2x3 in the file, 2x4 in the model");
  EXPECT_EQ(taken.layers[1].name, "norm1");
  EXPECT_EQ(taken.layers[1].misfits, "");
  EXPECT_EQ(taken.left, std::vector<std::string>{"'zz' scalar"});
  const auto first_of = [&](std::size_t i) {
    return wider.net.parameters()[i]->variable.value().to_vector(*wider.ctx.stream)[0];
  };
  EXPECT_EQ(first_of(1), 1) << "a layer that does not fit is not loaded, even if its bias would fit";
  EXPECT_EQ(first_of(2), 5);
}

TEST(Weights, LoadWithPyTorchNames) {
  const std::string path = fresh_path("weights_taken_from_torch.safetensors");
  SmallRun run;
  SafeTensors contents;
  contents.arrays["0.weight"] = {DType::f32, {2, 3}, std::vector<std::uint8_t>(24)};
  contents.arrays["0.bias"] = {DType::f32, {2}, std::vector<std::uint8_t>(8)};
  contents.arrays["1.mean"] = {DType::f32, {5}, std::vector<std::uint8_t>(20)};
  write_safetensors(path, contents);
  run.set(1);
  const TakenWeights taken = take_weights(path, run.ctx, run.net);
  ASSERT_EQ(taken.layers.size(), 2u);
  EXPECT_EQ(taken.layers[0].misfits, "");
  EXPECT_EQ(taken.layers[1].misfits, "'norm1.mean' ('1.mean') is 5 in the file, 2 in the model");
  EXPECT_TRUE(taken.left.empty());
  EXPECT_EQ(run.net.parameters()[0]->variable.value().to_vector(*run.ctx.stream)[0], 0);
}

TEST(Weights, RefuseUnrelatedNetwork) {
  const std::string path = fresh_path("weights_of_another.safetensors");
  SmallRun run;
  SafeTensors contents;
  contents.arrays["conv1.bias"] = {DType::f32, {1}, {0, 0, 0, 0}};
  write_safetensors(path, contents);
  run.set(1);
  try {
    take_weights(path, run.ctx, run.net);
    FAIL() << "weights of another network were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(error.what(), path +
                                ": has no layer of this model, by name and shape\n"
                                "  missing: 'conv1.weight' 2x3\n"
                                "  'conv1.bias' is 1 in the file, 2 in the model\n"
                                "  missing: 'norm1.mean' 2");
  }
  EXPECT_TRUE(run.all_are(1));
}

TEST(Weights, RefuseEmptyFile) {
  const std::string path = fresh_path("weights_empty.safetensors");
  SmallRun run;
  for (const SafeTensors& contents : {SafeTensors{}, SafeTensors{{}, {{"from", "elsewhere"}}}}) {
    write_safetensors(path, contents);
    EXPECT_EQ(load_error(path, run), path + ": has no tensor in it");
    EXPECT_THROW(take_weights(path, run.ctx, run.net), Error);
  }
}

TEST(Weights, LoadDespiteEmptyTensors) {
  const std::string path = fresh_path("weights_next_to_empty.safetensors");
  SmallRun run;
  save_weights(path, run.ctx, run.net, {});
  SafeTensors contents = read_safetensors(path);
  contents.arrays["nothing"] = {DType::f32, {0, 3}, {}};
  write_safetensors(path, contents);
  const TakenWeights taken = take_weights(path, run.ctx, run.net);
  EXPECT_EQ(taken.taken(), taken.layers.size());
  EXPECT_EQ(taken.left, std::vector<std::string>{"'nothing' 0x3"});
}

TEST(Weights, ListAtMostTenMismatches) {
  const std::string path = fresh_path("weights_many.safetensors");
  SmallRun run;
  save_weights(path, run.ctx, run.net, {});
  SafeTensors contents = read_safetensors(path);
  for (int i = 0; i < 12; ++i) contents.arrays["x" + std::to_string(i)] = {DType::f32, {0}, {}};
  write_safetensors(path, contents);
  EXPECT_NE(load_error(path, run).find("\n  ... and 2 more"), std::string::npos);
}

TEST(Weights, RefuseInvalidClasses) {
  const std::string path = fresh_path("weights_classes.safetensors");
  SmallRun run;
  run.set(5);
  save_weights(path, run.ctx, run.net, {"a"});
  SafeTensors contents = read_safetensors(path);
  run.set(1);
  for (const std::string& text : {std::string("7"), std::string("[\"a\""), std::string("[1]"), std::string("{}"),
                                  std::string(200'000, '['), std::string("[[\"a\"]]")}) {
    contents.metadata["classes"] = text;
    write_safetensors(path, contents);
    EXPECT_NE(load_error(path, run).find("not a JSON list of names"), std::string::npos) << text.substr(0, 20);
  }
  contents.metadata["classes"] = "[\"a\", \"a\"]";
  write_safetensors(path, contents);
  EXPECT_NE(load_error(path, run).find("names 'a' twice"), std::string::npos);
  std::string many = "[\"0\"";
  for (int i = 1; i < 100; ++i) many += ", \"" + std::to_string(i) + "\"";
  contents.metadata["classes"] = many + "]";
  write_safetensors(path, contents);
  EXPECT_NE(load_error(path, run).find("has 100 names, the network has"), std::string::npos);
  EXPECT_TRUE(run.all_are(1));
}

}  // namespace twiddle
