#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/loader.h"
#include "framework/ranks/pack.h"
#include "models/evaluation/evaluator.h"

namespace twiddle {

namespace {

// Binary cross entropy of one image: the mean over the classes.
double loss_of(const float* logits, const float* targets, std::int64_t outputs) {
  double loss = 0;
  for (std::int64_t i = 0; i < outputs; ++i)
    loss += std::log1p(std::exp(-std::abs(logits[i]))) + std::max(logits[i], 0.0f) - targets[i] * logits[i];
  return loss / static_cast<double>(outputs);
}

class SeveralLabelsEvaluator : public Evaluator {
 public:
  SeveralLabelsEvaluator(Stream& stream, std::int64_t classes, std::int64_t outputs)
      : stream_(stream),
        classes_(static_cast<std::size_t>(classes)),
        outputs_(outputs),
        scores_(classes_),
        has_(classes_) {}

  std::string evaluate(const Batch& batch, const Tensor& output) const override {
    return pack(batch.indices, output.to_vector(stream_), batch.targets.to_vector(stream_));
  }

  void count(const std::string& evaluated) override {
    const auto [indices, logits, targets] =
        unpack<std::vector<std::int64_t>, std::vector<float>, std::vector<float>>(evaluated);
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const std::size_t first = row * static_cast<std::size_t>(outputs_);
      add_image(indices[row], &logits[first], &targets[first]);
    }
    std::stable_sort(worst_.begin(), worst_.end(), [](const auto& a, const auto& b) { return a.loss > b.loss; });
    if (worst_.size() < examples_kept) return;
    worst_.resize(examples_kept);
    least_ = worst_.back().loss;
  }

  void finish(EvalResult& result) override {
    double sum = 0;
    std::int64_t labels = 0;  // that an image has
    for (std::size_t label = 0; label < classes_; ++label) {
      EvalResult::LabelScore score{std::count(has_[label].begin(), has_[label].end(), true)};
      if (score.images > 0) {
        score.average_precision = average_precision(scores_[label], has_[label]);
        sum += score.average_precision, ++labels;
      }
      result.labels.push_back(score);
    }
    if (labels > 0) result.scores.map = sum / static_cast<double>(labels);
    result.undefined = undefined_, result.worst = std::move(worst_);
  }

 private:
  void add_image(std::int64_t index, const float* logits, const float* targets) {
    const bool defined = std::all_of(logits, logits + outputs_, [](float x) { return std::isfinite(x); });
    undefined_ += defined ? 0 : 1;
    for (std::size_t label = 0; label < classes_; ++label) {
      has_[label].push_back(targets[label] > 0);
      // What is not finite comes last: it is no prediction.
      scores_[label].push_back(defined ? logits[label] : -std::numeric_limits<float>::infinity());
    }
    const double loss = defined ? loss_of(logits, targets, outputs_) : 0;
    if (defined && loss > least_) worst_.push_back(scored(index, loss, logits, targets));
  }

  EvalResult::Scored scored(std::int64_t index, double loss, const float* logits, const float* targets) const {
    EvalResult::Scored image{index, loss, {}, {}};
    for (std::size_t label = 0; label < classes_; ++label) {
      if (targets[label] > 0) image.labels.push_back(static_cast<std::int64_t>(label));
      image.probabilities.push_back(1 / (1 + std::exp(-logits[label])));
    }
    return image;
  }

  Stream& stream_;
  std::size_t classes_;
  std::int64_t outputs_, undefined_ = 0;
  std::vector<std::vector<float>> scores_;  // of every image, by label; the logits, which rank as their sigmoids do
  std::vector<std::vector<bool>> has_;
  std::vector<EvalResult::Scored> worst_;
  double least_ = -1;  // loss of an image that would be kept
};

}  // namespace

double average_precision(const std::vector<float>& scores, const std::vector<bool>& has) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const auto all = static_cast<double>(std::count(has.begin(), has.end(), true));
  double area = 0, found = 0, found_before = 0;
  for (std::size_t taken = 0; taken < order.size();) {
    const float threshold = scores[order[taken]];
    for (; taken < order.size() && scores[order[taken]] == threshold; ++taken) found += has[order[taken]] ? 1 : 0;
    area += (found - found_before) / all * found / static_cast<double>(taken);
    found_before = found;
  }
  return area;
}

std::unique_ptr<Evaluator> several_labels_evaluator(Stream& stream, std::int64_t classes, std::int64_t outputs) {
  return std::make_unique<SeveralLabelsEvaluator>(stream, classes, outputs);
}

}  // namespace twiddle
