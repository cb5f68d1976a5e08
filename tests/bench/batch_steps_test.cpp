// Runs the steps of one block of the batched transforms on the CPU and compares them with the definition.
#include <gtest/gtest.h>

#include <cstring>

#include "apps/bench/cuda/column_fft.h"
#include "apps/bench/cuda/plane_major_fft.h"
#include "apps/bench/cuda/row_fft_few.h"
#include "apps/bench/cuda/row_fft_many.h"
#include "apps/bench/cuda/shared_plane_fft.h"
#include "framework/error.h"
#include "tests/bench/plain_fft.h"
#include "tests/support/check_close.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"

namespace twiddle::small_fft {
namespace {

constexpr float untouched = 12345;  // after the last element that a block may write
constexpr int guard = 64;

// Memory as a GPU kernel gets it: 16-byte aligned and filled with NaN. Detects writes after its end.
class Watched {
 public:
  explicit Watched(std::size_t floats)
      : floats_(floats),
        memory_((floats + guard + 3) / 4, Four{{not_a_number, not_a_number, not_a_number, not_a_number}}) {
    std::fill(data() + floats, data() + floats + guard, untouched);
  }
  Watched(const std::vector<float>& values) : Watched(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return memory_.data()->at; }
  Complex* numbers() { return reinterpret_cast<Complex*>(data()); }
  std::vector<float> values() {
    for (std::size_t i = floats_; i < floats_ + guard; ++i) EXPECT_EQ(data()[i], untouched) << "written after the end";
    return {data(), data() + floats_};
  }

 private:
  std::size_t floats_;
  std::vector<Four> memory_;
};

template <int Sign, int Step = 0, class Block, class Arguments>
void follow_steps(std::vector<Block>& threads, const Arguments& arguments, typename Block::Shared& shared) {
  if constexpr (Step < steps_of<Sign, Block>) {
    if (threads[0].block % 2 == 0)  // between barriers any order will do
      for (auto thread = threads.begin(); thread != threads.end(); ++thread)
        take_step<Sign, Step>(*thread, arguments, shared);
    else
      for (auto thread = threads.rbegin(); thread != threads.rend(); ++thread)
        take_step<Sign, Step>(*thread, arguments, shared);
    follow_steps<Sign, Step + 1>(threads, arguments, shared);
  }
}

template <class Block, int Sign, class Arguments>
void follow(const Arguments& arguments) {
  for (std::int64_t block = 0; block < (arguments.count + Block::count - 1) / Block::count; ++block) {
    const auto shared = std::make_unique<typename Block::Shared>();
    std::memset(static_cast<void*>(shared.get()), 0xff, sizeof(typename Block::Shared));  // what others left there
    std::vector<Block> threads;
    for (int thread = 0; thread < Block::threads; ++thread) {
      threads.emplace_back(block, thread);
      if constexpr (requires { threads.back().prepare(arguments); }) threads.back().prepare(arguments);
    }
    follow_steps<Sign>(threads, arguments, *shared);
  }
}

template <class Block>
void expect_batch(const FftBatch& batch, double promised) {
  SCOPED_TRACE(to_string(batch));
  const std::vector<float> values = noise(batch.count * batch.height * batch.width);
  Watched planes(values), back(values.size()), spectra(static_cast<std::size_t>(2 * batch.count * bins_of(batch)));
  const std::int64_t pitch = batch.layout == BinLayout::frequency_major ? batch.count : 0;
  follow<Block, forwards>(BatchForward{batch.count, pitch, planes.numbers(), spectra.numbers()});
  const auto expected = plain_spectra(values, batch.height, batch.width);
  EXPECT_LE(error_of_spectra(batch, spectra.values(), expected), promised);
  follow<Block, backwards>(BatchInverse{batch.count, pitch, spectra.numbers(), back.numbers()});
  EXPECT_LE(relative_error(back.values(), values), promised);
}

template <class Block>
void expect_rows(int points) {
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major})
    for (const int count : {1, Block::count, Block::count + 3})
      expect_batch<Block>({.width = points, .count = count, .layout = layout}, 3e-7);
}

template <int... N>
void expect_rows_of_threads() {
  (expect_rows<ThreadRows<N, 32, N % 4 == 0 ? 1 : 2>>(N), ...);
  (expect_rows<DirectRows<N, 32>>(N), ...);
}

template <int N, int A, int Threads>
void expect_many_rows() {
  expect_rows<ManyRows<N, A, Threads>>(N);
}

template <int N, int A1, int A2>
void expect_few_rows() {
  expect_rows<FewRows<N, A1, A2, 32>>(N);
}

template <int H, int W, int P>
void expect_planes() {
  for (const int count : {1, P + 1}) {
    const FftBatch batch{.height = H, .width = W, .count = count};
    expect_batch<PlaneMajor<H, W, P>>(batch, 5e-7);
    expect_batch<DirectPlaneMajor<H, W, P>>(batch, 5e-7);
  }
}

template <int N, int RowA, int ColumnA, int Threads>
void expect_shared_planes() {
  expect_batch<SharedPlane<N, RowA, ColumnA, Threads>>({.height = N, .width = N, .count = 2}, 5e-7);
}

// Planes in two steps.
template <class Rows, class Columns, int N>
void expect_two_steps(BinLayout layout) {
  const FftBatch batch{.height = N, .width = N, .count = 3, .layout = layout};
  SCOPED_TRACE(to_string(batch));
  const std::int64_t rows = batch.count * N;
  const std::vector<float> values = noise(rows * N);
  const auto numbers = static_cast<std::size_t>(2 * batch.count * bins_of(batch));
  Watched planes(values), back(values.size()), row_bins(numbers), spectra(numbers);
  const ColumnArguments columns = column_arguments(batch, row_bins.numbers(), spectra.numbers());
  follow<Rows, forwards>(BatchForward{rows, rows, planes.numbers(), row_bins.numbers()});
  row_bins.values();
  follow<Columns, forwards>(columns);
  EXPECT_LE(error_of_spectra(batch, spectra.values(), plain_spectra(values, N, N)), 5e-7);
  follow<Columns, backwards>(columns);
  row_bins.values();
  follow<Rows, backwards>(BatchInverse{rows, rows, row_bins.numbers(), back.numbers()});
  EXPECT_LE(relative_error(back.values(), values), 5e-7);
}

TEST(BatchSteps, TransformRowsInOneThread) {
  expect_rows_of_threads<2, 4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48>();
}

TEST(BatchSteps, TransformRowsSplitAcrossThreads) {
  expect_many_rows<64, 8, 128>();
  expect_many_rows<128, 8, 128>();
  expect_many_rows<256, 16, 256>();
  expect_few_rows<64, 4, 4>();
  expect_few_rows<128, 4, 4>();
  expect_few_rows<256, 8, 4>();
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

TEST(BatchSteps, TransformLargePlanesInTwoSteps) {
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major}) {
    expect_two_steps<ManyRows<128, 8, 128>, Columns<128, 16>, 128>(layout);
    expect_two_steps<FewRows<128, 4, 4, 32>, Columns<128, 16>, 128>(layout);
    expect_two_steps<ManyRows<256, 16, 256>, Columns<256, 16, 32>, 256>(layout);
  }
}

TEST(BatchSteps, TransformPlanesSplitAcrossBlocks) {
  expect_shared_planes<32, 4, 8, 96>();
  expect_shared_planes<64, 8, 8, 288>();
  expect_shared_planes<64, 8, 4, 72>();
  expect_shared_planes<128, 8, 16, 544>();
}

}  // namespace
}  // namespace twiddle::small_fft
