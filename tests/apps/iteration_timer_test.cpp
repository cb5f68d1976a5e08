#include "apps/verbs/iteration_timer.h"

#include <gtest/gtest.h>

#include "framework/ranks/communicator.h"
#include "tests/models/small_training.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// Trains nothing. At each of these steps it keeps another block of memory, too large for a cached block of the pool.
class Greedy final : public Optimizer {
 public:
  explicit Greedy(std::set<int> steps) : steps_(std::move(steps)) {}
  std::string kind() const override { return "greedy"; }
  std::string describe() const override { return "greedy"; }
  std::vector<std::string> state_names() const override { return {}; }
  void step(Context& ctx, std::vector<Parameter*>&, const StepNumbers&) override {
    if (steps_.contains(++done_)) kept_.push_back(Tensor::filled(*ctx.stream, {std::int64_t(done_) << 17}, 0));
  }

 private:
  std::set<int> steps_;
  int done_ = 0;
  std::vector<Tensor> kept_;
};

IterationTimes times_of(Greedy optimizer) {
  Context ctx;
  const Experiment experiment = small_experiment({{"device", "cpu", "--device"}});
  const auto alone = make_one_rank();
  IterationTimer timer(ctx, experiment.model, *experiment.loss, optimizer, 4, *alone);
  return timer.whole_iterations(1, 5, false);
}

TEST(IterationTimer, TimesStepsWithoutAllocations) {
  const IterationTimes times = times_of(Greedy({}));
  EXPECT_EQ(times.allocations, 0);
  EXPECT_EQ(times.whole.samples.size(), 5);
}

TEST(IterationTimer, RepeatsIfStepAllocatesMemory) {
  const IterationTimes times = times_of(Greedy({5}));
  EXPECT_EQ(times.allocations, 0);
  EXPECT_EQ(times.whole.samples.size(), 5);
}

TEST(IterationTimer, ReportsAllocationsInEveryStep) {
  std::set<int> all;
  for (int step = 1; step < 40; ++step) all.insert(step);
  EXPECT_GT(times_of(Greedy(all)).allocations, 0);
}

}  // namespace

TEST_P(EveryDevice, IterationTimerTimesForwardPasses) {
  for (const char* precision : {"fp32", "bf16"}) {
    const Experiment experiment =
        small_experiment({{"device", to_string(GetParam()), "--device"}, {"precision", precision, "--precision"}});
    Context ctx(experiment.device);
    const auto alone = make_one_rank();
    IterationTimer timer(ctx, experiment.model, *experiment.loss, *experiment.optimizer, 4, *alone);
    const IterationTimes times = timer.forward_passes(1, 5, true);
    EXPECT_EQ(times.whole.samples.size(), 5u);
    EXPECT_GT(times.whole.quantile(0), 0);
    EXPECT_EQ(times.captured, GetParam().kind == Device::Kind::cuda) << times.why_not_captured;
    EXPECT_EQ(times.allocations, 0);
  }
}

}  // namespace twiddle
