// Every plan of a device's spectral engines against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "fft/spectral_engine.h"
#include "framework/random.h"
#include "layers/conv/engines/engines.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// Edge cases: rectangles, primes, batch 1, kernels as large as the plane, wide pads, groups.
ConvProblem random_problem(const RandomSequence& random, std::int64_t number) {
  std::int64_t draws = number * 32;
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(draws++, most - least + 1));
  };
  ConvProblem p;
  p.batch = between(0, 3) == 0 ? 1 : between(1, 9);
  p.groups = between(0, 5) == 0 ? between(2, 3) : 1;
  p.channels = p.groups * between(1, between(0, 3) == 0 ? 40 : 9);
  p.filters = p.groups * between(1, between(0, 3) == 0 ? 40 : 9);
  const bool large = between(0, 5) == 0;
  p.kernel_h = between(1, large ? 15 : 7), p.kernel_w = between(1, large ? 15 : 7);
  p.pad_h = between(0, p.kernel_h), p.pad_w = between(0, p.kernel_w);
  const int longest = large ? 45 : 20;
  p.height = between(std::max(1, p.kernel_h - 2 * p.pad_h), longest);
  p.width = between(std::max(1, p.kernel_w - 2 * p.pad_w), longest);
  return p;
}

// The same in groups: half are depthwise, and some have one row.
ConvProblem random_grouped_problem(const RandomSequence& random, std::int64_t number) {
  ConvProblem p = random_problem(random, number);
  std::int64_t draws = number * 32;
  const RandomSequence others{21};
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(others.below(draws++, most - least + 1));
  };
  const bool depthwise = number % 2 == 0;
  p.groups = depthwise ? between(2, 40) : between(2, 12);
  p.channels = p.groups * (depthwise ? 1 : between(1, between(0, 3) == 0 ? 20 : 4));
  p.filters = p.groups * (depthwise ? 1 : between(1, between(0, 3) == 0 ? 20 : 4));
  if (number % 10 > 1) return p;
  p.height = p.kernel_h = 1, p.pad_h = 0;
  p.kernel_w = between(1, 80), p.pad_w = between(0, p.kernel_w / 2), p.width = between(p.kernel_w, 400);
  return p;
}

// The same, but only with kernels that the engine supports.
ConvProblem for_engine(const ConvEngine& engine, ConvProblem p) {
  if (engine.name() == "fbfft") p.kernel_w = std::min(p.kernel_w, 64);
  if (engine.name() != "winograd") return p;
  if (is_depthwise(p)) p.groups = 1;
  p.kernel_h = p.kernel_w = 3;
  p.pad_h = std::min(p.pad_h, 3), p.pad_w = std::min(p.pad_w, 3);
  p.height = std::max(p.height, 3 - 2 * p.pad_h), p.width = std::max(p.width, 3 - 2 * p.pad_w);
  return p;
}

// In results of a few elements the terms may nearly cancel, so that the same absolute error is a larger fraction of
// their norm: 2.25 times the limit for 12 elements, in 2,000 problems.
double allowance(const ConvProblem& problem, ConvPass pass) {
  const Shape shape = pass == ConvPass::forward          ? problem.output_shape()
                      : pass == ConvPass::backward_input ? problem.input_shape()
                                                         : problem.weight_shape();
  return count_of(shape) < 200 ? 3 : 1;
}

// Returns TWIDDLE_RANDOM_PROBLEMS, or a number that runs quickly.
int problems_asked_for() {
  const char* const text = std::getenv("TWIDDLE_RANDOM_PROBLEMS");
  return text != nullptr ? std::atoi(text) : 40;
}

// F(2x2) amplifies the error of a product only slightly; its limit is tighter than the precision's.
bool by_small_tiles(const ConvPlan& plan) {
  return plan.facts().name.find("F(2x2)") != std::string::npos;
}
double promise_of(const ConvPlan& plan) {
  return by_small_tiles(plan) ? 5e-7 : promise(Precision::fp32);
}

using RandomProblem = ConvProblem (*)(const RandomSequence& random, std::int64_t number);

