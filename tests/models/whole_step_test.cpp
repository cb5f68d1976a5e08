#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layers/conv/engines/engines.h"
#include "models/config/experiment.h"
#include "models/training/train_step.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

std::string net_with(Device device, const std::string& engine) {
  return "version: 1\n"
         "device: " +
         to_string(device) +
         "\n"
         "model:\n"
         "  input: [3, 14, 12]\n"
         "  layers:\n"
         "    - conv2d: {filters: 20, kernel: 5, pad: 2}\n"
         "    - relu\n"
         "    - conv2d: {filters: 18, kernel: 3, pad: 1, groups: 2}\n"
         "    - relu\n"
         "    - max_pool: {kernel: 2}\n"
         "    - conv2d: {filters: 33, kernel: [7, 6]}\n"
         "    - linear: {outputs: 5}\n"
         "convolution: {cache: off, engine: " +
         engine +
         "}\n"
         "data: {train: {format: synthetic, images: 8, classes: 5}}\n"
         "train: {learning_rate: 1, optimizer: sgd}\n";
}

struct Bench {
  Experiment experiment;
  Context ctx;
  const Model& model = experiment.model;
  Optimizer& optimizer = *experiment.optimizer;
  TrainStep step;
  Batch batch;

  Bench(Device device, const std::string& engine, bool capture = true)
      : experiment(load_experiment_text(net_with(device, engine), "net.yaml")),
        ctx(device, 3),
        step(ctx, *model.net, *experiment.loss, optimizer, {.capture = capture}) {
    model.net->initialize(ctx);
    std::vector<float> pixels(std::size_t(8) * 3 * 14 * 12);
    const RandomSequence random{9};
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(static_cast<std::int64_t>(i));
    batch = {Tensor::from(*ctx.stream, {8, 3, 14, 12}, pixels),
             Tensor::from<std::int32_t>(*ctx.stream, {8}, {0, 1, 2, 3, 4, 0, 1, 2}),
             {}};
  }
};

// The change of each parameter in one step at rate 1 is its gradient.
std::vector<std::vector<float>> gradients(Device device, const std::string& engine) {
  Bench bench(device, engine);
  const auto values = [&] {
    std::vector<std::vector<float>> all;
    for (const Parameter* parameter : bench.model.net->parameters())
      all.push_back(parameter->variable.value().to_vector(*bench.ctx.stream));
    return all;
  };
  auto before = values();
  bench.step.run(bench.batch, 1);
  const auto after = values();
  for (std::size_t i = 0; i < before.size(); ++i)
    for (std::size_t j = 0; j < before[i].size(); ++j) before[i][j] -= after[i][j];
  return before;
}

// Each of three layers adds an error up to its limit, and the subtraction of weights rounds once more.
void expect_same(const std::vector<std::vector<float>>& got, const std::vector<std::vector<float>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double difference = 0, norm = 0;
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      difference += std::pow(got[i][j] - expected[i][j], 2);
      norm += std::pow(expected[i][j], 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), 1e-5) << "parameter " << i;
  }
}

TEST_P(EveryDevice, FftStepMatchesGemmStep) {
  const bool cpu = GetParam().kind == Device::Kind::cpu;
  expect_same(gradients(GetParam(), cpu ? "fft" : "cufft"), gradients(GetParam(), "gemm"));
}

TEST_P(EveryDevice, FftStepMatchesVendorStep) {
  const bool cpu = GetParam().kind == Device::Kind::cpu;
  const std::string vendor = cpu ? "onednn" : "cudnn";
  const auto engines = make_conv_engines(GetParam());
  if (std::none_of(engines.begin(), engines.end(), [&](const auto& engine) { return engine->name() == vendor; }))
    GTEST_SKIP() << "a build without " << vendor;
  expect_same(gradients(GetParam(), cpu ? "fft" : "fbfft"), gradients(GetParam(), vendor));
}

TEST_P(EveryDevice, StepMatchesCpu) {
  expect_same(gradients(GetParam(), "rule"), gradients({}, "gemm"));
}

TEST_P(EveryDevice, ThousandFftStepsNeedNoExtraMemory) {
  const bool cpu = GetParam().kind == Device::Kind::cpu;  // which captures nothing
  for (const bool capture : cpu ? std::vector{false} : std::vector{true, false}) {
    Bench bench(GetParam(), cpu ? "fft" : "cufft", capture);
    for (int i = 0; i < 5; ++i) bench.step.run(bench.batch, 1e-3);
    EXPECT_EQ(bench.step.captured(), capture);
    const MemoryUse before = bench.ctx.stream->memory();
    bench.ctx.stream->reset_peak();
    for (int i = 5; i < 1000; ++i) bench.step.run(bench.batch, 1e-3);
    const MemoryUse after = bench.ctx.stream->memory();
    EXPECT_EQ(after.system_allocations, before.system_allocations);
    EXPECT_EQ(after.in_use, before.in_use);
    EXPECT_LE(after.peak, before.peak);
  }
}

}  // namespace
}  // namespace twiddle
