#include "models/loss.h"
#include "framework/context.h"

#include "models/config/experiment.h"
#include "tests/models/config_text.h"

namespace twiddle {
namespace {

// A network whose last layer gives the scores of three classes, or an image like its input.
std::string scores_with(const std::string& train) {
  return "version: 1\nmodel: {input: [1, 4, 4], layers: [linear: {outputs: 3}]}\ntrain: {" + train + "}\n";
}
std::string image_with(const std::string& train) {
  return "version: 1\nmodel: {input: [1, 4, 4], layers: [conv2d: {filters: 1, kernel: 3, pad: 1}]}\ntrain: {" + train +
         "}\n";
}

Experiment loaded(const std::string& text) {
  return load_experiment_text(text, "a.yaml");
}

float value(const Experiment& experiment, bool training, const Tensor& targets) {
  Context ctx;
  ctx.training = training;
  const Variable output(Tensor::from<float>(*ctx.stream, {1, 3}, {0, 1, 2}));
  return (*experiment.loss)(ctx, output, targets).value().to_vector(*ctx.stream).at(0);
}

TEST(LossConfig, DefaultsToCrossEntropy) {
  EXPECT_EQ(loaded(scores_with("")).loss->target(), TargetKind::label);
  EXPECT_EQ(loaded(scores_with("loss: binary_cross_entropy")).loss->target(), TargetKind::labels);
  EXPECT_EQ(loaded(image_with("loss: mean_squared_error")).loss->target(), TargetKind::input);
  const Experiment denoising = loaded(image_with("loss: {mean_squared_error: {denoise: 0.5, target: image}}"));
  EXPECT_EQ(denoising.loss->target(), TargetKind::image);
  EXPECT_EQ(denoising.loss->noise(), 0.5);
}

TEST(LossConfig, SmoothsAndWeightsOnlyInTraining) {
  Context ctx;
  const Tensor label = Tensor::from<std::int32_t>(*ctx.stream, {1}, {0});
  const float plain = value(loaded(scores_with("")), true, label);
  const Experiment smooth = loaded(scores_with("loss: {cross_entropy: {label_smoothing: 0.3}}"));
  EXPECT_LT(value(smooth, true, label), plain - 0.1);
  EXPECT_EQ(value(smooth, false, label), plain);
  EXPECT_EQ(value(loaded(scores_with("label_smoothing: 0.3")), true, label), value(smooth, true, label));

  const Tensor both = Tensor::from<float>(*ctx.stream, {1, 3}, {1, 1, 0});
  const float without = value(loaded(scores_with("loss: binary_cross_entropy")), true, both);
  const Experiment weighted = loaded(scores_with("loss: {binary_cross_entropy: {positive_weight: 2}}"));
  EXPECT_GT(value(weighted, true, both), without + 0.1);
  EXPECT_EQ(value(weighted, false, both), without);
}

TEST(LossConfig, WeightsClassesInNetworkOrder) {
  const auto of_two_images = [](const Experiment& experiment) {
    Context ctx;
    const Variable output(Tensor::from<float>(*ctx.stream, {2, 3}, {0, 1, 2, 0, 1, 2}));
    const Tensor labels = Tensor::from<std::int32_t>(*ctx.stream, {2}, {0, 2});
    return (*experiment.loss)(ctx, output, labels).value().to_vector(*ctx.stream).at(0);
  };
  const Experiment of_network = loaded(scores_with("loss: {cross_entropy: {class_weights: [1, 2, 100]}}"));
  const auto expected = of_two_images(of_network);
  const std::string of_data = scores_with("loss: {cross_entropy: {class_weights: [100, 1, 2]}}");
  EXPECT_NE(of_two_images(loaded(of_data)), expected);
  const Experiment ordered = loaded(of_data);
  ordered.loss->order_classes({2, 0, 1});
  EXPECT_EQ(of_two_images(ordered), expected);
}

TEST(LossConfig, ReportsRequiredNetworkOutput) {
  EXPECT_NE(complaint_about(image_with("loss: binary_cross_entropy"))
                .find("row of scores, one per class, but 'conv1' gives 1x4x4"),
            std::string::npos);
  EXPECT_NE(complaint_about(scores_with("loss: mean_squared_error")).find("like its input, 1x4x4, but 'fc1' gives 3"),
            std::string::npos);
}

TEST(LossConfig, RefusesMixingForImages) {
  EXPECT_EQ(complaint_about(scores_with("mixup: 0.2, cutmix: 1")), "");
  EXPECT_NE(complaint_about(image_with("loss: mean_squared_error, cutmix: 1")).find("the loss compares images"),
            std::string::npos);
}

TEST(LossConfig, ReportsInvalidOptions) {
  EXPECT_NE(complaint_about(scores_with("loss: crossentropy")).find("it is called 'cross_entropy'"), std::string::npos);
  EXPECT_NE(complaint_about(scores_with("loss: {cross_entropy: {class_weights: [1, 2]}}"))
                .find("'class_weights' has 2 numbers, the network gives 3 scores"),
            std::string::npos);
  EXPECT_NE(complaint_about(scores_with("loss: {cross_entropy: {class_weights: [1, 2, 0]}}")).find("must be above 0"),
            std::string::npos);
  EXPECT_NE(complaint_about(scores_with("label_smoothing: 0.1, loss: {cross_entropy: {label_smoothing: 0.1}}"))
                .find("is set in 'train' and in its 'loss'"),
            std::string::npos);
  EXPECT_NE(complaint_about(image_with("label_smoothing: 0.1, loss: mean_squared_error")).find("label_smoothing"),
            std::string::npos);
}

}  // namespace
}  // namespace twiddle
