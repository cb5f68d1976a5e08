// FFT convolutions on the CPU, for every instruction set that this processor has.
#include <gtest/gtest.h>

#include "fft/cpu/cpu_backend.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_instruction_set.h"

namespace twiddle {
namespace {

struct CpuConvolution : EveryInstructionSet {};

TEST_P(CpuConvolution, AgreesWithReferenceOnEveryGrid) {
  Context ctx;
  for (const ConvProblem& problem : conv_problems(
           {"1x1x1x1 * 1x1x1x1", "2x3x6x7 * 4x3x3x3 pad 1", "3x2x5x4 * 3x2x5x4", "2x2x4x4 * 3x2x3x3 pad 4",
            "2x4x6x5 * 6x2x2x3 pad 1x2 groups 2", "5x2x7x6 * 3x2x1x4 pad 0x3", "3x37x9x20 * 19x37x5x3 pad 2x1",
            "2x17x40x23 * 33x17x7x5 pad 3x2", "24x16x28x28 * 32x16x3x3 pad 1", "2x70x9x9 * 64x70x3x3 pad 1",
            "2x3x33x70 * 5x3x9x9 pad 4", "3x37x14x13 * 37x1x13x9 pad 6x4 groups 37",
            "2x3x40x41 * 6x1x5x5 pad 2 groups 3", "2x40x9x9 * 60x20x3x3 pad 1 groups 2",
            "2x3x1x4096 * 3x1x1x1024 pad 0x512 groups 3", "1x2x1x3000 * 3x2x1x700 pad 0x350"})) {
    SpectralEngine engine(cpu_fft(GetParam()), std::make_shared<FrequencyBuffers>(std::size_t(1) << 30),
                          std::size_t(1) << 30);
    ASSERT_TRUE(engine.supports(problem, ConvPass::forward)) << to_string(problem);
    for (const ConvPass pass : every_pass) {
      ConvOperands operands = random_operands(*ctx.stream, problem, pass);
      if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 0.5f);
      const ConvCheck check(*ctx.stream, problem, pass, operands, 500);
      for (const auto& plan : engine.plans(problem, pass)) {
        plan->run(ctx, operands);
        EXPECT_LE(check.error(*ctx.stream, written(pass, operands)), 5e-7)
            << to_string(problem) << ", " << full_name(*plan) << ", " << to_string(pass);
      }
    }
  }
}

Tensor times(Stream& stream, const Tensor& tensor, float factor) {
  std::vector<float> values = tensor.to_vector(stream);
  for (float& value : values) value *= factor;
  return Tensor::from(stream, tensor.shape(), values);
}

// Operands up to 1e18 and results up to 1e37: no bin of an intermediate spectrum overflows a float.
TEST_P(CpuConvolution, LargeOperandsDoNotOverflowSpectra) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x16x28x28 * 16x16x5x5 pad 2");
  SpectralEngine engine(cpu_fft(GetParam()), std::make_shared<FrequencyBuffers>(std::size_t(1) << 30),
                        std::size_t(1) << 30);
  for (const ConvPass pass : every_pass) {
    ConvOperands operands = random_operands(*ctx.stream, problem, pass);
    for (Tensor* factor : {&operands.x, &operands.w, &operands.y})
      *factor = times(*ctx.stream, *factor, factor == &operands.x ? 1e18f : 1e17f);
    for (const auto& plan : engine.plans(problem, pass)) {
      plan->run(ctx, operands);
      EXPECT_LE(conv_error(ctx, problem, pass, operands, 500), 5e-7) << full_name(*plan) << ", " << to_string(pass);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, CpuConvolution, every_instruction_set(), name_of_set);

}  // namespace
}  // namespace twiddle
