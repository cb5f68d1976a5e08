#include "layers/conv/selector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "framework/error.h"
#include "framework/interrupted.h"
#include "layers/conv/engines.h"
#include "layers/conv/onednn_engine.h"

namespace twiddle {

namespace {

const ConvProblem small_problem{
    .batch = 2, .channels = 4, .height = 8, .width = 8, .filters = 4, .kernel_h = 3, .kernel_w = 3};

// Counts its runs. It computes by the reference on this thread alone, slower by `delay` and off by `error`.
class FakeEngine : public ConvEngine {
 public:
  struct Traits {
    int delay_ms = 0;
    float error = 0;
    std::size_t workspace = 0;
    bool able = true, pays = true;
    bool shares = false;  // no delay where it has met one of the operands before
    int backward_input_ms = 0;
    bool missing = false;    // its library: whoever asks it for anything hears of it
    int disturbed_runs = 0;  // the first so many take 20 ms more
    int* tuned = nullptr;    // counts
    std::string refusal = {};
  };
  FakeEngine(std::string name, Traits traits, int* runs) : name_(std::move(name)), traits_(traits), runs_(runs) {}
  std::string_view name() const override { return name_; }
  bool supports(const ConvProblem&, ConvPass) const override {
    library();
    return traits_.able;
  }
  std::string library() const override {
    if (traits_.missing) throw Error(ErrorKind::device, "libmissing cannot be loaded\n  Install it");
    return {};
  }
  std::string refusal(const ConvProblem&, ConvPass) const override { return traits_.refusal; }
  std::size_t workspace_bytes(const ConvProblem&, ConvPass) const override { return traits_.workspace; }
  bool pays(const ConvProblem&) const override { return traits_.pays; }
  bool shares_work_between_passes() const override { return traits_.shares; }
  void tune(Context&, const ConvProblem&) override {
    if (traits_.tuned) ++*traits_.tuned;
  }
  void run(Context&, const ConvProblem& p, ConvPass pass, ConvOperands& operands) override {
    ++*runs_;
    Tensor& result = pass == ConvPass::forward          ? operands.y
                     : pass == ConvPass::backward_input ? operands.x
                                                        : operands.w;
    bool known = false;
    for (const Tensor* operand : {&operands.x, &operands.w, &operands.y})
      if (operand != &result) known = !met_.insert(operand->version()).second || known;
    float* values = result.write();
    for (std::int64_t i = 0; i < result.size(); ++i)
      values[i] = static_cast<float>(
                      conv_reference(p, pass, operands.x.read(), operands.w.read(), operands.y.read(), nullptr, i)) *
                  (1 + traits_.error);
    int delay_ms = !traits_.shares || !known ? traits_.delay_ms : 0;
    if (pass == ConvPass::backward_input) delay_ms += traits_.backward_input_ms;
    if (traits_.disturbed_runs-- > 0) delay_ms += 20;
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
  }

