#include <gtest/gtest.h>

#include "models/evaluation/evaluate.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

constexpr const char* good_config = R"(version: 1
device: cpu
model:
  input: [1, 8, 8]
  layers:
    - conv2d: {filters: 4, kernel: 3, pad: 1}
    - relu
    - max_pool: {kernel: 2}
    - linear: {outputs: 10}
data:
  train: {format: synthetic, images: 8}
  val: {format: synthetic, images: 8}
  augment: [hflip]
train:
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.1
  epochs: 1
  batch_size: 4
)";

// A typical mistake that replaces a part of the good config, and words of the error message.
struct WrongConfig {
  std::string part, instead;
  std::vector<std::string> words;
};

const std::vector<WrongConfig> wrong_configs{
    // keys
    {"learning_rate: 0.1", "lr: 0.1", {"unknown key 'lr' in 'train'", "did you mean 'learning_rate'?"}},
    {"learning_rate: 0.1",
     "momentum: 0.9",
     {"unknown key 'momentum' in 'train'", "write it as 'optimizer: {sgd: {momentum: 0.9}}'"}},
    {"learning_rate: 0.1",
     "weight_decay: 1e-4",
     {"unknown key 'weight_decay'", "'optimizer: {sgd: {weight_decay: 1e-4}}'"}},
    {"momentum: 0.9",
     "lr: 0.1",
     {"unknown key 'lr' in 'sgd'", "write it as 'train: {learning_rate: 0.1}' at the top level"}},
    {"batch_size: 4", "batch: 4", {"unknown key 'batch'", "did you mean 'batch_size'?"}},
    {"epochs: 1", "num_epochs: 1", {"unknown key 'num_epochs'", "did you mean 'epochs'?"}},
    {"augment: [hflip]",
     "batch_size: 4",
     {"unknown key 'batch_size' in 'data'", "'train: {batch_size: 4}' at the top level"}},
    {"augment: [hflip]", "transforms: [hflip]", {"unknown key 'transforms'", "did you mean 'augment'?"}},
    {"  epochs: 1", "epochs: 1", {":18:3:", "indented further than the line before"}},
    {"val: {format", "test: {format", {"unknown key 'test' in 'data'", "did you mean 'val'?"}},
    {"device: cpu", "optimizer: sgd", {"unknown key 'optimizer'", "write it as 'train: {optimizer: sgd}'"}},
    {"model:\n", "network:\n", {"missing key 'model'", "unknown key 'network'", "did you mean 'model'?"}},
    // values
    {"device: cpu", "device: gpu", {"found \"gpu\"", "did you mean 'cuda'?"}},
    {"device: cpu", "deterministic: True", {"must be true or false, found \"True\"", "write true"}},
    {"learning_rate: 0.1", "learning_rate: 0,1", {"found \"0,1\"", "write 0.1"}},
    {"learning_rate: 0.1", "learning_rate: \"0.1\"", {"in quotes it is a string: remove the quotes"}},
    {"epochs: 1", "epochs: 1e1", {"found \"1e1\"", "write 10"}},
    {"batch_size: 4", "batch_size: 1,024", {"found \"1,024\"", "write 1024"}},
    {"input: [1, 8, 8]", "input: 1, 8, 8", {"must be a list of whole numbers", "write [1, 8, 8]"}},
    {"input: [1, 8, 8]", "input: \"[1, 8, 8]\"", {"must be a list of whole numbers", "write [1, 8, 8]"}},
    {"input: [1, 8, 8]", "input: [8, 8]", {"must be [channels, height, width], found 2 numbers"}},
    {"input: [1, 8, 8]", "input: [8, 8, 1]", {"a kernel of 2x2 does not fit its input 4x8x1"}},
    {"kernel: 3, pad: 1", "kernel: (3, 3)", {"a list is written in brackets, as in [3, 3]"}},
    {"kernel: 3, pad: 1", "kernel: 3x3", {"found \"3x3\"", "write [3, 3]"}},
    {"kernel: 3, pad: 1", "kernel: 3, pad: same", {"'pad' is a number, found \"same\"", "write 1: "}},
    {"kernel: 2", "kernel: [3, 4], pad: same", {"'pad' is a number, found \"same\"", "write [1, 2]: "}},
    {"device: cpu", "precision: float32", {"found \"float32\"", "did you mean 'fp32'?"}},
    {"device: cpu",
     "convolution: {engine: fastest}",
     {"there is no convolution engine 'fastest': it is called 'measured'"}},
    {"device: cpu", "convolution: {engine: gem}", {"unknown convolution engine 'gem'; did you mean 'gemm'?"}},
    {"device: cpu",
     "device: cpu\nconvolution: {engine: cudnn}",
     {"'cudnn' needs a GPU and a build with cuDNN", "gemm"}},
    // YAML
    {"    - relu\n", "    -relu\n", {":7:5:", "a '-' without a blank after it", "write '- relu'"}},
    {"    - relu\n", "    -\n", {":7:5:", "an empty item"}},
    {"    - relu\n", "    relu\n", {":7:5:", "neither 'key: value' nor '- item'"}},
    {"    - relu\n", "\t- relu\n", {"a tab in the indentation"}},
    {"    - relu\n", "    - relu,\n", {"unknown layer 'relu,'; did you mean 'relu'?"}},
    {"epochs: 1", "epochs:1", {":17:3:", "a ':' without a blank after it", "write 'epochs: 1'"}},
    {"epochs: 1", "epochs = 1", {":17:3:", "write 'epochs: 1'"}},
    {"input: [1, 8, 8]", "input: [1, 8, 8", {"this '[' is never closed"}},
    {"device: cpu", "device: 'cpu", {"quote is never closed"}},
    {"device: cpu", "// a network", {":2:1:", "a comment begins with '#'"}},
    {"device: cpu", "name: my: net", {":2:9:", "put quotes around a string that contains ': '"}},
    {"device: cpu", "name: @home", {":2:7:", "a string cannot start like this", "put quotes around it"}},
    {"model:\n", "model\n", {":3:1:", "a key ends in ':'"}},
    {"max_pool: {kernel: 2}", "max_pool {kernel: 2}", {":8:", "write ': ' before '{'"}},
    {"{filters: 4, kernel: 3, pad: 1}", "{filters=4, kernel=3}", {"write 'filters: 4'", "write 'kernel: 3'"}},
    {"max_pool: {kernel: 2}", "max_pool:\n      kernel: 2", {"indent the options further than 'max_pool:'"}},
    {"max_pool: {kernel: 2}", "max_pool:\n        - kernel: 2", {"write the options without '-'"}},
    {"max_pool: {kernel: 2}", "type: max_pool\n      kernel: 2", {"write '- max_pool: {...}'"}},
    {"optimizer: {sgd: {momentum: 0.9}}",
     "optimizer: {type: sgd, momentum: 0.9}",
     {"write 'optimizer: {sgd: {momentum: 0.9}}'"}},
    // layers
    {"kernel: 3, pad: 1", "kernel_size: 3, padding: 1", {"did you mean 'kernel'?", "did you mean 'pad'?"}},
    {"filters: 4",
     "in_channels: 1, out_channels: 4",
     {"a layer takes its input's size from the layer before", "did you mean 'filters'?"}},
    {"filters: 4",
     "filters: 4, activation: relu",
     {"unknown key 'activation'", "write a separate layer, such as '- relu'"}},
    {"max_pool: {kernel: 2}", "max_pool: 2", {"write '- max_pool: {kernel: 2}'"}},
    {"linear: {outputs: 10}", "linear: 10", {"write '- linear: {outputs: 10}'"}},
    {"max_pool: {kernel: 2}", "MaxPool2d: {kernel: 2}", {"there is no layer 'MaxPool2d': it is called 'max_pool'"}},
    {"linear: {outputs: 10}", "Dense: {units: 10}", {"there is no layer 'Dense': it is called 'linear'"}},
    {"- relu", "- nn.ReLU", {"there is no layer 'nn.ReLU': it is called 'relu'"}},
    {"- relu", "- relu6", {"there is no layer 'relu6' yet"}},
    {"- relu", "- relu()", {"unknown layer 'relu()'", "options go into { }"}},
    {"linear: {outputs: 10}", "linear: {outputs: 10}\n    - softmax", {"the loss includes softmax"}},
    {"conv2d: {filters: 4,", "conv2d: {", {"missing key 'filters' in 'conv2d'"}},
    {"{filters: 4, kernel", "{filters: 4 kernel", {"a comma is missing between two entries"}},
    {"conv2d: {filters: 4, kernel: 3, pad: 1}", "conv2d\n        filters: 4", {"add ':' at its end"}},
    {"conv2d: {filters", "conv2d {filters", {"a '{' without a ':' before it"}},
    {"    - linear: {outputs: 10}\n",
     "",
     {"the network must end in a row of scores", "'- linear: {outputs: CLASSES}'"}},
    {"max_pool: {kernel: 2}",
     "max_pool: {kernel: 9}",
     {"layer 'pool1'", "a kernel of 9x9 does not fit its input 4x8x8", "from 'relu1'"}},
    // losses, optimizers, schedules, metrics
    {"epochs: 1", "loss: mse", {"there is no loss 'mse': it is called 'mean_squared_error'"}},
    {"epochs: 1", "loss: ce", {"there is no loss 'ce': it is called 'cross_entropy'"}},
    {"epochs: 1", "loss: BCEWithLogitsLoss", {"it is called 'binary_cross_entropy'"}},
    {"epochs: 1", "watch: accuracy", {"there is no metric 'accuracy': it is called 'top1'"}},
    {"epochs: 1", "schedule: CosineAnnealingLR", {"it is called 'cosine'"}},
    {"epochs: 1", "schedule: warmup", {"every schedule has it, as in 'schedule: {cosine: {warmup: 5}}'"}},
    {"optimizer: {sgd: {momentum: 0.9}}", "optimizer: SGD", {"there is no optimizer 'SGD': it is called 'sgd'"}},
    {"optimizer: {sgd: {momentum: 0.9}}",
     "optimizer: rmsprop",
     {"unknown optimizer 'rmsprop'; known are: adam, adamw, lion, sgd"}},
    {"optimizer: {sgd: {momentum: 0.9}}", "optimizer: {name: sgd}", {"write 'optimizer: sgd'"}},
    // data
    {"[hflip]", "[RandomHorizontalFlip]", {"there is no augment step 'RandomHorizontalFlip': it is called 'hflip'"}},
    {"[hflip]", "[ToTensor]", {"images are read as tensors"}},
    {"[hflip]", "[RandomVerticalFlip]", {"unknown augment step 'RandomVerticalFlip'; known"}},
    {"[hflip]", "hflip", {"'augment' must be a list of steps"}},
    {"train: {format: synthetic", "train: {format: mnist", {"there is no dataset 'mnist': it is called 'idx'"}},
    {"train: {format: synthetic", "train: {format: cifar100", {"there is no dataset 'cifar100' yet"}},
    {"train: {format: synthetic, images: 8}",
     "train: {path: pictures}",
     {"missing key 'format' in 'data.train'", "known are: cifar10, idx, "}},
    {"train: {format: synthetic, images: 8}",
     "train: {format: image_folder, path: pictures}",
     {"no such file or folder: 'pictures'"}},
    {"train: {format: synthetic, images: 8}",
     "train: {format: image_folder, path: ${PICTURES}}",
     {"put quotes around ${...}"}},
    {"train: {format: synthetic, images: 8}",
     "train: {format: image_folder, path: one_class/cat}",
     {"has no sub-folders; there must be one per class"}},
    {"train: {format: synthetic, images: 8}",
     "train: {format: image_list, file: list.txt, classes: cat, dog}",
     {"unknown key 'dog'", "a list is written in brackets, as in [a, b]"}},
    {"train: {format: synthetic, images: 8}",
     "train: {format: image_list, file: list.txt}",
     {"list.txt:2: expected 'path label'"}},
    {"train: {format: synthetic, images: 8}", "train: {format: idx, images: list.txt, labels: list.txt}", {"list.txt"}},
    {"train: {format: synthetic, images: 8}",
     "train: {format: synthetic, images: 8, classes: 20}",
     {"data.train has 20 classes, the last layer gives 10 outputs", "set its outputs to 20"}},
};

