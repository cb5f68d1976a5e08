// The ways of the engine cufft to transform and multiply, one by one: spectra and products against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <random>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double accurate = 1e-6;
constexpr ConvOperand every_operand[] = {ConvOperand::x, ConvOperand::w, ConvOperand::y};

Shape shape_of(const ConvProblem& problem, ConvOperand operand) {
  return operand == ConvOperand::x   ? problem.input_shape()
         : operand == ConvOperand::w ? problem.weight_shape()
                                     : problem.output_shape();
}

std::vector<float> noise(std::int64_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> floats_of(const std::vector<std::complex<double>>& numbers) {
  std::vector<float> floats;
  for (const auto& number : numbers)
    floats.insert(floats.end(), {static_cast<float>(number.real()), static_cast<float>(number.imag())});
  return floats;
}

std::vector<std::complex<double>> numbers_of(const std::vector<float>& floats) {
  std::vector<std::complex<double>> numbers;
  for (std::size_t i = 0; i < floats.size(); i += 2) numbers.emplace_back(floats[i], floats[i + 1]);
  return numbers;
}

// Sizes with all factors, odd and even, a batch in slices, groups, and planes that stand in for their transpose.
struct Case {
  ConvProblem problem;
  FrequencyGrid grid;
  Planes planes(ConvOperand operand) const {
    return planes_of(problem, operand, grid, problem.groups - 1, operand == ConvOperand::w ? 0 : 1,
                     operand == ConvOperand::w ? 0 : problem.batch - 1);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const char* text, int more_h, int more_w) {
    const ConvProblem problem = conv_problem(text);
    all.push_back({problem, whole_plane(problem, least_height(problem) + more_h, least_width(problem) + more_w)});
  };
  add("3x4x7x6 * 6x2x3x2 pad 1 groups 2", 0, 0);  // 8x7
  add("3x4x7x6 * 6x2x3x2 pad 1 groups 2", 1, 3);  // 9x10
  add("2x35x13x13 * 33x35x3x3 pad 1", 0, 0);      // 14x14
  add("2x35x13x13 * 33x35x3x3 pad 1", 2, 2);      // 16x16
  add("4x3x11x20 * 5x3x5x7 pad 2x0", 2, 1);       // 15x21
  add("2x1x30x29 * 2x1x4x4 pad 0x2", 2, 4);       // 32x35
  add("2x2x1x1 * 3x2x1x1", 1, 1);                 // 2x2
  return all;
}

class Cufft : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
    ctx = std::make_unique<Context>(Device{Device::Kind::cuda, 0});
    backend = cufft();
  }
  std::shared_ptr<void> poisoned(std::size_t bytes) {
    auto memory = ctx->stream->allocate(bytes);
    ctx->stream->fill(static_cast<float*>(memory.get()), static_cast<std::int64_t>(bytes / sizeof(float)), nan);
    return memory;
  }
  std::vector<float> on_host(const void* memory, std::size_t bytes) {
    std::vector<float> values(bytes / sizeof(float));
    ctx->stream->copy(values.data(), memory, bytes);
    ctx->stream->synchronize();
    return values;
  }
  std::shared_ptr<void> on_device(const std::vector<float>& values) {
    auto memory = ctx->stream->allocate(values.size() * sizeof(float));
    ctx->stream->copy(memory.get(), values.data(), values.size() * sizeof(float));
    ctx->stream->synchronize();
    return memory;
  }
  std::shared_ptr<void> forward(SpectralTransform& transform, const Planes& planes, const Tensor& source) {
    auto spectrum = poisoned(transform.spectrum_bytes(planes));
    const auto scratch = poisoned(transform.scratch_bytes(planes));
    transform.forward(*ctx, planes, source.read(), spectrum.get(), scratch.get());
    return spectrum;
  }
  std::vector<float> inverse(SpectralTransform& transform, const Planes& planes, const void* spectrum,
                             const Shape& shape, const PlaneEpilogue& epilogue) {
    Tensor target = Tensor::filled(*ctx->stream, shape, nan);
    const auto scratch = poisoned(transform.scratch_bytes(planes));
    transform.inverse(*ctx, planes, spectrum, target.write(), epilogue, scratch.get());
    return target.to_vector(*ctx->stream);
  }

  std::unique_ptr<Context> ctx;
  SpectralBackend backend;
};