 private:
  std::string name_;
  Traits traits_;
  int* runs_;
  std::set<Version> met_;
};

class ConvSelectorTest : public testing::Test {
 protected:
  ConvSelector selector(const std::vector<std::pair<std::string, FakeEngine::Traits>>& engines, ConvPolicy policy) {
    std::vector<std::unique_ptr<ConvEngine>> made;
    for (const auto& [name, traits] : engines) made.push_back(std::make_unique<FakeEngine>(name, traits, &runs_[name]));
    return ConvSelector(std::move(made), std::move(policy));
  }
  std::string chosen(ConvSelector& from, const std::string& engine = {}) {
    return std::string(from.choose(ctx_, small_problem, ConvPass::forward, engine).name());
  }
  std::string complaint(ConvSelector& from, const std::string& engine) {
    try {
      chosen(from, engine);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return "";
  }
  std::string cache_path() {
    const std::string path = testing::TempDir() + "twiddle_choices_" + std::to_string(getpid()) + "/conv.txt";
    std::filesystem::remove_all(std::filesystem::path(path).parent_path());
    return path;
  }
  Context ctx_;
  std::map<std::string, int> runs_;
};

}  // namespace

TEST_F(ConvSelectorTest, TheRuleTakesTheFirstThatCan) {
  auto all = selector(
      {{"unable", {.able = false}}, {"large", {.workspace = 1001}}, {"good", {.workspace = 1000}}, {"late", {}}},
      {.workspace_limit = 1000});
  EXPECT_EQ(all.find(small_problem, ConvPass::forward), nullptr);
  EXPECT_EQ(all.workspace_bytes(small_problem, ConvPass::forward), 1000u);
  EXPECT_EQ(chosen(all), "good");
  EXPECT_EQ(all.find(small_problem, ConvPass::forward)->reason, "rule");
  EXPECT_EQ(runs_["good"], 0);
}

TEST_F(ConvSelectorTest, TheRuleLeavesWhatDoesNotPay) {
  auto all = selector({{"dear", {.pays = false}}, {"good", {}}}, {.engine = "rule"});
  EXPECT_EQ(chosen(all), "good");
  EXPECT_EQ(chosen(all, "dear"), "dear");
}

TEST_F(ConvSelectorTest, OnACpuTheRuleTakesSpectraForLargeKernelsAlone) {
  ConvSelector all(make_conv_engines({}), {.engine = "rule"});
  const auto taken = [&](int kernel, int plane, int channels, int groups) {
    const ConvProblem square{.batch = 2,
                             .channels = channels,
                             .height = plane,
                             .width = plane,
                             .filters = 16,
                             .kernel_h = kernel,
                             .kernel_w = kernel,
                             .groups = groups};
    return all.choose(ctx_, square, ConvPass::forward).name();
  };
  EXPECT_EQ(taken(5, 12, 16, 1), "fft");
  EXPECT_NE(taken(5, 11, 16, 1), "fft") << "outputs of 7x7";
  EXPECT_NE(taken(5, 12, 1, 1), "fft") << "25 multiply-adds";
  EXPECT_EQ(taken(5, 12, 16, 8), "fft") << "50 in a group of two channels";
  EXPECT_NE(taken(5, 12, 16, 16), "fft");
  EXPECT_NE(taken(7, 14, 16, 16), "fft") << "49";
  for (const int groups : {1, 2, 4, 8, 16}) EXPECT_EQ(taken(31, 40, 16, groups), "fft") << groups;
  if (!make_onednn_engine()) return;
  EXPECT_EQ(taken(3, 12, 16, 1), "onednn");
  EXPECT_EQ(taken(1, 8, 16, 1), "gemm");
  EXPECT_EQ(taken(1, 7, 16, 1), "onednn");
}

TEST_F(ConvSelectorTest, TheRuleSaysWhereNothingFits) {
  auto all = selector({{"large", {.workspace = 2048}}}, {.workspace_limit = 1024});
  EXPECT_EQ(complaint(all, ""),
            "no convolution engine can do forward of 2x4x8x8 * 4x4x3x3 within a workspace_limit of 1 KiB");
}

TEST_F(ConvSelectorTest, ANameIsTakenOrFailsLoudly) {
  auto all =
      selector({{"fine", {}}, {"unable", {.able = false}}, {"large", {.workspace = 2048}}}, {.workspace_limit = 1024});
  EXPECT_EQ(chosen(all, "fine"), "fine");
  EXPECT_EQ(all.find(small_problem, ConvPass::forward, "fine")->reason, "named");
  EXPECT_EQ(complaint(all, "unable"),
            "convolution engine 'unable' cannot do forward of 2x4x8x8 * 4x4x3x3; engines that can: fine");
  EXPECT_EQ(complaint(all, "large"),
            "convolution engine 'large' needs 2 KiB of workspace for forward of 2x4x8x8 * 4x4x3x3, more than the "
            "workspace_limit of 1 KiB; engines that can: fine");
  EXPECT_NE(complaint(all, "fune").find("did you mean 'fine'?"), std::string::npos) << complaint(all, "fune");
}

TEST_F(ConvSelectorTest, ARefusalTellsTheEnginesReason) {
  auto all = selector({{"fine", {}}, {"unable", {.able = false, .refusal = "it is not deterministic"}}}, {});
  EXPECT_EQ(complaint(all, "unable"),
            "convolution engine 'unable' cannot do forward of 2x4x8x8 * 4x4x3x3: it is not deterministic; engines that "
            "can: fine");
}

TEST_F(ConvSelectorTest, AnEngineWhoseLibraryIsMissingIsLeftOutWithOneWarning) {
  for (const std::string how : {"rule", "measured"}) {
    std::vector<std::string> warnings;
    auto all = selector({{"missing", {.missing = true}},
                         {"polyphase(missing)", {.missing = true}},
                         {"fine", {}},
                         {"unable", {.able = false}}},
                        {.engine = how, .warn = [&](const std::string& text) { warnings.push_back(text); }});
    for (const ConvPass pass : every_pass) {
      EXPECT_EQ(all.choose(ctx_, small_problem, pass).name(), "fine");
      EXPECT_NE(all.find(small_problem, pass)->reason.find(", missing failed: libmissing cannot be loaded"),
                std::string::npos);
    }
    EXPECT_EQ(warnings, (std::vector<std::string>{"convolution engine 'missing' is left out, others are used: "
                                                  "libmissing cannot be loaded\n  Install it"}));
    EXPECT_NE(complaint(all, "unable").find("engines that can: fine"), std::string::npos);
    try {
      chosen(all, "missing");
      ADD_FAILURE() << "a name is taken or fails";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_STREQ(error.what(), "libmissing cannot be loaded\n  Install it");
    }
  }
}

TEST_F(ConvSelectorTest, WhereNothingIsLeftTheDeviceIsToBlame) {
  auto none = selector({{"missing", {.missing = true}}}, {.engine = "rule"});
  try {
    chosen(none);
    ADD_FAILURE() << "nothing can be chosen";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("missing failed: libmissing cannot be loaded"), std::string::npos);
  }
}

TEST_F(ConvSelectorTest, NamesAreChecked) {
  const auto all = selector({{"onednn", {}}, {"gemm", {}}}, {});
  for (const char* good : {"onednn", "gemm", "rule", "measured"}) EXPECT_NO_THROW(all.check_name(good));
  EXPECT_THROW(all.check_name("gem"), Error);
  EXPECT_THROW(all.check_name(""), Error);
  EXPECT_EQ(all.names(), (std::vector<std::string>{"onednn", "gemm"}));
}

TEST_F(ConvSelectorTest, MeasuredTakesTheFastestOnceAndRemembers) {
  auto all = selector({{"slow", {.delay_ms = 20}}, {"fast", {}}}, {.engine = "measured"});
  EXPECT_EQ(chosen(all), "fast");
  const int runs = runs_["slow"];
  EXPECT_GT(runs, 1);
  EXPECT_EQ(chosen(all), "fast");
  EXPECT_EQ(runs_["slow"], runs);
  const auto* choice = all.find(small_problem, ConvPass::forward);
  EXPECT_TRUE(choice->reason.starts_with("measured ")) << choice->reason;
  EXPECT_NE(choice->reason.find(", next slow "), std::string::npos) << choice->reason;
  EXPECT_GT(choice->milliseconds, 0);
}

TEST_F(ConvSelectorTest, MeasuredDropsWhatMissesThePrecision) {
  auto all = selector({{"slow", {.delay_ms = 20}}, {"wrong", {.error = 1e-4f}}}, {.engine = "measured"});
  EXPECT_EQ(chosen(all), "slow");
  EXPECT_NE(all.find(small_problem, ConvPass::forward)->reason.find("wrong misses fp32"), std::string::npos);
  ConvProblem loose = small_problem;
  loose.precision = Precision::tf32;
  EXPECT_EQ(all.choose(ctx_, loose, ConvPass::forward).name(), "wrong");
}

TEST_F(ConvSelectorTest, OnlyMeasuredHasEnginesChooseTheirWayByTheClock) {
  int tuned = 0;
  for (const char* engine : {"rule", "only"}) {
    auto all = selector({{"only", {.tuned = &tuned}}}, {.engine = engine});
    EXPECT_EQ(chosen(all), "only");
    EXPECT_EQ(tuned, 0) << engine;
    EXPECT_EQ(chosen(all, "measured"), "only");  // for one layer
    EXPECT_GT(std::exchange(tuned, 0), 0) << engine;
  }
  auto measured = selector({{"only", {.tuned = &tuned}}}, {.engine = "measured"});
  EXPECT_EQ(chosen(measured, "only"), "only");  // by name, for one layer
  EXPECT_EQ(tuned, 0);
}

TEST_F(ConvSelectorTest, AnEngineFromTheCacheIsTunedBeforeItRuns) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = selector({{"only", {}}}, policy);
  chosen(first);
  int tuned = 0;
  auto second = selector({{"only", {.tuned = &tuned}}}, policy),
       third = selector({{"only", {.tuned = &tuned}}}, policy);
  chosen(second), chosen(second);
  EXPECT_EQ(tuned, 1);
  EXPECT_TRUE(third.recall({}, small_problem, ConvPass::forward));  // for a plan: nothing is measured
  EXPECT_EQ(tuned, 1);
  chosen(third), chosen(third);
  EXPECT_EQ(tuned, 2);
}

