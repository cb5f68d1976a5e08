#include "models/training/train_step.h"

#include <cmath>
#include <limits>

#include "framework/error.h"
#include "framework/tensor_ops.h"
#include "models/config/experiment.h"
#include "tests/models/bad_gradient.h"
#include "tests/support/every_device.h"
#include "tests/support/forwarding_stream.h"
#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

// A network with all state that changes from step to step: dropout's random numbers, batch norm's averages, the
// optimizer's state.
struct StepBench {
  Experiment experiment;
  Context ctx;
  const Model& model = experiment.model;
  Optimizer& optimizer = *experiment.optimizer;
  WeightAverage average{*ctx.stream, *model.net, 0.9};
  TrainStep step;

  StepBench(const Device& device, const std::string& optimizer_name, bool capture, std::int64_t accumulate = 1,
            const std::string& precision = "fp32")
      : experiment(load_experiment_text("version: 1\ndevice: " + to_string(device) +
                                            "\n"
                                            "deterministic: true\n"
                                            "precision: " +
                                            precision +
                                            "\n"
                                            "model:\n"
                                            "  input: [2, 8, 8]\n"
                                            "  layers:\n"
                                            "    - conv2d: {filters: 4, kernel: 3}\n"
                                            "    - batch_norm\n"
                                            "    - relu\n"
                                            "    - dropout: {rate: 0.3}\n"
                                            "    - linear: {outputs: 3}\n"
                                            "data: {train: {format: synthetic, images: 9, classes: 3}}\n"
                                            "train: {optimizer: " +
                                            optimizer_name + ", learning_rate: 0.1, label_smoothing: 0.1}\n",
                                        "bench.yaml")),
        ctx(device, 7),
        step(ctx, *model.net, *experiment.loss, optimizer,
             {.clip_norm = 2, .accumulate = accumulate, .average = &average, .capture = capture}) {
    model.net->initialize(ctx);
  }

  Batch batch(int number, std::int64_t images = 6) {
    std::vector<float> pixels(static_cast<std::size_t>(images * 2 * 8 * 8));
    std::vector<std::int32_t> labels;
    const RandomSequence random = RandomSequence{5}.split(static_cast<std::uint64_t>(number));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(static_cast<std::int64_t>(i));
    for (std::int64_t i = 0; i < images; ++i) labels.push_back(static_cast<std::int32_t>(random.below(i, 3)));
    return {Tensor::from(*ctx.stream, {images, 2, 8, 8}, pixels), Tensor::from(*ctx.stream, {images}, labels), {}};
  }
  // Like a loader: batches of the full size alternate between two buffers.
  Batch in_turn(int number) {
    const Batch made = batch(number);
    Batch& place = places_[number % 2];
    if (!place.images.defined()) return place = made;
    ctx.stream->copy(place.images.write(), made.images.read(), made.images.bytes());
    ctx.stream->copy(place.targets.write<std::int32_t>(), made.targets.read<std::int32_t>(), made.targets.bytes());
    return place;
  }
  float run(const Batch& batch, double rate) { return step.run(batch, rate).to_vector(*ctx.stream).at(0); }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const Parameter* parameter : model.net->parameters())
      for (const float value : parameter->variable.value().to_vector(*ctx.stream)) all.push_back(value);
    return all;
  }

 private:
  Batch places_[2];
};

TEST_P(EveryDevice, TrainStepReplayIsBitwiseIdentical) {
  for (const char* optimizer : {"{sgd: {momentum: 0.9}}", "adam"}) {
    StepBench eager(GetParam(), optimizer, false), captured(GetParam(), optimizer, true);
    for (int i = 0; i < 8; ++i) {
      const bool is_short = i == 5;  // as the last of an epoch
      const double rate = 0.1 / (i + 1);
      const float expected = eager.run(eager.batch(i, is_short ? 3 : 6), rate);
      EXPECT_EQ(captured.run(is_short ? captured.batch(i, 3) : captured.in_turn(i), rate), expected) << "step " << i;
      EXPECT_EQ(eager.ctx.random.position(), captured.ctx.random.position()) << "step " << i;
    }
    EXPECT_EQ(eager.weights(), captured.weights()) << optimizer;
    const AveragedWeights of_eager(&eager.average), of_captured(&captured.average);
    EXPECT_EQ(eager.weights(), captured.weights()) << optimizer;
    EXPECT_FALSE(eager.step.captured());
    EXPECT_EQ(captured.step.captured(), GetParam().kind == Device::Kind::cuda) << captured.step.why_not_captured();
  }
}

