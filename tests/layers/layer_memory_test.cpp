// Compares the bytes that a layer reports to keep for the backward pass with what the tape really holds: memory plans
// use the reported bytes.
#include <gtest/gtest.h>

#include <map>

#include "layers/layer.h"
#include "tests/support/check_layer.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

const Shape image_shape{8, 32, 32};
constexpr std::int64_t batch_size = 64;  // 2 MiB of input

const std::map<std::string, LayerOptions> options_of_kinds{
    {"avg_pool", {{"kernel", "2"}, {"stride", "2"}}},
    {"conv2d", {{"filters", "16"}, {"kernel", "3"}, {"pad", "1"}, {"engine", "gemm"}}},
    {"conv_transpose2d", {{"filters", "16"}, {"kernel", "3"}, {"pad", "1"}, {"engine", "gemm"}}},
    {"drop_path", {{"rate", "0.1"}}},
    {"group_norm", {{"groups", "4"}}},
    {"linear", {{"outputs", "10"}}},
    {"max_pool", {{"kernel", "2"}, {"stride", "2"}}},
    {"pad", {{"size", "1"}}}};

std::size_t bytes_of(const Shape& shape) {
  return static_cast<std::size_t>(batch_size * count_of(shape)) * sizeof(float);
}

// Bytes on the tape after the values of input and output are released.
std::size_t held_after_forward(LayerUnderTest& tested, const Shape& image) {
  Context& ctx = tested.ctx;
  const std::size_t before = ctx.stream->memory().in_use;
  Shape shape = image;
  shape.insert(shape.begin(), batch_size);
  const Variable x(Tensor::filled(*ctx.stream, shape, 0.5f), true);
  const Variable y = tested.layer->forward(ctx, x);
  x.drop_value();
  y.drop_value();
  const std::size_t held = ctx.stream->memory().in_use - before;
  ctx.tape.clear();
  return held;
}

void expect_kept_as_said(Device device, const std::string& kind, const LayerOptions& options, const Shape& image) {
  SCOPED_TRACE(kind);
  LayerUnderTest tested(device, kind, options, image);
  held_after_forward(tested, image);  // may set something up that stays
  const std::size_t held = held_after_forward(tested, image);
  const Layer& layer = *tested.layer;
  const std::size_t said = (layer.keeps_input() ? bytes_of(image) : 0) +
                           (layer.keeps_output() ? bytes_of(layer.output_shape()) : 0) +
                           static_cast<std::size_t>(batch_size) * layer.kept_bytes();
  const std::size_t rounding = std::size_t(4) << 16;  // the pool's, of at most four blocks
  EXPECT_LE(held, said + rounding);
  EXPECT_GE(held + rounding, said);
}

TEST_P(EveryDevice, LayersKeepReportedBytes) {
  for (const std::string& kind : builtin_layers().names()) {
    const auto known = options_of_kinds.find(kind);
    expect_kept_as_said(GetParam(), kind, known == options_of_kinds.end() ? LayerOptions{} : known->second,
                        image_shape);
  }
}

// Enough groups that their values exceed the rounding of the comparison.
TEST_P(EveryDevice, GroupNormKeepsTwoValuesPerGroup) {
  expect_kept_as_said(GetParam(), "group_norm", {{"groups", "2048"}}, {2048, 2, 1});
}

}  // namespace
}  // namespace twiddle
