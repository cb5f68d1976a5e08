#include "framework/tensor_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/error.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

TEST_P(EveryDevice, TensorOpsAdd) {
  const auto stream = make_stream(GetParam());
  const Tensor a = Tensor::from<float>(*stream, {3}, {1, 2, 3});
  const Tensor b = Tensor::from<float>(*stream, {3}, {10, 20, 30});
  Tensor sum(*stream, {3});
  add(*stream, a, b, sum);
  EXPECT_EQ(sum.to_vector(*stream), (std::vector<float>{11, 22, 33}));
}

TEST_P(EveryDevice, TensorOpsAddsBiasToItsChannel) {
  const auto stream = make_stream(GetParam());
  Tensor y = Tensor::filled(*stream, {2, 2, 3}, 0);
  add_bias(*stream, Tensor::from<float>(*stream, {2}, {1, 2}), 3, y);
  EXPECT_EQ(y.to_vector(*stream), (std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(sum_over_channels(*stream, y, 2, 3).to_vector(*stream), (std::vector<float>{6, 12}));
  EXPECT_EQ(sum_over_channels(*stream, y, 6, 1).to_vector(*stream), (std::vector<float>{2, 2, 2, 4, 4, 4}));
}

TEST_P(EveryDevice, TensorOpsNormIncludesTail) {
  const auto stream = make_stream(GetParam());
  const std::vector<Tensor> both = {Tensor::filled(*stream, {4097}, 2), Tensor::filled(*stream, {3}, 1)};
  EXPECT_FLOAT_EQ(l2_norm(*stream, both).to_vector(*stream).at(0), std::sqrt(4.0f * 4097 + 3));
}

TEST_P(EveryDevice, TensorOpsCastRoundsToNearestEven) {
  const auto stream = make_stream(GetParam());
  // Halfway cases, overflow, a subnormal of f16, a NaN; 8 elements and a rest of 3.
  const std::vector<float> x{1,     1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1p-11f, 1 + 0x3p-11f, 65519,
                             65520, 0x1p-24f,    -0x1.8p-24f, 3e38f,        NAN};
  const Tensor wide = Tensor::from(*stream, {11}, x);
  const auto stored_as = [&](DType type) {
    return cast(*stream, cast(*stream, wide, type), DType::f32).to_vector(*stream);
  };
  const std::vector<float> bf16 = stored_as(DType::bf16), f16 = stored_as(DType::f16);
  const std::vector<float> in_bf16{1, 1, 1 + 0x1p-6f, 1, 1, 65536, 65536, 0x1p-24f, -0x1.8p-24f, 3e38f};
  const std::vector<float> in_f16{1,     1 + 0x1p-8f, 1 + 0x3p-8f, 1,         1 + 0x1p-9f,
                                  65504, INFINITY,    0x1p-24f,    -0x1p-23f, INFINITY};
  for (std::size_t i = 0; i < in_f16.size(); ++i) {
    EXPECT_NEAR(bf16[i], in_bf16[i], i == 9 ? 2e36 : 0) << x[i];
    EXPECT_EQ(f16[i], in_f16[i]) << x[i];
  }
  EXPECT_TRUE(std::isnan(bf16[10]) && std::isnan(f16[10]));
  EXPECT_EQ(cast(*stream, wide, DType::f32).read(), wide.read()) << "a cast to its own type copied";
  EXPECT_FALSE(cast(*stream, Tensor(), DType::bf16).defined());
}

TEST_P(EveryDevice, TensorOpsOf16BitsSumInFloat) {
  const auto stream = make_stream(GetParam());
  for (const DType type : {DType::bf16, DType::f16}) {
    const Tensor a = cast(*stream, Tensor::filled(*stream, {2, 2, 300}, 1), type);
    Tensor sum(*stream, a.shape(), type);
    add(*stream, a, a, sum);
    add_bias(*stream, Tensor::from<float>(*stream, {2}, {1, 2}), 300, sum);
    EXPECT_EQ(sum.bytes(), 2400u);
    EXPECT_EQ(cast(*stream, sum, DType::f32).to_vector(*stream).at(300), 4);
    // bf16 has no number between 1,024 and 1,032.
    EXPECT_EQ(sum_over_channels(*stream, sum, 2, 300).to_vector(*stream), (std::vector<float>{1800, 2400}));
    EXPECT_EQ(sum_over_channels(*stream, sum, 600, 1).to_vector(*stream).at(0), 6);
  }
}

// Their squares overflow or underflow a float.
TEST_P(EveryDevice, TensorOpsNormAvoidsOverflowAndUnderflow) {
  const auto stream = make_stream(GetParam());
  const auto norm_of = [&](const std::vector<float>& x) {
    return l2_norm(*stream, {Tensor::from<float>(*stream, {static_cast<std::int64_t>(x.size())}, x)})
        .to_vector(*stream)
        .at(0);
  };
  EXPECT_FLOAT_EQ(norm_of({3e30f, 4e30f}), 5e30f);
  EXPECT_FLOAT_EQ(norm_of({3e-30f, 4e-30f}), 5e-30f);
  EXPECT_FLOAT_EQ(norm_of(std::vector<float>(5000, 3e38f)), std::numeric_limits<float>::max());
  EXPECT_EQ(norm_of({1, -INFINITY}), INFINITY);
  EXPECT_TRUE(std::isnan(norm_of({1, NAN, 2})));
}

TEST_P(EveryDevice, TensorOpsFindsNonFinite) {
  const auto stream = make_stream(GetParam());
  EXPECT_TRUE(all_finite(*stream, Tensor::from<float>(*stream, {2}, {1e38f, -1e38f})));
  EXPECT_FALSE(all_finite(*stream, Tensor::from<float>(*stream, {2}, {1, NAN})));
  EXPECT_FALSE(all_finite(*stream, Tensor::from<float>(*stream, {2}, {1, std::numeric_limits<float>::infinity()})));
}

TEST(TensorOps, RefusesDifferentShapes) {
  const auto stream = make_stream({});
  Tensor two = Tensor::filled(*stream, {2}, 0), three = Tensor::filled(*stream, {3}, 0);
  EXPECT_THROW(add(*stream, two, three, three), Error);
  EXPECT_THROW(add_bias(*stream, two, 1, three), Error);
}

}  // namespace
}  // namespace twiddle
