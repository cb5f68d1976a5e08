#include <algorithm>
#include <cmath>

#include "framework/error.h"
#include "layers/softmax_loss.h"
#include "models/judge.h"

namespace twiddle {

namespace {

constexpr std::size_t wrong_kept = 12;

class LabelJudge : public Judge {
 public:
  LabelJudge(Stream& stream, std::int64_t classes, std::int64_t outputs) : stream_(stream), outputs_(outputs) {
    found_.classes = classes;
    found_.confusion.assign(static_cast<std::size_t>(classes * classes), 0);
    found_.outside.assign(static_cast<std::size_t>(classes), 0);
  }

  void add(const Batch& batch, const Tensor& output) override {
    const std::vector<std::int32_t> labels = batch.targets.to_vector<std::int32_t>(stream_);
    check_labels(batch, labels);
    images_ += static_cast<std::int64_t>(labels.size());
    for (const std::int32_t rank : label_ranks(stream_, output, batch.targets).to_vector<std::int32_t>(stream_)) {
      top1_ += rank < 1;
      top5_ += rank < 5;
    }
    count_predictions(softmax(stream_, output).to_vector(stream_), batch, labels);
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
  // What follows counts by label: one that is no class must not get there.
  void check_labels(const Batch& batch, const std::vector<std::int32_t>& labels) const {
    const std::int64_t classes = std::min(found_.classes, outputs_);
    for (std::size_t row = 0; row < labels.size(); ++row)
      if (labels[row] < 0 || labels[row] >= classes)
        throw Error(ErrorKind::data, join("image ", batch.indices[row], " of the dataset has the label ", labels[row],
                                          "; of the data and of the model's outputs, ", classes, " are classes"));
  }

  // Adds one batch's predictions to the counts and the list of mistakes.
  void count_predictions(const std::vector<float>& probabilities, const Batch& batch,
                         const std::vector<std::int32_t>& labels) {
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const auto first = probabilities.begin() + static_cast<std::ptrdiff_t>(row) * outputs_;
      const std::int64_t actual = labels[row];
      if (!std::all_of(first, first + outputs_, [](float share) { return std::isfinite(share); })) {
        ++found_.undefined;
        continue;
      }
      const auto best = std::max_element(first, first + outputs_);
      const std::int64_t predicted = best - first;
      if (predicted < found_.classes)
        ++found_.confusion[static_cast<std::size_t>(actual * found_.classes + predicted)];
      else
        ++found_.outside[static_cast<std::size_t>(actual)];
      if (predicted != actual) found_.wrong.push_back({batch.indices[row], actual, predicted, *best});
    }
    keep_most_confident();
  }

  void keep_most_confident() {
    std::vector<EvalResult::Wrong>& wrong = found_.wrong;
    std::stable_sort(wrong.begin(), wrong.end(),
                     [](const auto& a, const auto& b) { return a.probability > b.probability; });
    if (wrong.size() > wrong_kept) wrong.resize(wrong_kept);
  }

  Stream& stream_;
  std::int64_t outputs_, images_ = 0, top1_ = 0, top5_ = 0;
  EvalResult found_;
};

}  // namespace

std::unique_ptr<Judge> judge_labels(Stream& stream, std::int64_t classes, std::int64_t outputs) {
  return std::make_unique<LabelJudge>(stream, classes, outputs);
}

}  // namespace twiddle
