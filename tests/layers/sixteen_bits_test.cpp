#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "framework/random.h"
#include "framework/tensor_ops.h"
#include "layers/conv/cast_around.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/tuner/trial.h"
#include "tests/support/check_layer.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"

namespace twiddle {
namespace {

constexpr std::array sixteen_bit_precisions{Precision::bf16, Precision::fp16};

ConvProblem stored_as(Precision precision, ConvProblem problem) {
  problem.precision = precision;
  return problem;
}

// The engines of a device with plans for 16 bits.
std::vector<std::unique_ptr<ConvEngine>> engines_for_16_bits(const Device& device) {
  auto engines = make_conv_engines(device);
  for (auto& engine : engines) engine = cast_around(std::move(engine));
  return engines;
}

std::shared_ptr<const ConvPlan> gemm_plan(const Device& device, const ConvProblem& problem, ConvPass pass) {
  return first_plan(*cast_around(make_gemm_engine(device)), problem, pass);
}

std::vector<float> values_of(Stream& stream, const Tensor& tensor) {
  return cast(stream, tensor, DType::f32).to_vector(stream);
}

float rounded_to(DType type, float x) {
  return type == DType::bf16 ? to_float(from_float<Bf16>(x)) : to_float(from_float<Half>(x));
}

// Strides, dilations, groups and kernels as large as the plane; a third are depthwise.
ConvProblem random_stored_problem(const RandomSequence& random, std::int64_t number) {
  std::int64_t draws = number * 32;
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(draws++, most - least + 1));
  };
  const auto rarely = [&](int most) { return between(0, 3) == 0 ? between(1, most) : 1; };
  ConvProblem p;
  p.precision = sixteen_bit_precisions[static_cast<std::size_t>(number % 2)];
  p.batch = between(1, 6);
  p.groups = number % 3 == 0 ? between(2, 24) : rarely(3);
  p.channels = p.groups * (number % 3 == 0 ? 1 : between(1, between(0, 3) == 0 ? 40 : 9));
  p.filters = p.groups * (number % 3 == 0 ? 1 : between(1, between(0, 3) == 0 ? 40 : 9));
  p.kernel_h = between(1, 7), p.kernel_w = between(1, 7);
  p.stride_h = rarely(3), p.stride_w = rarely(3), p.dilation = rarely(2);
  p.pad_h = between(0, p.kernel_h), p.pad_w = between(0, p.kernel_w);
  p.height = between(std::max(1, p.dilation * (p.kernel_h - 1) + 1 - 2 * p.pad_h), 20);
  p.width = between(std::max(1, p.dilation * (p.kernel_w - 1) + 1 - 2 * p.pad_w), 20);
  return p;
}

int random_problems() {
  const char* const text = std::getenv("TWIDDLE_RANDOM_PROBLEMS");
  return text != nullptr ? std::atoi(text) : 200;
}

// An engine whose plans are named after the precision of the problem that they were made for.
class NamingEngine final : public ConvEngine {
 public:
  explicit NamingEngine(bool is_native) : is_native_(is_native) {}
  std::string_view name() const override { return "naming"; }
  ConvPlans plans(const ConvProblem& problem, ConvPass, std::size_t) const override {
    return {plan_of({.engine = "naming",
                     .name = std::string(to_string(problem.precision)),
                     .scratch_bytes = 10,
                     .kept_bytes = 10,
                     .shares = "spectra"},
                    [](Context&, ConvOperands&) {})};
  }
  bool takes_16_bits(const ConvProblem&, ConvPass) const override { return is_native_; }

 private:
  bool is_native_;
};

}  // namespace

TEST(SixteenBits, PlansAreCastsAroundTf32Plans) {
  const auto engine = cast_around(std::make_unique<NamingEngine>(false));
  const ConvProblem problem = conv_problem("2x3x4x4 * 5x3x1x1");
  const std::size_t x = 4 * 2 * 3 * 16, w = 4 * 5 * 3, y = 4 * 2 * 5 * 16;
  for (const ConvPass pass : every_pass) {
    EXPECT_EQ(first_plan(*engine, problem, pass)->facts().name, "fp32");
    const ConvPlan::Facts facts = first_plan(*engine, stored_as(Precision::bf16, problem), pass)->facts();
    EXPECT_EQ(facts.name, "tf32");
    EXPECT_EQ(facts.scratch_bytes, 10 + x + y + (pass == ConvPass::backward_weight ? 0 : w));
    EXPECT_EQ(facts.kept_bytes, 0u);
    EXPECT_EQ(facts.shares, "");
  }
  EXPECT_NE(engine->plan(stored_as(Precision::fp16, problem), ConvPass::forward, "tf32"), nullptr);
  EXPECT_EQ(engine->plan(stored_as(Precision::fp16, problem), ConvPass::forward, "fp16"), nullptr);
}

