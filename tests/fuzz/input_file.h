#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "framework/error.h"

namespace twiddle {

using Input = std::span<const std::uint8_t>;

inline std::string text_of(Input input) {
  return {input.begin(), input.end()};
}

// A file in memory, for readers that take a path.
class InputFile {
 public:
  InputFile() : file_(memfd_create("input", 0)), path_(join("/proc/self/fd/", file_)) {
    require(file_ >= 0, "no file in memory can be had");
  }

  // Writes these bytes and no others to the file, and returns its path.
  const std::string& holding(Input bytes) {
    const bool done =
        ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    require(done, "the file in memory cannot be written");
    return path_;
  }

 private:
  int file_;
  std::string path_;
};

// Returns a folder for output, in memory if the system has such a file system.
class InputFolder {
 public:
  InputFolder() {
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    const auto place = in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    path_ = (place / join("twiddle_fuzz_", getpid())).string();
    std::filesystem::create_directories(path_);
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  std::string write(const std::string& name, Input bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Removes and returns the first part of an input, whose length is in its first two bytes.
inline Input take_part(Input& input) {
  if (input.size() < 2) return {};
  const std::size_t length = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 2);
  const Input part = input.subspan(2, length);
  input = input.subspan(2 + length);
  return part;
}

}  // namespace twiddle
