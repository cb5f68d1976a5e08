#pragma once
#include <cstdint>
#include <memory>

#include "framework/autograd.h"
#include "framework/device.h"
#include "framework/profiler.h"
#include "framework/random.h"

namespace twiddle {

class Communicator;

// Everything that an op may access, passed by reference: there are no globals.
struct Context {
  explicit Context(Device device = {}, std::uint64_t seed = 1);
  std::unique_ptr<Stream> stream;
  Tape tape;
  Random random;
  Profiler profiler;
  // The ranks that share each batch of a training step, for layers whose result depends on all rows of the batch; null:
  // this process has all rows.
  Communicator* ranks = nullptr;
  bool training = true;  // false: dropout passes through, batch norm uses its running averages
};

// While it lives, the context evaluates: training is off and the tape records nothing.
class EvaluationMode {
 public:
  explicit EvaluationMode(Context& ctx) : ctx_(ctx), training_(ctx.training), recording_(ctx.tape.recording()) {
    ctx_.training = false;
    ctx_.tape.set_recording(false);
  }
  ~EvaluationMode() {
    ctx_.training = training_;
    ctx_.tape.set_recording(recording_);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Context& ctx_;
  bool training_, recording_;
};

}  // namespace twiddle
