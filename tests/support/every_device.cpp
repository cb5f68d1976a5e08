#include "tests/support/every_device.h"

namespace twiddle {

void EveryDevice::SetUp() {
  if (GetParam().kind == Device::Kind::cuda && cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
}

INSTANTIATE_TEST_SUITE_P(On, EveryDevice, testing::Values(Device{}, Device{Device::Kind::cuda, 0}),
                         [](const testing::TestParamInfo<Device>& device) {
                           return device.param.kind == Device::Kind::cpu ? "cpu" : "cuda";
                         });

}  // namespace twiddle
