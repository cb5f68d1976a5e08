#include "layers/conv/tuner/autotuner.h"
#include "framework/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/interrupted.h"
#include "tests/support/conv_problem.h"
#include "tests/support/fake_engine.h"

namespace twiddle {
namespace {

const std::vector<ConvPass> all_passes{std::begin(every_pass), std::end(every_pass)};

class AutotunerTest : public testing::Test {
 protected:
  AutotunerTest() { ctx.stream = std::make_unique<FakeTimeStream>(clock); }
  AutotunerResult tune(const std::vector<std::pair<std::string, FakeEngineTraits>>& traits,
                       const std::vector<ConvPass>& passes = all_passes, Autotuner::Rules rules = {1000}) {
    engines.clear();
    for (const auto& [name, each] : traits) engines.push_back(make_fake_engine(name, each, clock, &runs));
    std::vector<ConvEngine*> engines_of_it;
    for (const auto& engine : engines) engines_of_it.push_back(engine.get());
    return Autotuner(ctx, problem, passes, engines_of_it, std::move(rules)).run();
  }
  static std::string winner(const AutotunerResult& result, ConvPass pass = ConvPass::forward) {
    const auto& plan = result.passes[index_of(pass)].winner;
    return plan == nullptr ? "" : full_name(*plan);
  }

  Context ctx;
  ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::vector<std::unique_ptr<ConvEngine>> engines;
  int runs = 0;
};

FakeEngineTraits one(double milliseconds) {
  return {.plans = {{.milliseconds = milliseconds}}};
}

// Plans of one grid each, that share its spectra.
FakePlan on_grid(const std::string& grid, double milliseconds, const std::string& product = {}) {
  return {.name = grid + product, .milliseconds = milliseconds, .shares = grid};
}

TEST_F(AutotunerTest, SelectsFastestPlanOfAllEngines) {
  const AutotunerResult result =
      tune({{"slow", one(20)},
            {"several", {.plans = {{.name = "a", .milliseconds = 9}, {.name = "b", .milliseconds = 2}}}}});
  for (const ConvPass pass : every_pass) {
    EXPECT_EQ(winner(result, pass), "several:b");
    const auto& here = result.passes[index_of(pass)];
    EXPECT_EQ(here.milliseconds, 2);
    EXPECT_EQ(here.reason, "measured 2.00 ms, next slow 20.00");
    ASSERT_EQ(here.candidates.size(), 3u);
    EXPECT_EQ(here.candidates[1].plan->facts().name, "a");
    EXPECT_LE(here.candidates[0].error, promise(Precision::fp32));
  }
  EXPECT_FALSE(result.doubtful());
}

TEST_F(AutotunerTest, SkipsEngineAfterThreeSlowPlans) {
  FakeEngineTraits slow{.plans = {}};
  for (const char* const name : {"a", "b", "c", "d"}) slow.plans.push_back({.name = name, .milliseconds = 30});
  slow.plans.push_back({.name = "e", .milliseconds = 1});
  const AutotunerResult result = tune({{"fast", one(2)}, {"slow", slow}});
  EXPECT_EQ(winner(result), "fast");
  const auto& candidates = result.passes[0].candidates;
  ASSERT_EQ(candidates.size(), 6u);
  const auto with_reason = [&](const std::string& reason) {
    return std::count_if(candidates.begin(), candidates.end(),
                         [&](const Candidate& each) { return each.reason == reason; });
  };
  EXPECT_EQ(with_reason("more than 10 times as slow as the fastest"), 3);
  EXPECT_EQ(with_reason("not benchmarked: 3 higher-ranked plans of this engine took over 10x the fastest time"), 2);
  EXPECT_TRUE(std::isnan(candidates[1].error)) << "the error of a too slow plan is not checked";
}

TEST_F(AutotunerTest, RejectsFailingOrInaccuratePlans) {
  const AutotunerResult result = tune({{"good", one(20)},
                                       {"wrong", {.plans = {{.milliseconds = 1, .error = 1e-4f}}}},
                                       {"broken", {.plans = {{.milliseconds = 1, .throws = true}}}},
                                       {"missing", {.missing = true}}});
  EXPECT_EQ(winner(result), "good");
  const std::string& reason = result.passes[0].reason;
  EXPECT_NE(reason.find(", wrong misses fp32 with an error of 1.0e-04"), std::string::npos) << reason;
  EXPECT_NE(reason.find(", broken failed: out of luck"), std::string::npos) << reason;
  EXPECT_NE(reason.find(", missing failed: libmissing cannot be loaded"), std::string::npos) << reason;
  problem.precision = Precision::tf32;
  EXPECT_EQ(winner(tune({{"good", one(20)}, {"wrong", {.plans = {{.milliseconds = 1, .error = 1e-4f}}}}})), "wrong");
}

TEST_F(AutotunerTest, RejectsPlanThatSpreadsNan) {
  const AutotunerResult result =
      tune({{"good", one(20)}, {"library", {.plans = {{.milliseconds = 1, .spreads = true}}}}});
  for (const ConvPass pass : every_pass) EXPECT_EQ(winner(result, pass), "good");
  EXPECT_NE(result.passes[0].reason.find("a NaN in one image or filter reaches others"), std::string::npos)
      << result.passes[0].reason;
}

TEST_F(AutotunerTest, SelectsNothingIfAllAreInaccurate) {
  const AutotunerResult result = tune({{"wrong", {.plans = {{.error = 1e-4f}, on_grid("8x8", 1)}}}},
                                      {ConvPass::forward}, {.workspace_limit = 1000});
  EXPECT_EQ(winner(result), "wrong:8x8");
  const AutotunerResult none = tune({{"wrong", {.plans = {{.error = 1e-4f}}}}});
  EXPECT_EQ(winner(none), "");
  EXPECT_TRUE(none.passes[0].reason.starts_with("no other plan is within the error limit, wrong misses fp32"));
}

TEST_F(AutotunerTest, RejectsTooLargeOrNondeterministicPlans) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines_of_it{
      {"slow", one(20)},
      {"large", {.plans = {{.milliseconds = 1, .scratch = 1001}}}},
      {"atomic", {.plans = {{.milliseconds = 2, .deterministic = false}}}}};
  EXPECT_EQ(winner(tune(engines_of_it)), "atomic");
  EXPECT_EQ(winner(tune(engines_of_it, all_passes, {.workspace_limit = 1000, .deterministic = true})), "slow");
  EXPECT_EQ(winner(tune(engines_of_it, all_passes, {.workspace_limit = 2000})), "large");
}

TEST_F(AutotunerTest, SelectsSharingPlansByTotalTime) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> both{{"steady", one(8)},
                                                                   {"sharing", {.plans = {on_grid("8x8", 12)}}}};
  const AutotunerResult training = tune(both);
  for (const ConvPass pass : every_pass) {
    EXPECT_EQ(winner(training, pass), "sharing:8x8");
    EXPECT_NE(training.passes[index_of(pass)].reason.find("all three 12.00, the best separately 24.00"),
              std::string::npos)
        << training.passes[index_of(pass)].reason;
  }
  EXPECT_EQ(winner(tune(both, {ConvPass::forward})), "steady") << "where forward is all there is";
}

