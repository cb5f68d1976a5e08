// The transform of the engine cufft against its definition. Its products: frequency_products_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

constexpr double accurate = 1e-6;
constexpr ConvOperand every_operand[] = {ConvOperand::x, ConvOperand::w, ConvOperand::y};

// Sizes with all factors, odd and even, a batch in slices, groups, and planes that stand in for their transpose.
struct TransformCase {
  ConvProblem problem;
  FrequencyGrid grid;
  Planes planes(ConvOperand operand) const {
    return planes_of(problem, operand, grid, operand == ConvOperand::w ? 0 : 1,
                     operand == ConvOperand::w ? 0 : problem.batch - 1);
  }
};

std::vector<TransformCase> cases() {
  std::vector<TransformCase> all;
  const auto add = [&](const char* text, int more_h, int more_w) {
    const ConvProblem problem = conv_problem(text);
    all.push_back({problem, whole_plane(problem, least_height(problem) + more_h, least_width(problem) + more_w)});
  };
  add("3x4x7x6 * 6x2x3x2 pad 1 groups 2", 0, 0);     // 8x7
  add("3x4x7x6 * 6x2x3x2 pad 1 groups 2", 1, 3);     // 9x10
  add("2x35x13x13 * 33x35x3x3 pad 1", 0, 0);         // 14x14
  add("2x35x13x13 * 33x35x3x3 pad 1", 2, 2);         // 16x16
  add("4x3x11x20 * 5x3x5x7 pad 2x0", 2, 1);          // 15x21
  add("2x1x30x29 * 2x1x4x4 pad 0x2", 2, 4);          // 32x35
  add("2x2x1x1 * 3x2x1x1", 1, 1);                    // 2x2
  add("3x4x1x50 * 6x2x1x9 pad 0x4 groups 2", 0, 0);  // 1x54
  add("3x4x1x50 * 4x1x1x9 pad 0x4 groups 4", 0, 1);  // 1x55
  return all;
}

class Cufft : public OnGpu {
 protected:
  SpectralTransform& transform() { return *backend.transforms.front(); }
  Tensor forward(const Planes& planes, const Tensor& source) {
    Tensor spectrum = poisoned(transform().spectrum_bytes(planes)),
           scratch = poisoned(transform().scratch_bytes(planes));
    transform().forward(*ctx, planes, source.read(), spectrum.write(), scratch.write());
    return spectrum;
  }
  std::vector<float> inverse(const Planes& planes, const Tensor& spectrum, std::size_t bytes,
                             const PlaneEpilogue& epilogue = {}) {
    Tensor target = poisoned(bytes), scratch = poisoned(transform().scratch_bytes(planes));
    transform().inverse(*ctx, planes, spectrum.read(), target.write(), epilogue, scratch.write());
    return on_host(target);
  }

  const SpectralBackend backend = cufft();
};

TEST_F(Cufft, TransformMatchesDefinition) {
  Context host;
  const SpectralBackend by_definition = plain_backend({}, {SpectrumStorage::interleaved});
  SpectralTransform& plain = *by_definition.transforms.front();
  for (const TransformCase& c : cases())
    for (const ConvOperand operand : every_operand) {
      const Planes planes = c.planes(operand);
      const std::vector<float> values = noise(count_of(shape_of(c.problem, operand)));
      const Tensor source = on_device(values);

      std::vector<float> expected(plain.spectrum_bytes(planes) / sizeof(float));
      plain.forward(host, planes, values.data(), expected.data(), nullptr);
      std::vector<float> bias(static_cast<std::size_t>(planes.columns));
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.25f * static_cast<float>(i % 3);
      std::vector<float> planes_back(values.size(), not_a_number);
      const Tensor device_bias = on_device(bias);
      plain.inverse(host, planes, expected.data(), planes_back.data(), {bias.data(), true}, nullptr);

      SCOPED_TRACE(join(to_string(operand), " of ", to_string(c.problem), ", ", to_string(planes.grid)));
      const Tensor spectrum = forward(planes, source);
      const std::vector<float> bins = on_host(spectrum);
      EXPECT_LE(relative_error(bins, expected), accurate);
      expect_close(inverse(planes, spectrum, source.bytes(), {device_bias.read(), true}), planes_back,
                   2e-6f);  // NaN where another slice or group lies
      EXPECT_EQ(on_host(spectrum), bins) << "another pass may need the spectrum";
    }
}

TEST_F(Cufft, TransformsLargeBatchesAndBack) {
  const ConvProblem problem = conv_problem("67x37x60x61 * 3x37x3x3 pad 1");
  const Planes planes = planes_of(problem, ConvOperand::x, whole_plane(problem, 64, 63));
  const std::vector<float> values = noise(count_of(problem.input_shape()));
  const Tensor x = on_device(values);
  EXPECT_LE(relative_error(inverse(planes, forward(planes, x), x.bytes()), values), accurate);
}

TEST_F(Cufft, TransformRunsInCapturedGraph) {
  const TransformCase c = cases().at(3);
  const Planes planes = c.planes(ConvOperand::x);
  const Tensor source = on_device(noise(count_of(c.problem.input_shape())));
  const Tensor expected_spectrum = forward(planes, source);
  const std::vector<float> expected = inverse(planes, expected_spectrum, source.bytes());
  Tensor target = poisoned(source.bytes()), spectrum = poisoned(expected_spectrum.bytes()),
         scratch = poisoned(transform().scratch_bytes(planes));
  const std::int64_t allocations = stream().memory().system_allocations;
  const auto graph = stream().capture([&] {
    transform().forward(*ctx, planes, source.read(), spectrum.write(), scratch.write());
    transform().inverse(*ctx, planes, spectrum.read(), target.write(), {}, scratch.write());
  });
  ASSERT_NE(graph, nullptr);
  graph->replay();
  EXPECT_EQ(stream().memory().system_allocations, allocations);
  EXPECT_EQ(on_host(spectrum), on_host(expected_spectrum));
  expect_close(on_host(target), expected, 0);
}

TEST_F(Cufft, RefusesConjugateWithoutTranspose) {
  const FrequencyGemm gemm{4, 2, 2, 2, false, true, false, false, false};
  const Tensor a = poisoned(1024), b = poisoned(1024);
  Tensor c = poisoned(1024), scratch = poisoned(1024);
  for (const auto& product : backend.products) {
    const std::string_view name = product->name();
    const bool is_own =
        name == "tiles" || name == "channels" || name.starts_with("pairs") || name.starts_with("halves");
    if (is_own) continue;
    EXPECT_THROW(product->run(*ctx, gemm, a.read(), b.read(), c.write(), scratch.write()), Error);
  }
}

// Needs no GPU.
TEST(CufftGrids, HaveSmallPrimeFactors) {
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
  for (const FrequencyGrid& grid : grids("1x1x1x50 * 1x1x1x9 pad 0x4")) EXPECT_EQ(grid.height, 1);
  EXPECT_FALSE(grids("1x1x1x1 * 1x1x1x1").empty());
  EXPECT_TRUE(grids("1x1x40000x4 * 1x1x3x3").empty());
}

}  // namespace
}  // namespace twiddle
