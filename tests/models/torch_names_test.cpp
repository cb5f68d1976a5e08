#include "models/checkpoints/torch_names.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>

#include "framework/error.h"
#include "models/checkpoints/weights.h"
#include "models/config/experiment.h"
#include "tests/models/small_run.h"

namespace twiddle {

namespace {

constexpr const char* two_convolutions = R"(
version: 1
model:
  input: [1, 4, 4]
  layers:
    - conv2d: {filters: 2, kernel: 3, pad: 1}
    - batch_norm
    - relu
    - conv2d: {filters: 2, kernel: 3, pad: 1}
    - flatten
    - linear: {outputs: 3}
)";

Model model_of(const std::string& yaml) {
  return load_experiment_text(yaml, "test.yaml").model;
}

HostArray array_of(Shape shape, float value) {
  HostArray array{DType::f32, std::move(shape), {}};
  const std::vector<float> values(static_cast<std::size_t>(count_of(array.shape)), value);
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// PyTorch's state_dict of that network. Numbers from ten on are included since '10' precedes '3' alphabetically.
SafeTensors torch_file() {
  SafeTensors file;
  file.arrays["features.3.weight"] = array_of({2, 1, 3, 3}, 1);
  file.arrays["features.3.bias"] = array_of({2}, 2);
  file.arrays["features.4.weight"] = array_of({2}, 3);
  file.arrays["features.4.bias"] = array_of({2}, 4);
  file.arrays["features.4.running_mean"] = array_of({2}, 5);
  file.arrays["features.4.running_var"] = array_of({2}, 6);
  file.arrays["features.10.weight"] = array_of({2, 2, 3, 3}, 7);
  file.arrays["features.10.bias"] = array_of({2}, 8);
  file.arrays["classifier.1.weight"] = array_of({3, 32}, 9);
  file.arrays["classifier.1.bias"] = array_of({3}, 10);
  return file;
}

ArrayTable arrays_called(const std::vector<std::string>& names) {
  ArrayTable arrays;
  for (const std::string& name : names) arrays[name] = {DType::f32, {1}};
  return arrays;
}

// Our weights in the network's order, each with its name in a file of these layers.
std::vector<std::string> weights_of(const std::string& model_file, const std::vector<std::string>& torch_layers) {
  const Model model = load_experiment(model_file).model;
  std::vector<std::string> torch, found;
  for (const std::string& layer : torch_layers) torch.push_back(layer + ".weight");
  const auto names = torch_names(*model.net, arrays_called(torch));
  for (const Parameter* parameter : model.net->parameters())
    if (parameter->name.ends_with(".weight")) found.push_back(parameter->name + " " + names.at(parameter->name));
  return found;
}

}  // namespace

TEST(TorchNames, LoadIntoTheLayersInOrder) {
  const std::string path = fresh_path("torch_names.safetensors");
  write_safetensors(path, torch_file());
  const Model model = model_of(two_convolutions);
  Context ctx;
  model.net->initialize(ctx);
  load_weights(path, ctx, *model.net);
  float expected = 0;
  for (const Parameter* parameter : model.net->parameters())
    EXPECT_EQ(parameter->variable.value().to_vector(*ctx.stream)[0], ++expected) << parameter->name;
  EXPECT_EQ(expected, 10);
}

TEST(TorchNames, MapTorchvisionAlexNetAndVgg) {
  EXPECT_EQ(weights_of("models/alexnet.yaml", {"features.0", "features.3", "features.6", "features.8", "features.10",
                                               "classifier.1", "classifier.4", "classifier.6"}),
            (std::vector<std::string>{"conv1.weight features.0.weight", "conv2.weight features.3.weight",
                                      "conv3.weight features.6.weight", "conv4.weight features.8.weight",
                                      "conv5.weight features.10.weight", "fc6.weight classifier.1.weight",
                                      "fc7.weight classifier.4.weight", "fc8.weight classifier.6.weight"}));
  EXPECT_EQ(weights_of("models/vgg_a.yaml",
                       {"features.0", "features.3", "features.6", "features.8", "features.11", "features.13",
                        "features.16", "features.18", "classifier.0", "classifier.3", "classifier.6"}),
            (std::vector<std::string>{
                "conv1.weight features.0.weight", "conv2.weight features.3.weight", "conv3.weight features.6.weight",
                "conv4.weight features.8.weight", "conv5.weight features.11.weight", "conv6.weight features.13.weight",
                "conv7.weight features.16.weight", "conv8.weight features.18.weight", "fc1.weight classifier.0.weight",
                "fc2.weight classifier.3.weight", "fc3.weight classifier.6.weight"}));
}

TEST(TorchNames, MessagesHaveBothNames) {
  const std::string path = fresh_path("torch_misfit.safetensors");
  SafeTensors file = torch_file();
  file.arrays["features.10.weight"] = array_of({2, 2, 5, 5}, 0);
  file.arrays.erase("features.4.running_var");
  file.arrays["classifier.4.weight"] = array_of({10, 3}, 0);
  write_safetensors(path, file);
  const Model model = model_of(two_convolutions);
  Context ctx;
  model.net->initialize(ctx);
  try {
    load_weights(path, ctx, *model.net);
    ADD_FAILURE() << "loaded what does not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(error.what(), path +
                                ": does not fit this model\n"
                                "  missing: 'bn1.running_var' ('features.4.running_var') 2\n"
                                "  'conv2.weight' ('features.10.weight') is 2x2x5x5 in the file, 2x2x3x3 in the model\n"
                                "  unexpected: 'classifier.4.weight' 10x3");
  }
}

