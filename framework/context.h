#pragma once
#include <cstdint>
#include <memory>

#include "framework/autograd.h"
#include "framework/device.h"
#include "framework/profiler.h"
#include "framework/random.h"

namespace twiddle {

// All that an op may touch, handed down by reference: there are no globals.
struct Context {
  explicit Context(Device device = {}, std::uint64_t seed = 1);
  std::unique_ptr<Stream> stream;
  Tape tape;
  Random random;
  Profiler profiler;
  bool training =
      true;  // false: dropout passes through, batch norm uses its running averages, the tape records nothing
};

}  // namespace twiddle
