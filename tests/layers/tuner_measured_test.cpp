// Plans that are chosen by the clock, and what is remembered of that.
#include <fstream>

#include "framework/interrupted.h"
#include "layers/conv/engines.h"
#include "tests/layers/tuner_fixture.h"

namespace twiddle {

TEST_F(ConvTunerTest, MeasuredTakesTheFastestOnceAndRemembers) {
  auto all = tuner({{"slow", one(20)}, {"fast", one(1)}}, {.engine = "measured"});
  EXPECT_EQ(chosen(all), "fast");
  const int runs = runs_["slow"];
  EXPECT_GT(runs, 1);
  EXPECT_EQ(chosen(all), "fast");
  EXPECT_EQ(runs_["slow"], runs);
  const auto* choice = all.find(small_problem, ConvPass::forward);
  EXPECT_EQ(choice->reason, "measured 1.00 ms, next slow 20.00");
  EXPECT_EQ(choice->milliseconds, 1);
  EXPECT_EQ(choice->entrants.size(), 2u);
}

TEST_F(ConvTunerTest, OnlyMeasuredGoesByTheClock) {
  const FakeEngineTraits two{.plans = {{.name = "first", .milliseconds = 5}, {.name = "second", .milliseconds = 1}}};
  for (const std::string how : {"rule", "both"}) {
    auto all = tuner({{"both", two}}, {.engine = how});
    EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::forward).plan->facts().name, "first");
    EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::forward, "measured").plan->facts().name, "second");
  }
}

TEST_F(ConvTunerTest, MeasuredMayBeOneEnginesPlansAlone) {
  const FakeEngineTraits two{.plans = {{.name = "first", .milliseconds = 5}, {.name = "second", .milliseconds = 3}}};
  auto all = tuner({{"both", two}, {"fast", one(1)}}, {.engine = "measured:both", .cache_file = cache_path()});
  EXPECT_EQ(full_name(*all.choose(ctx_, small_problem, ConvPass::forward).plan), "both:second");
  EXPECT_EQ(chosen(all, "measured"), "fast");
  EXPECT_NO_THROW(all.check_name("measured:both"));
  auto cannot = tuner({{"unable", unable()}, {"fine", one(1)}}, {});
  EXPECT_EQ(complaint(cannot, "measured:unable"),
            "convolution engine 'measured:unable' cannot do forward of 2x4x8x8 * 4x4x3x3; engines that can: fine");
  EXPECT_THROW(all.check_name("measured:nobody"), Error);
}

// A batch that is not full, another --batch-size, an image to predict.
TEST_F(ConvTunerTest, AProblemThatDiffersInBatchAloneTakesTheSamePlan) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines{{"slow", one(20)}, {"fast", one(1)}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  ConvProblem last = small_problem;
  last.batch = 1;
  auto first = tuner(engines, policy);
  EXPECT_EQ(chosen(first), "fast");
  const int runs = runs_["slow"];
  EXPECT_EQ(first.choose(ctx_, last, ConvPass::forward).plan->facts().engine, "fast");
  EXPECT_EQ(first.find(last, ConvPass::forward)->reason, "as at batch 2");
  auto second = tuner(engines, policy);
  EXPECT_TRUE(second.recall({}, last, ConvPass::backward_weight));
  for (const ConvPass pass : every_pass) EXPECT_EQ(second.choose(ctx_, last, pass).plan->facts().engine, "fast");
  EXPECT_EQ(second.find(last, ConvPass::forward)->reason, "cached, for another batch");
  EXPECT_EQ(runs_["slow"], runs) << "nothing was measured";
  ConvPolicy own = policy;
  own.own_batch = true;
  auto third = tuner(engines, own);
  EXPECT_EQ(third.choose(ctx_, last, ConvPass::forward).reason, "measured 1.00 ms, next slow 20.00");
}

// Also a slower one; and it is no choice of a problem that nobody has named.
TEST_F(ConvTunerTest, WhatAnotherProcessHasChosenIsNotMeasured) {
  auto all = tuner({{"slow", one(20)}, {"fast", one(1)}}, {.engine = "measured"});
  const std::string slow = full_name(*all.choose(ctx_, small_problem, ConvPass::forward, "slow").plan);
  all.adopt(small_problem, ConvPass::forward, "", slow);
  EXPECT_EQ(chosen(all), "slow");
  EXPECT_EQ(all.find(small_problem, ConvPass::forward)->reason, "as on rank 0");
  EXPECT_EQ(runs_["fast"], 0);
  EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::backward_weight).plan->facts().engine, "fast");
}

TEST_F(ConvTunerTest, APlanThatCannotBeMadeHereIsNotAdopted) {
  auto all = tuner({{"slow", one(20)}, {"fast", one(1)}}, {.engine = "measured"});
  all.adopt(small_problem, ConvPass::forward, "", "elsewhere:only");
  EXPECT_EQ(chosen(all), "fast");
  EXPECT_TRUE(all.measures("") && all.measures("measured:slow") && !all.measures("slow"));
}

