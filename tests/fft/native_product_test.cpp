// Products of 16-bit matrices by the tensor cores, against sums in double of the same numbers.
#include "fft/native_product.h"

#include "framework/tensor_ops.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"

namespace twiddle {
namespace {

class NativeProducts : public OnGpu {
 protected:
  struct Factor {
    Tensor stored;               // 16 bits
    std::vector<float> numbers;  // the same, rounded
  };
  Factor factor(std::int64_t count, DType type, unsigned seed) {
    Factor made{cast(stream(), on_device(noise(count, seed)), type), {}};
    made.numbers = on_host(cast(stream(), made.stored, DType::f32));
    return made;
  }

  // By [matrix][m][n], or [m][n] for a sum over matrices; `a` and `b` with the product's layouts.
  static std::vector<double> expected(const NativeProduct& p, const std::vector<float>& a, const std::vector<float>& b,
                                      const std::vector<float>& bias) {
    const std::int64_t matrices = p.sums_matrices ? 1 : p.matrices;
    std::vector<double> c(static_cast<std::size_t>(matrices * p.m * p.n));
    for (std::int64_t matrix = 0; matrix < p.matrices; ++matrix) {
      const float *const of_a = a.data() + (p.one_a ? 0 : matrix * p.m * p.k), *const of_b =
                                                                                   b.data() +
                                                                                   (p.one_b ? 0 : matrix * p.n * p.k);
      double* const of_c = c.data() + (p.sums_matrices ? 0 : matrix * p.m * p.n);
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < p.k; ++k)
            sum += double(of_a[p.a_along_k ? i * p.k + k : k * p.m + i]) *
                   double(of_b[p.b_along_k ? j * p.k + k : k * p.n + j]);
          of_c[i * p.n + j] += sum;
        }
    }
    for (std::size_t i = 0; i < c.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / p.n % p.m, column = static_cast<std::int64_t>(i) % p.n;
      if (!bias.empty()) c[i] += bias[static_cast<std::size_t>(p.bias_of_rows ? row : column)];
      if (p.relu) c[i] = std::max(c[i], 0.0);
    }
    return c;
  }

  // The relative L2 error, of which rounding C once makes at most 2e-3 in bf16 and 3e-4 in f16.
  void expect_product(NativeProduct p, bool biased = false) {
    if (!can_multiply_native(stream().device(), p)) GTEST_SKIP() << "needs wgmma";
    const Factor a = factor((p.one_a ? 1 : p.matrices) * p.m * p.k, p.type, 1),
                 b = factor((p.one_b ? 1 : p.matrices) * p.n * p.k, p.type, 2);
    const std::vector<float> bias = biased ? noise(p.bias_of_rows ? p.m : p.n, 3) : std::vector<float>{};
    const Tensor of_bias = biased ? on_device(bias) : Tensor();
    Tensor c = cast(stream(), poisoned(Shape{p.sums_matrices ? 1 : p.matrices, p.m, p.n}), p.type_of_c);
    Tensor scratch = poisoned(scratch_bytes(stream().device(), p) + sizeof(float));
    with_type(p.type, [&](auto type) { p.a = a.stored.read<decltype(type)>(), p.b = b.stored.read<decltype(type)>(); });
    with_type(p.type_of_c, [&](auto type) { p.c = c.write<decltype(type)>(); });
    p.bias = biased ? of_bias.read() : nullptr;
    multiply_native(stream(), p, scratch.write());
    const std::vector<double> sums = expected(p, a.numbers, b.numbers, bias);
    const std::vector<float> found = on_host(cast(stream(), c, DType::f32));
    ASSERT_EQ(found.size(), sums.size());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      difference += (found[i] - sums[i]) * (found[i] - sums[i]);
      norm += sums[i] * sums[i];
    }
    const double limit = p.type_of_c == DType::bf16 ? 2e-3 : p.type_of_c == DType::f16 ? 3e-4 : 5e-5;
    EXPECT_LE(std::sqrt(difference / norm), limit) << p.m << " x " << p.n << " x " << p.k;
    EXPECT_GT(norm, 0);
  }
};

TEST_F(NativeProducts, MatchDoubleInEveryLayout) {
  for (const DType type : {DType::bf16, DType::f16})
    for (const auto& [a_along_k, b_along_k] : {std::pair(true, true), {true, false}, {false, false}})
      for (const DType type_of_c : {type, DType::f32})
        expect_product({.type = type,
                        .m = 200,
                        .n = 328,
                        .k = 136,
                        .a_along_k = a_along_k,
                        .b_along_k = b_along_k,
                        .matrices = 3,
                        .type_of_c = type_of_c});
}

TEST_F(NativeProducts, MatchDoubleInEveryShape) {
  for (const auto& [m, n, k] :
       {std::array{1, 8, 8}, {128, 128, 64}, {129, 264, 72}, {64, 3136, 256}, {1000, 128, 2048}})
    expect_product({.m = m, .n = n, .k = k, .a_along_k = true, .b_along_k = false});
}

// One matrix of weights for all images, as in a 1x1 layer; its gradient sums over the images.
TEST_F(NativeProducts, ServePassesOf1x1Layer) {
  constexpr std::int64_t images = 5, filters = 72, channels = 136, places = 200;
  expect_product({.m = filters,
                  .n = places,
                  .k = channels,
                  .b_along_k = false,
                  .matrices = images,
                  .one_a = true,
                  .bias_of_rows = true,
                  .relu = true},
                 true);
  expect_product({.m = channels,
                  .n = places,
                  .k = filters,
                  .a_along_k = false,
                  .b_along_k = false,
                  .matrices = images,
                  .one_a = true});
  expect_product(
      {.m = filters, .n = channels, .k = places, .matrices = images, .sums_matrices = true, .type_of_c = DType::f32});
}

// Long sums are split along k. Bias and ReLU follow their sum.
TEST_F(NativeProducts, SumInParts) {
  expect_product({.m = 128, .n = 256, .k = 65536, .type_of_c = DType::f32});
  expect_product({.m = 96, .n = 64, .k = 8192, .relu = true}, true);
}

TEST_F(NativeProducts, RepeatBitwise) {
  NativeProduct p{.m = 512, .n = 1024, .k = 4096, .type_of_c = DType::f32};
  if (!can_multiply_native(stream().device(), p)) GTEST_SKIP() << "needs wgmma";
  const Factor a = factor(p.m * p.k, p.type, 1), b = factor(p.n * p.k, p.type, 2);
  p.a = a.stored.read<Bf16>(), p.b = b.stored.read<Bf16>();
  std::vector<float> first;
  for (int run = 0; run < 50; ++run) {
    Tensor c = poisoned(Shape{p.m, p.n}), scratch = poisoned(scratch_bytes(stream().device(), p) + sizeof(float));
    p.c = c.write();
    multiply_native(stream(), p, scratch.write());
    const std::vector<float> found = on_host(c);
    if (run == 0) first = found;
    ASSERT_EQ(found, first) << run;
  }
}

TEST_F(NativeProducts, RefuseRowsThatCopyEngineCannotTake) {
  EXPECT_FALSE(can_multiply_native(stream().device(), {.m = 64, .n = 196, .k = 64, .b_along_k = false}));
  EXPECT_FALSE(can_multiply_native(stream().device(), {.m = 64, .n = 64, .k = 100}));
}

}  // namespace
}  // namespace twiddle
