#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/check_layer.h"
#include "tests/support/noise.h"
#include "tests/support/thread_ranks.h"

// Batch norm with `sync: true` on ranks that share a batch, compared with one process that has the whole batch.
namespace twiddle {
namespace {

struct Outcome {
  LayerUnderTest::Passes rows;
  std::vector<float> grad_scale, grad_bias, running_mean, running_var;
};

std::vector<float> rows_of(const std::vector<float>& all, const Shape& image, std::int64_t first, std::int64_t rows) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * count_of(image));
  return {begin, begin + static_cast<std::ptrdiff_t>(rows * count_of(image))};
}

// Runs both passes on some rows, or none, of a batch that is far from zero.
Outcome pass(const std::shared_ptr<Communicator>& ranks, const Shape& image, bool relu, std::int64_t first,
             std::int64_t rows, std::int64_t all) {
  LayerUnderTest test({}, "batch_norm", {{"sync", "true"}}, image);
  test.ctx.ranks = ranks.get();
  test.set("scale", {2, -1, 0.5F}), test.set("bias", {0.3F, -0.2F, 0.1F});
  if (relu) test.layer->take_over_relu();
  Outcome outcome;
  std::vector<float> x = noise(all * count_of(image), 1);
  for (float& value : x) value += 100;
  Shape shape = image;
  shape.insert(shape.begin(), rows);
  outcome.rows = test.forward_and_backward(shape, rows_of(x, image, first, rows),
                                           rows_of(noise(all * count_of(image), 2), image, first, rows));
  outcome.grad_scale = test.parameter("scale").variable.grad().to_vector(*test.ctx.stream);
  outcome.grad_bias = test.parameter("bias").variable.grad().to_vector(*test.ctx.stream);
  outcome.running_mean = test.get("running_mean"), outcome.running_var = test.get("running_var");
  return outcome;
}

void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void add_to(std::vector<float>& sum, const std::vector<float>& more) {
  sum.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
}

void expect_as_one(const Shape& image, bool relu, const std::vector<std::int64_t>& rows) {
  const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t(0));
  const Outcome one = pass(nullptr, image, relu, 0, all, all);
  std::vector<Outcome> of_rank(rows.size());
  on_ranks(static_cast<int>(rows.size()), [&](const std::shared_ptr<Communicator>& ranks) {
    const auto rank = static_cast<std::ptrdiff_t>(ranks->rank());
    const std::int64_t first = std::accumulate(rows.begin(), rows.begin() + rank, std::int64_t(0));
    of_rank[static_cast<std::size_t>(rank)] =
        pass(ranks, image, relu, first, rows[static_cast<std::size_t>(rank)], all);
  });
  Outcome together;
  for (const Outcome& each : of_rank) {
    append(together.rows.y, each.rows.y);
    append(together.rows.grad_x, each.rows.grad_x);
    add_to(together.grad_scale, each.grad_scale);
    add_to(together.grad_bias, each.grad_bias);
    expect_close(each.running_mean, one.running_mean, 1e-5F);
    expect_close(each.running_var, one.running_var, 1e-5F);
    EXPECT_EQ(each.running_var, of_rank[0].running_var);
  }
  expect_close(together.rows.y, one.rows.y, 2e-4F);  // of 100: a float's distance there is 8e-6
  expect_close(together.rows.grad_x, one.rows.grad_x, 2e-4F);
  expect_close(together.grad_scale, one.grad_scale, 2e-3F);
  expect_close(together.grad_bias, one.grad_bias, 1e-4F);
}

TEST(BatchNormRanks, UseStatisticsOfAllRows) {
  for (const Shape& image : {Shape{3, 4, 5}, Shape{3}})
    for (const bool relu : {false, true}) {
      expect_as_one(image, relu, {4, 4});
      expect_as_one(image, relu, {5, 1, 7});
      expect_as_one(image, relu, {0, 9, 2, 0});
    }
}

TEST(BatchNormRanks, UseOwnStatisticsWithoutSync) {
  on_ranks(2, [](const std::shared_ptr<Communicator>& ranks) {
    LayerUnderTest test({}, "batch_norm", {}, {1});
    test.ctx.ranks = ranks.get();
    const float level = ranks->rank() == 0 ? 0 : 50;
    expect_close(test.forward({2, 1}, {level - 1, level + 1}), {-1, 1}, 1e-4F);
  });
}

TEST(BatchNormRanks, DoNotCommunicateInEvaluation) {
  on_ranks(2, [](const std::shared_ptr<Communicator>& ranks) {
    LayerUnderTest test({}, "batch_norm", {{"sync", "true"}}, {1});
    test.ctx.ranks = ranks.get();
    test.ctx.training = false;
    if (ranks->rank() == 0) expect_close(test.forward({1, 1}, {3}), {3}, 1e-4F);
  });
}

}  // namespace
}  // namespace twiddle