TEST_F(ConvTunerTest, APlanFromTheCacheShowsItsPrecisionBeforeItRuns) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = tuner({{"only", one(1)}}, policy);
  chosen(first);
  runs_.clear();
  auto second = tuner({{"only", one(1)}}, policy), third = tuner({{"only", one(1)}}, policy);
  chosen(second), chosen(second);
  EXPECT_EQ(runs_["only"], 1);
  EXPECT_TRUE(third.recall({}, small_problem, ConvPass::forward));  // for a memory plan: nothing runs
  EXPECT_EQ(runs_["only"], 1);
  chosen(third), chosen(third);
  EXPECT_EQ(runs_["only"], 2);
  auto wrong = tuner({{"only", {.plans = {{.error = 1e-4f}, {.name = "other"}}}}}, policy);
  EXPECT_EQ(full_name(*wrong.choose(ctx_, small_problem, ConvPass::forward).plan), "only:other");
}

TEST_F(ConvTunerTest, WhatIsMeasuredOtherwiseTheSecondTimeIsNotKept) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const FakeEngineTraits disturbed{.plans = {{.milliseconds = 1, .more = in_second_turn}}};
  auto all = tuner({{"fast", disturbed}, {"slow", one(1.2)}}, policy);
  chosen(all);
  const std::string reason = all.find(small_problem, ConvPass::forward)->reason;
  EXPECT_NE(reason.find("not kept: its repeats disagree"), std::string::npos) << reason;
  EXPECT_FALSE(std::filesystem::exists(policy.cache_file));
}

TEST_F(ConvTunerTest, WhatIsMeasuredAgainReplacesWhatTheCacheKnewOfSome) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines{{"steady", one(20)}, {"sharing", sharing(30)}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto all = tuner(engines, policy);
  EXPECT_EQ(chosen(all), "sharing");
  // Of what was measured together the file loses one pass and has another for the first.
  std::ifstream in(policy.cache_file);
  std::string text, line;
  while (std::getline(in, line)) {
    if (line.find("\tbackward_weight\t") != std::string::npos) continue;
    if (line.starts_with("sharing:8x8") && line.find("\tforward\t") != std::string::npos) line.replace(0, 11, "steady");
    text += line + "\n";
  }
  std::ofstream(policy.cache_file) << text;
  auto again = tuner(engines, policy);
  EXPECT_EQ(chosen(again), "steady");
  EXPECT_EQ(again.choose(ctx_, small_problem, ConvPass::backward_weight).plan->facts().engine, "sharing");
  EXPECT_EQ(chosen(again), "sharing") << "as the file says now";
}

TEST_F(ConvTunerTest, MeasuringStops) {
  bool stop = false;
  const auto measuring = std::make_shared<Measuring>(nullptr, [&] { return stop; });
  auto all = tuner({{"one", one(1)}, {"two", one(2)}}, {.engine = "measured", .measuring = measuring});
  EXPECT_EQ(chosen(all), "one");
  stop = true;
  EXPECT_EQ(chosen(all), "one");  // known
  ConvProblem other = small_problem;
  other.filters = 5;
  EXPECT_THROW(all.choose(ctx_, other, ConvPass::backward_weight), Interrupted);
  EXPECT_EQ(all.find(other, ConvPass::backward_weight), nullptr);
}

TEST_F(ConvTunerTest, MeasuredRespectsTheWorkspaceLimit) {
  auto all = tuner({{"slow", one(20)}, {"large", large(2000)}}, {.engine = "measured", .workspace_limit = 1000});
  EXPECT_EQ(chosen(all), "slow");
  EXPECT_EQ(runs_["large"], 0);
}

TEST_F(ConvTunerTest, TheCacheOutlivesTheTuner) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = tuner({{"slow", one(20)}, {"fast", one(1)}}, policy);
  EXPECT_EQ(chosen(first), "fast");
  const int runs = runs_["fast"];
  auto second = tuner({{"slow", one(20)}, {"fast", one(1)}}, policy);
  EXPECT_EQ(chosen(second), "fast");
  EXPECT_EQ(second.find(small_problem, ConvPass::forward)->reason, "cached");
  EXPECT_EQ(runs_["fast"], runs + 1) << "to show its precision";

  auto without = tuner({{"slow", one(1)}, {"fast", unable()}}, policy);  // what is cached cannot be used here
  EXPECT_EQ(chosen(without), "slow");

  ConvPolicy again = policy;
  again.retune = true;
  auto third = tuner({{"slow", one(20)}, {"fast", one(1)}}, again);
  EXPECT_EQ(chosen(third), "fast");
  EXPECT_GT(runs_["fast"], runs);
}