TEST(SixteenBits, NativePlansAreUsedAsTheyAre) {
  const auto engine = cast_around(std::make_unique<NamingEngine>(true));
  const auto plan = first_plan(*engine, stored_as(Precision::bf16, conv_problem("2x3x4x4 * 5x3x1x1")), {});
  EXPECT_EQ(plan->facts().name, "bf16");
  EXPECT_EQ(plan->facts().scratch_bytes, 10u);
}

TEST(SixteenBits, RandomOperandsAreStoredIn16Bits) {
  Context ctx;
  const ConvProblem problem = stored_as(Precision::fp16, conv_problem("4x2x9x9 * 2x2x1x1"));
  const ConvOperands forward = random_operands(*ctx.stream, problem, ConvPass::forward);
  EXPECT_EQ(forward.x.type(), DType::f16);
  EXPECT_EQ(forward.w.type(), DType::f16);
  EXPECT_EQ(forward.y.type(), DType::f16);
  EXPECT_TRUE(holds_nan(*ctx.stream, forward.y));
  EXPECT_EQ(random_operands(*ctx.stream, problem, ConvPass::backward_weight).w.type(), DType::f32);
  const std::vector<float> x = values_of(*ctx.stream, forward.x);  // whose second and third images are small
  const auto largest = [&](std::size_t image) {
    float most = 0;
    for (std::size_t i = 0; i < 162; ++i) most = std::max(most, std::abs(x[162 * image + i]));
    return most;
  };
  EXPECT_GT(largest(0), 1.5);
  EXPECT_NEAR(largest(1), 1.7 / 64, 0.1 / 64);
  EXPECT_NEAR(largest(2), 1.7 / 64, 0.1 / 64);
}

// On a GPU some tf32 plans exceed the limit of fp16, and the tuner rejects them.
TEST_P(EveryDevice, EngineMeetsErrorLimitIn16Bits) {
  Context ctx(GetParam());
  const bool cpu = GetParam().kind == Device::Kind::cpu;
  const auto engines = engines_for_16_bits(GetParam());
  for (const Precision precision : sixteen_bit_precisions)
    for (const ConvProblem& each : conv_problems(
             {"3x5x7x9 * 4x5x3x2 pad 1", "2x16x13x13 * 32x16x3x3 pad 1", "2x8x9x11 * 12x8x1x1",
              "2x3x15x14 * 8x3x5x5 stride 2 pad 2", "2x4x14x13 * 6x2x3x2 stride 2x3 pad 3x1 dilation 3 groups 2",
              "2x40x13x11 * 40x1x9x7 pad 4x3 groups 40", "3x7x8x8 * 7x1x3x3 pad 1 groups 7", "5x96x1x1 * 70x96x1x1"})) {
      const ConvProblem problem = stored_as(precision, each);
      for (const auto& engine : engines)
        for (const ConvPass pass : every_pass) {
          SCOPED_TRACE(std::string(engine->name()) + ", " + to_string(problem) + ", " + std::string(to_string(pass)) +
                       ", " + std::string(to_string(precision)));
          const ConvPlans plans = engine->plans(problem, pass);
          PassTrial trial(ctx, problem, pass);
          int holding = 0;
          for (const auto& plan : plans) {
            double error = 0;
            const std::string why = trial.why_not(*plan, error);
            holding += why.empty();
            if (cpu) {
              EXPECT_EQ(why, "") << full_name(*plan);
              EXPECT_FALSE(trial.spreads_nan(*plan)) << full_name(*plan);
            }
          }
          EXPECT_TRUE(plans.empty() || holding > 0);
        }
    }
}

// Exact products and sums in fp32: rounding partial sums, or truncating, would change more results.
TEST_P(EveryDevice, GemmRoundsResultsOnce) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  for (const Precision precision : sixteen_bit_precisions)
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input}) {
      const ConvProblem problem = stored_as(precision, conv_problem("2x16x9x9 * 16x16x3x3 pad 1"));
      ConvOperands operands = random_operands(stream, problem, pass);
      gemm_plan(GetParam(), problem, pass)->run(ctx, operands);
      const std::vector<float> found = values_of(stream, written(pass, operands));
      const std::vector<float> x = values_of(stream, operands.x), w = values_of(stream, operands.w),
                               y = values_of(stream, operands.y);
      std::size_t equal = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double sum = conv_reference(problem, pass, x.data(), w.data(), y.data(), nullptr, std::int64_t(i));
        equal += found[i] == rounded_to(storage_of(precision), static_cast<float>(sum));
      }
      EXPECT_GE(static_cast<double>(equal), 0.95 * static_cast<double>(found.size())) << to_string(precision);
    }
}

