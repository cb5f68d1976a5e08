#include <algorithm>
#include <filesystem>

#include "data/formats/classes.h"
#include "data/formats/find_images.h"
#include "data/formats/kinds.h"
#include "framework/config/params.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) {
  return path.filename().string().rfind('.', 0) == 0;
}

// Counts the pictures that are directly in the folder, too.
std::vector<std::string> sorted_sub_folders(const fs::path& folder, std::int64_t& pictures) {
  std::vector<std::string> names;
  std::error_code code, none;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    if (is_hidden(entry->path())) continue;
    if (entry->is_directory(none)) names.push_back(entry->path().filename().string());
    pictures += entry->is_regular_file(none) && has_image_ending(entry->path().string());
  }
  if (code)
    throw Error(ErrorKind::data, join("cannot read folder '", printable(folder.string()), "': ", code.message()));
  std::sort(names.begin(), names.end());
  return names;
}

// JPEG and PNG files below one sub-folder a class; classes and files in the order of their names. Hidden files and
// folders and files of other kinds are skipped and counted, links to folders are followed.
class ImageFolder : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params)
        : path(params.path("path")), channels(params.choice("channels", "3", {"1", "3"}) == "1" ? 1 : 3) {}
    std::string path;
    int channels;
  };

  ImageFolder(const DatasetSite& site, const Options& options)
      : folder_(resolve_path(site, options.path)),
        channels_(options.channels),
        max_pixels_(site.max_pixels),
        orient_(site.orient),
        classes_(sorted_sub_folders(folder_, without_class_)) {
    if (classes_.empty())
      throw Error(ErrorKind::data,
                  join("folder '", printable(folder_), "' has no sub-folders; there must be one per class"));
    for (std::size_t label = 0; label < classes_.size(); ++label) {
      const fs::path name = classes_[label];
      const FoundImages found = find_images((fs::path(folder_) / name).string(), [&](std::int64_t images) {
        if (site.progress) site.progress(folder_, static_cast<std::int64_t>(files_.size()) + images);
      });
      if (found.files.empty())
        throw Error(ErrorKind::data, join("folder '", printable((fs::path(folder_) / name).string()),
                                          "' holds no .jpg, .jpeg or .png file; fill it or remove it"));
      for (const std::string& file : found.files)
        files_.push_back({(name / file).string(), static_cast<std::int32_t>(label)});
      counts_.add_counts(found);
    }
    classes_ = printable_classes(std::move(classes_));
  }

  std::int64_t size() const override { return std::ssize(files_); }
  const std::vector<std::string>& classes() const override { return classes_; }

  Target get(std::int64_t index, Image& image) const override {
    image = read_image(path_of(index), channels_, max_pixels_, orient_);
    return files_[static_cast<std::size_t>(index)].label;
  }

  std::vector<std::int64_t> labels(std::int64_t index) const override {
    expect_index(index);
    return {files_[static_cast<std::size_t>(index)].label};
  }

  std::string where(std::int64_t index) const override { return printable(path_of(index)); }

  std::string describe() const override {
    const std::string notes = counts_.notes();
    return join(
        "image_folder, ", format_count(size(), "image"), ", ", format_count(std::ssize(classes_), "class"), " (",
        printable(folder_), ")", notes.empty() ? "" : "; ", notes,
        without_class_ == 0 ? "" : join("; skipped ", format_count(without_class_, "image"), " in no class folder"));
  }

 private:
  struct File {
    std::string path;  // from the folder on
    std::int32_t label;
  };

  std::string path_of(std::int64_t index) const {
    expect_index(index);
    return (fs::path(folder_) / files_[static_cast<std::size_t>(index)].path).string();
  }

  std::string folder_;
  int channels_;
  std::int64_t max_pixels_;
  bool orient_;
  std::vector<File> files_;
  FoundImages counts_;              // of what was skipped and followed, of all classes
  std::int64_t without_class_ = 0;  // pictures that are in no sub-folder
  std::vector<std::string> classes_;
};

}  // namespace

void add_image_folder(DatasetRegistry& datasets) {
  datasets.add<SourceOf<ImageFolder>>("image_folder");
}

}  // namespace twiddle
