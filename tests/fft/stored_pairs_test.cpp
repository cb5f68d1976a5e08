// Convolutions of the engine fbfft with spectra stored as split or single fp16: the exponents that are factored out,
// the transform that stores them, and the product that reads them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "framework/ranks/communicator.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"
#include "tests/support/magnitudes.h"
#include "tests/support/on_gpu.h"

namespace twiddle {
namespace {

constexpr std::size_t enough = std::size_t(1) << 32;

// Factor for the planes of a row or column.
using PlaneMagnitude = std::function<double(std::int64_t)>;

double of_one_size(std::int64_t) {
  return 1;
}
double inverse_decades(std::int64_t i) {
  return 1 / decades(i);
}
// One channel is large where the other factor is zero.
double one_is_large(std::int64_t i) {
  return i == 3 ? 1e6 : 1;
}
double one_is_dead(std::int64_t i) {
  return i == 3 ? 0 : 1;
}

class StoredPairs : public OnGpu {
 protected:
  SpectralEngine engine(std::size_t limit) {
    return SpectralEngine(fbfft(), std::make_shared<FrequencyBuffers>(limit), limit);
  }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t limit = enough) {
    return plans(engine(limit), problem, pass);
  }
  ConvPlans plans(const SpectralEngine& engine, const ConvProblem& problem, ConvPass pass) {
    ConvPlans found = engine.plans(problem, pass);
    const std::string product = problem.precision == Precision::fp32 ? "stored_pairs" : "stored_halves";
    std::erase_if(found, [&](const auto& plan) { return !plan->facts().name.ends_with(product); });
    return found;
  }
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (plans(conv_problem("32x32x8x8 * 32x32x3x3"), ConvPass::forward).empty()) GTEST_SKIP() << "needs wgmma";
  }

  void expect_reference(const std::string& text, std::size_t limit = enough, int samples = all_samples) {
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      ConvProblem problem = conv_problem(text);
      problem.precision = precision;
      expect_reference(problem, limit, samples, precision == Precision::fp32 ? 1e-6 : promise(precision));
    }
  }
  void expect_reference(const ConvProblem& problem, std::size_t limit, int samples, double most) {
    for (const ConvPass pass : every_pass) {
      const ConvPlans found = plans(problem, pass, limit);
      EXPECT_FALSE(found.empty()) << to_string(problem);
      for (const auto& plan : found) {
        ConvOperands operands = random_operands(stream(), problem, pass);
        if (pass == ConvPass::forward) operands.bias = Tensor::filled(stream(), {problem.filters}, 0.5f);
        plan->run(*ctx, operands);
        EXPECT_LE(conv_error(*ctx, problem, pass, operands, samples), most)
            << to_string(problem) << ", " << to_string(pass) << ", " << plan->facts().name;
      }
    }
  }

  void expect_sums_of_filters(const std::vector<float>& y, const std::vector<float>& sums, const ConvProblem& problem,
                              double most) {
    const std::int64_t plane = problem.out_height() * problem.out_width();
    for (int filter = 0; filter < problem.filters; ++filter) {
      double sum = 0, size = 0;
      for (int image = 0; image < problem.batch; ++image)
        for (std::int64_t i = 0; i < plane; ++i) {
          const float value = y[static_cast<std::size_t>((image * problem.filters + filter) * plane + i)];
          sum += value, size += std::abs(value);
        }
      EXPECT_NEAR(sums[static_cast<std::size_t>(filter)], sum, most / 2 * size) << filter;
    }
  }

  // Scales planes of [rows][columns][plane] by the factors of their row and of their column.
  Tensor sized(const Tensor& tensor, const Shape& shape, const PlaneMagnitude& of_row,
               const PlaneMagnitude& of_column) {
    std::vector<float> values = on_host(tensor);
    const std::int64_t plane = shape[2] * shape[3], columns = shape[1];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto of_plane = static_cast<std::int64_t>(i) / plane;
      values[i] *= static_cast<float>(of_row(of_plane / columns) * of_column(of_plane % columns));
    }
    return Tensor::from(stream(), shape, values);
  }
};

TEST_F(StoredPairs, MatchReference) {
  expect_reference("40x32x8x8 * 32x32x3x3 pad 1");
  expect_reference("33x64x13x13 * 96x64x3x3 pad 1");  // rows that fill no tile, columns of three groups
  expect_reference("64x160x5x5 * 32x160x5x5 pad 2");
  expect_reference("32x32x40x40 * 64x32x3x3 pad 1");  // tiles
}

