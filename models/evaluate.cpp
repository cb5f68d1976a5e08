#include "models/evaluate.h"

#include <algorithm>
#include <cmath>

#include "framework/error.h"
#include "layers/softmax_loss.h"

namespace twiddle {

namespace {

constexpr std::size_t wrong_kept = 12;

void keep_most_confident(std::vector<EvalResult::Wrong>& wrong) {
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  if (wrong.size() > wrong_kept) wrong.resize(wrong_kept);
}

// What follows counts by label: one that is no class must not get there.
void check_labels(const Batch& batch, const std::vector<std::int32_t>& labels, std::int64_t classes) {
  for (std::size_t row = 0; row < labels.size(); ++row)
    if (labels[row] < 0 || labels[row] >= classes)
      throw Error(ErrorKind::data, join("image ", batch.indices[row], " of the dataset has the label ", labels[row],
                                        "; of the data and of the model's outputs, ", classes, " are classes"));
}

// Adds one batch's predictions to the counts and the list of mistakes.
void count_predictions(const std::vector<float>& probabilities, std::int64_t outputs, const Batch& batch,
                       const std::vector<std::int32_t>& labels, EvalResult& result) {
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto first = probabilities.begin() + static_cast<std::ptrdiff_t>(row) * outputs;
    const std::int64_t actual = labels[row];
    if (!std::all_of(first, first + outputs, [](float share) { return std::isfinite(share); })) {
      ++result.undefined;
      continue;
    }
    const auto best = std::max_element(first, first + outputs);
    const std::int64_t predicted = best - first;
    if (predicted < result.classes)
      ++result.confusion[static_cast<std::size_t>(actual * result.classes + predicted)];
    else
      ++result.outside[static_cast<std::size_t>(actual)];
    if (predicted != actual) result.wrong.push_back({batch.indices[row], actual, predicted, *best});
  }
  keep_most_confident(result.wrong);
}

}  // namespace

EvalResult evaluate(Context& ctx, const Sequential& net, Loader& loader, std::int64_t limit_batches,
                    const std::function<bool()>& cancelled) {
  const EvaluationMode evaluating(ctx);
  Stream& stream = *ctx.stream;
  const std::int64_t outputs = net.output_shape().at(0);
  EvalResult result;
  result.classes = loader.classes();
  result.confusion.assign(static_cast<std::size_t>(result.classes * result.classes), 0);
  result.outside.assign(static_cast<std::size_t>(result.classes), 0);
  double loss = 0;
  std::int64_t top1 = 0, top5 = 0;
  loader.start_epoch(stream, 0);
  Batch batch;
  for (std::int64_t done = 0; (limit_batches == 0 || done < limit_batches) && loader.next(batch); ++done) {
    if (cancelled && cancelled()) break;
    const Tensor logits = net.forward(ctx, Variable(batch.images)).value();
    const std::vector<std::int32_t> labels = batch.labels.to_vector<std::int32_t>(stream);
    check_labels(batch, labels, std::min(result.classes, outputs));
    const auto images = static_cast<std::int64_t>(batch.indices.size());
    loss +=
        softmax_loss(ctx, Variable(logits), batch.labels).value().to_vector(stream).at(0) * static_cast<double>(images);
    result.images += images;
    for (const std::int32_t rank : label_ranks(stream, logits, batch.labels).to_vector<std::int32_t>(stream)) {
      top1 += rank < 1;
      top5 += rank < 5;
    }
    count_predictions(softmax(stream, logits).to_vector(stream), outputs, batch, labels, result);
  }
  loader.end_epoch();
  if (result.images > 0) {
    const auto images = static_cast<double>(result.images);
    result.scores.loss = loss / images;
    result.scores.top1 = static_cast<double>(top1) / images;
    result.scores.top5 = static_cast<double>(top5) / images;
  }
  return result;
}

}  // namespace twiddle
