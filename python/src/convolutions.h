#pragma once
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "layers/conv/tuner/tuner.h"

namespace twiddle {

// One convolution and how its plans are chosen: the key of all that is known of it.
struct ConvCall {
  ConvProblem problem;
  std::string engine;  // as ConvPolicy has it
  std::size_t workspace_limit = 0;
  bool deterministic = false;
  bool trains = false;  // its passes are chosen as those of one step
  int threads = 0;      // of a CPU, whose plans have scratch memory for this number; of a GPU 0
  auto operator<=>(const ConvCall&) const = default;
};

// All convolutions of one device: their engines, the plans that were chosen, and what is run. Any thread may call.
// Calls that overlap run in separate lanes, because plans keep spectra and libraries' handles. Plans are chosen one at
// a time. Only the choice of its plan stays after a call, and spectra that its backward passes will use.
class Convolutions {
 public:
  explicit Convolutions(Device device);
  ~Convolutions();

  struct Chosen {
    ConvTuner::Plan plan;  // of the first lane; null until it is chosen
    std::string reason;
  };
  // A valid call and its plans.
  struct Known {
    ConvCall call;
    std::array<Chosen, 3> chosen = {};  // by pass
  };
  Known& known(const ConvCall& call);  // throws if the call is not valid

  struct Work {
    ConvPass pass;
    ConvOperands operands;
  };
  // Runs the backward passes of one call in one lane, so that they share spectra. `spectra`: those that the forward
  // pass has left, or 0.
  void run_backward(Known& known, std::vector<Work> work, std::int64_t spectra);
  // In training, the spectra that the backward passes can use stay until others need the memory or until they are
  // released by the number that this returns; 0: there are none.
  std::int64_t run_forward(Known& known, ConvOperands operands);
  void release(std::int64_t spectra);
  std::int64_t kept();  // calls whose spectra are

  // What was chosen so far, one pass per line: problem, pass, plan and reason, separated by tabs.
  std::string choices();

 private:
  struct Lane;
  struct EndTurn {
    Convolutions* all;
    void operator()(Lane* lane) const;
  };
  using Turn = std::unique_ptr<Lane, EndTurn>;  // one call's use of a lane, which then returns to the others
  struct Kept {
    Tensor x, w;
    bool captured;  // a replay of a CUDA graph does not find what was computed outside of it, nor the reverse
    Lane* lane;     // that has the spectra
  };
  const Chosen& chosen(Known& known, ConvPass pass);
  Lane* recall(std::int64_t spectra, ConvOperands& operands);
  Turn take(Lane* preferred = nullptr);
  Turn take_first();
  bool captures() const;

  const Device device_;
  std::mutex choosing_;  // locked before mutex_

  std::mutex mutex_;  // guards what follows, but not what a busy lane uses; never locked for long
  std::condition_variable idle_;
  std::list<Lane> lanes_;
  Lane& first_;  // in which plans are chosen
  int waiting_for_first_ = 0;
  std::map<ConvCall, Known> known_;
  std::unordered_map<std::int64_t, Kept> kept_;
};

// The device's own, created by the first call.
Convolutions& convolutions_of(Device device);
// Of all devices.
std::string all_choices();
std::int64_t all_kept();
void release_spectra(std::int64_t spectra);
// From now on measures what the file knows, too, and replaces it there. Call before the first convolution.
void ignore_kept_choices();

}  // namespace twiddle
