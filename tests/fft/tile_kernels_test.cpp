// Runs the GPU threads that transform tiles on the CPU and compares them with the transform of single tiles.
#include "fft/cuda/winograd/tile_kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/limits.h"
#include "tests/support/noise.h"
#include "tests/support/plain_winograd.h"

namespace twiddle {
namespace {

using namespace winograd_blocks;

class TileKernels : public testing::TestWithParam<ConvProblem> {
 protected:
  static constexpr std::int64_t few_blocks = 1, many_blocks = 1000;

  SpectralTransform& reference(int outputs) {
    if (outputs == 4) return of_four_;
    return of_two_;
  }
  // Returns planes of the second group if there are groups, and from image 1 on if there are several images.
  Planes planes(int outputs, ConvOperand operand) {
    const ConvProblem& problem = GetParam();
    const FrequencyGrid grid = reference(outputs).grids(problem).front();
    const int first = problem.batch > 1 ? 1 : 0;
    return planes_of(problem, operand, grid, first, problem.batch - first);
  }
  static std::int64_t floats_of(const Planes& planes) {
    return planes.offset + (planes.rows - 1) * planes.row_stride + planes.columns * planes.column_stride;
  }
  std::int64_t floats_of_spectrum(int outputs, const Planes& planes) {
    return static_cast<std::int64_t>(reference(outputs).spectrum_bytes(planes) / sizeof(float));
  }

  static void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(actual[i]) : std::abs(actual[i] - expected[i]) <= 1e-4f)
          << "float " << i << " is " << actual[i] << ", expected " << expected[i];
  }

  template <int outputs, int size, auto line>
  void expect_forward(ConvOperand operand, bool masked) {
    const Planes p = planes(outputs, operand);
    const std::vector<float> source = noise(floats_of(p)), mask = noise(floats_of(p), 5);
    const float* const masks = masked ? mask.data() : nullptr;
    std::vector<float> expected(static_cast<std::size_t>(floats_of_spectrum(outputs, p)), not_a_number);
    reference(outputs).forward(ctx_, p, {source.data(), masks}, expected.data(), nullptr);
    for (const std::int64_t wanted : {few_blocks, many_blocks}) {
      const TileBlocks blocks(p, 0, wanted);
      std::vector<float> actual(expected.size(), not_a_number),
          staged(static_cast<std::size_t>(blocks.staged_floats()));
      const ForwardBlock<outputs, size, line> block{blocks, source.data(), masks, actual.data()};
      for (std::int64_t i = 0; i < blocks.count(); ++i) {
        std::fill(staged.begin(), staged.end(), not_a_number);
        const TileBlocks::Place at = blocks.place(i);
        for (int t = 0; t < blocks.threads(); ++t) block.load(at, t, blocks.threads(), staged.data());
        for (int t = 0; t < blocks.threads(); ++t) block.transform(at, t, blocks.threads(), staged.data());
      }
      expect_near(actual, expected);
    }
  }

  template <int outputs, int size, auto line>
  void expect_inverse(ConvOperand operand, bool with_epilogue) {
    const Planes p = planes(outputs, operand);
    const std::vector<float> spectrum = noise(floats_of_spectrum(outputs, p)), bias = noise(p.columns);
    const PlaneEpilogue epilogue{with_epilogue ? bias.data() : nullptr, with_epilogue};
    std::vector<float> expected(static_cast<std::size_t>(floats_of(p)),
                                not_a_number);  // NaN stays where another group lies
    reference(outputs).inverse(ctx_, p, spectrum.data(), expected.data(), epilogue, nullptr);
    for (const std::int64_t wanted : {few_blocks, many_blocks}) {
      const TileBlocks blocks(p, 0, wanted);
      std::vector<float> actual(expected.size(), not_a_number),
          staged(static_cast<std::size_t>(blocks.staged_floats()));
      const InverseBlock<outputs, size, line> block{blocks, spectrum.data(), actual.data(), epilogue};
      for (std::int64_t i = 0; i < blocks.count(); ++i) {
        std::fill(staged.begin(), staged.end(), not_a_number);
        const TileBlocks::Place at = blocks.place(i);
        for (int t = 0; t < blocks.threads(); ++t) block.transform(at, t, blocks.threads(), staged.data());
        for (int t = 0; t < blocks.threads(); ++t) block.store(at, t, blocks.threads(), staged.data());
      }
      expect_near(actual, expected);
    }
  }

