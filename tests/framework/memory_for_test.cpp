#include "framework/memory_for.h"

#include <gtest/gtest.h>

#include <vector>

namespace twiddle {
namespace {

TEST(MemoryFor, ErrorNamesPurposeOfMemory) {
  EXPECT_EQ(memory_for("nothing", [] { return 7; }), 7);
  try {
    memory_for("saving a checkpoint", [] { throw std::bad_alloc(); });
    FAIL() << "continued without memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_STREQ(error.what(), "out of memory on the host, for saving a checkpoint");
  }
}

}  // namespace
}  // namespace twiddle