// TWIDDLE_RANDOM_PROBLEMS: how many.
TEST_P(EveryDevice, EnginesAgreeWithReferenceOnRandomProblemsIn16Bits) {
  Context ctx(GetParam());
  const auto engines = engines_for_16_bits(GetParam());
  for (int number = 0; number < random_problems(); ++number) {
    const ConvProblem problem = random_stored_problem(RandomSequence{22}, number);
    const ConvPass pass = every_pass[number / 2 % 3];
    for (const auto& engine : engines) {
      ConvPlans plans = engine->plans(problem, pass);
      if (plans.empty() || plans.front()->facts().exact) continue;
      const auto plan = GetParam().kind == Device::Kind::cpu ? plans[static_cast<std::size_t>(number) % plans.size()]
                                                             : holding_plan(ctx, *engine, problem, pass);
      ASSERT_NE(plan, nullptr) << engine->name() << ", " << to_string(problem);
      ASSERT_LE(plan_error(ctx, *plan, problem, pass), promise(problem.precision, pass))
          << full_name(*plan) << ", " << to_string(problem) << ", " << to_string(pass) << ", "
          << to_string(problem.precision);
    }
    for (const auto& engine : engines) engine->forget();
  }
}

TEST_P(EveryDevice, ResultsBeyondFp16AreInfinite) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const ConvProblem problem = stored_as(Precision::fp16, conv_problem("2x8x8x8 * 8x8x3x3"));
  const auto filled = [&](const Shape& shape) { return cast(stream, Tensor::filled(stream, shape, -60), DType::f16); };
  for (const auto& engine : engines_for_16_bits(GetParam())) {
    const auto plan = holding_plan(ctx, *engine, problem, ConvPass::forward);
    if (plan == nullptr) continue;
    ConvOperands operands{filled(problem.input_shape()), filled(problem.weight_shape()),
                          Tensor(stream, problem.output_shape(), DType::f16)};
    plan->run(ctx, operands);  // 72 terms of 3,600
    for (const float y : values_of(stream, operands.y)) ASSERT_EQ(y, std::numeric_limits<float>::infinity());
  }
}

TEST_P(EveryDevice, CheckRejectsTruncatingStores) {
  Context ctx(GetParam());
  const ConvProblem problem = stored_as(Precision::bf16, conv_problem("4x8x9x9 * 8x8x3x3 pad 1"));
  const ConvProblem in_f32 = stored_as(Precision::fp32, problem);
  const auto exact = make_gemm_engine(GetParam())->plans(in_f32, ConvPass::forward).front();
  const auto truncating = plan_of({.engine = "truncating"}, [&](Context& context, ConvOperands& operands) {
    Stream& stream = *context.stream;
    ConvOperands wide{cast(stream, operands.x, DType::f32), cast(stream, operands.w, DType::f32),
                      Tensor(stream, operands.y.shape())};
    exact->run(context, wide);
    std::vector<float> values = wide.y.to_vector(stream);
    for (float& value : values) value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
    cast_into(stream, Tensor::from(stream, wide.y.shape(), values), operands.y);
  });
  PassTrial trial(ctx, problem, ConvPass::forward);
  double error = 0;
  EXPECT_EQ(trial.why_not(*gemm_plan(GetParam(), problem, ConvPass::forward), error), "");
  EXPECT_NEAR(error, 1.7e-3, 1e-4);
  EXPECT_EQ(trial.why_not(*truncating, error).substr(0, 11), "misses bf16");
  EXPECT_GT(error, 2.8e-3);
}

TEST_P(EveryDevice, CastsTakeReportedWorkspace) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  ConvProblem problem = stored_as(Precision::bf16, conv_problem("4x32x14x14 * 48x32x3x3 pad 1"));
  problem.relu = true;
  for (const auto& engine : engines_for_16_bits(GetParam()))
    for (const ConvPass pass : every_pass) {
      const ConvPlans plans = engine->plans(problem, pass, 1);
      if (plans.empty()) continue;
      ConvOperands operands = random_operands(stream, problem, pass);
      if (plans[0]->facts().fuses_epilogue_backward && pass != ConvPass::forward)
        operands.mask = random_operands(stream, problem, ConvPass::backward_input).y;
      plans[0]->run(ctx, operands);  // which may set something up
      engine->forget_gone();
      const std::size_t before = stream.memory().in_use;
      stream.reset_peak();
      plans[0]->run(ctx, operands);
      const std::size_t rounding = std::size_t(10) << 16;  // the pool's, of at most ten blocks
      EXPECT_LE(stream.memory().peak - before, plans[0]->facts().scratch_bytes + rounding)
          << full_name(*plans[0]) << ", " << to_string(pass);
    }
}

}  // namespace twiddle
