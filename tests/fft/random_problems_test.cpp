// Every spectral engine of a device, by all its ways, against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "fft/spectral_engine.h"
#include "framework/random.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// Over all elements of the result, which was NaN before.
double error_of(Context& ctx, SpectralEngine& engine, const ConvProblem& problem, ConvPass pass) {
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 0.5f);
  engine.run(ctx, problem, pass, operands);
  return conv_error(ctx, problem, pass, operands, std::numeric_limits<int>::max());
}

// As awkward as they come: rectangles, primes, batch 1, kernels as large as the plane, wide pads, groups.
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

// TWIDDLE_RANDOM_PROBLEMS asks for more than what is quick.
int problems_asked_for() {
  const char* const text = std::getenv("TWIDDLE_RANDOM_PROBLEMS");
  return text != nullptr ? std::atoi(text) : 40;
}

TEST_P(EveryDevice, SpectralEnginesAgreeWithTheReferenceOnRandomProblems) {
  Context ctx(GetParam());
  const RandomSequence random{20};
  for (const auto& engine : make_conv_engines(GetParam(), {.deterministic = true})) {
    auto* const spectral = dynamic_cast<SpectralEngine*>(engine.get());
    if (spectral == nullptr) continue;
    double worst = 0;
    std::int64_t strategies = 0;
    for (int number = 0; number < problems_asked_for(); ++number) {
      const ConvProblem problem = random_problem(random, number);
      const std::vector<SpectralStrategy> ways = spectral->strategies(problem);
      ASSERT_FALSE(ways.empty()) << to_string(problem);
      for (const ConvPass pass : every_pass) {
        // Each pass by the likely best way and by another: over the problems, all ways have their turn.
        for (const std::size_t way : {std::size_t(0), static_cast<std::size_t>(number) % ways.size()}) {
          spectral->set_strategy(problem, pass, ways[way]);
          const double error = error_of(ctx, *spectral, problem, pass);
          worst = std::isnan(error) ? error : std::max(worst, error);
          ++strategies;
          ASSERT_LE(error, promise(Precision::fp32))
              << to_string(problem) << ", " << to_string(pass) << ", " << spectral->describe(ways[way]);
        }
      }
      spectral->buffers().forget();
    }
    RecordProperty("worst_error", std::to_string(worst));
    std::printf("%s: %d problems, %lld runs, the worst error %.2e\n", std::string(spectral->name()).c_str(),
                problems_asked_for(), static_cast<long long>(strategies), worst);
  }
}

// Ways that the class of TF32 alone allows: those with products of rounded factors. What the class promises of a layer
// a result of a few elements, which may cancel, can miss by little: five of them by 3 %.
TEST_P(EveryDevice, SpectralEnginesKeepTf32OnRandomProblems) {
  Context ctx(GetParam());
  const RandomSequence random{21};
  constexpr double of_few_elements = 3;
  double worst = 0;
  int checked = 0;
  for (const auto& engine : make_conv_engines(GetParam(), {.deterministic = true})) {
    auto* const spectral = dynamic_cast<SpectralEngine*>(engine.get());
    if (spectral == nullptr) continue;
    for (int number = 0; number < problems_asked_for(); ++number) {
      ConvProblem problem = random_problem(random, number);
      const std::vector<SpectralStrategy> exact = spectral->strategies(problem);
      problem.precision = Precision::tf32;
      std::vector<SpectralStrategy> ways = spectral->strategies(problem);
      std::erase_if(
          ways, [&](const SpectralStrategy& way) { return std::find(exact.begin(), exact.end(), way) != exact.end(); });
      if (ways.empty()) continue;
      const SpectralStrategy& way = ways[static_cast<std::size_t>(number) % ways.size()];
      for (const ConvPass pass : every_pass) {
        spectral->set_strategy(problem, pass, way);
        const double error = error_of(ctx, *spectral, problem, pass);
        ASSERT_LE(error, of_few_elements * promise(Precision::tf32))
            << to_string(problem) << ", " << to_string(pass) << ", " << spectral->describe(way);
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
