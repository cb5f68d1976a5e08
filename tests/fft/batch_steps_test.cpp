// What a block of the batched transforms does between its barriers, followed on the CPU: against the definition.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "fft/cuda/batched/column_fft.h"
#include "fft/cuda/batched/plane_major_fft.h"
#include "fft/cuda/batched/row_fft_few.h"
#include "fft/cuda/batched/row_fft_many.h"
#include "fft/cuda/batched/shared_plane_fft.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/noise.h"
#include "tests/support/plain_fft.h"

namespace twiddle::small_fft {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float untouched = 12345;  // behind what a block may write
constexpr int behind = 64;

// Memory as a GPU's kernels get it: at a place that 16 divides, full of what is no number, and watched behind its end.
class Watched {
 public:
  explicit Watched(std::size_t floats)
      : floats_(floats), memory_((floats + behind + 3) / 4, Four{{nan, nan, nan, nan}}) {
    std::fill(data() + floats, data() + floats + behind, untouched);
  }
  Watched(const std::vector<float>& values) : Watched(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return memory_.data()->at; }
  Complex* numbers() { return reinterpret_cast<Complex*>(data()); }
  std::vector<float> values() {
    for (std::size_t i = floats_; i < floats_ + behind; ++i)
      EXPECT_EQ(data()[i], untouched) << "written behind the end";
    return {data(), data() + floats_};
  }

 private:
  std::size_t floats_;
  std::vector<Four> memory_;
};

template <class Block, int Step = 0>
void follow_steps(const typename Block::Arguments& arguments, std::int64_t block, typename Block::Shared& shared,
                  std::vector<typename Block::Registers>& registers) {
  if constexpr (Step < Block::steps) {
    for (int i = 0; i < Block::threads; ++i) {
      const int thread = block % 2 == 0 ? i : Block::threads - 1 - i;  // between barriers any order will do
      Block::step(Index<Step>{}, arguments, block, thread, shared, registers[static_cast<std::size_t>(thread)]);
    }
    follow_steps<Block, Step + 1>(arguments, block, shared, registers);
  }
}

template <class Block>
void follow(const typename Block::Arguments& arguments, int in_block) {
  for (std::int64_t block = 0; block < (arguments.count + in_block - 1) / in_block; ++block) {
    const auto shared = std::make_unique<typename Block::Shared>();
    std::memset(static_cast<void*>(shared.get()), 0xff, sizeof(typename Block::Shared));  // what others left there
    std::vector<typename Block::Registers> registers(Block::threads);
    if constexpr (requires { Block::prepare(arguments, 0, registers[0]); })
      for (int thread = 0; thread < Block::threads; ++thread)
        Block::prepare(arguments, thread, registers[static_cast<std::size_t>(thread)]);
    follow_steps<Block>(arguments, block, *shared, registers);
  }
}

template <class Forward, class Inverse>
void expect_batch(const FftBatch& batch, double promised) {
  SCOPED_TRACE(to_string(batch));
  const std::vector<float> values = noise(batch.count * batch.height * batch.width);
  Watched planes(values), back(values.size()), spectra(static_cast<std::size_t>(2 * batch.count * bins_of(batch)));
  const std::int64_t pitch = batch.layout == BinLayout::frequency_major ? batch.count : 0;
  follow<Forward>({batch.count, pitch, planes.data(), spectra.numbers()}, Forward::count);
  const auto expected = plain_spectra(values, batch.height, batch.width);
  EXPECT_LE(error_of_spectra(batch, spectra.values(), expected), promised);
  follow<Inverse>({batch.count, pitch, spectra.numbers(), back.data()}, Inverse::count);
  EXPECT_LE(relative_error(back.values(), values), promised);
}

template <class Forward, class Inverse>
void expect_rows(int points) {
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major})
    for (const int count : {1, Forward::count, Forward::count + 3})
      expect_batch<Forward, Inverse>({.width = points, .count = count, .layout = layout}, 3e-7);
}

template <int... N>
void expect_rows_of_threads() {
  (expect_rows<ThreadRowsForward<N, 32, N % 4 == 0 ? 1 : 2>, ThreadRowsInverse<N, 32, N % 4 == 0 ? 1 : 2>>(N), ...);
  (expect_rows<DirectRowsForward<N, 32>, DirectRowsInverse<N, 32>>(N), ...);
}

