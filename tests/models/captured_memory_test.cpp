// The memory of a step that is captured twice, as framework/cuda/cuda_stream.cu does; on a CPU, which computes while it
// captures.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "framework/pool.h"
#include "models/config/experiment.h"
#include "models/training/train_step.h"
#include "tests/support/forwarding_stream.h"

namespace twiddle {
namespace {

class HoldingStream final : public ForwardingStream {
 public:
  HoldingStream() : ForwardingStream(make_stream({})) {}
  std::shared_ptr<void> allocate(std::size_t bytes) override { return pool_.take(bytes); }
  MemoryUse memory() const override { return pool_.use(); }
  void release_unused() override { pool_.release_cached(); }
  std::int64_t capture_changes() const override { return changes_; }

  // Memory of the repeated work, as in capture_again().
  std::vector<std::shared_ptr<void>> do_again(const std::function<void()>& work) {
    return hold(work, Pool::Holding::again);
  }
  // Memory of the second run of the work.
  std::vector<std::shared_ptr<void>> do_twice(const std::function<void()>& work) {
    hold(work, Pool::Holding::fresh);
    pool_.release_cached();
    auto held = hold(work, Pool::Holding::before);
    pool_.release_cached();
    return held;
  }

 private:
  std::vector<std::shared_ptr<void>> hold(const std::function<void()>& work, Pool::Holding holding) {
    pool_.start_holding(holding);
    ++changes_;
    work();
    ++changes_;
    return pool_.stop_holding();
  }
  Pool pool_{[](std::size_t bytes) { return std::aligned_alloc(64, bytes); }, [](void* block) { std::free(block); }};
  std::int64_t changes_ = 0;
};

struct MemoryBench {
  Experiment experiment;
  Context ctx{Device{}, 3};
  HoldingStream* stream = new HoldingStream;  // the context's
  const Model& model = experiment.model;
  Optimizer& optimizer = *experiment.optimizer;
  TrainStep step;
  Batch batch;

  explicit MemoryBench(const std::string& engine)
      : experiment(load_experiment_text("version: 1\ndevice: cpu\ndeterministic: true\n"
                                        "model:\n"
                                        "  input: [3, 12, 12]\n"
                                        "  layers:\n"
                                        "    - conv2d: {filters: 16, kernel: 5, pad: 2}\n"
                                        "    - relu\n"
                                        "    - local_response_norm\n"
                                        "    - max_pool: {kernel: 2}\n"
                                        "    - conv2d: {filters: 32, kernel: 3, pad: 1}\n"
                                        "    - batch_norm\n"
                                        "    - relu\n"
                                        "    - conv2d: {filters: 16, kernel: 3}\n"
                                        "    - linear: {outputs: 3}\n"
                                        "convolution: {frequency_budget: 1MiB, cache: off, engine: " +
                                            engine +
                                            "}\n"
                                            "data: {train: {format: synthetic, images: 9, classes: 3}}\n"
                                            "train: {optimizer: {sgd: {momentum: 0.9}}, learning_rate: 0.1}\n",
                                        "bench.yaml")),
        step((ctx.stream.reset(stream), ctx), *model.net, *experiment.loss, optimizer, {.capture = false}) {
    model.net->initialize(ctx);
    std::vector<float> pixels(8 * 3 * 12 * 12);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = RandomSequence{5}.normal(static_cast<std::int64_t>(i));
    batch = {Tensor::from(*ctx.stream, {8, 3, 12, 12}, pixels),
             Tensor::from(*ctx.stream, {8}, std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1}),
             {}};
  }
  void run() { step.run(batch, 0.01); }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const Parameter* parameter : model.net->parameters())
      for (const float value : parameter->variable.value().to_vector(*ctx.stream)) all.push_back(value);
    return all;
  }
};

// An engine and the number of compute threads: each thread has separate scratch memory.
class CapturedMemory : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override { omp_set_num_threads(std::get<int>(GetParam())); }
  void TearDown() override { omp_set_num_threads(threads_); }

 private:
  int threads_ = omp_get_max_threads();
};

TEST_P(CapturedMemory, OneAllocationServesStep) {
  const std::string engine = std::get<std::string>(GetParam());
  MemoryBench plain(engine), laid_out(engine);
  for (int i = 0; i < 4; ++i) plain.run();
  for (int i = 0; i < 2; ++i) laid_out.run();
  const std::size_t peak = laid_out.stream->memory().peak;
  const auto held = laid_out.stream->do_twice([&] { laid_out.run(); });
  EXPECT_EQ(held.size(), 1u) << "the piece alone";
  EXPECT_EQ(laid_out.weights(), plain.weights());
  const MemoryUse use = laid_out.stream->memory();
  EXPECT_LE(use.in_use + use.cached, peak + peak / 10);
}

TEST_P(CapturedMemory, AllocationIsReusedForNextBatch) {
  const std::string engine = std::get<std::string>(GetParam());
  MemoryBench plain(engine), laid_out(engine);
  for (int i = 0; i < 5; ++i) plain.run();
  for (int i = 0; i < 2; ++i) laid_out.run();
  const auto held = laid_out.stream->do_twice([&] { laid_out.run(); });
  const std::size_t in_use = laid_out.stream->memory().in_use;
  const auto another = laid_out.stream->do_again([&] { laid_out.run(); });
  EXPECT_EQ(another.size(), 1u) << "the piece alone";
  EXPECT_EQ(laid_out.stream->memory().in_use, in_use);
  EXPECT_EQ(laid_out.weights(), plain.weights());
}

INSTANTIATE_TEST_SUITE_P(With, CapturedMemory,
                         testing::Combine(testing::Values(std::string("gemm"), std::string("fft")),
                                          testing::Values(1, 2, 5, 10, 16)));

}  // namespace
}  // namespace twiddle