// Groups of three batches, the last batch is short; the third group has only two.
TEST_P(EveryDevice, TrainStepReplayAccumulatesBitwiseIdentically) {
  for (const std::string precision : {"fp32", "bf16"}) {
    StepBench eager(GetParam(), "adam", false, 3, precision), captured(GetParam(), "adam", true, 3, precision);
    for (int i = 0; i < 11; ++i) {
      const bool is_short = i == 5;
      const float expected = eager.run(eager.batch(i, is_short ? 3 : 6), 0.1);
      EXPECT_EQ(captured.run(is_short ? captured.batch(i, 3) : captured.in_turn(i), 0.1), expected) << "step " << i;
      EXPECT_EQ(eager.step.waits_for_batches(), i % 3 != 2);
    }
    for (StepBench* bench : {&eager, &captured}) bench->step.update_now();
    EXPECT_FALSE(eager.step.waits_for_batches());
    EXPECT_EQ(eager.weights(), captured.weights());
    EXPECT_EQ(captured.step.captured(), GetParam().kind == Device::Kind::cuda) << captured.step.why_not_captured();
    const AveragedWeights of_eager(&eager.average), of_captured(&captured.average);
    EXPECT_EQ(eager.weights(), captured.weights());
  }
}

TEST_P(EveryDevice, TrainStepStopsAtBadAccumulatedBatch) {
  StepBench bench(GetParam(), "{sgd: {momentum: 0.9}}", true, 2);
  for (int i = 0; i < 4; ++i) bench.step.run(bench.batch(i), 0.1);
  const auto scale = [&] { return bench.model.net->parameters()[2]->variable.value().to_vector(*bench.ctx.stream); };
  const std::vector<float> before = scale();
  Batch bad = bench.batch(4);
  bench.ctx.stream->fill(bad.images.write(), 1, std::numeric_limits<float>::quiet_NaN());
  bench.step.run(bad, 0.1);
  bench.step.run(bench.batch(5), 0.1);
  EXPECT_TRUE(std::isnan(bench.step.sums().to_vector(*bench.ctx.stream).at(0)));
  EXPECT_EQ(scale(), before);
}

// An invalid layer: it waits for the device, which fails during capture on a GPU.
class Waits final : public Layer {
 public:
  using Layer::Layer;
  Variable forward(Context& ctx, const Variable& x) override {
    ctx.stream->synchronize();
    return x;
  }
};

// Captures by running the work at once.
class CapturingStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  std::unique_ptr<Graph> capture(const std::function<void()>& work) override {
    captures = true;
    work();
    return nullptr;
  }
  bool captures = false;
};

// Its library fails once, during a capture.
class FailingRank final : public ThreadRank {
 public:
  explicit FailingRank(CapturingStream& stream) : ThreadRank(std::make_shared<Rendezvous>(1), 0, 1), stream_(stream) {}
  void all_reduce(Stream& stream, float* values, std::int64_t count) override {
    if (std::exchange(stream_.captures, false)) throw RanksFailed("the network is lost");
    ThreadRank::all_reduce(stream, values, count);
  }

 private:
  CapturingStream& stream_;
};

TEST(TrainStep, FailsIfCollectiveFailsDuringCapture) {
  StepBench bench({}, "sgd", true);
  auto owned = std::make_unique<CapturingStream>(std::move(bench.ctx.stream));
  FailingRank ranks(*owned);
  bench.ctx.stream = std::move(owned);
  TrainStep step(bench.ctx, *bench.model.net, *bench.experiment.loss, bench.optimizer, {.ranks = &ranks});
  Batch batch = bench.batch(0);
  batch.rows = {.first = 0, .all = 6, .on_every_rank = true};
  for (int i = 0; i < 2; ++i) step.run(batch, 0.1);
  EXPECT_THROW(step.run(batch, 0.1), RanksFailed);
}

