#include "framework/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/error.h"

namespace twiddle {

namespace {

constexpr std::string_view temporary_mark = ".tmp-";

// The process's number follows.
std::string temporary_prefix(const std::string& target) {
  return join(".", std::filesystem::path(target).filename().string(), temporary_mark);
}

[[noreturn]] void fail(const char* verb, const std::string& path, int reason) {
  throw Error(join("cannot ", verb, " '", path, "': ", std::strerror(reason), " (errno ", reason, ")"));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;  // a folder that may be written but not read: the rename holds, its durability is the system's
  const int result = ::fsync(file);
  const int reason = errno;
  ::close(file);
  // Some file systems cannot sync a folder and say so; then there is nothing more to be done.
  if (result != 0 && reason != EINVAL && reason != ENOTSUP && reason != EROFS) fail("sync", folder, reason);
}

// A file that is being written in a folder, by default next to its target. It is removed again unless it was kept. No
// existing file is written to and no link is followed; a name that exists, perhaps from a killed process, is skipped.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : TemporaryFile(target, folder_of(target)) {}
  TemporaryFile(std::string target, const std::string& folder) : target_(std::move(target)) {
    const std::string first = join(folder, "/", temporary_prefix(target_), ::getpid());
    constexpr int most_tries = 1000;
    for (int tries = 0; tries < most_tries && file_ < 0; ++tries) {
      path_ = tries == 0 ? first : join(first, "-", tries);
      file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (file_ < 0) fail("write", target_, errno);
  }
  ~TemporaryFile() {
    if (file_ >= 0) ::close(file_);
    if (!kept_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), std::min(bytes.size(), std::size_t(1) << 28));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("write", target_, written < 0 ? errno : ENOSPC);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void keep() {
    if (::fsync(file_) != 0) fail("write", target_, errno);
    const int file = std::exchange(file_, -1);
    if (::close(file) != 0) fail("write", target_, errno);  // a network file system may report a full disk only here
    rename_durably(path_, target_);
    kept_ = true;
  }

 private:
  std::string path_, target_;
  int file_ = -1;
  bool kept_ = false;
};

void require_plain_file_or_none(const std::string& path) {
  // A rename would replace a folder or a device, such as /dev/null, by a plain file.
  std::error_code ignored;
  const std::filesystem::file_status target = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(target) && !std::filesystem::is_regular_file(target))
    throw Error(join("cannot write '", path, "': it exists and is not a plain file"));

  const std::string name = std::filesystem::path(path).filename().string();
  if (name.empty()) throw Error(join("cannot write '", path, "': it names no file"));
}

}  // namespace

void require_writable(const std::string& path) {
  require_plain_file_or_none(path);
  std::string folder = folder_of(path);
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored)) folder = folder_of(folder);
  const TemporaryFile probe(path, folder);
}

void write_file_atomically(const std::string& path, const std::function<void(const BytesVisitor&)>& produce) {
  require_plain_file_or_none(path);
  TemporaryFile file(path);
  produce([&file](std::string_view part) { file.write(part); });
  file.keep();
}

void write_file_atomically(const std::string& path, const std::string& contents) {
  write_file_atomically(path, [&contents](const BytesVisitor& write) { write(contents); });
}

void remove_temporary_files(const std::string& path) {
  const std::string prefix = temporary_prefix(path);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(path), ignored))
    if (entry.path().filename().string().starts_with(prefix)) std::filesystem::remove(entry.path(), ignored);
}

void rename_durably(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail("rename to", to, errno);
  sync_folder(folder_of(to));
}

void replace_folder(const std::string& from, const std::string& to) {
  std::error_code ignored;
  if (!std::filesystem::exists(to, ignored)) return rename_durably(from, to);
  const std::string old = from + ".old";
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(folder_of(to));
    std::filesystem::remove_all(from, ignored);
    return;
  }
  rename_durably(to, old);
  rename_durably(from, to);
  std::filesystem::remove_all(old, ignored);
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with('.') && name.find(temporary_mark) != std::string_view::npos;
}

}  // namespace twiddle
