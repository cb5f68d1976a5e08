#include "layers/conv/choice_cache.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr char first_line[] = "# twiddle convolution choices 1: engine, milliseconds, key";
constexpr std::size_t most_lines = 100000, longest_line = 2000;

std::optional<std::pair<std::string, ChoiceCache::Entry>> parse_line(const std::string& line) {
  const std::size_t first = line.find('\t');
  const std::size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
  if (second == std::string::npos || first == 0 || second + 1 >= line.size() || line.size() > longest_line) return {};
  const std::string number = line.substr(first + 1, second - first - 1);
  char* end = nullptr;
  const double milliseconds = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !std::isfinite(milliseconds) || milliseconds < 0) return {};
  return std::pair{line.substr(second + 1), ChoiceCache::Entry{line.substr(0, first), milliseconds}};
}

}  // namespace

ChoiceCache::ChoiceCache(std::string file, Warn warn, bool retune)
    : file_(std::move(file)), warn_(std::move(warn)), retune_(retune) {}

std::optional<ChoiceCache::Entry> ChoiceCache::find(const std::string& key) {
  if (retune_) return {};
  if (!loaded_) load();
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  return found->second;
}

void ChoiceCache::store(const std::string& key, const Entry& entry) {
  if (file_.empty()) return;
  load();
  entries_[key] = entry;
  write();
}

void ChoiceCache::write() const {
  std::error_code ignored;
  const std::filesystem::path path(file_);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  const std::string temporary = file_ + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::trunc);
  out << first_line << '\n';
  for (const auto& [stored_key, stored] : entries_)
    out << stored.choice << '\t' << format_number(stored.milliseconds) << '\t' << stored_key << '\n';
  out.close();
  if (out) std::filesystem::rename(temporary, file_, ignored);
  if (!out || ignored) std::filesystem::remove(temporary, ignored);
}

void ChoiceCache::load() {
  loaded_ = true;
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::is_regular_file(file_, ignored)) return;
  std::ifstream in(file_);
  std::string line;
  if (!std::getline(in, line)) return;
  if (line != first_line) {
    std::filesystem::rename(file_, file_ + ".old", ignored);
    return warn("is damaged or of another version; it is kept as " + file_ + ".old and choices are measured anew");
  }
  std::size_t wrong = 0;
  for (std::size_t lines = 0; lines < most_lines && std::getline(in, line); ++lines) {
    auto entry = parse_line(line);
    if (entry) entries_.insert_or_assign(std::move(entry->first), std::move(entry->second));
    wrong += !entry;
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

std::string choice_key(const Device& device, const ConvProblem& problem, ConvPass pass, std::size_t workspace_limit,
                       const std::string& among) {
  return join(to_string(pass), "\t", to_string(problem.precision), "\t", to_string(problem),
              problem.input_gradient ? "" : " without the input's gradient", "\t", describe(device),
              "\tworkspace_limit ", workspace_limit, "\t", among, "twiddle ", TWIDDLE_VERSION);
}

}  // namespace twiddle