TEST_F(ConvSelectorTest, WhatIsMeasuredOtherwiseTheSecondTimeIsNotKept) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto disturbed = selector({{"fast", {.disturbed_runs = 5}}, {"slow", {.delay_ms = 8}}}, policy);
  chosen(disturbed);
  const std::string reason = disturbed.find(small_problem, ConvPass::forward)->reason;
  EXPECT_NE(reason.find("not kept: its repeats disagree"), std::string::npos) << reason;
  EXPECT_EQ(chosen(disturbed), "fast") << "both turns count";
  EXPECT_FALSE(std::filesystem::exists(policy.cache_file));
}

TEST_F(ConvSelectorTest, OneEngineForAllPassesReplacesWhatTheCacheKnewOfSome) {
  const std::vector<std::pair<std::string, FakeEngine::Traits>> engines = {
      {"steady", {.delay_ms = 20}}, {"sharing", {.delay_ms = 30, .shares = true}}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto all = selector(engines, policy);
  EXPECT_EQ(all.choose(ctx_, small_problem, ConvPass::forward).name(), "sharing");
  // Of what was measured together the file loses one pass and has another for the first.
  std::ifstream in(policy.cache_file);
  std::string text, line;
  while (std::getline(in, line)) {
    if (line.find("\tbackward_weight\t") != std::string::npos) continue;
    if (line.starts_with("sharing") && line.find("\tforward\t") != std::string::npos) line.replace(0, 7, "steady");
    text += line + "\n";
  }
  std::ofstream(policy.cache_file) << text;
  auto again = selector(engines, policy);
  EXPECT_EQ(again.choose(ctx_, small_problem, ConvPass::forward).name(), "steady");
  EXPECT_EQ(again.choose(ctx_, small_problem, ConvPass::backward_weight).name(), "sharing");
  EXPECT_EQ(again.choose(ctx_, small_problem, ConvPass::forward).name(), "sharing") << "as the file says now";
}

TEST_F(ConvSelectorTest, MeasuringTellsAndStops) {
  std::vector<std::string> told;
  bool stop = false;
  const auto measuring =
      std::make_shared<Measuring>([&](const std::string& text) { told.push_back(text); }, [&] { return stop; });
  auto all = selector({{"one", {.delay_ms = 150}}, {"two", {.delay_ms = 450}}, {"three", {.delay_ms = 1}}},
                      {.engine = "measured", .measuring = measuring});
  measuring->expect(3);
  EXPECT_EQ(chosen(all), "three");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("measuring convolution engines: "), std::string::npos) << told[0];
  EXPECT_NE(told[0].find(" s to go, at forward of 2x4x8x8"), std::string::npos) << told[0];
  stop = true;
  EXPECT_EQ(chosen(all), "three");  // known
  EXPECT_THROW(all.choose(ctx_, small_problem, ConvPass::backward_weight), Interrupted);
  EXPECT_EQ(all.find(small_problem, ConvPass::backward_weight), nullptr);
}

