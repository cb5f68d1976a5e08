#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/tuner/tuner.h"
#include "tests/support/fake_engine.h"
#include "tests/support/temp_path.h"

namespace twiddle {

inline const ConvProblem small_problem{
    .batch = 2, .channels = 4, .height = 8, .width = 8, .filters = 4, .kernel_h = 3, .kernel_w = 3};

inline FakeEngineTraits one(double milliseconds) {
  return {.plans = {{.milliseconds = milliseconds}}};
}
inline FakeEngineTraits unable(const std::string& why = {}) {
  return {.plans = {}, .refusal = why};
}
inline FakeEngineTraits large(std::size_t scratch) {
  return {.plans = {{.milliseconds = 0.1, .scratch = scratch}}};
}
inline FakeEngineTraits sharing(double milliseconds) {
  return {.plans = {{.name = "8x8", .milliseconds = milliseconds, .shares = "8x8"}}};
}
inline const FakeEngineTraits missing{.missing = true};

// Tuners with fake engines; counts the runs of each engine by name.
class ConvTunerTest : public testing::Test {
 protected:
  ConvTunerTest() { ctx_.stream = std::make_unique<FakeTimeStream>(clock_); }
  ConvTuner tuner(const std::vector<std::pair<std::string, FakeEngineTraits>>& engines, ConvPolicy policy) {
    std::vector<std::unique_ptr<ConvEngine>> made;
    for (const auto& [name, traits] : engines) made.push_back(make_fake_engine(name, traits, clock_, &runs_[name]));
    return ConvTuner(std::move(made), std::move(policy));
  }
  std::string chosen(ConvTuner& from, const std::string& engine = {}) {
    return from.choose(ctx_, small_problem, ConvPass::forward, engine).plan->facts().engine;
  }
  std::string complaint(ConvTuner& from, const std::string& engine) {
    try {
      chosen(from, engine);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return "";
  }
  std::string cache_path() {
    const std::filesystem::path folder = temp_path("choices");
    std::filesystem::remove_all(folder);
    return (folder / "conv.txt").string();
  }
  Context ctx_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::map<std::string, int> runs_;
};

}  // namespace twiddle
