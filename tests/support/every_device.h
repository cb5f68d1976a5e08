#pragma once
#include <gtest/gtest.h>

#include "framework/device.h"

namespace twiddle {

// A test that runs once per device; skipped on CUDA if there is no GPU. Write TEST_P(EveryDevice, Name) and use
// GetParam(); the instantiation for all test files of a program is in every_device.cpp.
class EveryDevice : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override;
};

}  // namespace twiddle
