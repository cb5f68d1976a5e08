#pragma once
#include <string>
#include <vector>

#include "data/formats/dataset.h"
#include "framework/random.h"

namespace twiddle {

// Random images of the model's input shape: for timing, and for trying a network without data. Each class has a faint
// pattern of its own, the same whatever the seed, so that a network can learn it.
class Synthetic : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params);
    std::int64_t images, classes;  // classes 0: as many as the model has outputs
    std::uint64_t seed;
  };
  Synthetic(const DatasetSite& site, const Options& options);
  std::int64_t size() const override { return images_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override;
  std::string where(std::int64_t index) const override { return join("synthetic image ", index); }
  std::string describe() const override;

 private:
  std::int64_t images_;
  int channels_, height_, width_;
  std::vector<std::string> classes_;
  RandomSequence noise_;
};

}  // namespace twiddle