TEST_F(Cufft, TransformsAreWhatTheDefinitionSays) {
  Context host;
  const SpectralBackend by_definition = plain_backend({});
  SpectralTransform& plain = *by_definition.transforms.front();
  for (const Case& c : cases())
    for (const ConvOperand operand : every_operand) {
      const Planes planes = c.planes(operand);
      const Shape shape = shape_of(c.problem, operand);
      const std::vector<float> values = noise(count_of(shape));
      const Tensor source = Tensor::from(*ctx->stream, shape, values);

      std::vector<std::complex<double>> numbers(static_cast<std::size_t>(planes.grid.bins() * planes.rows) *
                                                static_cast<std::size_t>(planes.columns));
      plain.forward(host, planes, values.data(), numbers.data(), nullptr);
      const std::vector<float> expected = floats_of(numbers);
      std::vector<float> bias(static_cast<std::size_t>(planes.columns));
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.25f * static_cast<float>(i % 3);
      std::vector<float> planes_back(values.size(), nan);
      plain.inverse(host, planes, numbers.data(), planes_back.data(), {bias.data(), true}, nullptr);

      for (const auto& transform : backend.transforms) {
        SCOPED_TRACE(join(transform->name(), ": ", to_string(operand), " of ", to_string(c.problem), ", ",
                          to_string(planes.grid)));
        const auto spectrum = forward(*transform, planes, source);
        const std::size_t bytes = transform->spectrum_bytes(planes);
        const std::vector<float> bins = on_host(spectrum.get(), bytes);
        EXPECT_LE(relative_error(bins, expected), accurate);

        const auto device_bias = on_device(bias);
        expect_close(
            inverse(*transform, planes, spectrum.get(), shape, {static_cast<const float*>(device_bias.get()), true}),
            planes_back, 2e-6f);  // NaN where another slice or group lies
        EXPECT_EQ(on_host(spectrum.get(), bytes), bins) << "another pass may want the spectrum";
      }
    }
}

// Of many planes, too, all ways agree.
TEST_F(Cufft, LargeBatchesAreTransformedAsSmallOnes) {
  const ConvProblem problem = conv_problem("67x37x60x61 * 3x37x3x3 pad 1");
  const Planes planes = planes_of(problem, ConvOperand::x, whole_plane(problem, 64, 63));
  const Tensor x = Tensor::from(*ctx->stream, problem.input_shape(), noise(count_of(problem.input_shape())));
  const std::vector<float> values = x.to_vector(*ctx->stream);
  std::vector<float> first;
  for (const auto& transform : backend.transforms) {
    SCOPED_TRACE(transform->name());
    const auto spectrum = forward(*transform, planes, x);
    const std::vector<float> bins = on_host(spectrum.get(), transform->spectrum_bytes(planes));
    if (first.empty()) first = bins;
    EXPECT_LE(relative_error(bins, first), accurate);
    EXPECT_LE(relative_error(inverse(*transform, planes, spectrum.get(), problem.input_shape(), {}), values), accurate);
  }
}

TEST_F(Cufft, TransformsCanBeRecorded) {
  const Case c = cases().at(3);
  const Planes planes = c.planes(ConvOperand::x);
  const Shape shape = shape_of(c.problem, ConvOperand::x);
  const Tensor source = Tensor::from(*ctx->stream, shape, noise(count_of(shape)));
  for (const auto& transform : backend.transforms) {
    SCOPED_TRACE(transform->name());
    const auto expected_spectrum = forward(*transform, planes, source);
    const std::vector<float> expected = inverse(*transform, planes, expected_spectrum.get(), shape, {});
    Tensor target = Tensor::filled(*ctx->stream, shape, nan);
    const std::size_t bytes = transform->spectrum_bytes(planes);
    const auto spectrum = poisoned(bytes), scratch = poisoned(transform->scratch_bytes(planes));
    const std::int64_t allocations = ctx->stream->memory().system_allocations;
    const auto recording = ctx->stream->record([&] {
      transform->forward(*ctx, planes, source.read(), spectrum.get(), scratch.get());
      transform->inverse(*ctx, planes, spectrum.get(), target.write(), {}, scratch.get());
    });
    ASSERT_NE(recording, nullptr);
    recording->play();
    EXPECT_EQ(ctx->stream->memory().system_allocations, allocations);
    EXPECT_EQ(on_host(spectrum.get(), bytes), on_host(expected_spectrum.get(), bytes));
    expect_close(target.to_vector(*ctx->stream), expected, 0);
  }
}

