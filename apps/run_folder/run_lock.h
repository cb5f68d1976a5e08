#pragma once
#include <string>

namespace twiddle {

// Restricts a run folder to one process by a lock on the folder's .lock, a file that names its owner. The system
// releases the lock when the process exits for any reason; the file stays.
class RunLock {
 public:
  // Throws an Error that names the other process if one trains in this folder.
  explicit RunLock(const std::string& run_folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Returns why there is no lock if the file system does not support locks; else empty.
  const std::string& missing() const { return missing_; }
  // Throws an Error of kind data if the folder was removed or moved since.
  void check_folder() const;

 private:
  std::string folder_, missing_;
  int file_ = -1;
};

}  // namespace twiddle
