#include "models/evaluate.h"

#include <algorithm>

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

// Adds one batch's predictions to the counts and the list of mistakes.
void count_predictions(const std::vector<float>& probabilities, std::int64_t classes, const Batch& batch,
                       const std::vector<std::int32_t>& labels, EvalResult& result) {
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto first = probabilities.begin() + static_cast<std::ptrdiff_t>(row) * classes;
    const auto best = std::max_element(first, first + classes);
    const std::int64_t predicted = best - first, actual = labels[row];
    ++result.confusion[static_cast<std::size_t>(actual * classes + predicted)];
    if (predicted != actual) result.wrong.push_back({batch.indices[row], actual, predicted, *best});
  }
  keep_most_confident(result.wrong);
}

}  // namespace

EvalResult evaluate(Context& ctx, const Sequential& net, Loader& loader, std::int64_t limit_batches,
                    const std::function<bool()>& cancelled) {
  const EvaluationMode evaluating(ctx);
  Stream& stream = *ctx.stream;
  const std::int64_t classes = net.output_shape().at(0);
  EvalResult result;
  result.confusion.assign(static_cast<std::size_t>(classes * classes), 0);
  std::int64_t top1 = 0, top5 = 0;
  loader.start_epoch(stream, 0);
  Batch batch;
  for (std::int64_t done = 0; (limit_batches == 0 || done < limit_batches) && loader.next(batch); ++done) {
    if (cancelled && cancelled()) break;
    const Tensor logits = net.forward(ctx, Variable(batch.images)).value();
    const auto images = static_cast<std::int64_t>(batch.indices.size());
    result.loss +=
        softmax_loss(ctx, Variable(logits), batch.labels).value().to_vector(stream).at(0) * static_cast<double>(images);
    result.images += images;
    for (const std::int32_t rank : label_ranks(stream, logits, batch.labels).to_vector<std::int32_t>(stream)) {
      top1 += rank < 1;
      top5 += rank < 5;
    }
    count_predictions(softmax(stream, logits).to_vector(stream), classes, batch,
                      batch.labels.to_vector<std::int32_t>(stream), result);
  }
  if (result.images > 0) {
    const auto images = static_cast<double>(result.images);
    result.loss /= images;
    result.top1 = static_cast<double>(top1) / images;
    result.top5 = static_cast<double>(top5) / images;
  }
  return result;
}

}  // namespace twiddle
