#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "data/augmentation/augment.h"
#include "data/loader.h"
#include "framework/ranks/pack.h"
#include "models/evaluation/evaluator.h"

namespace twiddle {

namespace {

constexpr double least_error = 1e-10;  // that counts: equal images are 100 dB apart, not infinitely many

class RestoredImageEvaluator : public Evaluator {
 public:
  RestoredImageEvaluator(Stream& stream, const Augment& augment) : stream_(stream), augment_(augment) {}

  // Each row's signal-to-noise ratio in dB, NaN if its outputs are not finite; input, output and target of the first
  // finite rows, as many as may still be shown.
  std::string evaluate(const Batch& batch, const Tensor& output) const override {
    const std::vector<float> outputs = output.to_vector(stream_), targets = batch.targets.to_vector(stream_);
    const std::size_t values = outputs.size() / batch.indices.size();
    std::vector<float> inputs;  // read if a row is shown
    std::vector<double> ratios;
    std::vector<std::uint8_t> pixels;
    std::size_t shown = restored_.size();
    for (std::size_t row = 0; row < batch.indices.size(); ++row) {
      const float *const made = &outputs[row * values], *const target = &targets[row * values];
      const bool finite = std::all_of(made, made + values, [](float x) { return std::isfinite(x); });
      ratios.push_back(finite ? psnr_of(made, target) : std::numeric_limits<double>::quiet_NaN());
      if (!finite || shown++ >= examples_kept) continue;
      if (inputs.empty()) inputs = batch.images.to_vector(stream_);
      for (const float* const of_row : {static_cast<const float*>(&inputs[row * values]), made, target}) {
        const Image picture = augment_.picture(of_row);
        pixels.insert(pixels.end(), picture.pixels.begin(), picture.pixels.end());
      }
    }
    return pack(batch.indices, ratios, pixels);
  }

  void count(const std::string& evaluated) override {
    const auto [indices, ratios, pixels] =
        unpack<std::vector<std::int64_t>, std::vector<double>, std::vector<std::uint8_t>>(evaluated);
    const Shape& shape = augment_.image_shape();
    auto pixel = pixels.begin();
    const auto next_picture = [&] {
      const auto begin = pixel;
      pixel += count_of(shape);
      return Image{static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2]), {begin, pixel}};
    };
    for (std::size_t row = 0; row < ratios.size(); ++row) {
      ++images_;
      if (std::isnan(ratios[row])) {
        ++undefined_;
        continue;
      }
      sum_ += ratios[row];
      if (restored_.size() < examples_kept)
        restored_.push_back({indices[row], ratios[row], next_picture(), next_picture(), next_picture()});
    }
  }

  // An image that is not finite restores nothing: 0 dB.
  void finish(EvalResult& result) override {
    if (images_ > 0) result.scores.psnr = sum_ / static_cast<double>(images_);
    result.undefined = undefined_, result.restored = std::move(restored_);
  }

 private:
  // 10 log10(1 / mean squared error) of values from 0 to 1, before `normalize`.
  double psnr_of(const float* made, const float* target) const {
    const Shape& shape = augment_.image_shape();
    const std::int64_t plane = shape[1] * shape[2];
    double error = 0;
    for (std::int64_t c = 0; c < shape[0]; ++c) {
      const double unit = augment_.bytes_a_unit(c) / 255;
      for (std::int64_t i = c * plane; i < (c + 1) * plane; ++i) {
        const double difference = unit * (made[i] - target[i]);
        error += difference * difference;
      }
    }
    return -10 * std::log10(std::max(error / static_cast<double>(count_of(shape)), least_error));
  }

  Stream& stream_;
  const Augment& augment_;
  std::int64_t images_ = 0, undefined_ = 0;
  double sum_ = 0;
  std::vector<EvalResult::Restored> restored_;
};

}  // namespace

std::unique_ptr<Evaluator> image_evaluator(Stream& stream, const Augment& augment) {
  return std::make_unique<RestoredImageEvaluator>(stream, augment);
}

}  // namespace twiddle