TEST_P(EveryDevice, TrainStepRunsEagerlyIfCaptureFails) {
  StepBench eager(GetParam(), "adam", false), tried(GetParam(), "adam", true);
  for (StepBench* bench : {&eager, &tried}) bench->model.net->add("waits", std::make_unique<Waits>("waits", Shape{3}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(eager.run(eager.batch(i), 0.1), tried.run(tried.batch(i), 0.1)) << "step " << i;
  EXPECT_EQ(eager.weights(), tried.weights());
  EXPECT_FALSE(tried.step.captured());
  EXPECT_NE(tried.step.why_not_captured(), "");
  EXPECT_EQ(eager.step.why_not_captured(), "");  // no capture was attempted
}

TEST_P(EveryDevice, TrainStepSumsLossAndCorrectImages) {
  StepBench bench(GetParam(), "sgd", true);
  double expected = 0;
  for (int i = 0; i < 4; ++i) expected += 6.0 * bench.run(bench.batch(i), 0.1);
  const std::vector<float> sums = bench.step.sums().to_vector(*bench.ctx.stream);
  EXPECT_NEAR(sums.at(0), expected, 1e-4);
  EXPECT_GE(sums.at(1), 0);
  EXPECT_LE(sums.at(1), 24);
}

TEST_P(EveryDevice, TrainStepRepeatedQueryDoesNotAllocate) {
  StepBench bench(GetParam(), "{sgd: {momentum: 0.9}}", true);
  const Batch batch = bench.batch(0);
  for (int i = 0; i < 3; ++i) bench.step.run(batch, 0.1);
  const std::int64_t allocations = bench.ctx.stream->memory().system_allocations;
  const std::int64_t waits = bench.ctx.stream->synchronizations();
  for (int i = 0; i < 3; ++i) bench.step.run(batch, 0.1);
  EXPECT_EQ(bench.ctx.stream->memory().system_allocations, allocations);
  EXPECT_EQ(bench.ctx.stream->synchronizations(), waits);
}

TEST_P(EveryDevice, TrainStepKeepsWeightsAfterBadLoss) {
  StepBench bench(GetParam(), "{sgd: {momentum: 0.9}}", true);
  for (int i = 0; i < 4; ++i) bench.step.run(bench.batch(i), 0.1);
  const auto trainable = [&] {
    std::vector<float> all;
    for (const Parameter* parameter : bench.model.net->parameters())
      if (parameter->trainable)
        for (const float value : parameter->variable.value().to_vector(*bench.ctx.stream)) all.push_back(value);
    return all;
  };
  const std::vector<float> before = trainable();
  Batch bad = bench.batch(4);
  bench.ctx.stream->fill(bad.images.write(), 1, std::numeric_limits<float>::quiet_NaN());
  bench.step.run(bad, 0.1);
  bench.step.run(bench.batch(5), 0.1);
  EXPECT_TRUE(std::isnan(bench.step.sums().to_vector(*bench.ctx.stream).at(0)));
  EXPECT_EQ(trainable(), before);
}

// All that a step learns, except batch norm's averages, which follow its input.
std::vector<float> learnt(StepBench& bench) {
  std::vector<float> all;
  const auto append = [&](const Tensor& tensor) {
    for (const float value : tensor.to_vector(*bench.ctx.stream)) all.push_back(value);
  };
  for (const Parameter* parameter : bench.model.net->parameters())
    if (parameter->trainable) append(parameter->variable.value());
  for (const auto& [name, state] : bench.optimizer.state()) append(state);
  return all;
}

// The loss is finite, but the gradients are not: no non-finite value may reach weights or optimizer, and training must
// stop from then on.
TEST_P(EveryDevice, TrainStepStopsOnBadGradient) {
  for (const char* optimizer : {"{sgd: {momentum: 0.9}}", "adam"}) {
    for (const bool capture : {false, true}) {
      StepBench bench(GetParam(), optimizer, capture);
      auto layer = std::make_unique<BadGradient>(Shape{3}, 100);
      BadGradient& bad = *layer;
      bench.model.net->add("bad", std::move(layer));
      for (int i = 0; i < 4; ++i) bench.step.run(bench.batch(i), 0.1);
      EXPECT_TRUE(std::isfinite(bench.step.sums().to_vector(*bench.ctx.stream).at(0)));
      const std::vector<float> before = learnt(bench);
      // On a GPU the fifth step is replayed, and a captured step does not call the layer again: its shape differs.
      bad.from = 0;
      EXPECT_TRUE(std::isfinite(bench.run(bench.batch(4, 5), 0.1)));
      EXPECT_TRUE(std::isnan(bench.step.sums().to_vector(*bench.ctx.stream).at(0)));
      const std::vector<float> after = learnt(bench);
      for (const float value : after) ASSERT_TRUE(std::isfinite(value));
      for (int i = 5; i < 8; ++i) bench.step.run(bench.batch(i), 0.1);
      EXPECT_EQ(learnt(bench), after);
      // With clipping, one bad gradient blocks the whole step. (Adam counts its steps.)
      if (std::string(optimizer) != "adam") {
        EXPECT_EQ(after, before);
      }
    }
  }
}

TEST_P(EveryDevice, TrainStepNamesFirstBadGradient) {
  StepBench bench(GetParam(), "sgd", false);
  bench.step.run(bench.batch(0), 0.1);
  EXPECT_EQ(bench.step.first_bad_gradient(bench.batch(1)), "");
  bench.model.net->add("bad", std::make_unique<BadGradient>(Shape{3}, 0));
  EXPECT_EQ(bench.step.first_bad_gradient(bench.batch(1)), "fc1.bias");
}

// Replays nothing, and holds all memory during its lifetime.
class Captured final : public Graph {
 public:
  explicit Captured(bool& full) : full_(full) {}
  ~Captured() override { full_ = false; }
  void replay() override {}

 private:
  bool& full_;
};

// A device that captures, but has no memory for a layer's outputs while a graph holds its memory.
class Crowded final : public ForwardingStream {
 public:
  Crowded(std::unique_ptr<Stream> stream, bool can_record) : ForwardingStream(std::move(stream)), can_(can_record) {}
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    if (full && bytes > 1000) throw OutOfMemory("out of memory: held by a graph");
    return ForwardingStream::allocate(bytes);
  }
  std::unique_ptr<Graph> capture(const std::function<void()>&) override {
    full = true;
    if (!can_) throw OutOfMemory("out of memory: too little for a graph");
    return std::make_unique<Captured>(full);
  }
  void release_unused() override { full = false; }
  bool full = false;

 private:
  bool can_;
};

// A device that captures and counts allocation requests.
class Counting final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  void copy(void* to, const void* from, std::size_t bytes) override {
    ++copies;
    ForwardingStream::copy(to, from, bytes);
  }
  std::unique_ptr<Graph> capture(const std::function<void()>& work) override {
    ++captured;
    work();
    return std::make_unique<Captured>(ignored_);
  }
  std::unique_ptr<Graph> capture_again(const std::function<void()>& work) override {
    ++captured_again;
    work();
    return std::make_unique<Captured>(ignored_);
  }
  int copies = 0, captured = 0, captured_again = 0;

 private:
  bool ignored_ = false;
};