TEST_F(AutotunerTest, FirstLayerIgnoresBackwardInputTime) {
  FakePlan grid = on_grid("8x8", 25);
  grid.backward_input_ms = 60;
  const std::vector<std::pair<std::string, FakeEngineTraits>> both{{"steady", one(20)}, {"sharing", {.plans = {grid}}}};
  EXPECT_EQ(winner(tune(both)), "steady");
  problem.input_gradient = false;
  const AutotunerResult first = tune(both, {ConvPass::forward, ConvPass::backward_weight});
  EXPECT_EQ(winner(first), "sharing:8x8");
  EXPECT_EQ(winner(first, ConvPass::backward_input), "");
  EXPECT_NE(first.passes[0].reason.find("both 25.00"), std::string::npos) << first.passes[0].reason;
}

TEST_F(AutotunerTest, SelectsFastestGridThenFastestProduct) {
  const AutotunerResult result =
      tune({{"sharing",
             {.plans = {on_grid("32x32", 30), on_grid("8x8", 12), on_grid("8x8", 9, ", quick"),
                        on_grid("8x8", 4, ", wrong"), on_grid("16x16", 20)}}}});
  EXPECT_EQ(winner(result), "sharing:8x8, wrong");
  FakePlan wrong = on_grid("8x8", 4, ", wrong");
  wrong.error = 1e-3f;
  const AutotunerResult exact =
      tune({{"sharing", {.plans = {on_grid("32x32", 30), on_grid("8x8", 12), on_grid("8x8", 9, ", quick"), wrong}}}});
  EXPECT_EQ(winner(exact), "sharing:8x8, quick");
  const auto& candidates = exact.passes[0].candidates;
  const auto other = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Candidate& candidate) { return candidate.plan->facts().name == "32x32"; });
  EXPECT_EQ(other->reason, "not benchmarked: other grids were faster in a short run");
}

// Bias and ReLU in the backward pass need a separate pass if the plans do not fuse them.
TEST_F(AutotunerTest, CountsEpilogueTime) {
  clock->without_plan_ms = 10;
  FakePlan masking = on_grid("8x8", 30);  // 30 ms for all three passes, which share
  masking.fuses_epilogue_backward = true;
  const std::vector<std::pair<std::string, FakeEngineTraits>> both{{"plain", one(8)},
                                                                   {"masking", {.plans = {masking}}}};
  EXPECT_EQ(winner(tune(both)), "plain") << "24 ms, and nothing follows";
  problem.bias = problem.relu = true;
  const AutotunerResult result = tune(both);
  EXPECT_EQ(winner(result), "masking:8x8") << "34 ms with bias and ReLU";
  EXPECT_NE(result.passes[0].reason.find("all three 30.00, the best separately 34.00"), std::string::npos)
      << result.passes[0].reason;
  masking.fuses_epilogue_backward = false;
  EXPECT_EQ(winner(tune({{"plain", one(8)}, {"sharing", {.plans = {masking}}}})), "plain") << "34 ms instead of 40";
}

