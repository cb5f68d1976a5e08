#pragma once
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "framework/ranks/launch.h"

namespace twiddle {

// The ranks of this launch on this machine whose processes are stopped: "rank 1 (process 4242) is stopped, rank 3 ...".
// Empty: none is, or the launch has no token to recognize its ranks by.
std::string stopped_ranks_here(const Launch& launch);

// Ends this process unless it is destroyed within these seconds: a library that joins processes waits without limit for
// one that was stopped as it started. Before that `report` is called on another thread, with what is known of the
// missing ranks; ranks that know more come first, for the launcher ends the others when one has exited.
class JoinLimit {
 public:
  using Report = std::function<void(const std::string& message)>;
  JoinLimit(const Launch& launch, double seconds, Report report);
  ~JoinLimit();
  JoinLimit(const JoinLimit&) = delete;
  JoinLimit& operator=(const JoinLimit&) = delete;

 private:
  std::promise<void> joined_;
  std::thread thread_;
};

}  // namespace twiddle
