#include "models/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "models/builder.h"
#include "models/config.h"
#include "models/open_data.h"

namespace twiddle {
namespace {

// A net that says class 2, with probability e / (e + 3), whatever it sees.
struct AlwaysTwo {
  Config config = load_config_text(
      "version: 1\n"
      "model: {input: [1, 4, 4], layers: [{linear: {outputs: 4, init: 0}}]}\n"
      "data: {train: {format: synthetic, images: 40, classes: 4}, workers: 0}\n",
      "two.yaml");
  Model model = build_model(config, {});
  OpenData data = open_data(config, 4);
  Context ctx;
  Loader loader{*data.train, *data.val_augment, {.batch_size = 7, .workers = 0}};

  AlwaysTwo() {
    model.net->initialize(ctx);
    for (Parameter* parameter : model.net->parameters()) {
      if (parameter->shape == Shape{4})
        parameter->variable.value() = Tensor::from<float>(*ctx.stream, {4}, {0, 0, 1, 0});
    }
  }
};

TEST(Evaluate, CountsWhatIsRight) {
  AlwaysTwo two;
  const EvalResult result = evaluate(two.ctx, *two.model.net, two.loader);
  std::int64_t of_class_two = 0;
  Image image;
  for (std::int64_t i = 0; i < 40; ++i) of_class_two += two.data.train->get(i, image) == 2;
  EXPECT_EQ(result.images, 40);
  EXPECT_DOUBLE_EQ(result.top1, static_cast<double>(of_class_two) / 40);
  EXPECT_DOUBLE_EQ(result.top5, 1);
  const double share = result.top1, right = -std::log(std::exp(1.0) / (std::exp(1.0) + 3)),
               wrong = -std::log(1 / (std::exp(1.0) + 3));
  EXPECT_NEAR(result.loss, share * right + (1 - share) * wrong, 1e-5);
}

TEST(Evaluate, FillsTheConfusionMatrixAndTheMistakes) {
  AlwaysTwo two;
  const EvalResult result = evaluate(two.ctx, *two.model.net, two.loader);
  EXPECT_EQ(std::accumulate(result.confusion.begin(), result.confusion.end(), std::int64_t(0)), 40);
  for (std::size_t actual = 0; actual < 4; ++actual) EXPECT_EQ(result.confusion[actual * 4 + 1], 0);
  ASSERT_FALSE(result.wrong.empty());
  for (const EvalResult::Wrong& wrong : result.wrong) {
    EXPECT_EQ(wrong.predicted, 2);
    EXPECT_NE(wrong.actual, 2);
    EXPECT_NEAR(wrong.probability, std::exp(1.0) / (std::exp(1.0) + 3), 1e-5);
  }
}

TEST(Evaluate, CanBeLimitedAndLeavesTheContextAsItWas) {
  AlwaysTwo two;
  EXPECT_EQ(evaluate(two.ctx, *two.model.net, two.loader, 2).images, 14);
  EXPECT_TRUE(two.ctx.training);
  EXPECT_TRUE(two.ctx.tape.empty());
}

}  // namespace
}  // namespace twiddle