TEST_F(StoredPairs, UseDynamicScheduleWithSeveralRanks) {
  const std::unique_ptr<Communicator> ranks = make_one_rank();
  ctx->ranks = ranks.get();
  expect_reference("32x32x8x8 * 32x32x3x3 pad 1");  // fewer tiles than multiprocessors
  expect_reference("320x96x13x13 * 96x96x3x3 pad 1");
}

// On 132 multiprocessors: of 34 bins of four tiles, the last one is computed with split-K, in forward and
// backward_input.
TEST_F(StoredPairs, SplitKOfLastBins) {
  constexpr int samples = 3000;
  expect_reference("128x256x6x6 * 256x256x3x3 pad 1", enough, samples);
  // Backward_weight in two slices, whose gradients add up: in fp32, and with less memory in tf32.
  for (const std::size_t limit : {std::size_t(44) << 20, std::size_t(26) << 20})
    expect_reference("512x128x6x6 * 256x128x3x3 pad 1", limit, samples);
}

TEST_F(StoredPairs, AccumulateSlicesOfBatch) {
  expect_reference("128x64x13x13 * 64x64x3x3 pad 1", std::size_t(12) << 20);
}

// Sums y as stored in fp16, so its rounding counts against the tf32 limit.
TEST_F(StoredPairs, SumBiasGradient) {
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    ConvProblem problem = conv_problem("40x32x8x8 * 64x32x3x3 pad 1");
    problem.precision = precision;
    for (const auto& plan : plans(problem, ConvPass::backward_weight)) {
      ConvOperands operands = random_operands(stream(), problem, ConvPass::backward_weight);
      operands.bias = poisoned(Shape{problem.filters});
      plan->run(*ctx, operands);
      expect_sums_of_filters(on_host(operands.y), on_host(operands.bias), problem, promise(precision));
    }
  }
}

// Outputs that the layer's ReLU set to zero have no gradient: y's gradient is masked during the transform.
TEST_F(StoredPairs, ApplyMaskInBackwardPass) {
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    ConvProblem problem = conv_problem("40x32x8x8 * 64x32x3x3 pad 1");
    problem.precision = precision;
    for (const ConvPass pass : {ConvPass::backward_input, ConvPass::backward_weight}) {
      ConvOperands operands = random_operands(stream(), problem, pass);
      std::vector<float> passed = on_host(operands.y), mask(passed.size());
      for (std::size_t i = 0; i < mask.size(); ++i) {
        mask[i] = i % 3 == 0 ? 0.f : i % 3 == 1 ? -1.f : 1.f;
        if (mask[i] <= 0) passed[i] = 0;
      }
      operands.mask = Tensor::from(stream(), problem.output_shape(), mask);
      const auto plan = plans(problem, pass).front();
      ASSERT_TRUE(plan->facts().fuses_epilogue_backward);
      plan->run(*ctx, operands);
      operands.mask = Tensor();
      operands.y = Tensor::from(stream(), problem.output_shape(), passed);
      EXPECT_LE(conv_error(*ctx, problem, pass, operands, all_samples), promise(precision)) << to_string(pass);
    }
  }
}

TEST_F(StoredPairs, KeepFiltersInEvaluation) {
  ctx->training = false;
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    ConvProblem problem = conv_problem("40x32x8x8 * 64x32x3x3 pad 1");
    problem.precision = precision;
    SpectralEngine engine = this->engine(enough);
    const auto plan = plans(engine, problem, ConvPass::forward).front();
    ConvOperands operands = random_operands(stream(), problem, ConvPass::forward);
    for (const int computed : {1, 1, 2}) {
      if (computed == 2) operands.w = random_operands(stream(), problem, ConvPass::backward_input).w;
      operands.x.write();
      plan->run(*ctx, operands);
      EXPECT_LE(conv_error(*ctx, problem, ConvPass::forward, operands, all_samples), promise(precision));
      EXPECT_EQ(engine.buffers().use().computed, computed);
    }
  }
}

// Products are fp32, but the spectra kept between passes are fp16: single fp16 needs half the memory.
TEST_F(StoredPairs, UseReportedMemory) {
  std::size_t held[2] = {};
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    ConvProblem problem = conv_problem("128x64x13x13 * 64x64x3x3 pad 1");
    problem.precision = precision;
    for (const std::size_t limit : {enough, std::size_t(12) << 20}) {
      SpectralEngine engine = this->engine(limit);
      for (const ConvPass pass : every_pass) {
        const auto plan = plans(engine, problem, pass).front();
        engine.buffers().reset_use();
        ConvOperands operands = random_operands(stream(), problem, pass);
        plan->run(*ctx, operands);
        const FrequencyBuffers::Use use = engine.buffers().use();
        EXPECT_LE(use.peak, limit);
        if (limit == enough) {
          EXPECT_LE(use.peak, plan->facts().scratch_bytes) << to_string(pass);
          held[precision == Precision::tf32] += use.held;
        }
        engine.buffers().forget();
      }
    }
  }
  EXPECT_GT(held[1], 0u);
  EXPECT_LT(held[1], held[0] * 6 / 10);
}