TEST_F(ConvSelectorTest, MeasuredRespectsTheWorkspaceLimit) {
  auto all = selector({{"slow", {.delay_ms = 20}}, {"large", {.workspace = 2000}}},
                      {.engine = "measured", .workspace_limit = 1000});
  EXPECT_EQ(chosen(all), "slow");
  EXPECT_EQ(runs_["large"], 0);
}

TEST_F(ConvSelectorTest, TheCacheOutlivesTheSelector) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = selector({{"slow", {.delay_ms = 20}}, {"fast", {}}}, policy);
  EXPECT_EQ(chosen(first), "fast");
  const int runs = runs_["fast"];
  auto second = selector({{"slow", {.delay_ms = 20}}, {"fast", {}}}, policy);
  EXPECT_EQ(chosen(second), "fast");
  EXPECT_EQ(second.find(small_problem, ConvPass::forward)->reason, "cached");
  EXPECT_EQ(runs_["fast"], runs);

  auto without = selector({{"slow", {}}, {"fast", {.able = false}}}, policy);  // what is cached cannot be used here
  EXPECT_EQ(chosen(without), "slow");

  ConvPolicy again = policy;
  again.retune = true;
  auto third = selector({{"slow", {.delay_ms = 20}}, {"fast", {}}}, again);
  EXPECT_EQ(chosen(third), "fast");
  EXPECT_GT(runs_["fast"], runs);
}

