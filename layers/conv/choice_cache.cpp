#include "layers/conv/choice_cache.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Every version of the file begins with the first; the rest tells this version.
constexpr char beginning[] = "# twiddle convolution choices ";
constexpr char first_line[] = "# twiddle convolution choices 2: plan, milliseconds, key";
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

// Writes a new file, never one that is there or that a link leads to; 0 or errno.
int write_new_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wx");
  if (file == nullptr) return errno;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int failure = written ? 0 : errno;
  return std::fclose(file) == 0 || failure != 0 ? failure : errno;
}

}  // namespace

ChoiceCache::ChoiceCache(std::string file, Warn warn, bool retune, std::string build)
    : file_(std::move(file)),
      warn_(std::move(warn)),
      retune_(retune),
      built_by_("\ttwiddle " TWIDDLE_VERSION + (build.empty() ? build : " " + build)) {}

std::string ChoiceCache::line_key(const ChoiceKey& key) const {
  return join("batch ", key.batch, "\t", key.rest, built_by_);
}

std::optional<ChoiceCache::Entry> ChoiceCache::find(const ChoiceKey& key) {
  if (retune_) return {};
  if (!loaded_) load();
  const auto found = entries_.find(line_key(key));
  if (found == entries_.end()) return {};
  return found->second;
}

std::optional<ChoiceCache::Entry> ChoiceCache::find_other_batch(const ChoiceKey& key) {
  if (retune_) return {};
  if (!loaded_) load();
  const std::string rest = line_key(key).substr(line_key(key).find('\t'));
  std::optional<Entry> nearest;
  int nearest_batch = 0;
  for (const auto& [line, entry] : entries_) {
    int batch = 0;
    if (!line.ends_with(rest) || std::sscanf(line.c_str(), "batch %d\t", &batch) != 1 ||
        line.size() != std::to_string(batch).size() + std::strlen("batch ") + rest.size())
      continue;
    const bool larger = batch > key.batch, nearest_larger = nearest_batch > key.batch;
    const bool better = larger && nearest_larger ? batch < nearest_batch : batch > nearest_batch;
    if (!nearest || better) nearest = entry, nearest_batch = batch;
  }
  return nearest;
}

void ChoiceCache::store(const ChoiceKey& key, const Entry& entry) {
  if (file_.empty()) return;
  load();
  entries_[line_key(key)] = entry;
  write();
}

void ChoiceCache::write() {
  std::string text = join(first_line, "\n");
  for (const auto& [stored_key, stored] : entries_)
    text += join(stored.choice, "\t", format_number(stored.milliseconds), "\t", stored_key, "\n");

  std::error_code ignored, failed;
  const std::filesystem::path path(file_);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  const std::string temporary = file_ + "." + std::to_string(getpid()) + ".tmp";
  std::filesystem::remove(temporary, ignored);  // of a process of this number that was killed
  if (const int failure = write_new_file(temporary, text))
    failed = {failure, std::generic_category()};
  else
    std::filesystem::rename(temporary, file_, failed);
  write_failure_ = failed ? failed.message() : "";
  if (!failed) return;
  std::filesystem::remove(temporary, ignored);
  warn("cannot be written (" + write_failure_ + "): the next run measures anew");
}

void ChoiceCache::load() {
  loaded_ = true;
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return;
  const bool is_file = std::filesystem::is_regular_file(file_, ignored);
  std::ifstream in(file_);
  std::string line;
  const bool empty = is_file && in && !std::getline(in, line);
  if (empty) return;
  if (!is_file || !line.starts_with(beginning))
    throw Error(ErrorKind::config, join("convolution.cache names ", file_, ", which is no cache of Twiddle's: its ",
                                        "first line must begin with '", beginning, "'. It is left as it is; name ",
                                        "another file, or `off`"));
  if (line != first_line) return warn("is of another version: choices are measured anew");
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

ChoiceKey choice_key(const Device& device, const ConvProblem& problem, ConvPass pass, std::size_t workspace_limit,
                     const std::string& among) {
  ConvProblem image = problem;
  image.batch = 1;
  const std::string follows = join(problem.bias ? " bias" : "", problem.relu ? " relu" : "");
  return {problem.batch,
          join(to_string(pass), "\t", to_string(problem.precision), "\t", to_string(image),
               problem.input_gradient ? "" : " without the input's gradient", follows.empty() ? "" : ", then" + follows,
               "\t", describe(device), "\tworkspace_limit ", workspace_limit, "\t", among)};
}

}  // namespace twiddle
