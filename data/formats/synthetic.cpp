#include <algorithm>
#include <cstring>
#include <limits>

#include "data/formats/classes.h"
#include "data/formats/kinds.h"
#include "framework/config/params.h"
#include "framework/random.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Random images of the model's input shape: for timing, and for trying a network without data. Each class has a
// different faint pattern, the same for every seed, so that a network can learn it.
class Synthetic : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params)
        : images(params.integer("images", 1024, 1, std::int64_t(1) << 31)),
          classes(params.integer("classes", 0, 1, 1 << 20)),
          seed(static_cast<std::uint64_t>(params.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()))) {}
    std::int64_t images, classes;  // classes 0: as many as the model has outputs
    std::uint64_t seed;
  };

  Synthetic(const DatasetSite& site, const Options& options) : images_(options.images) {
    require(site.image_shape.size() == 3, "synthetic: images need a model input of channels, height and width");
    channels_ = static_cast<int>(site.image_shape[0]);
    height_ = static_cast<int>(site.image_shape[1]);
    width_ = static_cast<int>(site.image_shape[2]);
    const std::int64_t outputs = site.model_outputs > 0 ? site.model_outputs : 10;
    classes_ = numbered_classes(options.classes > 0 ? options.classes : outputs);
    noise_.seed = options.seed;
  }

  std::int64_t size() const override { return images_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  Target get(std::int64_t index, Image& image) const override {
    const std::int64_t label = labels(index).front();
    const RandomSequence noise = noise_.split(static_cast<std::uint64_t>(index));
    const RandomSequence pattern = RandomSequence{}.split(static_cast<std::uint64_t>(label));
    image.channels = channels_, image.height = height_, image.width = width_;
    image.pixels.resize(static_cast<std::size_t>(channels_) * height_ * width_);
    for (std::size_t i = 0; i < image.pixels.size(); i += 8) {
      // Eight pixels at a time: 0..127 of noise, and 16 more where the label's pattern has a bit.
      const std::int64_t word = static_cast<std::int64_t>(i / 8);
      const std::uint64_t pixels =
          (noise.bits(word) >> 1 & 0x7f7f7f7f7f7f7f7f) + (pattern.bits(word) & 0x1010101010101010);
      std::memcpy(&image.pixels[i], &pixels, std::min<std::size_t>(8, image.pixels.size() - i));
    }
    return label;
  }

  std::vector<std::int64_t> labels(std::int64_t index) const override {
    expect_index(index);
    return {index % std::ssize(classes_)};
  }

  std::string where(std::int64_t index) const override { return join("synthetic image ", index); }

  std::string describe() const override {
    return join("synthetic, ", format_count(images_, "image"), " ", channels_, "x", height_, "x", width_, ", ",
                format_count(std::ssize(classes_), "class"));
  }

 private:
  std::int64_t images_;
  int channels_, height_, width_;
  std::vector<std::string> classes_;
  RandomSequence noise_;
};

}  // namespace

void add_synthetic(DatasetRegistry& datasets) {
  datasets.add<SourceOf<Synthetic>>("synthetic");
}

}  // namespace twiddle