TEST(TorchNames, MapSequentialOfAnyName) {
  const Model model = model_of(two_convolutions);
  EXPECT_EQ(torch_names(*model.net, arrays_called({"2.weight", "0.weight"})).at("bn1.scale"), "2.weight");
  EXPECT_EQ(torch_names(*model.net, arrays_called({"a.body.7.weight"})).at("conv1.bias"), "a.body.7.bias");
}

TEST(TorchNames, AcceptPyTorchLayerNames) {
  const Model model = model_of(R"(
version: 1
model:
  input: [2, 4, 4]
  layers:
    - conv2d: {filters: 2, kernel: 1, bias: false}
    - residual:
        name: layer1.0
        layers: [batch_norm, conv2d: {name: block.3, filters: 2, kernel: 1}, scale: {name: layer_scale}]
        shortcut: [conv2d: {name: downsample.0, filters: 2, kernel: 1, bias: false}]
    - linear: {name: fc, outputs: 3}
)");
  SafeTensors file;
  file.arrays["conv1.weight"] = array_of({2, 2, 1, 1}, 1);
  file.arrays["layer1.0.bn1.weight"] = array_of({2}, 2);
  file.arrays["layer1.0.bn1.bias"] = array_of({2}, 3);
  file.arrays["layer1.0.bn1.running_mean"] = array_of({2}, 4);
  file.arrays["layer1.0.bn1.running_var"] = array_of({2}, 5);
  file.arrays["layer1.0.block.3.weight"] = array_of({2, 2}, 6);  // a linear layer of each pixel
  file.arrays["layer1.0.block.3.bias"] = array_of({2}, 7);
  file.arrays["layer1.0.layer_scale"] = array_of({2, 1, 1}, 8);
  file.arrays["layer1.0.downsample.0.weight"] = array_of({2, 2, 1, 1}, 9);
  file.arrays["fc.weight"] = array_of({3, 32}, 10);
  file.arrays["fc.bias"] = array_of({3}, 11);
  const std::string path = fresh_path("torch_layers.safetensors");
  write_safetensors(path, file);
  Context ctx;
  model.net->initialize(ctx);
  load_weights(path, ctx, *model.net);
  float expected = 0;
  for (const Parameter* parameter : model.net->parameters()) {
    EXPECT_EQ(parameter->variable.value().to_vector(*ctx.stream)[0], ++expected) << parameter->name;
    EXPECT_EQ(parameter->variable.value().shape(), parameter->shape);
  }
  EXPECT_EQ(expected, 11);
}

TEST(TorchNames, KeepOtherNames) {
  const Model model = model_of(two_convolutions);
  for (const std::vector<std::string>& names : {std::vector<std::string>{"conv1.weight", "features.0.weight"},
                                                {"features.0.weight", "head.0.weight"},
                                                {"features.-1.weight"},
                                                {"features..weight"},
                                                {"weight"},
                                                {".weight"},
                                                {"features.0x.weight"},
                                                {}})
    EXPECT_TRUE(torch_names(*model.net, arrays_called(names)).empty());
}

TEST(TorchNames, SortNumbersNumerically) {
  const Model model = model_of(two_convolutions);
  const std::string huge(40, '9');
  const auto names = torch_names(*model.net, arrays_called({huge + ".weight", "10.weight", "9.weight"}));
  EXPECT_EQ(names.at("conv1.weight"), "9.weight");
  EXPECT_EQ(names.at("bn1.scale"), "10.weight");
  EXPECT_EQ(names.at("conv2.weight"), huge + ".weight");
}

}  // namespace twiddle
