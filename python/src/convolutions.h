#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
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

// A call as it comes: what tells one problem from another before anything of it was looked at.
struct ConvCall {
  std::array<std::int64_t, 4> x, weight;
  std::int64_t manner;  // the number under which all else that a caller may wish is known
  bool bias;
  bool operator==(const ConvCall&) const = default;
};
struct HashOfCall {
  std::size_t operator()(const ConvCall& call) const;
};

// All convolutions of one device: their engines, the plans that were chosen, and what is run. Any thread may call; one
// at a time is served, for plans share what they keep. Nothing of a call's stays behind but the choice of its plan.
class Convolutions {
 public:
  struct Chosen;
  explicit Convolutions(Device device);

  void run(const ConvProblem& problem, ConvPass pass, const ConvWish& wish, ConvOperands& operands);

  // What is known of a call that was made before, its plans among it, so that the next one takes no more than a look.
  struct Known {
    ConvProblem problem;
    ConvWish wish;
    Shape x, weight, y;
    std::array<const Chosen*, 3> chosen = {};  // by pass, once it was run
  };
  Known* find(const ConvCall& call);  // null: it was never made
  Known& remember(const ConvCall& call, const ConvProblem& problem, const ConvWish& wish);
  void run(Known& known, ConvPass pass, ConvOperands& operands);
  // What was chosen so far, one pass a line: problem, pass, plan and reason, apart by tabs.
  std::string choices();

 private:
  using Key = std::pair<std::pair<ConvProblem, ConvPass>, ConvWish>;
  struct Chooser {
    explicit Chooser(ConvTuner made);
    ConvTuner tuner;
    std::vector<ConvEngine*> engines;
  };
  void run(const Chosen& chosen, ConvOperands& operands);
  const Chosen& chosen(const Key& key);
  Chooser& chooser(const ConvWish& wish);

  std::mutex mutex_;
  Context ctx_;
  std::map<std::pair<std::size_t, bool>, Chooser> choosers_;  // of a workspace_limit, deterministic or not
  std::map<Key, Chosen> chosen_;
  std::unordered_map<ConvCall, Known, HashOfCall> known_;
};

struct Convolutions::Chosen {
  ConvTuner::Plan plan;
  std::string reason;
  Chooser* by;
};

// The device's own, made when it is first asked for.
Convolutions& convolutions_of(Device device);
std::string all_choices();  // of all devices

}  // namespace twiddle
