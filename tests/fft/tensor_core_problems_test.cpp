// Every plan that multiplies in split or single fp16, against the reference on random problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "framework/random.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/on_gpu.h"
#include "tests/support/problem_seeds.h"

namespace twiddle {
namespace {

constexpr int sampled_elements = 3000;  // elements of a result that are compared with the reference

class TensorCoreProblems : public OnGpu, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (!IsSkipped()) engines_ = make_conv_engines(ctx->stream->device(), {.frequency_budget = std::size_t(1) << 28});
  }

  // Returns a random number from `least` to `most`.
  int between(int least, int most) { return least + static_cast<int>(random_.below(draw_++, most - least + 1)); }
  bool one_in(int n) { return between(1, n) == 1; }

  ConvProblem of_many_channels();
  ConvProblem of_a_first_layer();
  ConvProblem random_problem() { return one_in(6) ? of_a_first_layer() : of_many_channels(); }
  void hold_to_the_reference(const ConvProblem& problem, ConvPass pass);

  struct Seen {
    int runs = 0;
    double worst = 0;
  };
  std::map<std::string, Seen> seen_;  // by way to multiply

 private:
  std::vector<std::unique_ptr<ConvEngine>> engines_;
  RandomSequence random_{static_cast<std::uint64_t>(100 + GetParam())};
  std::int64_t draw_ = 0;
  int turn_ = 0;
};

// At least 32 of each: tensor cores reject smaller problems.
ConvProblem TensorCoreProblems::of_many_channels() {
  ConvProblem p;
  p.batch = between(32, 72), p.channels = between(32, 140), p.filters = between(32, 140);
  if (one_in(2)) p.channels &= ~31, p.filters &= ~31;  // which stored spectra need
  if (one_in(4)) {
    p.kernel_h = p.kernel_w = 1;
  } else if (one_in(2)) {
    p.kernel_h = p.kernel_w = 3;
    p.pad_h = between(0, 1), p.pad_w = between(0, 1);
  } else {
    p.kernel_h = between(1, 7), p.kernel_w = one_in(2) ? p.kernel_h : between(1, 7);
    p.pad_h = between(0, p.kernel_h / 2), p.pad_w = between(0, p.kernel_w / 2);
  }
  p.height = between(p.kernel_h, 24), p.width = between(p.kernel_w, 24);
  return p;
}

ConvProblem TensorCoreProblems::of_a_first_layer() {
  ConvProblem p;
  p.batch = between(1, 12), p.channels = between(1, 16), p.filters = between(1, 110);
  p.kernel_h = between(1, 11), p.kernel_w = one_in(2) ? p.kernel_h : between(1, 11);
  p.stride_h = between(1, 4), p.stride_w = one_in(2) ? p.stride_h : between(1, 4);
  p.pad_h = between(0, p.kernel_h / 2), p.pad_w = between(0, p.kernel_w / 2);
  p.height = between(p.kernel_h, 70), p.width = between(p.kernel_w, 70);
  return p;
}

// Returns "fbfft: pairs" for "fbfft:32x32, pairs", or "implicit_gemm: wgmma". Empty if the plan uses no tensor cores or
// a library's kernels.
std::string way_to_multiply(const ConvPlan& plan) {
  const std::string name = full_name(plan);
  const std::string last = name.substr(name.find_last_of(" :") + 1);
  const bool ours = last.ends_with("pairs") || last.ends_with("halves") || last.ends_with("mma") || last == "shifts";
  return ours ? plan.facts().engine + ": " + last : "";
}

// One plan per kind of product; over all problems, every grid is tested.
std::map<std::string, ConvPlans> plans_by_way(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  std::map<std::string, ConvPlans> found;
  for (const auto& plan : engine.plans(problem, pass))
    if (const std::string way = way_to_multiply(*plan); !way.empty()) found[way].push_back(plan);
  return found;
}

void TensorCoreProblems::hold_to_the_reference(const ConvProblem& problem, ConvPass pass) {
  ConvOperands operands = random_operands(stream(), problem, pass);
  const ConvCheck check(stream(), problem, pass, operands, sampled_elements);
  for (const auto& engine : engines_) {
    for (const auto& [way, plans] : plans_by_way(*engine, problem, pass)) {
      const auto& plan = plans[static_cast<std::size_t>(turn_++) % plans.size()];
      const Tensor result = poisoned(written(pass, operands).shape());
      ConvOperands own = operands;
      (pass == ConvPass::forward ? own.y : pass == ConvPass::backward_input ? own.x : own.w) = result;
      plan->run(*ctx, own);
      const double error = check.error(stream(), result);
      EXPECT_LE(error, promise(problem.precision))
          << to_string(problem) << ", " << to_string(pass) << ", " << full_name(*plan);
      Seen& seen = seen_[way + (problem.precision == Precision::fp32 ? ", fp32" : ", tf32")];
      ++seen.runs;
      seen.worst = std::isnan(error) ? error : std::max(seen.worst, error);
    }
  }
}

TEST_P(TensorCoreProblems, AgreeWithTheReference) {
  const int problems = problems_of_a_seed(3);
  for (int number = 0; number < problems; ++number) {
    ConvProblem problem = random_problem();
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      problem.precision = precision;
      for (const ConvPass pass : every_pass) hold_to_the_reference(problem, pass);
    }
  }
  EXPECT_FALSE(seen_.empty());
  for (const auto& [way, seen] : seen_)
    std::printf("%d problems, %s: %d runs, the worst error %.2e\n", problems, way.c_str(), seen.runs, seen.worst);
}

INSTANTIATE_TEST_SUITE_P(OfSeed, TensorCoreProblems, testing::Range(0, seeds));

}  // namespace
}  // namespace twiddle
