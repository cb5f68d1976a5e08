// Plans that are chosen by measurement, and the cache of these choices.
#include <omp.h>

#include <fstream>
#include <functional>

#include "framework/interrupted.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/measuring.h"
#include "tests/layers/tuner_fixture.h"

namespace twiddle {

TEST_F(ConvTunerTest, MeasuresOnceAndSelectsFastest) {
  auto all = tuner({{"slow", one(20)}, {"fast", one(1)}}, {.engine = "measured"});
  EXPECT_EQ(chosen(all), "fast");
  const int runs = runs_["slow"];
  EXPECT_GT(runs, 1);
  EXPECT_EQ(chosen(all), "fast");
  EXPECT_EQ(runs_["slow"], runs);
  const auto* choice = all.find(small_problem, ConvPass::forward);
  EXPECT_EQ(choice->reason, "measured 1.00 ms, next slow 20.00");
  EXPECT_EQ(choice->milliseconds, 1);
  EXPECT_EQ(choice->candidates.size(), 2u);
}

TEST_F(ConvTunerTest, OnlyMeasuredBenchmarks) {
  const FakeEngineTraits two{.plans = {{.name = "first", .milliseconds = 5}, {.name = "second", .milliseconds = 1}}};
  for (const std::string how : {"rule", "both"}) {
    auto all = tuner({{"both", two}}, {.engine = how});
    EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::forward).plan->facts().name, "first");
    EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::forward, "measured").plan->facts().name, "second");
  }
}

TEST_F(ConvTunerTest, MeasuresPlansOfNamedEngine) {
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

// A partial batch, a smaller --batch-size, a single image to predict.
TEST_F(ConvTunerTest, SmallerBatchReusesPlan) {
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

// At batch 1 `light` takes 2 ms and `heavy` 5.1; at batch 64, 65 and 11.4.
TEST_F(ConvTunerTest, DoesNotReuseMuchSmallerBatch) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines{
      {"light", {.plans = {{.milliseconds = 1, .per_image_ms = 1}}}},
      {"heavy", {.plans = {{.milliseconds = 5, .per_image_ms = 0.1}}}}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const auto choose = [&](ConvTuner& from, int batch) {
    ConvProblem problem = small_problem;
    problem.batch = batch;
    return from.choose(ctx_, problem, ConvPass::forward);
  };
  auto first = tuner(engines, policy);
  EXPECT_EQ(choose(first, 1).plan->facts().engine, "light");
  EXPECT_EQ(choose(first, 2).reason, "as at batch 1") << "half as large";
  auto second = tuner(engines, policy);
  EXPECT_EQ(choose(second, 2).reason, "cached, for another batch");
  for (ConvTuner* each : {&first, &second}) {
    EXPECT_TRUE(choose(*each, 4).reason.starts_with("measured")) << "batch 2 was not";
    EXPECT_EQ(choose(*each, 64).plan->facts().engine, "heavy");
  }
  EXPECT_EQ(choose(second, 48).reason, "as at batch 64") << "larger";
}

// A slower plan is adopted as well. The choice applies only to the problem it was made for.
TEST_F(ConvTunerTest, AdoptsChoiceOfAnotherProcess) {
  auto all = tuner({{"slow", one(20)}, {"fast", one(1)}}, {.engine = "measured"});
  const std::string slow = full_name(*all.choose(ctx_, small_problem, ConvPass::forward, "slow").plan);
  all.adopt(small_problem, ConvPass::forward, "", slow);
  EXPECT_EQ(chosen(all), "slow");
  EXPECT_EQ(all.find(small_problem, ConvPass::forward)->reason, "as on rank 0");
  EXPECT_EQ(runs_["fast"], 0);
  EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::backward_weight).plan->facts().engine, "fast");
}

TEST_F(ConvTunerTest, DoesNotAdoptUnavailablePlan) {
  auto all = tuner({{"slow", one(20)}, {"fast", one(1)}}, {.engine = "measured"});
  all.adopt(small_problem, ConvPass::forward, "", "elsewhere:only");
  EXPECT_EQ(chosen(all), "fast");
  EXPECT_TRUE(all.measures("") && all.measures("measured:slow") && !all.measures("slow"));
}