TEST_F(StoredPairs, MeetErrorLimitForMixedPlanes) {
  const ConvProblem problem = conv_problem("64x64x6x6 * 64x64x3x3 pad 1");
  struct Sizes {
    PlaneMagnitude image, channel, of_filter_in_w, of_channel_in_w, filter_in_y;
  };
  const Sizes all[] = {{of_one_size, decades, of_one_size, inverse_decades, of_one_size},
                       {of_one_size, of_one_size, decades, of_one_size, inverse_decades},
                       {decades, of_one_size, of_one_size, of_one_size, of_one_size},
                       {decades, decades, decades, inverse_decades, inverse_decades},
                       {of_one_size, one_is_large, of_one_size, one_is_dead, of_one_size},
                       {of_one_size, of_one_size, one_is_dead, of_one_size, one_is_large}};
  for (const Sizes& sizes : all)
    for (const ConvPass pass : every_pass) {
      const ConvPlans found = plans(problem, pass);
      ConvOperands operands = random_operands(stream(), problem, pass);
      if (pass != ConvPass::backward_input)
        operands.x = sized(operands.x, problem.input_shape(), sizes.image, sizes.channel);
      if (pass != ConvPass::backward_weight)
        operands.w = sized(operands.w, problem.weight_shape(), sizes.of_filter_in_w, sizes.of_channel_in_w);
      if (pass != ConvPass::forward)
        operands.y = sized(
            operands.y, problem.output_shape(), [&](std::int64_t image) { return 1 / sizes.image(image); },
            sizes.filter_in_y);
      found.front()->run(*ctx, operands);
      EXPECT_LE(conv_error(*ctx, problem, pass, operands, all_samples), 2e-6)
          << to_string(pass) << ", case " << &sizes - all;
    }
}

TEST_F(StoredPairs, AreRoundedOnlyInTf32) {
  EXPECT_TRUE(plans(conv_problem("32x32x8x8 * 32x32x3x3"), ConvPass::forward).front()->facts().name.ends_with("pairs"));
  SpectralEngine engine(fbfft(), std::make_shared<FrequencyBuffers>(enough), enough);
  for (const auto& plan : engine.plans(conv_problem("32x32x8x8 * 32x32x3x3"), ConvPass::forward))
    EXPECT_FALSE(plan->facts().name.ends_with("halves")) << plan->facts().name;
}

TEST_F(StoredPairs, KeepNonFiniteInItsImage) {
  const ConvProblem problem = conv_problem("64x64x6x6 * 64x64x3x3 pad 1");
  for (const float bad : {not_a_number, std::numeric_limits<float>::infinity()}) {
    ConvOperands operands = random_operands(stream(), problem, ConvPass::forward);
    std::vector<float> x = on_host(operands.x);
    const std::size_t image = 64 * 36;
    x[5 * image + 7] = bad;
    operands.x = Tensor::from(stream(), problem.input_shape(), x);
    plans(problem, ConvPass::forward).front()->run(*ctx, operands);
    const std::vector<float> y = on_host(operands.y);
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_TRUE(i / image == 5 || std::isfinite(y[i])) << "image " << i / image;
    EXPECT_FALSE(std::isfinite(y[5 * image]));
    // The results of the other images are the same as without it.
    x[5 * image + 7] = 0;
    operands.x = Tensor::from(stream(), problem.input_shape(), x);
    plans(problem, ConvPass::forward).front()->run(*ctx, operands);
    const std::vector<float> without = on_host(operands.y);
    const auto others = [&](const std::vector<float>& values) {
      return std::vector<float>(values.begin() + 6 * static_cast<std::ptrdiff_t>(image), values.end());
    };
    EXPECT_LE(relative_error(others(y), others(without)), 1e-6);
  }
}

TEST_F(StoredPairs, RejectChannelsNotMultipleOf32) {
  EXPECT_TRUE(plans(conv_problem("64x48x6x6 * 64x48x3x3 pad 1"), ConvPass::forward).empty());
  EXPECT_TRUE(plans(conv_problem("64x64x6x6 * 64x32x3x3 pad 1 groups 2"), ConvPass::forward).empty());
}

}  // namespace
}  // namespace twiddle