void expect_the_reference(const Device& device, RandomProblem random_problem_of, int problems) {
  Context ctx(device);
  const RandomSequence random{20};
  for (const auto& engine : make_conv_engines(device)) {
    auto* const spectral = dynamic_cast<SpectralEngine*>(engine.get());
    if (spectral == nullptr) continue;
    double worst = 0, worst_by_small_tiles = 0;
    std::int64_t runs = 0;
    for (int number = 0; number < problems; ++number) {
      const ConvProblem problem = for_engine(*spectral, random_problem_of(random, number));
      for (const ConvPass pass : every_pass) {
        const ConvPlans plans = spectral->plans(problem, pass);
        ASSERT_FALSE(plans.empty()) << to_string(problem);
        // Runs the highest-ranked plan and another one per pass: over all problems, every kind of plan is tested.
        for (const std::size_t index : {std::size_t(0), static_cast<std::size_t>(number) % plans.size()}) {
          const double error = plan_error(ctx, *plans[index], problem, pass);
          double& most = by_small_tiles(*plans[index]) ? worst_by_small_tiles : worst;
          most = std::isnan(error) ? error : std::max(most, error);
          ++runs;
          ASSERT_LE(error, allowance(problem, pass) * promise_of(*plans[index]))
              << to_string(problem) << ", " << to_string(pass) << ", " << full_name(*plans[index]);
        }
      }
      spectral->buffers().forget();
    }
    testing::Test::RecordProperty("worst_error", std::to_string(worst));
    std::printf("%s: %d problems, %lld runs, the worst error %.2e\n", std::string(spectral->name()).c_str(), problems,
                static_cast<long long>(runs), worst);
    if (worst_by_small_tiles > 0) std::printf("  by F(2x2) %.2e\n", worst_by_small_tiles);
  }
}

TEST_P(EveryDevice, SpectralEnginesAgreeWithTheReferenceOnRandomProblems) {
  expect_the_reference(GetParam(), random_problem, problems_asked_for());
}

TEST_P(EveryDevice, SpectralEnginesAgreeWithTheReferenceOnRandomProblemsInGroups) {
  expect_the_reference(GetParam(), random_grouped_problem, 4 * problems_asked_for());
}

// Plans that only tf32 allows: those with products of rounded factors. Results of a few elements may cancel and exceed
// the limit of a layer slightly: five of them do, by 3 %.
TEST_P(EveryDevice, SpectralEnginesMeetTf32LimitOnRandomProblems) {
  Context ctx(GetParam());
  const RandomSequence random{21};
  constexpr double of_few_elements = 3;
  double worst = 0;
  int checked = 0;
  for (const auto& engine : make_conv_engines(GetParam())) {
    auto* const spectral = dynamic_cast<SpectralEngine*>(engine.get());
    if (spectral == nullptr) continue;
    for (int number = 0; number < problems_asked_for(); ++number) {
      ConvProblem problem = for_engine(*spectral, random_problem(random, number));
      for (const ConvPass pass : every_pass) {
        problem.precision = Precision::fp32;
        std::set<std::string> exact;
        for (const auto& plan : spectral->plans(problem, pass)) exact.insert(plan->facts().name);
        problem.precision = Precision::tf32;
        ConvPlans plans = spectral->plans(problem, pass);
        std::erase_if(plans, [&](const auto& plan) { return exact.contains(plan->facts().name); });
        if (plans.empty()) continue;
        const ConvPlan& plan = *plans[static_cast<std::size_t>(number) % plans.size()];
        const double error = plan_error(ctx, plan, problem, pass);
        ASSERT_LE(error, of_few_elements * promise(Precision::tf32))
            << to_string(problem) << ", " << to_string(pass) << ", " << full_name(plan);
        worst = std::max(worst, error);
        ++checked;
      }
      spectral->buffers().forget();
    }
  }
  if (checked > 0) std::printf("%d runs in tf32, the worst error %.2e\n", checked, worst);
  if (checked == 0) GTEST_SKIP() << "no engine of this device has such a product";
}

}  // namespace
}  // namespace twiddle
