#include "layers/conv/tuner/choice_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Every version of the file begins with the first; the rest is this version's.
constexpr char beginning[] = "# twiddle convolution choices ";
constexpr char this_version[] = "# twiddle convolution choices 3: plan, milliseconds, key";
constexpr std::size_t most_lines = 100000, longest_line = 2000;
constexpr std::chrono::milliseconds longest_wait(3000);  // a store takes a few milliseconds

// "gemm<tab>1.25<tab>batch 8<tab>..."
std::optional<ChoiceCache::Line> parse_line(const std::string& line) {
  std::istringstream in(line.size() > longest_line ? "" : line);
  ChoiceCache::Line parsed;
  std::string milliseconds, batch;
  std::getline(in, parsed.entry.choice, '\t');
  std::getline(in, milliseconds, '\t');
  std::getline(in, batch, '\t');
  std::getline(in, parsed.key.rest);
  char *end = nullptr, rest = 0;
  parsed.entry.milliseconds = std::strtod(milliseconds.c_str(), &end);
  const bool is_number = !milliseconds.empty() && *end == '\0';
  if (!is_number || !std::isfinite(parsed.entry.milliseconds) || parsed.entry.milliseconds < 0) return {};
  if (std::sscanf(batch.c_str(), "batch %d%c", &parsed.key.batch, &rest) != 1) return {};
  if (parsed.entry.choice.empty() || parsed.key.rest.empty()) return {};
  return parsed;
}

bool is_open_as(int file, const std::string& path) {
  struct stat opened = {}, named = {};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

// Locks the file itself, which it creates if there is none, against other processes that hold a CacheLock. Every write
// replaces the file, so a process that waited for the lock opens the new one and locks that.
class CacheLock {
 public:
  CacheLock(const std::string& path, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (missing_.empty()) {
      file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
      if (file_ < 0) {
        missing_ = std::strerror(errno);
      } else if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
        if (is_open_as(file_, path)) return;
      } else if (errno != EWOULDBLOCK) {
        missing_ = std::strerror(errno);
      } else if (std::chrono::steady_clock::now() >= deadline) {
        missing_ = "another process has locked it";
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      if (file_ >= 0) close(file_);
      file_ = -1;
    }
  }
  ~CacheLock() {
    if (file_ >= 0) close(file_);
  }
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;
  const std::string& missing() const { return missing_; }  // why there is no lock; empty: there is

 private:
  int file_ = -1;
  std::string missing_;
};

}  // namespace

ChoiceCache::ChoiceCache(std::string file, Warn warn, bool retune)
    : file_(std::move(file)), warn_(std::move(warn)), retune_(retune) {}

const ChoiceCache::Batches& ChoiceCache::batches_of(const ChoiceKey& key) {
  static const Batches none;
  if (retune_) return none;
  if (!loaded_) load();
  const auto found = entries_.find(key.rest);
  return found == entries_.end() ? none : found->second;
}

std::optional<ChoiceCache::Entry> ChoiceCache::find(const ChoiceKey& key) {
  const Batches& batches = batches_of(key);
  const auto found = batches.find(key.batch);
  return found == batches.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ChoiceCache::Entry> ChoiceCache::find_other_batch(const ChoiceKey& key) {
  const Batches& batches = batches_of(key);
  const auto found = find_reusable(batches, key.batch);
  return found == batches.end() ? std::nullopt : std::optional(found->second);
}

// Without a lock, as on a file system that has none, an entry may be lost if another process writes at the same time.
void ChoiceCache::store(const std::vector<Line>& lines) {
  if (file_.empty()) return;
  if (!loaded_) load();
  if (!usable_) return;
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(file_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);

  const CacheLock lock(file_, waits_for_lock_ ? longest_wait : std::chrono::milliseconds(0));
  waits_for_lock_ = waits_for_lock_ && lock.missing().empty();
  if (lock.missing().empty()) remove_temporary_files(file_);
  read();
  if (!usable_) return;
  for (const auto& [key, entry] : lines) entries_[key.rest][key.batch] = entry;
  write();
  if (!lock.missing().empty() && write_failure_.empty())
    warn("was written without a lock (" + lock.missing() + "): what other processes store meanwhile may be lost");
}

void ChoiceCache::write() {
  std::string text = join(this_version, "\n");
  for (const auto& [key, batches] : entries_)
    for (const auto& [batch, entry] : batches)
      text += join(entry.choice, "\t", format_number(entry.milliseconds), "\tbatch ", batch, "\t", key, "\n");
  try {
    write_file_atomically(file_, text);
    write_failure_.clear();
  } catch (const Error& error) {
    fail(error.what());
  }
}

void ChoiceCache::load() {
  loaded_ = true;
  const std::size_t damaged = read();
  if (damaged == 0) return;
  warn(join("is damaged: ", damaged, " of its lines make no sense and are measured again"));
  store(std::vector<Line>{});
}

std::size_t ChoiceCache::read() {
  const auto unusable = [&](const std::string& why) -> std::size_t {
    usable_ = false;
    fail(join("'", file_, "' ", why));
    return 0;
  };
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return 0;
  std::ifstream in;
  std::string line;
  // Opening a pipe waits for its writer, and a device may never end its first line.
  const bool is_file = std::filesystem::is_regular_file(file_, ignored);
  if (is_file) in.open(file_);
  if (is_file && !in.is_open()) return unusable(join("cannot be read: ", std::strerror(errno)));
  const bool empty = is_file && !std::getline(in, line);
  if (empty) return 0;
  if (!line.starts_with(beginning))
    return unusable(join("is not a choice cache of Twiddle: its first line must start with '", beginning,
                         "'. It is left as it is; delete it or name another file"));
  if (line != this_version) {
    warn("is of another version: choices are measured again");
    return 0;
  }
  std::size_t damaged = 0;
  for (std::size_t lines = 0; lines < most_lines && std::getline(in, line); ++lines) {
    const std::optional<Line> parsed = parse_line(line);
    if (parsed) entries_[parsed->key.rest][parsed->key.batch] = parsed->entry;
    damaged += !parsed;
  }
  return damaged;
}

void ChoiceCache::fail(const std::string& why) {
  write_failure_ = why;
  warn("is not kept, and the next run measures again: " + why);
}

// Once: every store reads the file again.
void ChoiceCache::warn(const std::string& problem) {
  if (warn_) warn_("the convolution cache " + file_ + " " + problem);
  warn_ = {};
}

}  // namespace twiddle
