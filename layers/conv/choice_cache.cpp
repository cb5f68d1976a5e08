#include "layers/conv/choice_cache.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Every version of the file begins with the first; the rest tells this version.
constexpr char beginning[] = "# twiddle convolution choices ";
constexpr char this_version[] = "# twiddle convolution choices 2: plan, milliseconds, key";
constexpr std::size_t most_lines = 100000, longest_line = 2000;

struct Line {
  ChoiceKey key;
  ChoiceCache::Entry entry;
};

// "gemm<tab>1.25<tab>batch 8<tab>..."
std::optional<Line> parse_line(const std::string& line) {
  std::istringstream in(line.size() > longest_line ? "" : line);
  Line parsed;
  std::string milliseconds, batch;
  std::getline(in, parsed.entry.choice, '\t');
  std::getline(in, milliseconds, '\t');
  std::getline(in, batch, '\t');
  std::getline(in, parsed.key.rest);
  char *end = nullptr, behind = 0;
  parsed.entry.milliseconds = std::strtod(milliseconds.c_str(), &end);
  const bool is_number = !milliseconds.empty() && *end == '\0';
  if (!is_number || !std::isfinite(parsed.entry.milliseconds) || parsed.entry.milliseconds < 0) return {};
  if (std::sscanf(batch.c_str(), "batch %d%c", &parsed.key.batch, &behind) != 1) return {};
  if (parsed.entry.choice.empty() || parsed.key.rest.empty()) return {};
  return parsed;
}

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
  if (batches.empty()) return {};
  const auto larger = batches.upper_bound(key.batch);
  return larger != batches.end() ? larger->second : batches.rbegin()->second;
}

void ChoiceCache::store(const ChoiceKey& key, const Entry& entry) {
  if (file_.empty()) return;
  load();
  entries_[key.rest][key.batch] = entry;
  write();
}

void ChoiceCache::write() {
  std::string text = join(this_version, "\n");
  for (const auto& [key, batches] : entries_)
    for (const auto& [batch, entry] : batches)
      text += join(entry.choice, "\t", format_number(entry.milliseconds), "\tbatch ", batch, "\t", key, "\n");

  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(file_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  try {
    write_file_atomically(file_, text);
    write_failure_.clear();
  } catch (const Error& error) {
    write_failure_ = error.what();
    warn("is not kept, and the next run measures anew: " + write_failure_);
  }
}

void ChoiceCache::load() {
  loaded_ = true;
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return;
  std::ifstream in;
  std::string line;
  // Opening a pipe waits for its writer, and a device may never end its first line.
  const bool is_file = std::filesystem::is_regular_file(file_, ignored);
  if (is_file) in.open(file_);
  const bool empty = in.is_open() && !std::getline(in, line);
  if (empty) return;
  if (!line.starts_with(beginning))
    throw Error(ErrorKind::config, join("convolution.cache names ", file_, ", which is no cache of Twiddle's: its ",
                                        "first line must begin with '", beginning, "'. It is left as it is; name ",
                                        "another file, or `off`"));
  if (line != this_version) return warn("is of another version: choices are measured anew");
  std::size_t wrong = 0;
  for (std::size_t lines = 0; lines < most_lines && std::getline(in, line); ++lines) {
    const std::optional<Line> parsed = parse_line(line);
    if (parsed) entries_[parsed->key.rest][parsed->key.batch] = parsed->entry;
    wrong += !parsed;
  }
  if (wrong == 0) return;
  warn(join("is damaged: ", wrong, " of its lines make no sense and are measured anew"));
  write();
}

// Once: store() reads the file again.
void ChoiceCache::warn(const std::string& problem) {
  if (warn_) warn_("the convolution cache " + file_ + " " + problem);
  warn_ = {};
}

}  // namespace twiddle