TEST_F(ConvTunerTest, RecallsWithoutMeasuring) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines = {{"slow", one(20)}, {"fast", one(1)}};
  auto first = tuner(engines, policy);
  EXPECT_FALSE(first.recall({}, small_problem, ConvPass::forward));
  EXPECT_EQ(first.find(small_problem, ConvPass::forward), nullptr);
  EXPECT_TRUE(first.recall({}, small_problem, ConvPass::forward, "rule"));  // nothing to be measured
  EXPECT_EQ(chosen(first), "fast");
  const int runs = runs_["fast"];
  auto second = tuner(engines, policy);
  EXPECT_TRUE(second.recall({}, small_problem, ConvPass::forward));
  EXPECT_EQ(second.find(small_problem, ConvPass::forward)->plan->facts().engine, "fast");
  EXPECT_EQ(runs_["fast"], runs);
}

TEST_F(ConvTunerTest, WhatWasMeasuredAmongOthersIsMeasuredAnew) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = tuner({{"slow", one(20)}}, policy);
  EXPECT_EQ(chosen(first), "slow");
  auto second = tuner({{"slow", one(20)}, {"new", one(1)}}, policy);
  EXPECT_EQ(chosen(second), "new");
  ConvPolicy other_limit = policy;
  other_limit.workspace_limit = 5000;
  auto third = tuner({{"slow", one(20)}, {"new", one(1)}}, other_limit);
  chosen(third);
  EXPECT_TRUE(third.find(small_problem, ConvPass::forward)->reason.starts_with("measured"));
}

TEST_F(ConvTunerTest, WhatAnotherBuildMeasuredIsMeasuredAnewAndDamageIsNoError) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = tuner({{"only", one(1)}}, policy);
  EXPECT_EQ(chosen(first), "only");
  std::ofstream(policy.cache_file, std::ios::app) << "nonsense";
  ConvPolicy rebuilt = policy;
  rebuilt.build = "another commit";
  auto second = tuner({{"only", one(1)}}, rebuilt);
  EXPECT_EQ(chosen(second), "only");
  EXPECT_TRUE(second.find(small_problem, ConvPass::forward)->reason.starts_with("measured"));
  auto third = tuner({{"only", one(1)}}, policy);
  EXPECT_EQ(chosen(third), "only");
  EXPECT_EQ(third.find(small_problem, ConvPass::forward)->reason, "cached")
      << "the first build's choice is still there";
}

TEST_F(ConvTunerTest, ACacheThatCannotBeWrittenIsNoError) {
  auto chooser = tuner({{"only", one(1)}}, {.engine = "measured", .cache_file = "/proc/none/conv.txt"});
  EXPECT_EQ(chosen(chooser), "only");
  EXPECT_NE(chooser.cache().write_failure(), "");
}

TEST_F(ConvTunerTest, AFileThatIsNoCacheIsAnErrorAndStays) {
  const std::string letter = temp_path("letter");
  std::ofstream(letter) << "somebody's letter\n";
  auto chooser = tuner({{"only", one(1)}}, {.engine = "measured", .cache_file = letter});
  EXPECT_NE(complaint(chooser, "").find("no cache of Twiddle's"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(letter) && !std::filesystem::exists(letter + ".old"));
  auto by_rule = tuner({{"only", one(1)}}, {.engine = "rule", .cache_file = letter});
  EXPECT_EQ(chosen(by_rule), "only") << "who does not measure does not mind";
  std::filesystem::remove(letter);
}

TEST_F(ConvTunerTest, TrainingTakesNoChoiceThatWasMadeForForwardAlone) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines = {{"steady", one(8)}, {"sharing", sharing(12)}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const auto evaluated = [&](ConvTuner& by) {
    const EvaluationMode evaluation(ctx_);
    return chosen(by);
  };
  auto first = tuner(engines, policy), second = tuner(engines, policy), third = tuner(engines, policy);
  EXPECT_EQ(evaluated(first), "steady");
  EXPECT_EQ(chosen(first), "sharing");
  EXPECT_EQ(evaluated(first), "sharing");  // there already
  std::filesystem::remove(policy.cache_file);

  auto evaluation_alone = tuner(engines, policy);
  EXPECT_EQ(evaluated(evaluation_alone), "steady");
  EXPECT_EQ(evaluated(second), "steady");
  EXPECT_EQ(second.find(small_problem, ConvPass::forward)->reason, "cached");
  EXPECT_FALSE(second.recall({}, small_problem, ConvPass::forward));
  EXPECT_EQ(chosen(second), "sharing");
  EXPECT_EQ(evaluated(third), "sharing");  // nor is it measured again
  EXPECT_EQ(third.find(small_problem, ConvPass::forward)->reason, "cached");
}

TEST_F(ConvTunerTest, RealEnginesAreMeasuredToo) {
  ConvTuner all(make_conv_engines({}), {.engine = "measured"});
  for (const ConvPass pass : every_pass) {
    EXPECT_NE(all.choose(ctx_, small_problem, pass).plan->facts().engine, "direct");
    EXPECT_TRUE(all.find(small_problem, pass)->reason.starts_with("measured")) << all.find(small_problem, pass)->reason;
  }
}

}  // namespace twiddle
