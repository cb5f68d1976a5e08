#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace twiddle {

// A path of this process alone, in a folder that exists: tests run side by side, and so may whole test runs.
inline std::string temp_path(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("twiddle_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

}  // namespace twiddle
