// Weights do not change in evaluation: their FFT or Winograd spectra are computed once.
#include <gtest/gtest.h>

#include "data/loader.h"
#include "framework/context.h"
#include "framework/parameter.h"
#include "layers/sequential.h"
#include "models/config/experiment.h"
#include "models/evaluation/evaluate.h"
#include "models/training/open_data.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// A convolution with strides and two without.
std::string small_net(const std::string& engine, const std::string& of_strides) {
  return R"(
version: 1
model:
  input: [3, 12, 12]
  layers:
    - conv2d: {filters: 6, kernel: 3, stride: 2, pad: 1, engine: )" +
         of_strides + R"(}
    - conv2d: {filters: 8, kernel: 3, pad: 1}
    - relu
    - conv2d: {filters: 8, kernel: 3}
    - linear: {outputs: 4}
data: {train: {format: synthetic, images: 40, classes: 4}, workers: 0}
convolution: {engine: )" +
         engine + "}\n";
}

struct SmallNet {
  Experiment experiment;
  Context ctx;
  OpenData data;
  Loader loader{*data.train, *data.val_augment, {.batch_size = 7, .workers = 0}};

  SmallNet(Device device, const std::string& engine, const std::string& of_strides)
      : experiment(load_experiment_text(small_net(engine, of_strides), "small.yaml",
                                        {{"device", to_string(device), "the test"}})),
        ctx(device),
        data(open_data(experiment)) {
    experiment.model.net->initialize(ctx);
  }

  std::vector<const Parameter*> kernels() const {
    std::vector<const Parameter*> found;
    for (const Parameter* parameter : experiment.model.net->parameters())
      if (parameter->shape.size() == 4) found.push_back(parameter);
    return found;
  }
  // Returns the number of weight spectra that the work computes.
  template <class Work>
  std::size_t weights_transformed(const Work& work) {
    ctx.profiler.clear();
    ctx.profiler.enable(true, true);
    work();
    ctx.profiler.enable(false);
    std::size_t count = 0;
    for (const Profiler::Entry& entry : ctx.profiler.entries())
      if (entry.part == "forward: fft of w") count += entry.milliseconds.size();
    return count;
  }
  std::size_t evaluation() {
    return weights_transformed(
        [&] { EXPECT_EQ(evaluate(ctx, *experiment.model.net, *experiment.loss, loader).images, 40); });
  }
};

using Engines = std::vector<std::pair<std::string, std::string>>;  // and those that do strides by them
Engines engines_of(Device device) {
  if (device.kind == Device::Kind::cpu) return {{"fft", "polyphase(fft)"}, {"winograd", "polyphase(fft)"}};
  return {{"fbfft", "polyphase(fbfft)"}, {"cufft", "polyphase(cufft)"}, {"winograd", "polyphase(cufft)"}};
}

TEST_P(EveryDevice, EvaluationTransformsEachWeightOnce) {
  for (const auto& [engine, of_strides] : engines_of(GetParam())) {
    SCOPED_TRACE(engine);
    SmallNet net(GetParam(), engine, of_strides);
    const std::vector<const Parameter*> kernels = net.kernels();
    ASSERT_EQ(kernels.size(), 3u);
    // Six batches of two sizes: a plan that is selected for a size is checked on separate weights.
    EXPECT_EQ(net.evaluation(), 3u + 2 * 3);
    EXPECT_EQ(net.evaluation(), 0u);
    kernels[1]->variable.value().write();
    EXPECT_EQ(net.evaluation(), 1u);
    for (const Parameter* kernel : kernels) kernel->variable.value().write();
    EXPECT_EQ(net.evaluation(), 3u);
  }
}

TEST_P(EveryDevice, PredictionTransformsEachWeightOnce) {
  for (const auto& [engine, of_strides] : engines_of(GetParam())) {
    SCOPED_TRACE(engine);
    SmallNet net(GetParam(), engine, of_strides);
    const EvaluationMode evaluating(net.ctx);
    const auto predict = [&] {
      const Tensor picture = Tensor::filled(*net.ctx.stream, {1, 3, 12, 12}, 0.5f);
      net.experiment.model.net->forward(net.ctx, Variable(picture));
    };
    EXPECT_EQ(net.weights_transformed([&] { predict(), predict(), predict(); }), 3u + 3);
  }
}

}  // namespace
}  // namespace twiddle
