#pragma once
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "layers/conv/tuner/tuner.h"

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
  int threads;             // of a CPU, which PyTorch would take in this thread; of a GPU 0
  bool bias;
  bool input_gradient = false, weight_gradient = false;  // which other passes will follow
  bool operator==(const ConvCall&) const = default;
};
struct HashOfCall {
  std::size_t operator()(const ConvCall& call) const;
};

// All convolutions of one device: their engines, the plans that were chosen, and what is run. Any thread may call.
// Calls that overlap run in separate lanes, because plans keep spectra and libraries' handles. Plans are chosen one at
// a time. Only the choice of its plan stays after a call, and spectra that its backward passes will use.
class Convolutions {
 public:
  struct Chosen;
  explicit Convolutions(Device device);
  ~Convolutions();

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

  struct Work {
    ConvPass pass;
    ConvOperands operands;
  };
  // Passes of one call, in one lane, so that they share spectra. `spectra`: the number of those that the forward pass
  // has left, or 0.
  void run(Known& known, std::vector<Work> work, std::int64_t spectra = 0);
  // A forward pass in training. The spectra that the backward passes can use stay until they are released by the number
  // that it returns, or others need the room; 0: there are none.
  std::int64_t run_forward(Known& known, ConvOperands operands);
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
  struct Lane;
  class Turn;
  struct Kept {
    Tensor x, w;
    bool captured;  // what was computed outside of a CUDA graph is not there when it is replayed, and the other way
                    // round
    Lane* lane;     // that has the spectra
  };
  const Chosen& chosen(Known& known, ConvPass pass);
  const Chosen* look_up(Known& known, ConvPass pass);  // null: not chosen yet
  const Chosen& choose(Known& known, ConvPass pass);
  Lane* recall(std::int64_t spectra, ConvOperands& operands);
  Lane& take(Lane* preferred = nullptr);
  Lane& take_first();
  bool captures() const;

  const Device device_;
  std::mutex choosing_;  // locked before mutex_

  std::mutex mutex_;  // guards what follows, but not what a busy lane uses; never locked for long
  std::condition_variable idle_;
  std::list<Lane> lanes_;
  Lane& first_;  // in which plans are chosen
  int waiting_for_first_ = 0;
  std::map<Key, Chosen> chosen_;
  std::unordered_map<ConvCall, Known, HashOfCall> known_;
  std::unordered_map<std::int64_t, Kept> kept_;
  std::int64_t last_kept_ = 0;
};

struct Convolutions::Chosen {
  Key key;
  ConvTuner::Plan plan;  // of the first lane
  std::string reason;
};

// The device's own, made when it is first asked for.
Convolutions& convolutions_of(Device device);
std::string all_choices();  // of all devices
std::int64_t all_kept();
// Measures from now on what is known from the file, too, and replaces it there. Call before the first convolution.
void ignore_kept_choices();

}  // namespace twiddle
