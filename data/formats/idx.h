#pragma once
#include <string>
#include <vector>

#include "data/formats/classes.h"
#include "data/formats/dataset.h"

namespace twiddle {

// Images and labels in MNIST's IDX format, plain or gzipped, kept in memory. Images of three dimensions are grey; of
// four [count, channels, height, width].
class Idx : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params);
    std::string images, labels;
    ClassNames classes;  // none: numbered
  };
  Idx(const DatasetSite& site, const Options& options);
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override;
  std::string where(std::int64_t index) const override;
  std::string describe() const override;
  std::string largest_label() const override { return largest_label_; }

 private:
  std::string images_file_, largest_label_;
  int channels_ = 1, height_ = 0, width_ = 0;
  std::vector<std::uint8_t> pixels_, labels_;
  std::vector<std::string> classes_;
};

}  // namespace twiddle
