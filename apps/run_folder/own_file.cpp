#include "apps/run_folder/own_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {
namespace {

[[noreturn]] void fail_to_write(const std::string& path, const std::string& reason) {
  throw Error(fmt::format("cannot write '{}': {}", printable(path), reason));
}

constexpr const char* a_link = "it is a link, and writing would change another file; put a copy in its place";

}  // namespace

int open_own_file(const std::string& path, int more_flags) {
  // Without O_NONBLOCK, opening a pipe would wait for its other end.
  const int file =
      open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | more_flags, 0666);
  if (file < 0) fail_to_write(path, errno == ELOOP ? a_link : std::strerror(errno));
  struct stat facts {};
  const bool known = fstat(file, &facts) == 0;
  if (known && S_ISREG(facts.st_mode) && facts.st_nlink <= 1) return file;
  close(file);
  fail_to_write(path, known && S_ISREG(facts.st_mode) ? a_link : "it is not a regular file");
}

std::unique_ptr<std::FILE, CloseFile> append_to_own_file(const std::string& path) {
  const int file = open_own_file(path, O_APPEND);
  std::unique_ptr<std::FILE, CloseFile> stream(fdopen(file, "a"));
  if (stream) return stream;
  const int reason = errno;
  close(file);
  fail_to_write(path, std::strerror(reason));
}

}  // namespace twiddle
