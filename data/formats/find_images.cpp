#include "data/formats/find_images.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& folder, const std::error_code& code) {
  throw Error(ErrorKind::data, join("cannot read folder '", printable(folder.string()), "': ", code.message()));
}

// Searches the folder's own tree before any link, so that an image inside it is found under its own path.
class Search {
 public:
  Search(const fs::path& root, const std::function<void(std::int64_t)>& progress) : root_(root), progress_(progress) {}

  FoundImages run() {
    folders_.push_back(root_);
    while (!folders_.empty() || !links_.empty()) {
      if (folders_.empty()) follow_link();
      while (!folders_.empty()) search_folder();
    }
    std::sort(found_.files.begin(), found_.files.end());
    return std::move(found_);
  }

 private:
  void follow_link() {
    const fs::path link = *links_.begin();
    links_.erase(links_.begin());
    const fs::path target = real_path(link);
    const bool is_new = !searched_.contains(target) && !holds_root(target);
    is_new ? ++found_.followed : ++found_.repeated;
    if (is_new) folders_.push_back(link);
  }

  // Through a link to such a folder, the images of other classes would be found.
  bool holds_root(const fs::path& folder) const {
    const fs::path root = real_path(root_);
    return std::mismatch(folder.begin(), folder.end(), root.begin(), root.end()).first == folder.end();
  }

  void search_folder() {
    const fs::path folder = folders_.back();
    folders_.pop_back();
    if (!searched_.insert(real_path(folder)).second) return;  // a link led here before
    std::error_code code;
    for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) add(*entry);
    if (code) fail(folder, code);
  }

  void add(const fs::directory_entry& entry) {
    if (progress_) progress_(static_cast<std::int64_t>(found_.files.size()));
    std::error_code none;
    if (entry.path().filename().string().front() == '.')
      ++found_.hidden;
    else if (entry.is_directory(none))
      entry.is_symlink(none) ? void(links_.insert(entry.path())) : folders_.push_back(entry.path());
    else if (has_image_ending(entry.path().string()))
      found_.files.push_back(entry.path().lexically_relative(root_).string());
    else
      ++found_.others;
  }

  static fs::path real_path(const fs::path& folder) {
    std::error_code code;
    fs::path path = fs::canonical(folder, code);
    if (code) fail(folder, code);
    return path;
  }

  const fs::path root_;
  const std::function<void(std::int64_t)>& progress_;
  FoundImages found_;
  std::vector<fs::path> folders_;  // still to be searched
  std::set<fs::path> links_;       // to folders, still to be followed: in order, so that every search finds the same
  std::set<fs::path> searched_;
};

}  // namespace

bool has_image_ending(const std::string& path) {
  std::string ending = fs::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

void FoundImages::add_counts(const FoundImages& other) {
  others += other.others, hidden += other.hidden, followed += other.followed, repeated += other.repeated;
}

std::string FoundImages::notes() const {
  std::vector<std::string> skipped;
  if (others > 0)
    skipped.push_back(
        join(format_count(others, "file"), others == 1 ? " that is" : " that are", " not .jpg, .jpeg or .png"));
  if (hidden > 0)
    skipped.push_back(join(format_count(hidden), hidden == 1 ? " hidden file or folder" : " hidden files or folders"));
  if (repeated > 0)
    skipped.push_back(join(format_count(repeated, "link"), " to folders that were read already or hold this one"));
  std::string text = skipped.empty() ? "" : "skipped " + join_names(skipped);
  if (followed > 0) text += join(text.empty() ? "" : "; ", "followed ", format_count(followed, "link"), " to folders");
  return text;
}

FoundImages find_images(const std::string& folder, const std::function<void(std::int64_t images)>& progress) {
  return Search(folder, progress).run();
}

}  // namespace twiddle
