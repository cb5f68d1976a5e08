#include <algorithm>
#include <cmath>
#include <span>

#include "data/loader.h"
#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "models/evaluation/evaluator.h"

namespace twiddle {

namespace {

class LabelEvaluator : public Evaluator {
 public:
  LabelEvaluator(Stream& stream, std::int64_t classes, std::int64_t outputs) : stream_(stream), outputs_(outputs) {
    found_.classes = classes;
    found_.outside.assign(static_cast<std::size_t>(classes), 0);
  }

  std::string evaluate(const Batch& batch, const Tensor& output) const override {
    const std::vector<std::int32_t> labels = batch.targets.to_vector<std::int32_t>(stream_);
    check_labels(batch, labels);
    const std::vector<float> scores = output.to_vector(stream_);
    const auto outputs = static_cast<std::size_t>(outputs_);
    std::vector<std::int64_t> ranks, predictions;
    std::vector<float> probabilities;
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const Scores of_row{&scores[row * outputs], outputs};
      const auto best = std::max_element(of_row.begin(), of_row.end());
      const bool finite = std::all_of(of_row.begin(), of_row.end(), [](float score) { return std::isfinite(score); });
      ranks.push_back(rank_of(labels[row], of_row));
      predictions.push_back(finite ? best - of_row.begin() : -1);
      probabilities.push_back(finite && predictions[row] != labels[row] ? probability_of(*best, of_row) : 0);
    }
    return pack(batch.indices, labels, ranks, predictions, probabilities);
  }

  void count(const std::string& evaluated) override {
    const auto [indices, labels, ranks, predictions, probabilities] =
        unpack<std::vector<std::int64_t>, std::vector<std::int32_t>, std::vector<std::int64_t>,
               std::vector<std::int64_t>, std::vector<float>>(evaluated);
    for (std::size_t row = 0; row < labels.size(); ++row)
      count_image(indices[row], labels[row], ranks[row], predictions[row], probabilities[row]);
    images_ += std::ssize(labels);
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

  // The code below uses labels as indices, so invalid labels must not reach it.
  void check_labels(const Batch& batch, const std::vector<std::int32_t>& labels) const {
    const std::int64_t classes = std::min(found_.classes, outputs_);
    for (std::size_t row = 0; row < labels.size(); ++row)
      if (labels[row] < 0 || labels[row] >= classes)
        throw Error(ErrorKind::data, join("image ", batch.indices[row], " of the dataset has the label ", labels[row],
                                          "; of the data and of the model's outputs, ", classes, " are classes"));
  }

  // Top-1, top-5 and the table of classes come from the same scores, so that they agree. `predicted` is -1 if these are
  // not finite.
  void count_image(std::int64_t index, std::int64_t label, std::int64_t rank, std::int64_t predicted,
                   float probability) {
    if (predicted < 0) {
      ++found_.undefined;
      return;
    }
    top1_ += rank < 1, top5_ += rank < 5;
    if (predicted < found_.classes)
      ++found_.confusion[{label, predicted}];
    else
      ++found_.outside[static_cast<std::size_t>(label)];
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

std::unique_ptr<Evaluator> label_evaluator(Stream& stream, std::int64_t classes, std::int64_t outputs) {
  return std::make_unique<LabelEvaluator>(stream, classes, outputs);
}

}  // namespace twiddle
