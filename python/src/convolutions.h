#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "layers/conv/tuner.h"

namespace twiddle {

// How a pass is to be done.
struct ConvOptions {
  std::string engine = "measured";  // as ConvPolicy has it
  std::size_t workspace_limit = std::size_t(4) << 30;
  bool deterministic = false;
  int threads = 0;  // of a CPU; its plans have scratch memory for so many
  auto operator<=>(const ConvOptions&) const = default;
};

// A call as it comes: what tells one from another before anything of it was looked at.
struct ConvCall {
  std::array<std::int64_t, 4> x, weight;
  std::int64_t arguments;  // the id of all arguments that are no tensors
  bool bias;
  bool input_gradient = false, weight_gradient = false;  // which other passes will follow
  bool operator==(const ConvCall&) const = default;
};
struct HashOfCall {
  std::size_t operator()(const ConvCall& call) const;
};

// All convolutions of one device: their engines, the plans that were chosen, and what is run. Any thread may call; one
// at a time is served, for plans share what they keep. Nothing of a call's stays behind but the choice of its plan, and
// spectra that its backward passes will use.
class Convolutions {
 public:
  struct Chosen;
  explicit Convolutions(Device device);

  // What is known of a call that was made before, its plans among it, so that the next one takes no more than a look.
  struct Known {
    ConvProblem problem;
    ConvOptions options;
    bool trains;  // its passes are chosen as those of one step
    Shape x, weight, y;
    std::array<const Chosen*, 3> chosen = {};  // by pass, once it is
  };
  Known* find(const ConvCall& call);  // null: it was never made
  Known& remember(const ConvCall& call, ConvProblem problem, const ConvOptions& options);
  void run(Known& known, ConvPass pass, ConvOperands& operands);

  // A forward pass in training. The spectra that the backward passes can use stay until they are released by the number
  // that it returns, or others need the room; 0: there are none.
  std::int64_t run_forward(Known& known, ConvOperands& operands);
  // x and w as they were then, under which their spectra are known, in place of such as lie where those did.
  void recall(std::int64_t number, ConvOperands& operands);
  void release(std::int64_t number);
  std::int64_t kept();  // calls whose spectra are

  // What was chosen so far, one pass a line: problem, pass, plan and reason, apart by tabs.
  std::string choices();

 private:
  struct Key {
    ConvProblem problem;
    ConvPass pass;
    ConvOptions options;
    bool trains;
    auto operator<=>(const Key&) const = default;
  };
  struct Chooser {
    explicit Chooser(ConvTuner made);
    ConvTuner tuner;
    std::vector<ConvEngine*> engines;
  };
  struct Kept {
    Tensor x, w;
    bool captured;  // what was computed outside of a CUDA graph is not there when it is replayed, and the other way
                    // round
  };
  void follow_thread_count(Known& known);
  void run(const Chosen& chosen, ConvOperands& operands);
  const Chosen& chosen(Known& known, ConvPass pass);
  const Chosen& chosen(const Key& key);
  Chooser& chooser(const ConvOptions& options);
  void forget_released();

  std::mutex mutex_;
  Context ctx_;
  std::map<std::tuple<std::size_t, bool, int>, Chooser> choosers_;  // of a limit, deterministic or not, threads
  std::map<Key, Chosen> chosen_;
  std::unordered_map<ConvCall, Known, HashOfCall> known_;
  std::unordered_map<std::int64_t, Kept> kept_;
  std::int64_t last_kept_ = 0;

  std::mutex release_mutex_;
  std::vector<std::int64_t> released_;
};

struct Convolutions::Chosen {
  ConvTuner::Plan plan;
  std::string reason;
  Chooser* by;
};

// The device's own, made when it is first asked for.
Convolutions& convolutions_of(Device device);
std::string all_choices();  // of all devices
std::int64_t all_kept();

}  // namespace twiddle