TEST_F(ConvSelectorTest, RecallsWithoutMeasuring) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const std::vector<std::pair<std::string, FakeEngine::Traits>> engines = {{"slow", {.delay_ms = 20}}, {"fast", {}}};
  auto first = selector(engines, policy);
  EXPECT_FALSE(first.recall({}, small_problem, ConvPass::forward));
  EXPECT_EQ(first.find(small_problem, ConvPass::forward), nullptr);
  EXPECT_TRUE(first.recall({}, small_problem, ConvPass::forward, "rule"));  // nothing to be measured
  EXPECT_EQ(chosen(first), "fast");
  const int runs = runs_["fast"];
  auto second = selector(engines, policy);
  EXPECT_TRUE(second.recall({}, small_problem, ConvPass::forward));
  EXPECT_EQ(second.find(small_problem, ConvPass::forward)->engine->name(), "fast");
  EXPECT_EQ(runs_["fast"], runs);
}

TEST_F(ConvSelectorTest, WhatWasMeasuredAmongOthersIsMeasuredAnew) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = selector({{"slow", {.delay_ms = 20}}}, policy);
  EXPECT_EQ(chosen(first), "slow");
  auto second = selector({{"slow", {.delay_ms = 20}}, {"new", {}}}, policy);
  EXPECT_EQ(chosen(second), "new");
  ConvPolicy other_limit = policy;
  other_limit.workspace_limit = 5000;
  auto third = selector({{"slow", {.delay_ms = 20}}, {"new", {}}}, other_limit);
  chosen(third);
  EXPECT_TRUE(third.find(small_problem, ConvPass::forward)->reason.starts_with("measured"));
}

TEST_F(ConvSelectorTest, WhatAnotherBuildMeasuredIsMeasuredAnewAndDamageIsNoError) {
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  auto first = selector({{"only", {}}}, policy);
  EXPECT_EQ(chosen(first), "only");
  std::ofstream(policy.cache_file, std::ios::app) << "nonsense";
  ConvPolicy rebuilt = policy;
  rebuilt.build = "another commit";
  auto second = selector({{"only", {}}}, rebuilt);
  EXPECT_EQ(chosen(second), "only");
  EXPECT_TRUE(second.find(small_problem, ConvPass::forward)->reason.starts_with("measured"));
}

TEST_F(ConvSelectorTest, ACacheThatCannotBeWrittenIsNoError) {
  auto selected = selector({{"only", {}}}, {.engine = "measured", .cache_file = "/proc/none/conv.txt"});
  EXPECT_EQ(chosen(selected), "only");
  EXPECT_NE(selected.cache().write_failure(), "");
}

