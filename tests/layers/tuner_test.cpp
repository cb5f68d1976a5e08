// Plans that are chosen by heuristic or by name, and what holds for every choice.
#include "layers/conv/tuner/tuner.h"

#include "layers/conv/engines/engines.h"
#include "tests/layers/tuner_fixture.h"

namespace twiddle {

TEST_F(ConvTunerTest, RuleSelectsFirstSupportedEngine) {
  auto all = tuner({{"unable", unable()}, {"large", large(1001)}, {"good", large(1000)}, {"late", one(1)}},
                   {.workspace_limit = 1000});
  EXPECT_EQ(all.find(small_problem, ConvPass::forward), nullptr);
  EXPECT_EQ(all.expected(small_problem, ConvPass::forward)->facts().scratch_bytes, 1000u);
  EXPECT_EQ(runs_["good"], 0);
  EXPECT_EQ(chosen(all), "good");
  EXPECT_EQ(all.find(small_problem, ConvPass::forward)->reason,
            "rule, large needs 1001 B of workspace, more than the workspace_limit of 1000 B");
  EXPECT_EQ(chosen(all), "good");
  EXPECT_EQ(runs_["good"], 1) << "it shows its precision once";
}

TEST_F(ConvTunerTest, RuleSkipsSlowEngine) {
  auto all = tuner({{"dear", FakeEngineTraits{.pays = false}}, {"good", one(1)}}, {.engine = "rule"});
  EXPECT_EQ(chosen(all), "good");
  EXPECT_EQ(chosen(all, "dear"), "dear");
}

TEST_F(ConvTunerTest, CpuRuleUsesFftForLarge) {
  ConvTuner all(make_conv_engines({}), {.engine = "rule"});
  const auto taken = [&](int kernel, int plane, int channels, int groups) {
    const ConvProblem square{.batch = 2,
                             .channels = channels,
                             .height = plane,
                             .width = plane,
                             .filters = 16,
                             .kernel_h = kernel,
                             .kernel_w = kernel,
                             .groups = groups};
    return all.choose(ctx_, square, ConvPass::forward).plan->facts().engine;
  };
  EXPECT_EQ(taken(5, 12, 16, 1), "fft");
  EXPECT_NE(taken(5, 11, 16, 1), "fft") << "outputs of 7x7";
  EXPECT_NE(taken(5, 12, 1, 1), "fft") << "25 multiply-adds";
  EXPECT_EQ(taken(5, 12, 16, 8), "fft") << "50 in a group of two channels";
  EXPECT_EQ(taken(5, 12, 16, 16), "fft");
  EXPECT_EQ(taken(5, 40, 16, 16), "depthwise");
  EXPECT_EQ(taken(7, 14, 16, 16), "fft") << "49 multiply-adds";
  for (const int groups : {1, 2, 4, 8, 16}) EXPECT_EQ(taken(31, 40, 16, groups), "fft") << groups;
  if (!make_onednn_engine()) return;
  EXPECT_EQ(taken(3, 12, 16, 1), "onednn");
  EXPECT_EQ(taken(3, 12, 16, 16), "onednn");
  EXPECT_EQ(taken(1, 8, 16, 1), "gemm");
  EXPECT_EQ(taken(1, 7, 16, 1), "onednn");
}

TEST_F(ConvTunerTest, RuleReportsIfNothingFits) {
  auto all = tuner({{"large", large(2048)}}, {.workspace_limit = 1024});
  EXPECT_EQ(complaint(all, ""),
            "no convolution engine can do forward of 2x4x8x8 * 4x4x3x3, large needs 2 KiB of workspace, more than the "
            "workspace_limit of 1 KiB");
}

TEST_F(ConvTunerTest, NamedEngineIsUsedOrFails) {
  auto all = tuner({{"fine", one(1)}, {"unable", unable()}, {"large", large(2048)}}, {.workspace_limit = 1024});
  EXPECT_EQ(chosen(all, "fine"), "fine");
  EXPECT_EQ(all.find(small_problem, ConvPass::forward, "fine")->reason, "named");
  EXPECT_EQ(complaint(all, "unable"),
            "convolution engine 'unable' cannot do forward of 2x4x8x8 * 4x4x3x3; engines that can: fine");
  EXPECT_EQ(
      complaint(all, "large"),
      "convolution engine 'large' needs 2 KiB of workspace, more than the workspace_limit of 1 KiB, for forward of "
      "2x4x8x8 * 4x4x3x3; engines that can: fine");
  EXPECT_NE(complaint(all, "fune").find("did you mean 'fine'?"), std::string::npos) << complaint(all, "fune");
}

TEST_F(ConvTunerTest, RefusalReportsReasonOfEngine) {
  auto all = tuner({{"fine", one(1)}, {"unable", unable("it is not deterministic")}}, {});
  EXPECT_EQ(complaint(all, "unable"),
            "convolution engine 'unable' cannot do forward of 2x4x8x8 * 4x4x3x3: it is not deterministic; engines that "
            "can: fine");
}

TEST_F(ConvTunerTest, WarnsOnceIfLibraryIsMissing) {
  for (const std::string how : {"rule", "measured"}) {
    std::vector<std::string> warnings;
    auto all = tuner({{"missing", missing}, {"polyphase(missing)", missing}, {"fine", one(1)}, {"unable", unable()}},
                     {.engine = how, .warn = [&](const std::string& text) { warnings.push_back(text); }});
    for (const ConvPass pass : every_pass) {
      EXPECT_EQ(all.choose(ctx_, small_problem, pass).plan->facts().engine, "fine");
      EXPECT_NE(all.find(small_problem, pass)->reason.find(", missing failed: libmissing cannot be loaded"),
                std::string::npos);
    }
    EXPECT_EQ(warnings, (std::vector<std::string>{"convolution engine 'missing' is left out, others are used: "
                                                  "libmissing cannot be loaded\n  Install it"}));
    EXPECT_NE(complaint(all, "unable").find("engines that can: fine"), std::string::npos);
    try {
      chosen(all, "missing");
      ADD_FAILURE() << "the plan was found or failed otherwise";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_STREQ(error.what(), "libmissing cannot be loaded\n  Install it");
    }
  }
}

TEST_F(ConvTunerTest, ThrowsDeviceErrorWithoutEngines) {
  auto none = tuner({{"missing", missing}}, {.engine = "rule"});
  try {
    chosen(none);
    ADD_FAILURE() << "nothing can be chosen";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("missing failed: libmissing cannot be loaded"), std::string::npos);
  }
}

