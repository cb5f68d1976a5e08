#pragma once
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "framework/context.h"
#include "framework/tensor.h"

namespace twiddle {

// A test that runs on the first GPU; skipped if there is none.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
    ctx = std::make_unique<Context>(Device{Device::Kind::cuda, 0});
  }
  Stream& stream() { return *ctx->stream; }
  Tensor poisoned(const Shape& shape) {
    return Tensor::filled(stream(), shape, std::numeric_limits<float>::quiet_NaN());
  }
  Tensor poisoned(std::size_t bytes) { return poisoned(Shape{static_cast<std::int64_t>(bytes / sizeof(float))}); }
  Tensor on_device(const std::vector<float>& values) {
    return Tensor::from(stream(), {static_cast<std::int64_t>(values.size())}, values);
  }
  std::vector<float> on_host(const Tensor& tensor) { return tensor.to_vector(stream()); }
  std::vector<float> on_host(const float* values, std::size_t count) {
    std::vector<float> copy(count);
    stream().copy(copy.data(), values, count * sizeof(float));
    stream().synchronize();
    return copy;
  }

  std::unique_ptr<Context> ctx;
};

}  // namespace twiddle