TEST(TrainStep, IsCapturedOncePerBatchBuffer) {
  StepBench bench({}, "sgd", true);
  bench.ctx.stream = std::make_unique<Counting>(std::move(bench.ctx.stream));
  auto& stream = static_cast<Counting&>(*bench.ctx.stream);
  for (int i = 0; i < 4; ++i) bench.step.run(bench.in_turn(i), 0.1);
  EXPECT_EQ(stream.captured, 1);
  EXPECT_EQ(stream.captured_again, 1);
  for (int i = 4; i < 6; ++i) {
    const Batch batch = bench.in_turn(i);
    stream.copies = 0;
    bench.step.run(batch, 0.1);
    EXPECT_EQ(stream.copies, 0);
  }
  bench.step.run(bench.batch(6), 0.1);  // at a third place
  EXPECT_EQ(stream.captured + stream.captured_again, 2);
  EXPECT_TRUE(bench.step.captured());
}

TEST(TrainStep, RunsEagerlyWithoutCaptureMemory) {
  StepBench eager({}, "{sgd: {momentum: 0.9}}", false), tried({}, "{sgd: {momentum: 0.9}}", true);
  tried.ctx.stream = std::make_unique<Crowded>(std::move(tried.ctx.stream), false);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(eager.run(eager.batch(i), 0.1), tried.run(tried.batch(i), 0.1)) << "step " << i;
  EXPECT_EQ(eager.weights(), tried.weights());
  EXPECT_NE(tried.step.why_not_captured().find("too little for a graph"), std::string::npos);
}

// For example the last batch of an epoch. (The captured step itself does nothing here.)
TEST(TrainStep, DropsGraphsIfBatchSizeChanges) {
  StepBench eager({}, "{sgd: {momentum: 0.9}}", false), tried({}, "{sgd: {momentum: 0.9}}", true);
  tried.ctx.stream = std::make_unique<Crowded>(std::move(tried.ctx.stream), true);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(eager.run(eager.batch(i), 0.1), tried.run(tried.batch(i), 0.1)) << "step " << i;
  const Batch six = tried.batch(2), three = tried.batch(3, 3);
  static_cast<Crowded&>(*tried.ctx.stream).full = false;
  tried.step.run(six, 0.1);
  ASSERT_TRUE(tried.step.captured());
  EXPECT_EQ(eager.run(eager.batch(3, 3), 0.1), tried.run(three, 0.1));
  EXPECT_FALSE(tried.step.captured());
  tried.step.run(six, 0.1);
  EXPECT_TRUE(tried.step.captured());
  EXPECT_EQ(tried.step.why_not_captured(), "");
}

}  // namespace
}  // namespace twiddle
