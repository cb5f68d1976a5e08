// Runs the blocks of the depthwise GPU kernels on the CPU: all threads of one phase before the next.
#include "layers/conv/kernels/cuda/depthwise_blocks.h"

#include <gtest/gtest.h>

#include "layers/conv/kernels/cuda/depthwise_arguments.h"
#include "tests/support/conv_problem.h"
#include "tests/support/depthwise_check.h"
#include "tests/support/depthwise_problem.h"

namespace twiddle::depthwise {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Shared memory filled with stale values, and guard elements after its end.
class SharedMemory {
 public:
  explicit SharedMemory(int floats)
      : floats_(floats), memory_(static_cast<std::size_t>(floats / 4 + 2), Four{nan, nan, nan, nan}) {
    for (int i = 0; i < 4; ++i) data()[floats_ + i] = guard;
  }
  ~SharedMemory() {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(data()[floats_ + i], guard) << "after " << floats_ << " floats";
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  float* data() { return reinterpret_cast<float*>(memory_.data()); }

 private:
  static constexpr float guard = 12345;
  int floats_;
  std::vector<Four> memory_;
};

template <class Step>
void for_each_thread(int threads, const Step& step) {
  for (int thread = 0; thread < threads; ++thread) step(OneThread{thread, threads});
}

template <class Blocks>
void load(const Blocks& blocks, const typename Blocks::Place& at, int round, const OneThread& thread, float* buffer) {
  if constexpr (requires { blocks.loads_of(at, thread); })
    blocks.load(at, round, blocks.loads_of(at, thread), buffer);
  else
    blocks.load(at, round, thread, buffer);
}

// Calls compute(round, planes) for each round of a block. The other buffer is already filled for the next round.
template <class Blocks, class Compute>
void for_each_round(const Blocks& blocks, const typename Blocks::Place& at, int threads, float* buffers,
                    const Compute& compute) {
  const int ahead = blocks.buffers() - 1;
  const auto buffer = [&](int round) { return buffers + (round & ahead) * blocks.buffer_floats(); };
  for (int round = -ahead; round < 0 || blocks.has_round(at, round); ++round) {
    const int next = round + ahead;
    if (blocks.has_round(at, next))
      for_each_thread(threads, [&](const OneThread& thread) { load(blocks, at, next, thread, buffer(next)); });
    if (round >= 0) compute(round, buffer(round));
  }
}

// Correlation and RowCorrelation.
template <class Blocks>
void follow_correlation(const Blocks& blocks) {
  ASSERT_LE(blocks.buffer_floats(), most_staged);
  ASSERT_LE(blocks.threads(), most_threads);
  for (int block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats());
    float* const taps = shared.data();
    const auto at = blocks.place(block);
    const auto each = [&](const auto& step) { for_each_thread(blocks.threads(), step); };
    each([&](const OneThread& thread) { clear(blocks.staged_floats(), thread, shared.data()); });
    each([&](const OneThread& thread) { blocks.load_taps(at, thread, taps); });
    for_each_round(blocks, at, blocks.threads(), taps + blocks.taps_staged(), [&](int round, const float* planes) {
      each([&](const OneThread& thread) { blocks.compute(at, round, blocks.patch_of(thread), planes, taps); });
    });
  }
}

template <int K, int S>
void follow(const Correlation<K, S>& blocks) {
  follow_correlation(blocks);
}
void follow(const RowCorrelation& blocks) {
  follow_correlation(blocks);
}

template <int N, int K>
void follow(const CellCorrelation<N, K>& blocks) {
  for (int block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats());
    float* const taps = shared.data();
    const auto at = blocks.place(block);
    std::vector<typename CellCorrelation<N, K>::Held> all(static_cast<std::size_t>(blocks.threads()));
    const auto held = [&](const OneThread& thread) -> auto& {
      return all[static_cast<std::size_t>(thread.number)];
    };
    const auto each = [&](const auto& step) { for_each_thread(blocks.threads(), step); };
    each([&](const OneThread& thread) { blocks.load_taps(at, thread, taps); });
    for_each_round(blocks, at, blocks.threads(), taps + blocks.taps_staged(), [&](int round, float* cells) {
      each([&](const OneThread& thread) { blocks.take(at, thread, cells, taps, held(thread)); });
      each([&](const OneThread& thread) { blocks.put(at, thread, held(thread), taps, cells); });
      each([&](const OneThread& thread) { blocks.store(at, round, thread, cells); });
    });
  }
}

