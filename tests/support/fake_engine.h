#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "framework/convolution.h"
#include "tests/support/forwarding_stream.h"

namespace twiddle {

// A clock that fake plans advance.
struct FakeClock {
  double milliseconds = 0;
  int plans_run = 0;
  double without_plan_ms = 0;  // what passes between two events where no plan runs: the pass over bias and ReLU
};

// A CPU stream whose events have that clock's time.
class FakeTimeStream final : public ForwardingStream {
 public:
  explicit FakeTimeStream(std::shared_ptr<FakeClock> clock)
      : ForwardingStream(make_stream({})), clock_(std::move(clock)) {}
  std::shared_ptr<Event> record_event() override;

 private:
  std::shared_ptr<FakeClock> clock_;
  int plans_before_ = 0;  // that had run at the event before
};

// For FakePlan::more of a plan that otherwise takes 1 ms: disturbs its second turn in each benchmark of a pass. A
// benchmark has nine runs of it: for its error, to warm up, a single timing, three for the first turn, and three for
// the second.
inline double in_second_turn(int run) {
  return (run - 1) % 9 >= 6 ? 30 : 0;
}

// A plan that runs the reference and reports a synthetic time.
struct FakePlan {
  std::string name = {};
  double milliseconds = 1;
  double per_image_ms = 0;               // on top
  std::function<double(int)> more = {};  // milliseconds on top in its n-th run, from 1 on; empty: none
  double backward_input_ms = 0;          // on top, in that pass
  float error = 0;                       // relative
  std::size_t scratch = 0;
  bool deterministic = true;
  bool fuses_epilogue_backward = false;
  bool throws = false;         // when it runs
  bool out_of_memory = false;  // throws OutOfMemory when it runs
  std::optional<ConvPass> throws_in = {};
  bool spreads = false;     // of a library: where one of its operands holds a NaN, all of its result is
  std::string shares = {};  // takes no time if it has read one of its operands before
};

// Properties of an engine with such plans, and counts of its calls.
struct FakeEngineTraits {
  std::vector<FakePlan> plans{{}};
  bool pays = true;
  bool missing = false;  // its library: every call reports that
  std::string refusal = {};
  std::string library = {};
};

// `runs` counts the runs of all its plans; null: not counted.
std::unique_ptr<ConvEngine> make_fake_engine(std::string name, FakeEngineTraits traits,
                                             std::shared_ptr<FakeClock> clock, int* runs = nullptr);

}  // namespace twiddle
