#include "framework/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "framework/error.h"
#include "tests/support/temp_path.h"

namespace twiddle {

namespace {

// Returns an empty folder for the test.
std::filesystem::path fresh_folder(const std::string& name) {
  const std::filesystem::path folder = temp_path("atomic_file_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

std::string failure_of(const std::string& path) {
  try {
    write_file_atomically(path, "text");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST(AtomicFile, ReplacesFileAndLeavesNoOther) {
  const std::filesystem::path folder = fresh_folder("replace");
  write_file_atomically(folder / "a.txt", "old");
  write_file_atomically(folder / "a.txt", [](const BytesVisitor& write) {
    for (const char* part : {"new", " ", "text"}) write(part);
  });
  EXPECT_EQ(contents_of(folder / "a.txt"), "new text");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(AtomicFile, ErrorHasPathAndReason) {
  const std::string path = fresh_folder("missing") / "no_such_folder" / "a.txt";
  EXPECT_EQ(failure_of(path), "cannot write '" + path + "': No such file or directory (errno 2)");
}

TEST(AtomicFile, LeavesNoFileOnFailure) {
  const std::filesystem::path folder = fresh_folder("occupied");
  std::filesystem::create_directories(folder / "a.txt");
  EXPECT_NE(failure_of(folder / "a.txt").find("not a plain file"), std::string::npos);
  EXPECT_EQ(files_in(folder), 1);
}

// Such names are easy to guess: the writer must not follow a link of that name.
TEST(AtomicFile, DoesNotFollowPlantedLink) {
  const std::filesystem::path folder = fresh_folder("planted");
  std::ofstream(folder / "precious") << "precious";
  const std::string first = ".a.txt.tmp-" + std::to_string(getpid());
  std::filesystem::create_symlink("precious", folder / first);
  std::ofstream(folder / (first + "-1")) << "left by a kill";
  write_file_atomically(folder / "a.txt", "text");
  EXPECT_EQ(contents_of(folder / "precious"), "precious");
  EXPECT_EQ(contents_of(folder / "a.txt"), "text");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "a.txt"));
}

// Run as root, a rename would replace the device by a regular file.
TEST(AtomicFile, DoesNotReplaceADevice) {
  EXPECT_NE(failure_of("/dev/null").find("not a plain file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFile, ChecksWritabilityBeforehand) {
  const std::filesystem::path folder = fresh_folder("beforehand");
  std::ofstream(folder / "file") << "kept";
  require_writable(folder / "new");
  require_writable(folder / "file");
  require_writable(folder / "no folder yet" / "nor here" / "new");
  EXPECT_EQ(files_in(folder), 1) << "nothing is left";
  EXPECT_EQ(contents_of(folder / "file"), "kept");

  for (const std::filesystem::path& path :
       {folder, folder / "", folder / "file" / "below a file", std::filesystem::path("/dev/null"),
        std::filesystem::path("/proc/no folder yet/new")})
    EXPECT_THROW(require_writable(path), Error) << path;
}

// A limit on the file size simulates a full disk: the write fails halfway.
TEST(AtomicFile, KeepsOldFileIfWriteFails) {
  const std::filesystem::path folder = fresh_folder("full");
  write_file_atomically(folder / "a.txt", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_file_atomically(folder / "a.txt", std::string(10000, 'x')), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(contents_of(folder / "a.txt"), "old");
  EXPECT_EQ(files_in(folder), 1);
}

}  // namespace twiddle
