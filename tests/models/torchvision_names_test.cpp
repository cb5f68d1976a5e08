// The networks that load torchvision's weights have exactly its tensors. torchvision's state_dict is rebuilt here from
// the tables of the papers and from torchvision's names for the parts of a block.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "models/checkpoints/torch_names.h"
#include "models/config/experiment.h"

namespace twiddle {

namespace {

using Tensors = std::map<std::string, Shape>;

class StateDict {
 public:
  void conv(const std::string& name, std::int64_t filters, std::int64_t channels, std::int64_t kernel) {
    tensors_[name + ".weight"] = {filters, channels, kernel, kernel};
  }
  void linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    tensors_[name + ".weight"] = {outputs, inputs};
    bias(name, outputs);
  }
  void bias(const std::string& name, std::int64_t channels) { tensors_[name + ".bias"] = {channels}; }
  void layer_norm(const std::string& name, std::int64_t channels) {
    for (const char* tensor : {".weight", ".bias"}) tensors_[name + tensor] = {channels};
  }
  void batch_norm(const std::string& name, std::int64_t channels) {
    layer_norm(name, channels);
    for (const char* tensor : {".running_mean", ".running_var"}) tensors_[name + tensor] = {channels};
  }
  void layer_scale(const std::string& name, std::int64_t channels) { tensors_[name] = {channels, 1, 1}; }

  const Tensors& tensors() const { return tensors_; }

 private:
  Tensors tensors_;
};

std::string numbered(const std::string& name, std::int64_t number) {
  return name + std::to_string(number);
}

// He et al. 2016, table 1. A bottleneck has four times as many output channels as inner channels.
StateDict resnet(const std::vector<std::int64_t>& blocks, bool bottleneck) {
  StateDict dict;
  dict.conv("conv1", 64, 3, 7), dict.batch_norm("bn1", 64);
  std::int64_t channels = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage)
    for (std::int64_t i = 0; i < blocks[stage]; ++i) {
      const std::int64_t width = std::int64_t(64) << stage, outputs = bottleneck ? 4 * width : width;
      const std::string block = numbered("layer", static_cast<std::int64_t>(stage) + 1) + numbered(".", i);
      if (channels != outputs)
        dict.conv(block + ".downsample.0", outputs, channels, 1), dict.batch_norm(block + ".downsample.1", outputs);
      dict.conv(block + ".conv1", width, channels, bottleneck ? 1 : 3), dict.batch_norm(block + ".bn1", width);
      dict.conv(block + ".conv2", width, width, 3), dict.batch_norm(block + ".bn2", width);
      if (bottleneck) dict.conv(block + ".conv3", outputs, width, 1), dict.batch_norm(block + ".bn3", outputs);
      channels = outputs;
    }
  dict.linear("fc", 1000, channels);
  return dict;
}

// Szegedy et al. 2014, table 1: filters of 1x1, before 3x3, of 3x3, before 5x5 (3x3 in torchvision), of 5x5, after the
// pool.
StateDict googlenet() {
  StateDict dict;
  const auto basic = [&](const std::string& name, std::int64_t filters, std::int64_t channels, std::int64_t kernel) {
    dict.conv(name + ".conv", filters, channels, kernel), dict.batch_norm(name + ".bn", filters);
  };
  basic("conv1", 64, 3, 7), basic("conv2", 64, 64, 1), basic("conv3", 192, 64, 3);
  std::int64_t channels = 192;
  const std::vector<std::pair<std::string, std::array<std::int64_t, 6>>> modules{
      {"3a", {64, 96, 128, 16, 32, 32}},     {"3b", {128, 128, 192, 32, 96, 64}},
      {"4a", {192, 96, 208, 16, 48, 64}},    {"4b", {160, 112, 224, 24, 64, 64}},
      {"4c", {128, 128, 256, 24, 64, 64}},   {"4d", {112, 144, 288, 32, 64, 64}},
      {"4e", {256, 160, 320, 32, 128, 128}}, {"5a", {256, 160, 320, 32, 128, 128}},
      {"5b", {384, 192, 384, 48, 128, 128}}};
  for (const auto& [which, filters] : modules) {
    const std::string branch = "inception" + which + ".branch";
    const auto& [ones, before_threes, threes, before_fives, fives, after_pool] = filters;
    basic(branch + "1", ones, channels, 1);
    basic(branch + "2.0", before_threes, channels, 1), basic(branch + "2.1", threes, before_threes, 3);
    basic(branch + "3.0", before_fives, channels, 1), basic(branch + "3.1", fives, before_fives, 3);
    basic(branch + "4.1", after_pool, channels, 1);
    channels = ones + threes + fives + after_pool;
  }
  dict.linear("fc", 1000, channels);
  return dict;
}

