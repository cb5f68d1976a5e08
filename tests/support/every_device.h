#pragma once
#include <gtest/gtest.h>

#include "framework/device.h"

namespace twiddle {

// A test that runs once a device; on CUDA it is skipped where there is no GPU. Write TEST_P(EveryDevice, Name) and use
// GetParam(); the instantiation for all test files of a program is in every_device.cpp.
class EveryDevice : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override;
};

}  // namespace twiddle
