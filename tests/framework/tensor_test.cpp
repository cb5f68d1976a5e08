#include "framework/tensor.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/support/copy_of.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

TEST_P(EveryDevice, TensorHoldsGivenValues) {
  const auto stream = make_stream(GetParam());
  const Tensor tensor = Tensor::from<float>(*stream, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.to_vector(*stream), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor.size(), 6);
  EXPECT_EQ(tensor.bytes(), 24u);
}

TEST_P(EveryDevice, TensorHandlesShareElements) {
  const auto stream = make_stream(GetParam());
  Tensor tensor = Tensor::filled(*stream, {4}, 1);
  const Tensor handle = tensor.reshaped({2, 2});
  const Tensor copy = copy_of(*stream, tensor);
  stream->fill(tensor.write(), 4, 7);
  EXPECT_EQ(handle.to_vector(*stream), (std::vector<float>{7, 7, 7, 7}));
  EXPECT_EQ(copy.to_vector(*stream), (std::vector<float>{1, 1, 1, 1}));
}

TEST_P(EveryDevice, TensorWriteStartsNewVersion) {
  const auto stream = make_stream(GetParam());
  Tensor a(*stream, {3}), b(*stream, {3});
  EXPECT_NE(a.version(), b.version());
  const Version before = a.version();
  static_cast<void>(a.read());
  EXPECT_EQ(a.version(), before);
  const Tensor view = a.reshaped({3, 1});
  static_cast<void>(a.write());
  EXPECT_NE(a.version(), before);
  EXPECT_EQ(view.version(), a.version());
}

TEST(Tensor, HoldsElementsOf16Bits) {
  const auto stream = make_stream({});
  const Tensor tensor = Tensor::from<Bf16>(*stream, {4}, {{0x3f80}, {0x4000}, {0x4040}, {0x4080}});
  EXPECT_EQ(tensor.bytes(), 8u);
  const Tensor part = tensor.part(2, {2});
  EXPECT_EQ(part.type(), DType::bf16);
  EXPECT_EQ(to_float(part.read<Bf16>()[0]), 3);
  EXPECT_THROW(static_cast<void>(tensor.read()), Error);
  EXPECT_THROW(static_cast<void>(tensor.read<Half>()), Error);
}

TEST(Tensor, RefusesInvalidShapesAndTypes) {
  const auto stream = make_stream({});
  EXPECT_THROW(Tensor::from<float>(*stream, {2, 2}, {1, 2, 3}), Error);
  EXPECT_THROW(Tensor(*stream, {2, -1}), Error);
  EXPECT_THROW(Tensor(*stream, {1LL << 40, 1LL << 40}), Error);
  Tensor tensor(*stream, {4});
  EXPECT_THROW(tensor.reshaped({5}), Error);
  EXPECT_THROW(static_cast<void>(tensor.read<std::int32_t>()), Error);
  EXPECT_THROW(static_cast<void>(Tensor().read()), Error);
}

TEST(Tensor, OutlivesItsStream) {
  auto stream = make_stream({});
  const Tensor tensor = Tensor::filled(*stream, {1000}, 2);
  stream.reset();
  EXPECT_EQ(tensor.read()[999], 2);
}

TEST(Tensor, WrapsExternalMemory) {
  const auto elements = std::make_shared<std::vector<float>>(6, 3.0f);
  Tensor tensor = Tensor::over({}, {2, 3}, {elements, elements->data()});
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.read(), elements->data());
  tensor.write()[5] = 4;
  EXPECT_EQ(elements->back(), 4);
  EXPECT_EQ(elements.use_count(), 2);
  tensor = Tensor();
  EXPECT_EQ(elements.use_count(), 1);
}

TEST(Tensor, FormatsShapes) {
  EXPECT_EQ(to_string(Shape{128, 3, 224, 224}), "128x3x224x224");
  EXPECT_EQ(to_string(Shape{}), "scalar");
}

TEST(Tensor, PartKeepsMemoryAndOwnVersion) {
  const auto stream = make_stream({});
  Tensor whole = Tensor::from<float>(*stream, {5}, {0, 1, 2, 3, 4});
  Tensor part = whole.part(1, {2, 2});
  const Version before = whole.version();
  part.write()[3] = 7;
  EXPECT_EQ(whole.version(), before);
  EXPECT_EQ(whole.to_vector(*stream), (std::vector<float>{0, 1, 2, 3, 7}));
  whole = {};
  EXPECT_EQ(part.to_vector(*stream), (std::vector<float>{1, 2, 3, 7}));
  EXPECT_THROW(part.part(1, {4}), Error);
}

}  // namespace
}  // namespace twiddle