// RowWeightSums and ChannelWeightSums.
template <class Blocks>
void follow_gathered_sums(const Blocks& blocks) {
  for (int block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats());
    const auto at = blocks.place(block);
    const auto each = [&](const auto& step) { for_each_thread(blocks.threads(), step); };
    std::vector<typename Blocks::Sums> all(static_cast<std::size_t>(blocks.threads()));
    const auto sums = [&](const OneThread& thread) -> auto& {
      return all[static_cast<std::size_t>(thread.number)];
    };
    if (Blocks::padded) each([&](const OneThread& thread) { clear(blocks.staged_floats(), thread, shared.data()); });
    for_each_round(blocks, at, blocks.threads(), shared.data(), [&](int round, const float* planes) {
      each([&](const OneThread& thread) { blocks.add(at, round, blocks.share_of(thread), planes, sums(thread)); });
    });
    each([&](const OneThread& thread) { blocks.gather(thread, sums(thread), shared.data()); });
    each([&](const OneThread& thread) { blocks.store(at, thread, shared.data()); });
  }
}

void follow(const RowWeightSums& blocks) {
  ASSERT_LE(blocks.buffer_floats(), most_staged);
  ASSERT_LE(blocks.threads(), most_threads);
  follow_gathered_sums(blocks);
}

template <int N, int K>
void follow(const ChannelWeightSums<N, K>& blocks) {
  follow_gathered_sums(blocks);
}

template <int N>
void follow(const WholeCorrelation<N>& blocks) {
  for (int block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats);
    const auto at = blocks.place(block);
    std::vector<typename WholeCorrelation<N>::Row> rows(blocks.threads);
    const auto row = [&](const OneThread& thread) -> auto& {
      return rows[static_cast<std::size_t>(thread.number)];
    };
    const auto each = [&](const auto& step) { for_each_thread(blocks.threads, step); };
    each([&](const OneThread& thread) { clear(blocks.staged_floats, thread, shared.data()); });
    each([&](const OneThread& thread) { blocks.load(at, thread, shared.data()); });
    each([&](const OneThread& thread) { blocks.compute(at, thread, shared.data(), row(thread)); });
    each([&](const OneThread& thread) { blocks.gather(thread, row(thread), shared.data()); });
    each([&](const OneThread& thread) { blocks.store(at, thread, shared.data()); });
  }
}

// WeightSums, WholeWeightSums and CellWeightSums.
template <class Blocks>
void follow_sums(const Blocks& blocks, int threads) {
  constexpr int lanes = 32, count = Blocks::sums_each;
  for (int block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats());
    const auto at = blocks.place(block);
    std::vector<typename Blocks::Sums> sums(static_cast<std::size_t>(threads));
    if (Blocks::padded)
      for_each_thread(threads, [&](const OneThread& thread) { clear(blocks.staged_floats(), thread, shared.data()); });
    for_each_round(blocks, at, threads, shared.data(), [&](int round, const float* planes) {
      for_each_thread(threads, [&](const OneThread& thread) {
        blocks.add(at, round, thread, blocks.share_of(thread), planes, sums[static_cast<std::size_t>(thread.number)]);
      });
    });
    std::fill_n(shared.data(), blocks.warps() * count, 0.0f);
    for (int thread = 0; thread < threads; ++thread)
      for (int i = 0; i < count; ++i)
        shared.data()[thread / lanes * count + i] += sums[static_cast<std::size_t>(thread)].values[i];
    for_each_thread(threads, [&](const OneThread& thread) { blocks.store(at, thread, shared.data()); });
  }
}

