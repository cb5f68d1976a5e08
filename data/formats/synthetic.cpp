#include "data/formats/synthetic.h"

#include <cstring>

#include "data/formats/classes.h"
#include "framework/config/params.h"
#include "framework/text.h"

namespace twiddle {

Synthetic::Options::Options(Params& params)
    : images(params.integer("images", 1024, 1, std::int64_t(1) << 31)),
      classes(params.integer("classes", 0, 1, 1 << 20)),
      seed(static_cast<std::uint64_t>(params.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()))) {}

Synthetic::Synthetic(const DatasetSite& site, const Options& options) : images_(options.images) {
  require(site.image_shape.size() == 3, "synthetic: images need a model input of channels, height and width");
  channels_ = static_cast<int>(site.image_shape[0]);
  height_ = static_cast<int>(site.image_shape[1]);
  width_ = static_cast<int>(site.image_shape[2]);
  const std::int64_t outputs = site.model_outputs > 0 ? site.model_outputs : 10;
  classes_ = numbered_classes(options.classes > 0 ? options.classes : outputs);
  noise_.seed = options.seed;
}

Target Synthetic::get(std::int64_t index, Image& image) const {
  const std::int64_t label = labels(index).front();
  const RandomSequence noise = noise_.split(static_cast<std::uint64_t>(index));
  const RandomSequence pattern = RandomSequence{}.split(static_cast<std::uint64_t>(label));
  image.channels = channels_, image.height = height_, image.width = width_;
  image.pixels.resize(static_cast<std::size_t>(channels_) * height_ * width_);
  for (std::size_t i = 0; i < image.pixels.size(); i += 8) {
    // Eight pixels at a time: 0..127 of noise, and 16 more where the class's pattern has a bit.
    const std::int64_t word = static_cast<std::int64_t>(i / 8);
    const std::uint64_t pixels =
        (noise.bits(word) >> 1 & 0x7f7f7f7f7f7f7f7f) + (pattern.bits(word) & 0x1010101010101010);
    std::memcpy(&image.pixels[i], &pixels, std::min<std::size_t>(8, image.pixels.size() - i));
  }
  return label;
}

std::vector<std::int64_t> Synthetic::labels(std::int64_t index) const {
  expect_index(index);
  return {index % static_cast<std::int64_t>(classes_.size())};
}

std::string Synthetic::describe() const {
  return join("synthetic, ", format_count(images_, "image"), " ", channels_, "x", height_, "x", width_, ", ",
              format_count(static_cast<std::int64_t>(classes_.size()), "class"));
}

}  // namespace twiddle
