// The blocks of the depthwise kernels for a GPU, followed on the CPU: all threads of one phase before the next.
#include "layers/conv/cuda/depthwise_blocks.h"

#include <gtest/gtest.h>

#include "layers/conv/cuda/depthwise_arguments.h"
#include "tests/support/conv_problem.h"
#include "tests/support/depthwise_check.h"
#include "tests/support/depthwise_problem.h"

namespace twiddle::depthwise {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Shared memory full of what others left there, and behind it what nobody may touch.
class SharedMemory {
 public:
  explicit SharedMemory(int floats)
      : floats_(floats), memory_(static_cast<std::size_t>(floats / 4 + 2), Four{nan, nan, nan, nan}) {
    for (int i = 0; i < 4; ++i) data()[floats_ + i] = guard;
  }
  ~SharedMemory() {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(data()[floats_ + i], guard) << "behind " << floats_ << " floats";
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

template <int K, int S>
void follow(const Correlation<K, S>& blocks) {
  ASSERT_LE(blocks.staged_floats(), most_staged);
  const int threads = std::min(most_threads, in_warps(blocks.images * blocks.patches()));
  for (std::int64_t block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats());
    const auto at = blocks.place(block);
    for_each_thread(threads, [&](const OneThread& thread) { blocks.load(at, thread, shared.data()); });
    for_each_thread(threads, [&](const OneThread& thread) { blocks.compute(at, thread, shared.data()); });
  }
}

template <int K, int G>
void follow(const WeightSums<K, G>& blocks) {
  using Sums = typename WeightSums<K, G>::Sums;
  ASSERT_LE(blocks.staged_floats(), most_staged);
  const int threads = blocks.threads();
  ASSERT_LE(threads, most_threads);
  for (std::int64_t block = 0; block < blocks.blocks(); ++block) {
    SharedMemory shared(blocks.staged_floats());
    const auto at = blocks.place(block);
    std::vector<Sums> sums(static_cast<std::size_t>(threads), Sums{});
    for (int round = 0; blocks.has_round(at, round); ++round) {
      for_each_thread(threads, [&](const OneThread& thread) { blocks.load(at, round, thread, shared.data()); });
      for_each_thread(threads, [&](const OneThread& thread) {
        blocks.add(at, round, thread, shared.data(), sums[static_cast<std::size_t>(thread.number)]);
      });
    }
    for (int warp = 0; warp < blocks.warps(); ++warp) {
      Sums& total = sums[static_cast<std::size_t>(warp * blocks.warp)];
      for (int lane = 1; lane < blocks.warp; ++lane) {
        const Sums& other = sums[static_cast<std::size_t>(warp * blocks.warp + lane)];
        for (int g = 0; g < G; ++g)
          for (int kx = 0; kx < K; ++kx) total.taps[g][kx] += other.taps[g][kx];
        total.bias += other.bias;
      }
      blocks.keep(warp, total, shared.data());
    }
    for_each_thread(threads, [&](const OneThread& thread) { blocks.store(at, thread, shared.data()); });
  }
}

// What depthwise.cu launches.
void follow_pass(Stream& stream, const ConvProblem& p, ConvPass pass, ConvOperands& operands) {
  const auto values = [](const Tensor& tensor) { return tensor.defined() ? tensor.read() : nullptr; };
  const int kernel = std::max(p.kernel_h, p.kernel_w);
  if (pass == ConvPass::forward) {
    float* const y = operands.y.write();
    with_kernel(kernel, [&]<int K>() {
      const float *const x = values(operands.x), *const w = values(operands.w), *const bias = values(operands.bias);
      if (p.stride_h == 1)
        follow(forward_blocks<K, 1>(p, x, w, bias, operands.relu, y));
      else
        follow(forward_blocks<K, 2>(p, x, w, bias, operands.relu, y));
    });
  } else if (pass == ConvPass::backward_input) {
    float* const grad_x = operands.x.write();
    with_kernel(kernel, [&]<int K>() {
      follow(backward_input_blocks<K>(p, values(operands.y), values(operands.mask), values(operands.w), grad_x));
    });
  } else {
    float *const weight = operands.w.write(), *const bias = operands.bias.defined() ? operands.bias.write() : nullptr;
    std::vector<float> partial(static_cast<std::size_t>(partial_floats(p)), nan);
    with_kernel(p.kernel_w, [&]<int K>() {
      const auto blocks = weight_blocks<K, rows_of_taps<K>>(p, values(operands.x), values(operands.y),
                                                            values(operands.mask), bias != nullptr, partial.data());
      follow(blocks);
      const SumParts sums = sum_of_parts(p, partial.data(), weight, bias);
      reduce_columns(stream, blocks.parts(), sums.columns, sums);
    });
  }
}

void expect_right(const ConvProblem& problem, bool masked) {
  Context ctx;
  ASSERT_TRUE(fits(problem)) << to_string(problem);
  for (const ConvPass pass : every_pass)
    expect_depthwise_pass(ctx, problem, pass, masked && (pass == ConvPass::backward_input || sums_bias(problem)),
                          [&](ConvOperands& operands) { follow_pass(*ctx.stream, problem, pass, operands); });
}

TEST(DepthwiseBlocks, AgreeWithTheReferenceOnRandomProblems) {
  for (int number = 0; number < random_depthwise_problems(); ++number)
    expect_right(random_depthwise_problem(number, largest_kernel, 2, 1), number % 2 == 0);
}

TEST(DepthwiseBlocks, AgreeWithTheReferenceOnLayersOfNetworks) {
  for (const ConvProblem& problem :
       conv_problems({"2x3x56x56 * 3x1x7x7 pad 3 groups 3", "65x2x14x14 * 2x1x7x7 pad 3 groups 2",
                      "40x3x7x7 * 3x1x7x7 pad 3 groups 3", "1x2x112x112 * 2x1x3x3 stride 2 pad 1 groups 2",
                      "3x2x28x28 * 2x1x5x5 stride 2 pad 2 groups 2", "1x2x224x224 * 2x1x11x11 pad 5 groups 2",
                      "1x1x300x20 * 1x1x9x9 pad 4", "2x2x1x600 * 2x1x1x9 pad 0x4 groups 2"}))
    expect_right(problem, true);
}

TEST(DepthwiseBlocks, RefuseWhatTheyHaveNoKernelFor) {
  for (const ConvProblem& problem :
       conv_problems({"1x2x30x30 * 2x1x13x3 pad 6x1 groups 2", "1x2x30x30 * 2x1x3x3 stride 3 groups 2",
                      "1x2x30x30 * 2x1x3x3 stride 1x2 groups 2", "1x2x30x30 * 2x1x3x3 dilation 2 groups 2"}))
    EXPECT_FALSE(fits(problem)) << to_string(problem);
}

}  // namespace
}  // namespace twiddle::depthwise
