#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"

namespace twiddle {

// Lines "path label" of a text file; the label, after the last blank, is a number or a class name. Paths are relative
// to the list's folder and may hold blanks.
class ImageList : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params);
    std::string file;
    int channels;
    std::vector<std::string> classes;  // empty: as the file's labels have them
  };
  ImageList(const DatasetSite& site, const Options& options);
  std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t get(std::int64_t index, Image& image) const override;
  std::string where(std::int64_t index) const override;
  std::string describe() const override;

 private:
  struct Line {
    std::int32_t number, label;  // number: in the file, from 1
    std::string path;            // as written
  };
  std::vector<std::string> read_lines();
  void number_labels(const std::vector<std::string>& labels);
  std::string place_of(std::int32_t number) const;

  std::string file_, folder_;
  int channels_;
  std::int64_t max_pixels_;
  std::vector<Line> lines_;
  std::vector<std::string> classes_;
};

}  // namespace twiddle
