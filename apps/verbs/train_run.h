#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/command_line/console.h"
#include "apps/command_line/flags.h"
#include "apps/interrupt.h"
#include "apps/ranks/ranks.h"
#include "apps/run_folder/run_folder.h"
#include "apps/run_folder/run_lock.h"
#include "models/training/trainer.h"

namespace twiddle {

struct TrainArguments {
  std::string config, resume, weights;
  std::int64_t limit_batches = 0;
  int gpus = 0;  // processes to start, one per GPU; 0: only this one
  bool overfit_batch = false, print_config = false, no_graph = false, profile = false;
};

// A run before it starts. Rank 0 owns the run folder.
struct Run {
  const Flags& flags;
  const TrainArguments& arguments;
  std::shared_ptr<Communicator> ranks;
  Console& console;
  const Interrupt& interrupt;
  ResumePoint place = {};  // no checkpoint: a new run
  NewFolder new_folder = {};
  std::optional<RunLock> lock = {};

  bool leads() const { return ranks->rank() == 0; }
};

// Opens the experiment of the config at `path`. Each rank reads the file; throws if the configs differ.
Experiment open_on_ranks(const std::string& path, const Run& run);
// Collective. Throws if the initial states differ between ranks.
std::unique_ptr<Trainer> make_trainer(const Run& run, Experiment experiment);

// While it lives: if a stop is requested while this rank waits for others, reports that once, with the last checkpoint.
// The other ranks may be busy with their batch or may have exited; in the latter case this rank is about to be stopped.
class WaitReporter {
 public:
  WaitReporter(Run& run, const Trainer& trainer);
  ~WaitReporter() { ranks_.while_waiting({}); }
  WaitReporter(const WaitReporter&) = delete;
  WaitReporter& operator=(const WaitReporter&) = delete;

 private:
  Communicator& ranks_;
};

}  // namespace twiddle
