#include "framework/device.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "framework/error.h"
#include "framework/gpu_check.h"
#include "framework/tensor.h"

namespace twiddle {
namespace {

TEST(Device, ParsesAndFormatsName) {
  EXPECT_EQ(parse_device("cpu"), Device{});
  EXPECT_EQ(parse_device("cuda"), (Device{Device::Kind::cuda, 0}));
  EXPECT_EQ(parse_device("cuda:3"), (Device{Device::Kind::cuda, 3}));
  EXPECT_EQ(to_string(parse_device("cuda:3")), "cuda:3");
}

TEST(Device, RefusesOtherNames) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"}) {
    EXPECT_THROW(parse_device(name), Error) << name;
  }
}

TEST(Device, AutoSelectsUsableGpuOrCpu) {
  const Device device = parse_device("auto");
  const int passed_over = device.kind == Device::Kind::cuda ? device.index : cuda_device_count();
  for (int index = 0; index < passed_over; ++index) EXPECT_NE(why_unusable(look_at_gpu(index)), "");
  EXPECT_NO_THROW(make_stream(device));
}

TEST(Device, MissingGpuIsDeviceError) {
  try {
    make_stream({Device::Kind::cuda, cuda_device_count()});
    FAIL() << "made a stream on a missing GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
  }
}

// The cache of convolution plans is keyed by it: several machines may share a folder.
TEST(Device, DescriptionNamesTheProcessor) {
  std::ifstream in("/proc/cpuinfo");
  const std::string key = "model name\t: ";
  std::string line;
  while (std::getline(in, line) && !line.starts_with(key)) continue;
  if (!in) GTEST_SKIP() << "a processor without a name";
  const std::string description = describe(Device{});
  EXPECT_TRUE(description.starts_with("cpu: " + line.substr(key.size()) + ", ")) << description;
}

class TwoGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "fewer than two GPUs";
    for (int index = 0; index < 2; ++index) streams[index] = make_stream({Device::Kind::cuda, index});
  }
  // Memory, a launch, a library's call, copies and an event.
  static void expect_to_work(Stream& stream) {
    const Tensor twos = Tensor::filled(stream, {4, 4}, 2);
    Tensor product(stream, {4, 4});
    stream.gemm({.m = 4, .n = 4, .k = 4}, twos.read(), twos.read(), product.write());
    stream.record_event()->wait();
    EXPECT_EQ(product.to_vector(stream), std::vector<float>(16, 16)) << to_string(stream.device());
  }

  std::unique_ptr<Stream> streams[2];
};

TEST_F(TwoGpus, ComputeInTurn) {
  for (const int index : {0, 1, 0, 1, 1, 0}) {
    expect_to_work(*streams[index]);
    streams[index]->release_unused();
  }
}

TEST_F(TwoGpus, ComputeWhileAnotherIsQueried) {
  for (const int index : {0, 1}) {
    describe({Device::Kind::cuda, 1 - index});
    expect_to_work(*streams[index]);
  }
}

TEST_F(TwoGpus, ComputeInSeparateThreads) {
  std::vector<std::thread> threads;
  for (const auto& stream : streams) threads.emplace_back([&] { expect_to_work(*stream); });
  for (std::thread& thread : threads) thread.join();
}

TEST(CpuStream, AllocatesAlignedMemory) {
  const auto stream = make_stream({});
  for (const std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(100000)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stream->allocate(bytes).get()) % 64, 0u);
  }
}

}  // namespace
}  // namespace twiddle
