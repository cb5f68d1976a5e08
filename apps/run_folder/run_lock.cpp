#include "apps/run_folder/run_lock.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/run_folder/own_file.h"
#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {
namespace {

std::string lock_file(const std::string& run_folder) {
  return run_folder + "/.lock";
}

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("pid {} on {}", getpid(), host);
}

// Ignores write errors: on a full disk the lock still works, but the file does not name its owner.
void write_holder(int file, const std::string& text) {
  [[maybe_unused]] const bool written =
      ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

std::string holder(int file) {
  char text[300];
  const ssize_t size = pread(file, text, sizeof text, 0);
  return size > 0 ? shown({text, static_cast<std::size_t>(size)}) : "of unknown pid";
}

}  // namespace

RunLock::RunLock(const std::string& run_folder) : folder_(run_folder) {
  file_ = open_own_file(lock_file(folder_));
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
    write_holder(file_, this_process());
    return;
  }
  if (errno != EWOULDBLOCK) {
    missing_ = std::strerror(errno);
    return;
  }
  const std::string other = holder(file_);
  close(file_);
  throw Error(fmt::format("another process ({}) trains in '{}'; wait for its end, or stop it: on SIGTERM it saves",
                          other, folder_));
}

RunLock::~RunLock() {
  if (missing_.empty()) write_holder(file_, "");
  close(file_);
}

void RunLock::check_folder() const {
  if (access(lock_file(folder_).c_str(), F_OK) == 0) return;
  throw Error(ErrorKind::data,
              fmt::format("'{}' was removed or moved while it was being trained: the run stops", folder_));
}

}  // namespace twiddle
