#include "models/evaluation/shared_evaluation.h"
#include "data/augmentation/augment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/config/experiment.h"
#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

constexpr std::int64_t picture_side = 32, picture_values = picture_side * picture_side, batch_count = 3,
                       batch_rows = 16;

// A value of an image: of the network's input, of its output, or of its target.
float value_of(int kind, std::int64_t image, std::int64_t place) {
  return 0.5f + 0.4f * std::sin(static_cast<float>(kind + 3 * image + place));
}

EvaluatedBatch rows_of(Stream& stream, std::int64_t first, std::int64_t count) {
  EvaluatedBatch made;
  if (count == 0) return made;
  std::array<std::vector<float>, 3> kinds;
  for (std::int64_t image = first; image < first + count; ++image) {
    made.batch.indices.push_back(image);
    for (int kind = 0; kind < 3; ++kind)
      for (std::int64_t place = 0; place < picture_values; ++place)
        kinds.at(static_cast<std::size_t>(kind)).push_back(value_of(kind, image, place));
    if (image == 2) kinds[1].back() = NAN;
  }
  const Shape shape{count, 1, picture_side, picture_side};
  made.batch.images = Tensor::from(stream, shape, kinds[0]);
  made.output = Tensor::from(stream, shape, kinds[1]);
  made.batch.targets = Tensor::from(stream, shape, kinds[2]);
  return made;
}

// Records the sizes of what a rank sends.
class CountingRank : public ThreadRank {
 public:
  using ThreadRank::ThreadRank;
  std::vector<std::string> gather(const std::string& text) override {
    sizes.push_back(text.size());
    return ThreadRank::gather(text);
  }
  std::vector<std::size_t> sizes;
};

TEST(SharedEvaluation, EvaluatesImagesWithFewBytesSent) {
  const Experiment experiment = load_experiment_text(
      "version: 1\nmodel: {input: [1, 32, 32], layers: [conv2d: {filters: 1, kernel: 1}]}\n"
      "data: {train: {format: synthetic, images: 2}, val: {format: synthetic, images: 2}}\n"
      "train: {loss: {mean_squared_error: {}}}\n",
      "images.yaml");
  const Augment& augment = *experiment.data.val_augment;
  const auto stream = make_stream({});
  EvalResult one;
  const auto evaluator_of_one = image_evaluator(*stream, augment);
  for (std::int64_t batch = 0; batch < batch_count; ++batch) {
    const EvaluatedBatch all = rows_of(*stream, batch * batch_rows, batch_rows);
    evaluator_of_one->add(all.batch, all.output);
  }
  evaluator_of_one->finish(one);

  constexpr int size = 3;
  const auto rendezvous = std::make_shared<Rendezvous>(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto own_stream = make_stream({});
      CountingRank ranks(rendezvous, rank, size);
      const auto evaluator = image_evaluator(*own_stream, augment);
      // 10 rows, 6 rows and none.
      const std::int64_t first = std::array{0, 10, 16}.at(static_cast<std::size_t>(rank)),
                         count = std::array{10, 6, 0}.at(static_cast<std::size_t>(rank));
      std::int64_t batch = 0, images = 0;
      const auto next = [&](EvaluatedBatch& own) {
        if (batch == batch_count) return false;
        own = rows_of(*own_stream, batch++ * batch_rows + first, count);
        return true;
      };
      const auto loss = [](const EvaluatedBatch& own) { return static_cast<double>(own.batch.indices.front()); };
      while (const std::optional<BatchResult> evaluated = evaluate_next(&ranks, *evaluator, next, loss)) {
        const std::int64_t start = images;
        EXPECT_DOUBLE_EQ(evaluated->loss, static_cast<double>((start * 10 + (start + 10) * 6)) / 16);
        images += evaluated->images;
      }
      EvalResult all;
      evaluator->finish(all);
      EXPECT_EQ(images, batch_count * batch_rows);
      EXPECT_EQ(all.scores.psnr, one.scores.psnr);
      EXPECT_EQ(all.undefined, 1);
      ASSERT_EQ(all.restored.size(), one.restored.size());
      for (std::size_t i = 0; i < all.restored.size(); ++i) {
        EXPECT_EQ(all.restored[i].index, one.restored[i].index);
        EXPECT_EQ(all.restored[i].psnr, one.restored[i].psnr);
        EXPECT_EQ(all.restored[i].input.pixels, one.restored[i].input.pixels);
        EXPECT_EQ(all.restored[i].output.pixels, one.restored[i].output.pixels);
        EXPECT_EQ(all.restored[i].target.pixels, one.restored[i].target.pixels);
      }
      // Indices and ratios, with images only in the first batch.
      ASSERT_EQ(ranks.sizes.size(), batch_count + 1u);
      EXPECT_LT(ranks.sizes[0], 12u * 3 * (picture_values + 100));
      for (const std::size_t batch_of_scores : {1, 2}) EXPECT_LT(ranks.sizes[batch_of_scores], 300u);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace twiddle
