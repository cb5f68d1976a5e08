#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "framework/convolution.h"
#include "layers/conv/measure.h"

namespace twiddle {

// Time that passes when fake plans say so.
struct FakeClock {
  double milliseconds = 0;
  int plans_run = 0;
  double without_plan_ms = 0;  // what work takes in which no plan runs: the pass over bias and ReLU
};

class FakeStopwatch final : public Stopwatch {
 public:
  explicit FakeStopwatch(std::shared_ptr<FakeClock> clock) : clock_(std::move(clock)) {}
  double once(Stream& stream, const Work& work) override;
  double best(Stream& stream, double budget_ms, const Work& work) override;
  std::vector<double> parts(Stream& stream, double budget_ms, const std::vector<Work>& parts) override;

 private:
  double time(const Work& work) const;
  std::shared_ptr<FakeClock> clock_;
};

// A plan that computes by the reference, and whose time is made up.
struct FakePlan {
  std::string name = {};
  double milliseconds = 1;
  std::function<double(int)> more = {};  // milliseconds on top in its n-th run, from 1 on; empty: none
  double backward_input_ms = 0;          // on top, in that pass
  float error = 0;                       // relative
  std::size_t scratch = 0;
  bool deterministic = true;
  bool masks = false;
  bool throws = false;  // when it runs
  std::optional<ConvPass> throws_in = {};
  bool spreads = false;     // of a library: where one of its operands holds a NaN, all of its result is
  std::string shares = {};  // takes no time where it has met one of its operands before
};

// What an engine of such plans is like, and what became of it.
struct FakeEngineTraits {
  std::vector<FakePlan> plans{{}};
  bool pays = true;
  bool missing = false;  // its library: whoever asks it for anything hears of it
  std::string refusal = {};
};

// `runs` counts those of all its plans, null: nobody counts.
std::unique_ptr<ConvEngine> make_fake_engine(std::string name, FakeEngineTraits traits,
                                             std::shared_ptr<FakeClock> clock, int* runs = nullptr);

}  // namespace twiddle