// Liu et al. 2022: four stages, each after a layer of patches, of 4x4 and 2x2.
StateDict convnext_t() {
  StateDict dict;
  const auto patches = [&](const std::string& name, std::int64_t filters, std::int64_t channels, std::int64_t side) {
    dict.conv(name, filters, channels, side), dict.bias(name, filters);
  };
  std::int64_t channels = 96;
  patches("features.0.0", channels, 3, 4), dict.layer_norm("features.0.1", channels);
  std::int64_t feature = 1;
  for (const std::int64_t blocks : {3, 3, 9, 3}) {
    if (feature > 1) {
      const std::string between = numbered("features.", feature++);
      dict.layer_norm(between + ".0", channels);
      patches(between + ".1", 2 * channels, channels, 2);
      channels *= 2;
    }
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::string block = numbered("features.", feature) + numbered(".", i);
      dict.layer_scale(block + ".layer_scale", channels);
      patches(block + ".block.0", channels, 1, 7), dict.layer_norm(block + ".block.2", channels);
      dict.linear(block + ".block.3", 4 * channels, channels), dict.linear(block + ".block.5", channels, 4 * channels);
    }
    ++feature;
  }
  dict.layer_norm("classifier.0", channels), dict.linear("classifier.2", 1000, channels);
  return dict;
}

// The layers of AlexNet and VGG are numbered in two nn.Sequential, in which ReLU, pools and dropout count as well.
struct Counted {
  StateDict dict;
  std::int64_t channels = 3, member = 0;

  void conv(std::int64_t filters, std::int64_t kernel) {
    const std::string name = numbered("features.", member);
    dict.conv(name, filters, channels, kernel), dict.bias(name, filters);
    channels = filters, member += 2;
  }
  void pool() { ++member; }
};

StateDict alexnet() {
  Counted net;
  net.conv(64, 11), net.pool(), net.conv(192, 5), net.pool(), net.conv(384, 3), net.conv(256, 3), net.conv(256, 3);
  net.dict.linear("classifier.1", 4096, 256 * 6 * 6);
  net.dict.linear("classifier.4", 4096, 4096), net.dict.linear("classifier.6", 1000, 4096);
  return net.dict;
}

// Simonyan, Zisserman 2015, table 1: the number of layers before each pool.
StateDict vgg(const std::vector<int>& layers) {
  Counted net;
  for (const int count : layers) {
    const std::int64_t filters = net.member == 0 ? 64 : std::min<std::int64_t>(2 * net.channels, 512);
    for (int i = 0; i < count; ++i) net.conv(filters, 3);
    net.pool();
  }
  net.dict.linear("classifier.0", 4096, 512 * 7 * 7);
  net.dict.linear("classifier.3", 4096, 4096), net.dict.linear("classifier.6", 1000, 4096);
  return net.dict;
}

// Per-channel scales and linear layers applied to each pixel have dimensions of 1 in only one of the two programs.
Shape without_ones(Shape shape) {
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  return shape;
}

Tensors ours_by_torch_names(const std::string& file, const Tensors& theirs) {
  ArrayTable arrays;
  for (const auto& [name, shape] : theirs) arrays[name] = {DType::f32, shape};
  const Model model = load_experiment("models/" + file + ".yaml").model;
  const std::map<std::string, std::string> names = torch_names(*model.net, arrays);
  Tensors tensors;
  for (const Parameter* parameter : model.net->parameters())
    tensors[names.contains(parameter->name) ? names.at(parameter->name) : parameter->name] = parameter->shape;
  return tensors;
}

// Returns one line for each tensor that is missing in one of them or has another shape.
std::string differences(const Tensors& ours, const Tensors& theirs) {
  std::string lines;
  for (const auto& [name, shape] : theirs)
    if (!ours.contains(name))
      lines += name + " is missing\n";
    else if (without_ones(ours.at(name)) != without_ones(shape))
      lines += name + " is " + to_string(ours.at(name)) + ", not " + to_string(shape) + "\n";
  for (const auto& [name, shape] : ours)
    if (!theirs.contains(name)) lines += name + " is ours alone\n";
  return lines;
}

}  // namespace

TEST(TorchvisionNames, MatchTensorsAndShapes) {
  const std::vector<std::pair<std::string, StateDict>> networks{{"resnet18", resnet({2, 2, 2, 2}, false)},
                                                                {"resnet50", resnet({3, 4, 6, 3}, true)},
                                                                {"googlenet", googlenet()},
                                                                {"convnext_t", convnext_t()},
                                                                {"alexnet", alexnet()},
                                                                {"vgg_a", vgg({1, 1, 2, 2, 2})},
                                                                {"vgg_e", vgg({2, 2, 4, 4, 4})}};
  for (const auto& [file, dict] : networks)
    EXPECT_EQ(differences(ours_by_torch_names(file, dict.tensors()), dict.tensors()), "") << file;
}

}  // namespace twiddle
