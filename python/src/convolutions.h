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

// One convolution and the settings for the choice of its plans. This is the key of all stored choices.
struct ConvCall {
  ConvProblem problem;
  std::string engine;  // see ConvPolicy
  std::size_t workspace_limit = 0;
  bool deterministic = false;
  bool trains = false;  // its passes are chosen together, as one training step
  int threads = 0;      // CPU threads, which the scratch memory of plans depends on; 0 on a GPU
  auto operator<=>(const ConvCall&) const = default;
};

// All convolutions of one device, with their engines and chosen plans. Thread-safe. Calls that overlap run in separate
// lanes, because plans hold spectra and library handles. Plans are chosen one at a time. After a call, only its choice
// of plan stays, and the spectra that its backward passes will use.
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
  // Runs the backward passes of one call in one lane, so that they share spectra. `spectra`: the return value of
  // run_forward(), or 0.
  void run_backward(Known& known, std::vector<Work> work, std::int64_t spectra);
  // Returns the number of the spectra that are kept for the backward passes in training; 0: none. They stay until
  // release() or until other work needs the memory.
  std::int64_t run_forward(Known& known, ConvOperands operands);
  void release(std::int64_t spectra);
  std::int64_t kept();  // number of calls whose spectra are kept

  // Returns the choices so far, one pass per line: problem, pass, plan and reason, separated by tabs.
  std::string choices();

 private:
  struct Lane;
  struct EndTurn {
    Convolutions* all;
    void operator()(Lane* lane) const;
  };
  using Turn = std::unique_ptr<Lane, EndTurn>;  // exclusive use of a lane by one call
  struct Kept {
    Tensor x, w;
    bool captured;  // a replay of a CUDA graph cannot use spectra computed outside of it, and vice versa
    Lane* lane;     // the lane that has the spectra
  };
  const Chosen& chosen(Known& known, ConvPass pass);
  Lane* recall(std::int64_t spectra, ConvOperands& operands);
  Turn take(Lane* preferred = nullptr);
  Turn take_first();
  bool captures() const;

  const Device device_;
  std::mutex choosing_;  // locked before mutex_

  std::mutex mutex_;  // guards the members below, but not the content of a busy lane; never held for long
  std::condition_variable idle_;
  std::list<Lane> lanes_;
  Lane& first_;  // the lane in which plans are chosen
  int waiting_for_first_ = 0;
  std::map<ConvCall, Known> known_;
  std::unordered_map<std::int64_t, Kept> kept_;
};

// Returns the device's object, which the first call creates.
Convolutions& convolutions_of(Device device);
// For all devices.
std::string all_choices();
std::int64_t all_kept();
void release_spectra(std::int64_t spectra);
// From now on, measures cached choices again and replaces them in the file. Call before the first convolution.
void ignore_kept_choices();

}  // namespace twiddle
