#include "models/evaluation/evaluate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "data/formats/dataset.h"
#include "framework/context.h"
#include "framework/error.h"
#include "layers/sequential.h"
#include "models/evaluation/evaluator.h"
#include "models/evaluation/shared_evaluation.h"
#include "models/loss.h"
#include "models/training/bad_image.h"

namespace twiddle {

namespace {

std::unique_ptr<Evaluator> evaluator_of(TargetKind target, Stream& stream, const Sequential& net,
                                        const Loader& loader) {
  const std::int64_t outputs = net.output_shape().at(0);
  if (target == TargetKind::label) return label_evaluator(stream, loader.classes(), outputs);
  if (target == TargetKind::labels) return several_labels_evaluator(stream, loader.classes(), outputs);
  return image_evaluator(stream, loader.augment());
}

void refuse_bad_image(Stream& stream, const Batch& batch, const Dataset& dataset) {
  const std::string bad = first_bad_image(stream, batch, dataset);
  if (!bad.empty()) throw Error(ErrorKind::data, join(bad, "; ", bad_image_advice));
}

}  // namespace

EvalResult evaluate(Context& ctx, const Sequential& net, const Loss& loss, Loader& loader, std::int64_t limit_batches,
                    const std::function<bool()>& cancelled, Communicator* ranks) {
  const EvaluationMode evaluating(ctx);
  Stream& stream = *ctx.stream;
  EvalResult result;
  result.target = loss.target();
  const std::unique_ptr<Evaluator> evaluator = evaluator_of(result.target, stream, net, loader);
  double loss_sum = 0;
  loader.start_epoch(stream, 0);
  const auto next = [&](EvaluatedBatch& evaluated) {
    evaluated.output = Tensor();
    if (!loader.next(evaluated.batch) || (cancelled && cancelled())) return false;
    if (evaluated.batch.images.defined()) evaluated.output = net.forward(ctx, Variable(evaluated.batch.images)).value();
    return true;
  };
  const auto mean_loss = [&](const EvaluatedBatch& evaluated) -> double {
    const Batch& batch = evaluated.batch;
    const float mean = loss(ctx, Variable(evaluated.output), batch.targets).value().to_vector(stream).at(0);
    if (!std::isfinite(mean)) refuse_bad_image(stream, batch, loader.dataset());
    return mean;
  };
  for (std::int64_t done = 0; limit_batches == 0 || done < limit_batches; ++done) {
    const std::optional<BatchResult> evaluated = evaluate_next(ranks, *evaluator, next, mean_loss);
    if (!evaluated) break;
    loss_sum += evaluated->loss * static_cast<double>(evaluated->images);
    result.images += evaluated->images;
  }
  loader.end_epoch();
  evaluator->finish(result);
  if (result.images > 0) result.scores.loss = loss_sum / static_cast<double>(result.images);
  return result;
}

void expect_finite(const EvalResult& result, const std::function<std::string()>& what) {
  if (result.undefined > 0)
    throw Error(ErrorKind::diverged, join(what(), ": the network's outputs for ", result.undefined, " of ",
                                          result.images, " images are nan or infinite"));
  if (result.images > 0 && !std::isfinite(result.scores.loss))
    throw Error(ErrorKind::diverged,
                join(what(), ": the outputs are finite, but too large for the loss, which is ", result.scores.loss));
}

std::size_t evaluation_bytes(TargetKind target, std::int64_t batch, const Shape& output, std::int64_t images) {
  constexpr std::int64_t pair_bytes = 64;  // a node of a Confusion
  const std::int64_t values = count_of(output), of_batch = batch * values * 4;
  if (is_image(target)) return static_cast<std::size_t>(3 * of_batch);  // inputs, outputs and targets
  if (target == TargetKind::label)
    return static_cast<std::size_t>(of_batch + std::min(images, values * values) * pair_bytes + values * 8);
  // Outputs and targets of a batch, three copies of each; for each image and label the score and, in one bit, whether
  // it has the label.
  return static_cast<std::size_t>(6 * of_batch + images * values * 4 + images * values / 8);
}

}  // namespace twiddle
