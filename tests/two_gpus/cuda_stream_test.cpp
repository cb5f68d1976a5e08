// framework/cuda/cuda_stream.cu on a runtime of two GPUs that compute nothing, for machines without GPUs: a stream uses
// its own GPU, whichever GPU is current in the thread.
#include "framework/cuda/cuda_stream.h"
#include "framework/error.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "framework/cuda/device_range.h"

namespace twiddle {

// Memory of these GPUs comes only from cudaMalloc.
std::shared_ptr<DeviceRange> DeviceRange::reserve(int) {
  return nullptr;
}

namespace {

class TwoGpus : public testing::Test {
 protected:
  // Uses each stream in turn while the other stream's GPU is current.
  void on_each(const std::function<void(Stream&, int)>& work) {
    for (const int index : {0, 1, 0}) {
      fake_cuda::current = 1 - index;
      work(*streams_[index], index);
    }
  }

  std::unique_ptr<Stream> streams_[2] = {make_cuda_stream(0), make_cuda_stream(1)};
};

TEST_F(TwoGpus, AllocateOnGpuOfStream) {
  on_each([](Stream& stream, int index) {
    EXPECT_EQ(fake_cuda::blocks.at(stream.allocate(1 << 20).get()), index);
    stream.release_unused();
  });
}

TEST_F(TwoGpus, ReportFreeMemoryOfStreamsGpu) {
  on_each([](Stream& stream, int index) { EXPECT_EQ(stream.memory().free, 1000u + static_cast<unsigned>(index)); });
}

TEST_F(TwoGpus, NativeMakesStreamsGpuCurrent) {
  on_each([](Stream& stream, int index) {
    EXPECT_EQ(static_cast<cudaStream_t>(stream.native())->device, index);
    EXPECT_EQ(fake_cuda::current, index);
  });
}

TEST_F(TwoGpus, AcceptOperationsFromAnyCurrentGpu) {
  on_each([](Stream& stream, int index) {
    const auto elsewhere = [&] { fake_cuda::current = 1 - index; };
    const auto block = stream.allocate_host(64);
    elsewhere();
    const auto copied = stream.copy_async(block.get(), block.get(), 0);
    elsewhere();
    stream.wait_event(*copied);
    elsewhere();
    stream.copy(block.get(), block.get(), 0);
    elsewhere();
    const auto event = stream.record_event();
    event->wait();
    elsewhere();
    stream.gemm({.m = 1, .n = 1, .k = 1}, nullptr, nullptr, nullptr);
    elsewhere();
    const auto graph = stream.capture([&] { stream.record_event(), elsewhere(); });
    elsewhere();
    const auto another = stream.capture_again([&] { stream.record_event(), elsewhere(); });
    elsewhere();
    graph->replay(), another->replay();
  });
}

TEST_F(TwoGpus, DescribeLeavesCurrentGpuUnchanged) {
  describe_cuda(1);
  EXPECT_EQ(fake_cuda::blocks.at(streams_[0]->allocate(64).get()), 0);
}

TEST_F(TwoGpus, StreamIsUsableFromAnotherThread) {
  Stream& stream = *streams_[1];
  std::thread([&] {
    EXPECT_EQ(fake_cuda::blocks.at(stream.allocate(4096).get()), 1);
    stream.gemm({.m = 1, .n = 1, .k = 1}, nullptr, nullptr, nullptr);
    stream.record_event()->wait();
  }).join();
}

}  // namespace
}  // namespace twiddle
