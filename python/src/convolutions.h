#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "layers/conv/tuner.h"

namespace twiddle {

// How PyTorch's caller wants a pass to be done.
struct ConvWish {
  std::string engine = "measured";  // as ConvPolicy has it
  std::size_t workspace_limit = std::size_t(4) << 30;
  bool deterministic = false;
  auto operator<=>(const ConvWish&) const = default;
};

// All convolutions of one device: their engines, the plans that were chosen, and what is run. Any thread may call; one
// at a time is served, for plans share what they keep. Nothing of a call's stays behind but the choice of its plan.
class Convolutions {
 public:
  explicit Convolutions(Device device);

  void run(const ConvProblem& problem, ConvPass pass, const ConvWish& wish, ConvOperands& operands);
  // What was chosen so far, one pass a line: problem, pass, plan and reason, apart by tabs.
  std::string choices();

 private:
  struct Chooser;
  struct Chosen {
    ConvTuner::Plan plan;
    std::string reason;
    Chooser* by;
  };
  using Key = std::pair<std::pair<ConvProblem, ConvPass>, ConvWish>;
  struct Chooser {
    explicit Chooser(ConvTuner made);
    ConvTuner tuner;
    std::vector<ConvEngine*> engines;
  };
  const Chosen& chosen(const Key& key);
  Chooser& chooser(const ConvWish& wish);

  std::mutex mutex_;
  Context ctx_;
  std::map<std::pair<std::size_t, bool>, Chooser> choosers_;  // of a workspace_limit, deterministic or not
  std::map<Key, Chosen> chosen_;
};

// The device's own, made when it is first asked for.
Convolutions& convolutions_of(Device device);
std::string all_choices();  // of all devices

}  // namespace twiddle
