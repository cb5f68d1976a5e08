#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/classes.h"
#include "data/formats/dataset.h"

namespace twiddle {

// Lines "path label" of a text file; the label, after the last blank, is a number or a class name. Paths are relative
// to the list's folder and may hold blanks. By what is to be known of an image, a line may also have several labels
// with commas between them or none ("path", or "path -" where the path holds blanks), or the path of another image.
class ImageList : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params);
    std::string file;
    int channels;
    ClassNames classes;  // none: taken from the file's labels
  };
  ImageList(const DatasetSite& site, const Options& options);
  std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override;
  std::string where(std::int64_t index) const override;
  std::string describe() const override;
  std::string largest_label() const override { return largest_label_; }

 private:
  struct Line {
    std::int32_t number;                // in the file, from 1
    std::uint32_t first_label, labels;  // of labels_, and how many
    std::string path;                   // as written
  };
  struct WrittenLabel {
    std::int32_t line;  // its number
    std::string text;
  };
  std::vector<WrittenLabel> read_lines();
  void read_line(std::string_view text, std::int32_t number, std::vector<WrittenLabel>& labels);
  void number_labels(const std::vector<WrittenLabel>& labels);
  Image read(const std::string& path) const;
  std::string place_of(std::int32_t number) const;

  std::string file_, folder_, largest_label_;
  int channels_;
  std::int64_t max_pixels_;
  bool orient_;
  TargetKind target_;
  std::vector<Line> lines_;
  std::vector<std::int32_t> labels_;       // of all lines
  std::vector<std::string> target_paths_;  // by line, where targets are images
  std::vector<std::string> classes_;
};

}  // namespace twiddle