TEST_F(ConvTunerTest, ChecksErrorOfCachedPlan) {
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

TEST_F(ConvTunerTest, DoesNotCacheUnreproducibleChoice) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const FakeEngineTraits disturbed{.plans = {{.milliseconds = 1, .more = in_second_turn}}};
  auto all = tuner({{"fast", disturbed}, {"slow", one(1.2)}}, policy);
  chosen(all);
  const std::string reason = all.find(small_problem, ConvPass::forward)->reason;
  EXPECT_NE(reason.find("not kept: its repeats disagree"), std::string::npos) << reason;
  EXPECT_FALSE(std::filesystem::exists(policy.cache_file));
}

TEST_F(ConvTunerTest, ReplacesPartlyCachedPasses) {
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines{{"steady", one(20)}, {"sharing", sharing(30)}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto all = tuner(engines, policy);
  EXPECT_EQ(chosen(all), "sharing");
  // In the file, one of the passes that were measured together is missing and the first has another plan.
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

TEST_F(ConvTunerTest, StopsWhileMeasuring) {
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

TEST_F(ConvTunerTest, CacheOutlivesTuner) {
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

TEST_F(ConvTunerTest, MeasuresAgainIfEnginesChanged) {
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

// Everything on which a stored choice depends, as listed in docs/architecture.md, except the batch.
TEST_F(ConvTunerTest, MeasuresAgainIfAConditionChanged) {
  struct Conditions {
    std::vector<std::pair<std::string, FakeEngineTraits>> engines{{"fast", one(1)}, {"slow", one(20)}};
    ConvPolicy policy{.engine = "measured", .build = "1.0"};
    ConvProblem problem = small_problem;
    int threads = 1;
  };
  const std::string cache = cache_path();
  const auto reason = [&](Conditions with) {
    const int threads = omp_get_max_threads();
    omp_set_num_threads(with.threads);
    with.policy.cache_file = cache;
    auto from = tuner(with.engines, with.policy);
    const std::string text = from.choose(ctx_, with.problem, ConvPass::forward).reason;
    omp_set_num_threads(threads);
    return text;
  };
  EXPECT_TRUE(reason({}).starts_with("measured"));
  EXPECT_EQ(reason({}), "cached");
  const std::vector<std::pair<const char*, std::function<void(Conditions&)>>> changes{
      {"build", [](Conditions& to) { to.policy.build = "1.1"; }},
      {"workspace limit", [](Conditions& to) { to.policy.workspace_limit = 5000; }},
      {"frequency budget", [](Conditions& to) { to.policy.frequency_budget = 5000; }},
      {"deterministic", [](Conditions& to) { to.policy.deterministic = true; }},
      {"engine option", [](Conditions& to) { to.policy.engine = "measured:fast"; }},
      {"engines of the build", [](Conditions& to) { to.engines.emplace_back("new", one(5)); }},
      {"a library's version", [](Conditions& to) { to.engines[0].second.library = "cuDNN 91900"; }},
      {"a missing library", [](Conditions& to) { to.engines[1].second.missing = true; }},
      {"threads", [](Conditions& to) { to.threads = 2; }},
      {"precision", [](Conditions& to) { to.problem.precision = Precision::tf32; }},
      {"bias", [](Conditions& to) { to.problem.bias = true; }},
      {"ReLU", [](Conditions& to) { to.problem.relu = true; }},
      {"no gradient of the input", [](Conditions& to) { to.problem.input_gradient = false; }},
      {"no gradient of the weights", [](Conditions& to) { to.problem.weight_gradient = false; }},
      {"kernel", [](Conditions& to) { to.problem.kernel_w = 2; }},
      {"stride", [](Conditions& to) { to.problem.stride_h = 2; }},
      {"pad", [](Conditions& to) { to.problem.pad_w = 1; }},
      {"dilation", [](Conditions& to) { to.problem.dilation = 2; }},
      {"groups", [](Conditions& to) { to.problem.groups = 2; }},
      {"size", [](Conditions& to) { to.problem.height = 9; }}};
  for (const auto& [name, change] : changes) {
    Conditions with;
    change(with);
    EXPECT_TRUE(reason(with).starts_with("measured")) << name;
    EXPECT_EQ(reason(with), "cached") << name;
  }
  EXPECT_EQ(reason({}), "cached") << "nothing replaced it";
}

TEST_F(ConvTunerTest, MeasuresWith16BitOperands) {
  // No limit excludes casts.
  const ConvPolicy policy{
      .engine = "measured", .precision = Precision::bf16, .workspace_limit = 0, .cache_file = cache_path()};
  ConvProblem problem = small_problem;
  problem.precision = Precision::bf16;
  const std::vector<std::pair<std::string, FakeEngineTraits>> engines{{"slow", one(3)}, {"fast", one(1)}};
  auto first = tuner(engines, policy), second = tuner(engines, policy),
       third = tuner(engines, {.engine = "measured", .precision = Precision::bf16, .workspace_limit = 0});
  const ConvTuner::Choice& choice = first.choose(ctx_, problem, ConvPass::forward);
  EXPECT_EQ(choice.plan->facts().engine, "fast");
  EXPECT_GT(choice.plan->facts().scratch_bytes, 0u) << "of casts";
  ASSERT_EQ(choice.candidates.size(), 2u);
  EXPECT_NEAR(choice.candidates[0].error, 1.7e-3, 2e-4) << "of rounding the result";
  EXPECT_TRUE(second.recall({}, problem, ConvPass::forward));
  EXPECT_EQ(second.choose(ctx_, problem, ConvPass::forward).reason, "cached");
  third.adopt(problem, ConvPass::forward, "", "slow");
  EXPECT_EQ(third.choose(ctx_, problem, ConvPass::forward).plan->facts().engine, "slow");
  EXPECT_EQ(third.choose(ctx_, problem, ConvPass::backward_input, "rule").plan->facts().engine, "slow");
  EXPECT_EQ(third.choose(ctx_, problem, ConvPass::backward_weight, "fast").reason, "named");
}

// With more memory another plan may win.
TEST_F(ConvTunerTest, DoesNotCacheWithoutMemory) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto all = tuner({{"large", {.plans = {{.out_of_memory = true}}}}, {"small", one(1)}}, policy);
  const std::string reason = all.choose(ctx_, small_problem, ConvPass::forward).reason;
  EXPECT_NE(reason.find("not kept: not enough memory for some plans"), std::string::npos) << reason;
  EXPECT_FALSE(std::filesystem::exists(policy.cache_file));
}

TEST_F(ConvTunerTest, MeasuresAgainForAnotherBuild) {
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

TEST_F(ConvTunerTest, ContinuesIfCacheCannotBeWritten) {
  auto chooser = tuner({{"only", one(1)}}, {.engine = "measured", .cache_file = "/proc/none/conv.txt"});
  EXPECT_EQ(chosen(chooser), "only");
  EXPECT_NE(chooser.cache().write_failure(), "");
}

TEST_F(ConvTunerTest, WarnsIfFileIsNotCache) {
  const std::string letter = temp_path("letter");
  std::ofstream(letter) << "another file\n";
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  auto by_rule = tuner({{"only", one(1)}}, {.engine = "rule", .cache_file = letter, .warn = warn});
  EXPECT_EQ(chosen(by_rule), "only");
  EXPECT_TRUE(warnings.empty()) << "only measuring reads it";
  auto chooser = tuner({{"only", one(1)}}, {.engine = "measured", .cache_file = letter, .warn = warn});
  EXPECT_EQ(chosen(chooser), "only");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("not a choice cache of Twiddle"), std::string::npos) << warnings[0];
  std::string left;
  std::getline(std::ifstream(letter), left);
  EXPECT_EQ(left, "another file");
  std::filesystem::remove(letter);
}

TEST_F(ConvTunerTest, TrainingIgnoresChoicesOfInference) {
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

TEST_F(ConvTunerTest, MeasuresRealEngines) {
  ConvTuner all(make_conv_engines({}), {.engine = "measured"});
  for (const ConvPass pass : every_pass) {
    EXPECT_NE(all.choose(ctx_, small_problem, pass).plan->facts().engine, "direct");
    EXPECT_TRUE(all.find(small_problem, pass)->reason.starts_with("measured")) << all.find(small_problem, pass)->reason;
  }
}

}  // namespace twiddle