  template <int outputs>
  void expect_overlap_add() {
    const Planes p = planes(outputs, ConvOperand::x);
    const std::vector<float> spectrum = noise(floats_of_spectrum(outputs, p));
    std::vector<float> expected(static_cast<std::size_t>(floats_of(p)), not_a_number);
    reference(outputs).inverse(ctx_, p, spectrum.data(), expected.data(), {}, nullptr);
    for (const std::int64_t wanted : {few_blocks, many_blocks}) {
      const TileBlocks blocks(p, 2, wanted);
      std::vector<float> actual(expected.size(), not_a_number),
          staged(static_cast<std::size_t>(blocks.staged_floats()));
      using Block = OverlapAddBlock<outputs>;
      const Block block{blocks, spectrum.data(), actual.data()};
      const int threads = blocks.threads();
      struct Sums {
        typename Block::Sums of_tile;
      };
      std::vector<Sums> sums(static_cast<std::size_t>(threads));
      for (std::int64_t i = 0; i < blocks.count(); ++i) {
        const TileBlocks::Place at = blocks.place(i);
        for (int t = 0; t < threads; ++t) block.clear(t, threads, staged.data());
        for (int round = 0; round < block.rounds(threads); ++round) {
          for (int t = 0; t < threads; ++t)
            block.transform(at, round * threads + t, sums.at(static_cast<std::size_t>(t)).of_tile);
          for (int parity = 0; parity < Block::parities; ++parity)
            for (int t = 0; t < threads; ++t)
              block.add(at, round * threads + t, parity, sums.at(static_cast<std::size_t>(t)).of_tile, staged.data());
        }
        for (int t = 0; t < threads; ++t) block.store(at, t, threads, staged.data());
      }
      expect_near(actual, expected);
    }
  }

  template <int outputs>
  void expect_all() {
    using Form = WinogradForm<outputs>;
    expect_forward<outputs, Form::points, Form::template input<float>>(ConvOperand::x, false);
    expect_forward<outputs, outputs, Form::template output_transposed<float>>(ConvOperand::y, false);
    expect_forward<outputs, outputs, Form::template output_transposed<float>>(ConvOperand::y, true);
    expect_forward<outputs, 3, Form::template filter<float>>(ConvOperand::w, false);
    expect_inverse<outputs, outputs, Form::template output<float>>(ConvOperand::y, false);
    expect_inverse<outputs, outputs, Form::template output<float>>(ConvOperand::y, true);
    expect_inverse<outputs, 3, Form::template filter_transposed<float>>(ConvOperand::w, false);
    expect_overlap_add<outputs>();
  }

  Context ctx_{};
  PlainWinograd<4> of_four_;
  PlainWinograd<2> of_two_;
};

TEST_P(TileKernels, MatchTransformOfSingleTiles) {
  expect_all<4>();
  expect_all<2>();
}

ConvProblem problem(int batch, int channels, int height, int width, int filters, int pad, int groups = 1) {
  ConvProblem p{.batch = batch, .channels = channels, .height = height, .width = width, .filters = filters};
  p.kernel_h = p.kernel_w = 3, p.pad_h = p.pad_w = pad, p.groups = groups;
  return p;
}

INSTANTIATE_TEST_SUITE_P(Problems, TileKernels,
                         testing::Values(problem(3, 5, 14, 14, 40, 1), problem(2, 33, 7, 9, 3, 0),
                                         problem(9, 2, 4, 3, 2, 2), problem(1, 34, 41, 70, 33, 1),
                                         problem(2, 6, 12, 13, 10, 1, 2), problem(40, 1, 3, 3, 1, 0)));

}  // namespace
}  // namespace twiddle