template <int K, int G>
void follow(const WeightSums<K, G>& blocks) {
  ASSERT_LE(blocks.buffer_floats(), most_staged);
  ASSERT_LE(blocks.threads(), most_threads);
  follow_sums(blocks, blocks.threads());
}

template <int N>
void follow(const WholeWeightSums<N>& blocks) {
  follow_sums(blocks, blocks.threads());
}

template <class Work>
void follow(const CellWeightSums<Work>& blocks) {
  follow_sums(blocks, blocks.threads());
}

// Runs what depthwise.cu launches. Small problems have one round; `change(blocks)` can add rounds.
template <class Change>
void follow_pass(const ConvProblem& p, ConvPass pass, ConvOperands& operands, const Change& change) {
  const auto values = [](const Tensor& tensor) { return tensor.defined() ? tensor.read() : nullptr; };
  const float *const bias = values(operands.bias), *const mask = values(operands.mask);
  if (pass == ConvPass::forward)
    return with_forward_blocks(p, operands.x.read(), operands.w.read(), bias, operands.relu, operands.y.write(),
                               [&](auto blocks) { change(blocks), follow(blocks); });
  if (pass == ConvPass::backward_input)
    return with_backward_input_blocks(p, operands.y.read(), mask, operands.w.read(), operands.x.write(),
                                      [&](auto blocks) { change(blocks), follow(blocks); });
  std::vector<float> partial(static_cast<std::size_t>(partial_floats(p)), nan);  // enough for more rounds, too
  const WeightResults results{operands.w.write(), bias == nullptr ? nullptr : operands.bias.write(), partial.data()};
  with_weight_blocks(p, operands.x.read(), operands.y.read(), mask, results, [&](auto blocks) {
    change(blocks), follow(blocks);
    if (blocks.parts() == 1) return;
    // Written out here: an instance of reduce_columns() for these sums would be linked instead of the GPU's.
    const SumParts sums = sum_of_parts(p, results);
    for (std::int64_t column = 0; column < sums.columns; ++column) {
      double sum = 0;
      for (std::int64_t part = 0; part < blocks.parts(); ++part) sum += sums.term(part, column);
      sums.store(column, sum);
    }
  });
}

template <class Change>
void expect_right(const ConvProblem& problem, bool masked, const Change& change) {
  Context ctx;
  ASSERT_TRUE(fits(problem)) << to_string(problem);
  for (const ConvPass pass : every_pass)
    expect_depthwise_pass(ctx, problem, pass, masked && (pass == ConvPass::backward_input || sums_bias(problem)),
                          [&](ConvOperands& operands) { follow_pass(problem, pass, operands, change); });
}
void expect_right(const ConvProblem& problem, bool masked) {
  expect_right(problem, masked, [](const auto&) {});
}

// For blocks with several rounds.
auto in_rounds(int rounds) {
  return [rounds](auto& blocks) {
    if constexpr (requires { blocks.rounds = rounds; }) blocks.rounds = rounds;
    if constexpr (requires { blocks.two_buffers = true; }) blocks.two_buffers = true;
  };
}

TEST(DepthwiseBlocks, MatchReferenceOnRandomProblems) {
  for (int number = 0; number < random_depthwise_problems(); ++number)
    expect_right(random_depthwise_problem(number, largest_kernel, 2, 1), number % 2 == 0);
}

TEST(DepthwiseBlocks, MatchReferenceIfKernelExceedsPlane) {
  for (const ConvProblem& problem :
       conv_problems({"64x2x7x7 * 2x1x13x13 pad 6 groups 2", "40x3x7x7 * 3x1x7x7 pad 3 groups 3",
                      "33x2x8x8 * 2x1x9x9 pad 4 groups 2", "3x2x14x14 * 2x1x27x27 pad 13 groups 2",
                      "35x1x16x16 * 1x1x17x17 pad 8", "17x2x5x7 * 2x1x31x13 pad 15x6 groups 2",
                      "20x2x4x6 * 2x1x8x7 pad 4x3 groups 2", "300x1x7x7 * 1x1x13x13 pad 6",
                      "2x2x10x16 * 2x1x12x14 pad 4x6 groups 2"})) {
    EXPECT_TRUE(by_whole_planes(problem)) << to_string(problem);
    expect_right(problem, true);
    expect_right(problem, false);
  }
}

