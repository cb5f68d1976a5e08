#include "apps/verbs/pixel_statistics.h"

#include <algorithm>
#include <cmath>

namespace twiddle {

Target PixelStatistics::get(std::int64_t index, Image& image) const {
  Target target = dataset_.get(index, image);
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t plane = channels > 0 ? image.pixels.size() / channels : 0;
  if (plane == 0) return target;
  std::vector<double> means(channels), means_of_squares(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    std::uint64_t sum = 0, squares = 0;
    for (std::size_t i = c * plane; i < (c + 1) * plane; ++i) {
      const std::uint64_t pixel = image.pixels[i];
      sum += pixel, squares += pixel * pixel;
    }
    means[c] = static_cast<double>(sum) / (255.0 * static_cast<double>(plane));
    means_of_squares[c] = static_cast<double>(squares) / (255.0 * 255.0 * static_cast<double>(plane));
  }
  const std::lock_guard lock(mutex_);
  sums_.resize(std::max(sums_.size(), channels)), sums_of_squares_.resize(sums_.size());
  for (std::size_t c = 0; c < channels; ++c) sums_[c] += means[c], sums_of_squares_[c] += means_of_squares[c];
  ++images_;
  return target;
}

std::vector<double> PixelStatistics::mean() const {
  std::vector<double> result = sums_;
  for (double& value : result) value /= static_cast<double>(images_);
  return result;
}

std::vector<double> PixelStatistics::deviation() const {
  std::vector<double> result = mean();
  for (std::size_t c = 0; c < result.size(); ++c)
    result[c] = std::sqrt(std::max(0.0, sums_of_squares_[c] / static_cast<double>(images_) - result[c] * result[c]));
  return result;
}

}  // namespace twiddle
