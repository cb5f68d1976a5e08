#include "data/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "data/classes.h"
#include "data/files.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) {
  return path.filename().string().rfind('.', 0) == 0;
}

// Visits the entries of a folder (Iterator decides how deep), with the system's reason where it cannot.
template <class Iterator, class Visit>
void for_each_entry(const fs::path& folder, const Visit& visit) {
  std::error_code code;
  for (Iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) visit(*entry);
  if (code)
    throw Error(ErrorKind::data, join("cannot read folder '", printable(folder.string()), "': ", code.message()));
}

std::vector<std::string> sorted_sub_folders(const fs::path& folder) {
  std::vector<std::string> names;
  for_each_entry<fs::directory_iterator>(folder, [&](const fs::directory_entry& entry) {
    std::error_code code;
    if (entry.is_directory(code) && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
  });
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ImageFolder::Options::Options(Params& params)
    : path(params.path("path")), channels(params.choice("channels", "3", {"1", "3"}) == "1" ? 1 : 3) {}

ImageFolder::ImageFolder(const DatasetSite& site, const Options& options)
    : folder_(resolve_path(site, options.path)),
      channels_(options.channels),
      max_pixels_(site.max_pixels),
      orient_(site.orient),
      classes_(sorted_sub_folders(folder_)) {
  if (classes_.empty())
    throw Error(ErrorKind::data,
                join("folder '", printable(folder_), "' has no sub-folders; there must be one a class"));
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    const std::size_t before = files_.size();
    for_each_entry<fs::recursive_directory_iterator>(
        fs::path(folder_) / classes_[label], [&](const fs::directory_entry& entry) {
          std::error_code code;
          if (site.progress) site.progress(folder_, static_cast<std::int64_t>(files_.size()));
          if (entry.is_directory(code) || is_hidden(entry.path())) return;
          if (!has_image_ending(entry.path().string()))
            ++passed_over_;
          else
            files_.push_back({entry.path().lexically_relative(folder_).string(), static_cast<std::int32_t>(label)});
        });
    if (files_.size() == before)
      throw Error(ErrorKind::data, join("folder '", printable((fs::path(folder_) / classes_[label]).string()),
                                        "' holds no .jpg, .jpeg or .png file; fill it or take it away"));
    std::sort(files_.begin() + static_cast<std::ptrdiff_t>(before), files_.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
  }
  classes_ = printable_classes(std::move(classes_));
}

fs::path ImageFolder::path_of(std::int64_t index) const {
  return fs::path(folder_) / files_[static_cast<std::size_t>(index)].path;
}

Target ImageFolder::get(std::int64_t index, Image& image) const {
  image = read_image(path_of(index).string(), channels_, max_pixels_, orient_);
  return files_[static_cast<std::size_t>(index)].label;
}

std::string ImageFolder::where(std::int64_t index) const {
  return printable(path_of(index).string());
}

std::string ImageFolder::describe() const {
  const std::string others = passed_over_ == 0
                                 ? ""
                                 : join("; ", format_count(passed_over_, "file"), " that ",
                                        passed_over_ == 1 ? "is" : "are", " no .jpg, .jpeg or .png passed over");
  return join("image_folder, ", format_count(size(), "image"), ", ",
              format_count(static_cast<std::int64_t>(classes_.size()), "class"), " (", printable(folder_), ")", others);
}

}  // namespace twiddle