TEST(DepthwiseBlocks, MatchReferenceOnLayersOfNetworks) {
  for (const ConvProblem& problem :
       conv_problems({"2x3x56x56 * 3x1x7x7 pad 3 groups 3", "65x2x14x14 * 2x1x7x7 pad 3 groups 2",
                      "9x3x7x7 * 3x1x7x7 pad 3 groups 3", "1x2x112x112 * 2x1x3x3 stride 2 pad 1 groups 2",
                      "3x2x28x28 * 2x1x5x5 stride 2 pad 2 groups 2", "1x2x224x224 * 2x1x11x11 pad 5 groups 2",
                      "1x1x300x20 * 1x1x9x9 pad 4", "2x2x1x600 * 2x1x1x9 pad 0x4 groups 2"}))
    expect_right(problem, true);
}

TEST(DepthwiseBlocks, MatchReferenceOnCells) {
  for (const ConvProblem& problem : problems_of_cells()) {
    EXPECT_TRUE(by_cells(problem)) << to_string(problem);
    for (const bool masked : {true, false}) expect_right(problem, masked);
    for (const int rounds : {2, 3}) expect_right(problem, true, in_rounds(rounds));
  }
}

TEST(DepthwiseBlocks, MatchReferenceOnRows) {
  for (const ConvProblem& problem :
       conv_problems({"3x2x1x512 * 2x1x1x7 pad 0x3 groups 2", "2x2x1x4096 * 2x1x1x127 pad 0x63 groups 2",
                      "2x1x1x2100 * 1x1x1x1023 pad 0x511", "1x1x1x50 * 1x1x1x2040 pad 0x1100",
                      "9x3x1x37 * 3x1x1x12 pad 0x5 groups 3", "40x1x1x5 * 1x1x1x31 pad 0x15",
                      "3x2x1x90 * 2x1x1x20 groups 2", "2x2x1x66 * 2x1x1x14 pad 0x17 groups 2"}))
    for (const bool masked : {true, false}) expect_right(problem, masked);
}

TEST(DepthwiseBlocks, MatchReferenceInSeveralRounds) {
  for (const int rounds : {2, 3})
    for (const ConvProblem& problem : conv_problems(
             {"25x2x14x14 * 2x1x7x7 pad 3 groups 2", "41x2x10x9 * 2x1x3x3 stride 2 pad 1 groups 2",
              "5x1x60x20 * 1x1x9x9 pad 4", "100x2x7x7 * 2x1x13x13 pad 6 groups 2", "70x1x14x14 * 1x1x27x27 pad 13",
              "13x2x1x70 * 2x1x1x31 pad 0x15 groups 2", "7x1x1x2500 * 1x1x1x33 pad 0x16"}))
      expect_right(problem, true, in_rounds(rounds));
}

TEST(DepthwiseBlocks, UseSeveralRoundsForManyImages) {
  const ConvProblem problem = conv_problems({"64x96x56x56 * 96x1x7x7 pad 3 groups 96"}).front();
  with_weight_blocks(problem, nullptr, nullptr, nullptr, {}, [](const auto& blocks) { EXPECT_GT(blocks.rounds, 1); });
}

TEST(DepthwiseBlocks, RejectProblemsWithoutKernel) {
  for (const ConvProblem& problem :
       conv_problems({"1x2x30x30 * 2x1x13x3 pad 6x1 groups 2", "1x2x30x30 * 2x1x3x3 stride 3 groups 2",
                      "1x2x30x30 * 2x1x3x3 stride 1x2 groups 2", "1x2x30x30 * 2x1x3x3 dilation 2 groups 2"}))
    EXPECT_FALSE(fits(problem)) << to_string(problem);
}

}  // namespace
}  // namespace twiddle::depthwise