// Plans that fuse it win over faster ones that leave it to that pass.
TEST_F(AutotunerTest, PrefersFusedEpilogueIfFasterTogether) {
  clock->without_plan_ms = 10;
  FakePlan masking{.milliseconds = 12};
  masking.fuses_epilogue_backward = true;
  const std::vector<std::pair<std::string, FakeEngineTraits>> both{{"plain", one(8)},
                                                                   {"masking", {.plans = {masking}}}};
  EXPECT_EQ(winner(tune(both), ConvPass::backward_weight), "plain") << "nothing follows";
  problem.bias = problem.relu = true;
  const AutotunerResult result = tune(both);
  EXPECT_EQ(winner(result, ConvPass::forward), "plain");
  EXPECT_EQ(winner(result, ConvPass::backward_input), "masking") << "24 ms instead of 16 and 10";
  EXPECT_EQ(winner(result, ConvPass::backward_weight), "masking");
  EXPECT_EQ(result.passes[index_of(ConvPass::backward_weight)].reason,
            "measured 12.00 ms with the backward pass of bias and ReLU inside, in total 24.00, with a separate pass "
            "26.00");
  masking.milliseconds = 14;
  EXPECT_EQ(winner(tune({{"plain", one(8)}, {"masking", {.plans = {masking}}}}), ConvPass::backward_weight), "plain");
  problem.relu = false;
  const AutotunerResult bias_alone = tune({{"plain", one(8)}, {"masking", {.plans = {masking}}}});
  EXPECT_EQ(winner(bias_alone, ConvPass::backward_weight), "masking") << "14 ms instead of 8 and 10";
  EXPECT_EQ(winner(bias_alone, ConvPass::backward_input), "plain") << "which has nothing to do with a bias";
}

TEST_F(AutotunerTest, RepeatsBenchmarkIfTimesDisagree) {
  int runs_of_it = 0;
  const auto disturbed = [&](int benchmarks) {
    return FakeEngineTraits{.plans = {{.milliseconds = 1, .more = [&, benchmarks](int run) {
                                         runs_of_it = run;
                                         return run <= 9 * benchmarks ? in_second_turn(run) : 0;
                                       }}}};
  };
  const std::vector<ConvPass> forward{ConvPass::forward};
  const AutotunerResult once = tune({{"fast", disturbed(1)}, {"slow", {.plans = {{.milliseconds = 1.2}}}}}, forward);
  EXPECT_FALSE(once.doubtful());
  EXPECT_EQ(runs_of_it, 9 + 6 + 10) << "a second benchmark, whose second turn has ten runs in its 10 ms";
  const AutotunerResult always = tune({{"fast", disturbed(9)}, {"slow", {.plans = {{.milliseconds = 1.2}}}}}, forward);
  EXPECT_TRUE(always.doubtful());
  EXPECT_EQ(runs_of_it, 9 + 9);
  EXPECT_EQ(winner(always), "fast") << "both turns count";
}

TEST_F(AutotunerTest, DoubtAffectsOnlyItsPass) {
  FakePlan disturbed{.milliseconds = 1};
  disturbed.throws_in = ConvPass::forward;  // in one run, and then each of the other passes takes nine
  disturbed.more = [](int run) { return (run - 1) % 19 > 0 ? in_second_turn((run - 1) % 19) : 0; };
  const AutotunerResult result = tune({{"fast", {.plans = {disturbed}}}, {"slow", {.plans = {{.milliseconds = 1.2}}}}});
  EXPECT_EQ(winner(result, ConvPass::forward), "slow");
  EXPECT_FALSE(result.passes[index_of(ConvPass::forward)].doubtful);
  EXPECT_TRUE(result.passes[index_of(ConvPass::backward_weight)].doubtful);
}

TEST_F(AutotunerTest, UsesSinglePassesIfStepFails) {
  FakePlan grid = on_grid("8x8", 3);
  grid.throws_in = ConvPass::backward_weight;
  const AutotunerResult result = tune({{"steady", one(20)}, {"sharing", {.plans = {grid}}}});
  EXPECT_EQ(winner(result, ConvPass::forward), "sharing:8x8");
  EXPECT_EQ(winner(result, ConvPass::backward_weight), "steady");
}

TEST_F(AutotunerTest, StopsBetweenTwoMeasurements) {
  int asked = 0;
  EXPECT_THROW(tune({{"one", one(1)}, {"two", one(2)}}, all_passes,
                    {.workspace_limit = 1000,
                     .between_two =
                         [&] {
                           if (++asked == 2) throw Interrupted();
                         }}),
               Interrupted);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace twiddle
