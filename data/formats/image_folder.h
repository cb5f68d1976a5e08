#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "data/formats/dataset.h"
#include "data/formats/find_images.h"

namespace twiddle {

// JPEG and PNG files below one sub-folder a class; classes and files in the order of their names. Hidden files and
// folders and files of other kinds are skipped and counted, links to folders are followed.
class ImageFolder : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params);
    std::string path;
    int channels;
  };
  ImageFolder(const DatasetSite& site, const Options& options);
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override;
  std::string where(std::int64_t index) const override;
  std::string describe() const override;

 private:
  struct File {
    std::string path;  // from the folder on
    std::int32_t label;
  };
  std::filesystem::path path_of(std::int64_t index) const;

  std::string folder_;
  int channels_;
  std::int64_t max_pixels_;
  bool orient_;
  std::vector<File> files_;
  FoundImages counts_;              // of what was skipped and followed, of all classes
  std::int64_t without_class_ = 0;  // pictures that are in no sub-folder
  std::vector<std::string> classes_;
};

}  // namespace twiddle