TEST_F(ConvSelectorTest, AFileThatIsNoCacheIsAnErrorAndStays) {
  const std::string letter = testing::TempDir() + "twiddle_letter_" + std::to_string(getpid());
  std::ofstream(letter) << "somebody's letter\n";
  auto selected = selector({{"only", {}}}, {.engine = "measured", .cache_file = letter});
  EXPECT_NE(complaint(selected, "").find("no cache of Twiddle's"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(letter) && !std::filesystem::exists(letter + ".old"));
  auto by_rule = selector({{"only", {}}}, {.engine = "rule", .cache_file = letter});
  EXPECT_EQ(chosen(by_rule), "only") << "who does not measure does not mind";
  std::filesystem::remove(letter);
}

TEST_F(ConvSelectorTest, AnEngineThatSharesWorkMayWinTheThreePassesTogether) {
  const std::vector<std::pair<std::string, FakeEngine::Traits>> engines = {
      {"steady", {.delay_ms = 8}}, {"sharing", {.delay_ms = 12, .shares = true}}};
  auto training = selector(engines, {.engine = "measured"});
  for (const ConvPass pass : {ConvPass::backward_input, ConvPass::forward, ConvPass::backward_weight}) {
    EXPECT_EQ(training.choose(ctx_, small_problem, pass).name(), "sharing");
    EXPECT_NE(training.find(small_problem, pass)->reason.find("all three"), std::string::npos);
  }
  const EvaluationMode evaluation(ctx_);  // where forward is all there is
  auto evaluating = selector(engines, {.engine = "measured"});
  EXPECT_EQ(chosen(evaluating), "steady");
}

TEST_F(ConvSelectorTest, AFirstLayersEngineWinsByThePassesThatItsTrainingHas) {
  auto all =
      selector({{"steady", {.delay_ms = 20}}, {"sharing", {.delay_ms = 25, .shares = true, .backward_input_ms = 60}}},
               {.engine = "measured"});
  EXPECT_EQ(chosen(all), "steady");
  ConvProblem first = small_problem;
  first.input_gradient = false;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_weight}) {
    EXPECT_EQ(all.choose(ctx_, first, pass).name(), "sharing");
    EXPECT_NE(all.find(first, pass)->reason.find("both"), std::string::npos);
  }
  EXPECT_EQ(all.find(first, ConvPass::backward_input), nullptr);
}

TEST_F(ConvSelectorTest, TrainingTakesNoChoiceThatWasMadeForForwardAlone) {
  const std::vector<std::pair<std::string, FakeEngine::Traits>> engines = {
      {"steady", {.delay_ms = 8}}, {"sharing", {.delay_ms = 12, .shares = true}}};
  const ConvPolicy policy{.engine = "measured", .cache_file = cache_path()};
  const auto evaluated = [&](ConvSelector& by) {
    const EvaluationMode evaluation(ctx_);
    return chosen(by);
  };
  auto first = selector(engines, policy), second = selector(engines, policy), third = selector(engines, policy);
  EXPECT_EQ(evaluated(first), "steady");
  EXPECT_EQ(chosen(first), "sharing");
  EXPECT_EQ(evaluated(first), "sharing");  // there already
  std::filesystem::remove(policy.cache_file);

  auto evaluation_alone = selector(engines, policy);
  EXPECT_EQ(evaluated(evaluation_alone), "steady");
  EXPECT_EQ(evaluated(second), "steady");
  EXPECT_EQ(second.find(small_problem, ConvPass::forward)->reason, "cached");
  EXPECT_FALSE(second.recall({}, small_problem, ConvPass::forward));
  EXPECT_EQ(chosen(second), "sharing");
  EXPECT_EQ(evaluated(third), "sharing");  // nor is it measured again
  EXPECT_EQ(third.find(small_problem, ConvPass::forward)->reason, "cached");
}

TEST_F(ConvSelectorTest, RealEnginesAreMeasuredToo) {
  ConvSelector all(make_conv_engines({}), {.engine = "measured"});
  for (const ConvPass pass : every_pass) {
    EXPECT_NE(all.choose(ctx_, small_problem, pass).name(), "direct");
    EXPECT_TRUE(all.find(small_problem, pass)->reason.starts_with("measured")) << all.find(small_problem, pass)->reason;
  }
}

}  // namespace twiddle