TEST_F(Cufft, ProductsAreWhatTheDefinitionSays) {
  Context host;
  const SpectralBackend plain = plain_backend({});
  FrequencyGemm forward_pass{40, 5, 7, 3, false, false, true, true, false};
  FrequencyGemm backward_input{33, 64, 33, 40, false, false, false, false, false};
  FrequencyGemm backward_weight{20, 6, 9, 130, true, true, false, false, true};
  FrequencyGemm many_bins{65541, 2, 1, 3, false, false, true, true, false};
  for (const FrequencyGemm& gemm : {forward_pass, backward_input, backward_weight, many_bins}) {
    const std::vector<float> a = noise(2 * gemm.bins * gemm.m * gemm.k), b = noise(2 * gemm.bins * gemm.k * gemm.n);
    std::vector<float> before = noise(2 * gemm.bins * gemm.m * gemm.n);
    std::vector<std::complex<double>> c = numbers_of(before);
    plain.products.front()->run(host, gemm, numbers_of(a).data(), numbers_of(b).data(), c.data(), nullptr);
    const std::vector<float> expected = floats_of(c);
    if (!gemm.accumulate) std::fill(before.begin(), before.end(), nan);
    for (const auto& product : backend.products) {
      SCOPED_TRACE(join(product->name(), ", ", gemm.bins, " bins of ", gemm.m, "x", gemm.n, "x", gemm.k));
      const auto left = on_device(a), right = on_device(b), result = on_device(before);
      const auto scratch = poisoned(product->scratch_bytes(gemm));
      const auto run = [&] { product->run(*ctx, gemm, left.get(), right.get(), result.get(), scratch.get()); };
      run();
      const std::size_t bytes = before.size() * sizeof(float);
      const double error = product->keeps_fp32() ? accurate : 1e-3;
      EXPECT_LE(relative_error(on_host(result.get(), bytes), expected), error);
      if (gemm.bins > 1000) continue;
      const auto recording = ctx->stream->record(run);
      ASSERT_NE(recording, nullptr);
      ctx->stream->copy(result.get(), before.data(), bytes);
      recording->play();
      EXPECT_LE(relative_error(on_host(result.get(), bytes), expected), error) << "recorded";
    }
  }
}

TEST_F(Cufft, RefusesToConjugateWhatItDoesNotTranspose) {
  const FrequencyGemm gemm{4, 2, 2, 2, false, true, false, false, false};
  const auto a = poisoned(1024), b = poisoned(1024), c = poisoned(1024), scratch = poisoned(1024);
  for (const auto& product : backend.products)
    EXPECT_THROW(product->run(*ctx, gemm, a.get(), b.get(), c.get(), scratch.get()), Error);
}

// Needs no GPU.
TEST(CufftGrids, AreSizesWithSmallFactorsUpToPowersOfTwo) {
  const SpectralBackend backend = cufft();
  if (backend.transforms.empty()) GTEST_SKIP() << "a build without CUDA";
  const auto grids = [&](const char* text) { return backend.transforms.front()->grids(conv_problem(text)); };
  const auto has = [](const std::vector<FrequencyGrid>& all, int height, int width) {
    return std::any_of(all.begin(), all.end(),
                       [&](const FrequencyGrid& grid) { return grid.height == height && grid.width == width; });
  };
  const auto few = grids("1x1x13x13 * 1x1x3x3 pad 1");  // 14, 15 and 16
  EXPECT_EQ(few.size(), 9u);
  EXPECT_EQ(to_string(few.front()), "14x14");
  EXPECT_TRUE(has(few, 15, 16));

  const auto many = grids("1x1x32x40 * 1x1x3x3 pad 1");  // from 33x41 on: the least that will do are 35x42
  EXPECT_EQ(many.size(), 12u);
  EXPECT_TRUE(has(many, 35, 42));
  EXPECT_TRUE(has(many, 36, 42));
  EXPECT_TRUE(has(many, 64, 64));
  for (const FrequencyGrid& grid : many) {
    EXPECT_GE(grid.height, 33);
    EXPECT_GE(grid.width, 41);
    EXPECT_EQ(grid.tiles(), 1);
  }
  EXPECT_FALSE(grids("1x1x1x1 * 1x1x1x1").empty());
  EXPECT_TRUE(grids("1x1x40000x4 * 1x1x3x3").empty());
}

}  // namespace
}  // namespace twiddle
