#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "data/augmentation/augment.h"
#include "data/loader.h"
#include "models/evaluation/judge.h"

namespace twiddle {

namespace {

constexpr double least_error = 1e-10;  // that counts: equal images are 100 dB apart, not infinitely many

class RestoredImageJudge : public ImageJudge {
 public:
  RestoredImageJudge(Stream& stream, const Augment& augment) : stream_(stream), augment_(augment) {}

  void add(const Batch& batch, const Tensor& output) override {
    const std::vector<double> ratios = judge(batch, output);
    show(pictures(batch, output, count(ratios), ratios));
  }

  std::vector<double> judge(const Batch& batch, const Tensor& output) const override {
    const std::vector<float> outputs = output.to_vector(stream_), targets = batch.targets.to_vector(stream_);
    const std::size_t values = outputs.size() / batch.indices.size();
    std::vector<double> ratios;
    for (std::size_t row = 0; row < batch.indices.size(); ++row) {
      const float* const made = &outputs[row * values];
      const bool finite = std::all_of(made, made + values, [](float x) { return std::isfinite(x); });
      ratios.push_back(finite ? psnr_of(made, &targets[row * values]) : std::numeric_limits<double>::quiet_NaN());
    }
    return ratios;
  }

  std::vector<std::size_t> count(const std::vector<double>& ratios) override {
    std::vector<std::size_t> shown;
    for (std::size_t row = 0; row < ratios.size(); ++row) {
      ++images_;
      if (std::isnan(ratios[row])) {
        ++undefined_;
        continue;
      }
      sum_ += ratios[row];
      if (restored_.size() + shown.size() < examples_kept) shown.push_back(row);
    }
    return shown;
  }

  std::vector<EvalResult::Restored> pictures(const Batch& batch, const Tensor& output,
                                             const std::vector<std::size_t>& rows,
                                             const std::vector<double>& ratios) const override {
    std::vector<EvalResult::Restored> restored;
    if (rows.empty()) return restored;
    const std::vector<float> inputs = batch.images.to_vector(stream_), outputs = output.to_vector(stream_),
                             targets = batch.targets.to_vector(stream_);
    const std::size_t values = outputs.size() / batch.indices.size();
    for (const std::size_t row : rows)
      restored.push_back({batch.indices[row], ratios[row], augment_.picture(&inputs[row * values]),
                          augment_.picture(&outputs[row * values]), augment_.picture(&targets[row * values])});
    return restored;
  }

  void show(std::vector<EvalResult::Restored> restored) override {
    std::move(restored.begin(), restored.end(), std::back_inserter(restored_));
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

std::unique_ptr<ImageJudge> judge_images(Stream& stream, const Augment& augment) {
  return std::make_unique<RestoredImageJudge>(stream, augment);
}

}  // namespace twiddle
