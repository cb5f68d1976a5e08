#pragma once
#include <string>

namespace twiddle {

// One run folder, one process: while it lives, it holds a lock on the folder's .lock, a file that tells whose it is.
// The system takes the lock away with the process, however that ends; the file stays.
class RunLock {
 public:
  // Throws an Error that names the other process where one trains in this folder.
  explicit RunLock(const std::string& run_folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Why there is no lock, on a file system that has none; else empty.
  const std::string& missing() const { return missing_; }
  // Throws an Error of kind data where the folder was removed or moved since.
  void check_folder() const;

 private:
  std::string folder_, missing_;
  int file_ = -1;
};

}  // namespace twiddle
