#include "framework/profiler.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/support/forwarding_stream.h"

namespace twiddle {
namespace {

TEST(Profiler, KeepsOneEntryPerRange) {
  const auto stream = make_stream({});
  Profiler profiler;
  profiler.enable(true);
  for (int visit = 0; visit < 3; ++visit) {
    const ProfilerRange outer(profiler, *stream, "conv1", "backward");
    const ProfilerRange inner(profiler, *stream, "conv1", "backward_weight");
  }
  ASSERT_EQ(profiler.entries().size(), 2u);
  EXPECT_EQ(profiler.entries()[0].part, "backward_weight");  // the inner range ends first
  EXPECT_EQ(profiler.entries()[1].milliseconds.size(), 3u);
  EXPECT_GE(profiler.entries()[1].milliseconds[0], profiler.entries()[0].milliseconds[0]);
}

TEST(Profiler, TimesStagesOfInnermostRange) {
  const auto stream = make_stream({});
  for (const bool stages : {false, true}) {
    Profiler profiler;
    profiler.enable(true, stages);
    {
      const ProfilerRange outer(profiler, *stream, "conv1", "backward");
      const ProfilerRange inner(profiler, *stream, "conv1", "backward_weight");
      const StageRange stage(profiler, *stream, "fft of x");
    }
    const StageRange of_nothing(profiler, *stream, "product");
    ASSERT_EQ(profiler.entries().size(), stages ? 3u : 2u);
    EXPECT_EQ(profiler.entries()[0].part, stages ? "backward_weight: fft of x" : "backward_weight");
  }
}

// A lost device: recording an event fails.
class Lost final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  std::shared_ptr<Event> record_event() override { throw Error("the device is lost"); }
};

TEST(Profiler, DropsRangeIfStartFails) {
  Lost stream(make_stream({}));
  const auto whole = make_stream({});
  Profiler profiler;
  profiler.enable(true, true);
  EXPECT_THROW(ProfilerRange(profiler, stream, "conv1", "backward"), Error);
  { const StageRange stage(profiler, *whole, "of nothing that is open"); }
  EXPECT_TRUE(profiler.entries().empty());
  const ProfilerRange outer(profiler, *whole, "conv1", "backward");
  EXPECT_THROW(StageRange(profiler, stream, "fft of x"), Error);
  { const StageRange stage(profiler, *whole, "product"); }
  EXPECT_EQ(profiler.entries().at(0).part, "backward: product");
}

TEST(Profiler, StageNameContainsOuterStages) {
  const auto stream = make_stream({});
  Profiler profiler;
  profiler.enable(true, true);
  {
    const ProfilerRange range(profiler, *stream, "conv1", "forward");
    {
      const StageRange outer(profiler, *stream, "fft of x");
      { const StageRange inner(profiler, *stream, "pad"); }
      const ProfilerRange other(profiler, *stream, "pool", "forward");
      const StageRange of_other(profiler, *stream, "copy");
    }
    const StageRange next(profiler, *stream, "product");
  }
  std::vector<std::string> names;
  for (const Profiler::Entry& entry : profiler.entries()) names.push_back(entry.name + " " + entry.part);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1 forward: fft of x: pad", "pool forward: copy", "pool forward",
                                             "conv1 forward: fft of x", "conv1 forward: product", "conv1 forward"}));
}

TEST(Profiler, RecordsNothingIfDisabled) {
  const auto stream = make_stream({});
  Profiler profiler;
  { const ProfilerRange range(profiler, *stream, "conv1", "forward"); }
  EXPECT_TRUE(profiler.entries().empty());
}

}  // namespace
}  // namespace twiddle
