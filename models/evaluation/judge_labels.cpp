#include <algorithm>
#include <cmath>
#include <span>

#include "data/loader.h"
#include "framework/error.h"
#include "models/evaluation/judge.h"

namespace twiddle {

namespace {

class LabelJudge : public Judge {
 public:
  LabelJudge(Stream& stream, std::int64_t classes, std::int64_t outputs) : stream_(stream), outputs_(outputs) {
    found_.classes = classes;
    found_.outside.assign(static_cast<std::size_t>(classes), 0);
  }

  void add(const Batch& batch, const Tensor& output) override {
    const std::vector<std::int32_t> labels = batch.targets.to_vector<std::int32_t>(stream_);
    check_labels(batch, labels);
    const std::vector<float> scores = output.to_vector(stream_);
    const auto outputs = static_cast<std::size_t>(outputs_);
    for (std::size_t row = 0; row < labels.size(); ++row)
      add_image(batch.indices[row], labels[row], {&scores[row * outputs], outputs});
    images_ += static_cast<std::int64_t>(labels.size());
    keep_most_confident();
  }

  void finish(EvalResult& result) override {
    result.classes = found_.classes;
    result.confusion = std::move(found_.confusion), result.outside = std::move(found_.outside);
    result.undefined = found_.undefined, result.wrong = std::move(found_.wrong);
    if (images_ == 0) return;
    result.scores.top1 = static_cast<double>(top1_) / static_cast<double>(images_);
    result.scores.top5 = static_cast<double>(top5_) / static_cast<double>(images_);
  }

 private:
  using Scores = std::span<const float>;  // of one image, by output

  // What follows counts by label: one that is no class must not get there.
  void check_labels(const Batch& batch, const std::vector<std::int32_t>& labels) const {
    const std::int64_t classes = std::min(found_.classes, outputs_);
    for (std::size_t row = 0; row < labels.size(); ++row)
      if (labels[row] < 0 || labels[row] >= classes)
        throw Error(ErrorKind::data, join("image ", batch.indices[row], " of the dataset has the label ", labels[row],
                                          "; of the data and of the model's outputs, ", classes, " are classes"));
  }

  // Top-1, top-5 and the table of classes come from the same scores, so that they agree.
  void add_image(std::int64_t index, std::int64_t label, Scores scores) {
    if (!std::all_of(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); })) {
      ++found_.undefined;
      return;
    }
    const std::int64_t rank = rank_of(label, scores);
    top1_ += rank < 1, top5_ += rank < 5;
    const auto best = std::max_element(scores.begin(), scores.end());
    const std::int64_t predicted = best - scores.begin();
    if (predicted < found_.classes)
      ++found_.confusion[{label, predicted}];
    else
      ++found_.outside[static_cast<std::size_t>(label)];
    if (predicted == label) return;
    const float probability = probability_of(*best, scores);
    if (probability > 0) found_.wrong.push_back({index, label, predicted, probability});
  }

  // Number of classes that come before the label. If scores are equal, the lower class is first, as in max_element.
  static std::int64_t rank_of(std::int64_t label, Scores scores) {
    const auto at = scores.begin() + label;
    const float score = *at;
    return std::count_if(scores.begin(), at, [score](float other) { return other >= score; }) +
           std::count_if(at, scores.end(), [score](float other) { return other > score; });
  }

  // The largest score's share of the softmax; 0 if it is below `least_`. Then the sum ends early: for most of the
  // mistakes among many classes after a few terms.
  float probability_of(float largest, Scores scores) const {
    double sum = 0;
    for (const float score : scores) {
      sum += std::exp(score - largest);
      if (sum * least_ > 1) return 0;
    }
    return static_cast<float>(1 / sum);
  }

  void keep_most_confident() {
    std::vector<EvalResult::Wrong>& wrong = found_.wrong;
    std::stable_sort(wrong.begin(), wrong.end(),
                     [](const auto& a, const auto& b) { return a.probability > b.probability; });
    if (wrong.size() < examples_kept) return;
    wrong.resize(examples_kept);
    least_ = wrong.back().probability;
  }

  Stream& stream_;
  std::int64_t outputs_, images_ = 0, top1_ = 0, top5_ = 0;
  double least_ = 0;  // probability of a mistake that would be kept
  EvalResult found_;
};

}  // namespace

std::unique_ptr<Judge> judge_labels(Stream& stream, std::int64_t classes, std::int64_t outputs) {
  return std::make_unique<LabelJudge>(stream, classes, outputs);
}

}  // namespace twiddle