class TypicalMistakes : public testing::Test {
 protected:
  TypicalMistakes() : folder_(fresh_folder("typical_mistakes")) {
    fs::create_directories(folder_ / "one_class" / "cat");
    std::ofstream(folder_ / "list.txt") << "a.png 0\nb.png\n";
  }
  ~TypicalMistakes() override { fs::remove_all(folder_); }

  std::string write(const std::string& config) const {
    const std::string file = (folder_ / "net.yaml").string();
    std::ofstream(file) << config;
    return file;
  }

  fs::path folder_;
};

TEST_F(TypicalMistakes, GoodConfigHasNone) {
  const Finished run = run_program({"check", write(good_config)});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(TypicalMistakes, InConfigsGetAdvice) {
  for (const WrongConfig& wrong : wrong_configs) {
    std::string config = good_config;
    const std::size_t at = config.find(wrong.part);
    ASSERT_NE(at, config.npos) << wrong.part;
    config.replace(at, wrong.part.size(), wrong.instead);
    const Finished run = run_program({"check", write(config)});
    EXPECT_TRUE(run.code == 2 || run.code == 3) << wrong.instead;
    for (const std::string& words : wrong.words)
      EXPECT_NE(run.err.find(words), std::string::npos) << wrong.instead << "\n" << words << "\n" << run.err;
    if (std::getenv("TWIDDLE_SHOW_MISTAKES")) std::cout << "### " << wrong.instead << "\n" << run.err;
  }
}

TEST_F(TypicalMistakes, OnCommandLineGetAdvice) {
  const std::string net = write(good_config), out = (folder_ / "runs").string();
  ASSERT_EQ(run_program({"train", net, "--out", out, "-q"}).code, 0);
  const std::string weights = out + "/net-001/best.safetensors";
  struct Wrong {
    std::vector<std::string> arguments;
    std::string words;
  };
  const std::vector<Wrong> all{
      {{"evaluate", net}, "there is no verb 'evaluate': it is called 'eval'"},
      {{net}, "unknown verb"},
      {{"train"}, "train needs a YAML file, such as models/digits.yaml"},
      {{"train", net, "--learning-rate", "0.1"}, "unknown flag '--learning-rate'; did you mean '--lr'?"},
      {{"train", net, "--batch_size", "4"}, "did you mean '--batch-size'?"},
      {{"train", net, "--gpu", "0"}, "did you mean '--device'?"},
      {{"train", net, "--device", "gpu"}, "did you mean 'cuda'?"},
      {{"train", net, "--config", net}, "the YAML file is named without a flag"},
      {{"train", net, "--epochs"}, "--epochs"},
      {{"train", net, "--set", "epochs=3"}, "write it as 'train: {epochs: 3}'"},
      {{"train", net, "--set", "train.epochs", "3"}, "--set needs key=value, such as --set train.epochs=3"},
      {{"train", net, "--set", "model.layers.fc.outputs=3"}, "unknown layer 'fc'; did you mean 'fc1'?"},
      {{"train", net, net}, "is one argument too many"},
      {{"train", "nett.yaml"}, "cannot read 'nett.yaml': No such file or directory"},
      {{"train", folder_.string()}, "is a folder without a config.yaml"},
      {{"train", weights}, "it is not a config but "},
      {{"train", "--resume", weights}, "holds weights only. For fine-tuning use --weights"},
      {{"train", "--resume", net}, "--resume takes a run folder or checkpoint folder"},
      {{"eval", net}, "is a config; the first argument is a run folder or a weights file"},
      {{"eval", net, weights}, "is a config; the first argument is a run folder or a weights file"},
      {{"eval", weights, "models/lenet.yaml"}, "does not fit this model"},
      {{"train", "models/lenet.yaml", "--weights", weights, "--out", out}, "fc1"},
      {{"predict", weights}, "PICTURE is required"},
      {{"predict", weights, net}, "net.yaml"},
  };
  for (const auto& [arguments, words] : all) {
    const Finished run = run_program(arguments);
    EXPECT_TRUE(run.code == 2 || run.code == 3) << arguments.front() << " " << words << run.code;
    EXPECT_NE(run.err.find(words), std::string::npos) << words << "\n" << run.err;
    if (std::getenv("TWIDDLE_SHOW_MISTAKES")) std::cout << "### " << arguments.back() << "\n" << run.err;
  }
}

}  // namespace
}  // namespace twiddle
