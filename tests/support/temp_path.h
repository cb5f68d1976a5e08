#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace twiddle {

// Returns a new folder of this process, since tests and whole test runs may run in parallel. It is removed when the
// process exits, but not by forked children.
class TempFolder {
 public:
  TempFolder()
      : owner_(getpid()), path_(std::filesystem::path(testing::TempDir()) / ("twiddle_" + std::to_string(owner_))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  pid_t owner_;
  std::filesystem::path path_;
};

// A path in that folder.
inline std::string temp_path(const std::string& name) {
  static const TempFolder folder;
  return (folder.path() / name).string();
}

}  // namespace twiddle
