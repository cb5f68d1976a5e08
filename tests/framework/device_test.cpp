#include "framework/device.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "framework/gpu_check.h"

namespace twiddle {
namespace {

TEST(Device, ReadsAndWritesItsName) {
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

TEST(Device, AutoTakesTheFirstGpuThatCanBeUsedAndTheCpuWhereThereIsNone) {
  const Device device = parse_device("auto");
  const int passed_over = device.kind == Device::Kind::cuda ? device.index : cuda_device_count();
  for (int index = 0; index < passed_over; ++index) EXPECT_NE(why_unusable(look_at_gpu(index)), "");
  EXPECT_NO_THROW(make_stream(device));
}

TEST(Device, AnExplicitGpuThatIsNotThereIsAnErrorOfTheDevice) {
  try {
    make_stream({Device::Kind::cuda, cuda_device_count()});
    FAIL() << "a stream on a GPU that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
  }
}

TEST(CpuStream, GivesAlignedMemory) {
  const auto stream = make_stream({});
  for (const std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(100000)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stream->allocate(bytes).get()) % 64, 0u);
  }
}

}  // namespace
}  // namespace twiddle