TEST_F(ConvTunerTest, RefusesUnknownNames) {
  const auto all = tuner({{"onednn", one(1)}, {"gemm", one(1)}}, {});
  for (const char* good : {"onednn", "gemm", "rule", "measured"}) EXPECT_NO_THROW(all.check_name(good));
  EXPECT_THROW(all.check_name("gem"), Error);
  EXPECT_THROW(all.check_name(""), Error);
  EXPECT_NO_THROW(all.check_name("gemm:some plan"));
  for (const char* bad : {"rule:gemm", "measured:rule", "measured:gemm:plan"})
    EXPECT_THROW(all.check_name(bad), Error) << bad;
  EXPECT_EQ(all.names(), (std::vector<std::string>{"onednn", "gemm"}));
}

// Also if chosen by heuristic or by name.
TEST_F(ConvTunerTest, RejectsPlansExceedingErrorLimit) {
  const FakeEngineTraits two{
      .plans = {{.name = "rough", .milliseconds = 1, .error = 1e-4f}, {.name = "exact", .milliseconds = 5}}};
  for (const std::string how : {"rule", "both", "measured"}) {
    auto all = tuner({{"both", two}}, {.engine = how});
    EXPECT_EQ(full_name(*all.choose(ctx_, small_problem, ConvPass::forward).plan), "both:exact") << how;
    ConvProblem loose = small_problem;
    loose.precision = Precision::tf32;
    EXPECT_EQ(full_name(*all.choose(ctx_, loose, ConvPass::forward).plan), "both:rough") << how;
  }
  auto named = tuner({{"both", two}}, {});
  EXPECT_EQ(full_name(*named.choose(ctx_, small_problem, ConvPass::forward, "both:exact").plan), "both:exact");
  EXPECT_NE(complaint(named, "both:rough").find("misses fp32 with an error of 1.0e-04"), std::string::npos);
  EXPECT_EQ(complaint(named, "both:rogh"),
            "'rogh' is not a plan of the convolution engine 'both' for forward of 2x4x8x8 * 4x4x3x3; its plans: rough, "
            "exact");
}

TEST_F(ConvTunerTest, SkipsFailingPlan) {
  const FakeEngineTraits two{.plans = {{.name = "broken", .throws = true}, {.name = "whole"}}};
  for (const std::string how : {"rule", "both", "measured"}) {
    auto all = tuner({{"both", two}}, {.engine = how});
    EXPECT_EQ(full_name(*all.choose(ctx_, small_problem, ConvPass::forward).plan), "both:whole") << how;
  }
}

TEST_F(ConvTunerTest, UsesOnlyDeterministicPlansIfSet) {
  const FakeEngineTraits atomic{.plans = {{.name = "atomic", .deterministic = false}, {.name = "ordered"}}};
  auto all = tuner({{"both", atomic}}, {.deterministic = true});
  EXPECT_EQ(full_name(*all.choose(ctx_, small_problem, ConvPass::forward).plan), "both:ordered");
  EXPECT_NE(complaint(all, "both:atomic").find("`deterministic: true` is set"), std::string::npos);
}

TEST_F(ConvTunerTest, FallsBackToSumsInDouble) {
  std::vector<std::unique_ptr<ConvEngine>> engines;
  engines.push_back(make_fake_engine("wrong", {.plans = {{.error = 1e-4f}}}, clock_));
  engines.push_back(make_direct_engine());
  for (const std::string how : {"measured", "rule"}) {
    ConvTuner all(std::move(engines), {.engine = how});
    EXPECT_EQ(chosen(all), "direct");
    engines.clear();
    engines.push_back(make_fake_engine("wrong", {.plans = {{.error = 1e-4f}}}, clock_));
    engines.push_back(make_direct_engine());
  }
}

}  // namespace twiddle