template <int N, int A, int Threads>
void expect_split_rows() {
  expect_rows<ManyRowsForward<N, A, Threads>, ManyRowsInverse<N, A, Threads>>(N);
}

template <int N, int A1, int A2>
void expect_staged_rows() {
  expect_rows<FewRowsForward<N, A1, A2, 32>, FewRowsInverse<N, A1, A2, 32>>(N);
}

template <int H, int W, int P>
void expect_planes() {
  for (const int count : {1, P + 1}) {
    const FftBatch batch{.height = H, .width = W, .count = count};
    expect_batch<PlaneMajorForward<H, W, P>, PlaneMajorInverse<H, W, P>>(batch, 5e-7);
    expect_batch<DirectPlaneMajorForward<H, W, P>, DirectPlaneMajorInverse<H, W, P>>(batch, 5e-7);
  }
}

template <int N, int RowA, int ColumnA, int Threads>
void expect_block_planes() {
  expect_batch<SharedPlaneForward<N, RowA, ColumnA, Threads>, SharedPlaneInverse<N, RowA, ColumnA, Threads>>(
      {.height = N, .width = N, .count = 2}, 5e-7);
}

// Planes in two steps.
template <int N, int A, int Columns, class RowsForward, class RowsInverse>
void expect_two_steps(BinLayout layout) {
  const FftBatch batch{.height = N, .width = N, .count = 3, .layout = layout};
  SCOPED_TRACE(to_string(batch));
  const std::int64_t rows = batch.count * N;
  const std::vector<float> values = noise(rows * N);
  const auto numbers = static_cast<std::size_t>(2 * batch.count * bins_of(batch));
  Watched planes(values), back(values.size()), row_bins(numbers), spectra(numbers);
  const ColumnArguments columns = column_arguments(batch, row_bins.numbers(), spectra.numbers());
  follow<RowsForward>({rows, rows, planes.data(), row_bins.numbers()}, RowsForward::count);
  row_bins.values();
  follow<ColumnsForward<N, A, Columns>>(columns, Columns);
  EXPECT_LE(error_of_spectra(batch, spectra.values(), plain_spectra(values, N, N)), 5e-7);
  follow<ColumnsInverse<N, A, Columns>>(columns, Columns);
  row_bins.values();
  follow<RowsInverse>({rows, rows, row_bins.numbers(), back.data()}, RowsInverse::count);
  EXPECT_LE(relative_error(back.values(), values), 5e-7);
}

TEST(BatchSteps, TransformRowsInOneThread) {
  expect_rows_of_threads<2, 4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48>();
}

TEST(BatchSteps, TransformRowsThatThreadsShare) {
  expect_split_rows<64, 8, 128>();
  expect_split_rows<128, 8, 128>();
  expect_split_rows<256, 16, 256>();
  expect_staged_rows<64, 4, 4>();
  expect_staged_rows<128, 4, 4>();
  expect_staged_rows<256, 8, 4>();
}

TEST(BatchSteps, TransformPlanes) {
  expect_planes<2, 2, 128>();
  expect_planes<4, 4, 64>();
  expect_planes<8, 8, 4>();
  expect_planes<8, 8, 32>();
  expect_planes<10, 10, 32>();
  expect_planes<14, 14, 16>();
  expect_planes<16, 16, 1>();
  expect_planes<20, 20, 16>();
  expect_planes<30, 30, 8>();
  expect_planes<48, 48, 4>();
  expect_planes<8, 32, 8>();
  expect_planes<64, 32, 4>();
}

TEST(BatchSteps, TransformLargePlanesInTwo) {
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major}) {
    expect_two_steps<128, 16, 16, ManyRowsForward<128, 8, 128>, ManyRowsInverse<128, 8, 128>>(layout);
    expect_two_steps<128, 16, 16, FewRowsForward<128, 4, 4, 32>, FewRowsInverse<128, 4, 4, 32>>(layout);
    expect_two_steps<256, 16, 32, ManyRowsForward<256, 16, 256>, ManyRowsInverse<256, 16, 256>>(layout);
  }
}

TEST(BatchSteps, TransformPlanesThatBlocksShare) {
  expect_block_planes<32, 4, 8, 96>();
  expect_block_planes<64, 8, 8, 288>();
  expect_block_planes<64, 8, 4, 72>();
  expect_block_planes<128, 8, 16, 544>();
}

}  // namespace
}  // namespace twiddle::small_fft
