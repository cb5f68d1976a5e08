#include <algorithm>
#include <cmath>

#include "models/judge.h"

namespace twiddle {

namespace {

constexpr std::size_t restored_kept = 12;
constexpr double least_error = 1e-10;  // that counts: equal images are 100 dB apart, not infinitely many

class ImageJudge : public Judge {
 public:
  ImageJudge(Stream& stream, const Augment& augment) : stream_(stream), augment_(augment) {}

  void add(const Batch& batch, const Tensor& output) override {
    const std::vector<float> outputs = output.to_vector(stream_), targets = batch.targets.to_vector(stream_);
    const std::vector<float> inputs =
        restored_.size() < restored_kept ? batch.images.to_vector(stream_) : std::vector<float>();
    const std::size_t values = outputs.size() / batch.indices.size();
    for (std::size_t row = 0; row < batch.indices.size(); ++row) {
      const float *const made = &outputs[row * values], *const target = &targets[row * values];
      ++images_;
      if (!std::all_of(made, made + values, [](float x) { return std::isfinite(x); })) {
        ++undefined_;
        continue;
      }
      const double psnr = psnr_of(made, target);
      sum_ += psnr;
      if (restored_.size() < restored_kept)
        restored_.push_back({batch.indices[row], psnr, augment_.picture(&inputs[row * values]), augment_.picture(made),
                             augment_.picture(target)});
    }
  }

  // An image that is not finite restores nothing: 0 dB.
  void finish(EvalResult& result) override {
    if (images_ > 0) result.scores.psnr = sum_ / static_cast<double>(images_);
    result.undefined = undefined_, result.restored = std::move(restored_);
  }

 private:
  // 10 log10(1 / mean squared error) of values from 0 to 1, whatever `normalize` made of them.
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

std::unique_ptr<Judge> judge_images(Stream& stream, const Augment& augment) {
  return std::make_unique<ImageJudge>(stream, augment);
}

}  // namespace twiddle
