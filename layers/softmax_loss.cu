#include "layers/softmax_loss.h"

#include <cmath>
#include <limits>

#include "framework/error.h"
#include "framework/for_each.h"
#include "framework/ranks/communicator.h"
#include "layers/elementwise.h"

namespace twiddle {

namespace {

// What turns a row's logits into logarithms of probabilities: log p = logit - largest - log_sum. The two are kept
// apart, since their sum would round away the small one. `best` is the first class that has the largest logit.
struct RowScale {
  float largest, log_sum;
  std::int32_t best;
};

struct FindRowScale {
  std::int64_t classes;
  const float* logits;
  RowScale* scale;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float* const from = logits + row * classes;
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < classes; ++i) best = from[i] > from[best] ? i : best;
    const float largest = from[best];
    float sum = 0;
    for (std::int64_t i = 0; i < classes; ++i) sum += expf(from[i] - largest);
    scale[row] = {largest, logf(sum), static_cast<std::int32_t>(best)};
  }
};

// On a GPU many threads share a row: each joins what it has seen, with the sum taken relative to its own largest.
struct JoinRowScale {
  std::int64_t classes;
  const float* logits;
  RowScale* scale;
  struct Seen {
    float largest, sum;
    std::int32_t best;
  };
  TWIDDLE_HD Seen start() const { return {-3.4028235e38f, 0, 0x7fffffff}; }
  TWIDDLE_HD Seen term(std::int64_t row, std::int64_t column) const {
    return {logits[row * classes + column], 1, static_cast<std::int32_t>(column)};
  }
  TWIDDLE_HD Seen join(Seen a, Seen b) const {
    // A NaN is never the largest: it goes into the sum instead.
    const bool second = b.largest > a.largest || (b.largest == a.largest && b.best < a.best);
    const float largest = second ? b.largest : a.largest;
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest), second ? b.best : a.best};
  }
  TWIDDLE_HD void store(std::int64_t row, Seen seen) const { scale[row] = {seen.largest, logf(seen.sum), seen.best}; }
};

struct Probability {
  const RowScale* scale;
  struct Row {
    RowScale scale;
    TWIDDLE_HD float operator()(std::int64_t, float logit) const { return expf(logit - scale.largest - scale.log_sum); }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {scale[row]}; }
};

// The targets of the rows: labels, or the probability of each class; then smoothed, and weighted by class.
struct RowTargets {
  std::int64_t classes;
  float smoothing;
  const std::int32_t* labels;           // null: shares
  const float *shares, *class_weights;  // null weights: all are 1

  TWIDDLE_HD float share(std::int64_t row, std::int64_t column) const {
    if (labels == nullptr) return shares[row * classes + column];
    return labels[row] == column ? 1 : 0;
  }
  TWIDDLE_HD float weight(std::int64_t column) const { return class_weights == nullptr ? 1 : class_weights[column]; }
  // Returns the factor of -log p of one class in the row's loss.
  TWIDDLE_HD float factor(std::int64_t row, std::int64_t column) const {
    return (smoothing / static_cast<float>(classes) + (1 - smoothing) * share(row, column)) * weight(column);
  }
  TWIDDLE_HD bool known(std::int64_t row) const {
    return labels == nullptr || (labels[row] >= 0 && labels[row] < classes);
  }
};

// How a row did: its loss, what it was multiplied by in all, the weight of its target in the mean, and 1 where its
// label comes first, else 0.
struct RowOutcome {
  float loss, factor, weight, right;
};

// A label outside the classes makes the loss NaN. A row with a NaN is never right.
struct RowLoss {
  RowTargets targets;
  const float* logits;
  const RowScale* scale;
  RowOutcome* outcome;
  struct Sum {
    double loss, factor, weight;
    float largest_share;
    std::int32_t label;  // that has it
  };
  TWIDDLE_HD Sum start() const { return {0, 0, 0, -1, -1}; }
  TWIDDLE_HD Sum term(std::int64_t row, std::int64_t column) const {
    const float factor = targets.factor(row, column), share = targets.share(row, column);
    const float away = scale[row].log_sum - (logits[row * targets.classes + column] - scale[row].largest);
    return {factor > 0 ? factor * away : 0, factor, share * targets.weight(column), share,
            static_cast<std::int32_t>(column)};
  }
  TWIDDLE_HD Sum join(const Sum& a, const Sum& b) const {
    const bool second = b.largest_share > a.largest_share || (b.largest_share == a.largest_share && b.label < a.label);
    return {a.loss + b.loss, a.factor + b.factor, a.weight + b.weight, second ? b.largest_share : a.largest_share,
            second ? b.label : a.label};
  }
  TWIDDLE_HD void store(std::int64_t row, const Sum& sum) const {
    const float log_sum = scale[row].log_sum;
    const bool known = targets.known(row), right = known && scale[row].best == sum.label && log_sum == log_sum;
    outcome[row] = {known ? static_cast<float>(sum.loss) : NAN, static_cast<float>(sum.factor),
                    static_cast<float>(sum.weight), right ? 1.0f : 0.0f};
  }
};

struct SumOfWeights {
  std::int64_t batch;
  const RowOutcome* outcome;
  float* sums;  // the weights of all rows, and their number
  TWIDDLE_HD float term(std::int64_t, std::int64_t row) const { return outcome[row].weight; }
  TWIDDLE_HD void store(std::int64_t, double sum) const {
    sums[0] = static_cast<float>(sum);
    sums[1] = static_cast<float>(batch);
  }
};

// All rows in one: the batch's mean loss, and what is added to the sums over many batches, if they are kept.
struct JoinOutcomes {
  std::int64_t batch;
  const RowOutcome* outcome;
  const float* weights_of_all;  // of the rows of all ranks, and the number of these; null: these here are all
  float *mean, *weight, *sums;
  struct Sum {
    double loss, weight, right;
  };
  TWIDDLE_HD Sum start() const { return {0, 0, 0}; }
  TWIDDLE_HD Sum term(std::int64_t, std::int64_t row) const {
    return {outcome[row].loss, outcome[row].weight, outcome[row].right};
  }
  TWIDDLE_HD Sum join(Sum a, Sum b) const { return {a.loss + b.loss, a.weight + b.weight, a.right + b.right}; }
  TWIDDLE_HD void store(std::int64_t, Sum sum) const {
    if (weights_of_all != nullptr) sum.weight = double(weights_of_all[0]) * batch / weights_of_all[1];
    *mean = static_cast<float>(sum.loss / sum.weight);
    *weight = static_cast<float>(sum.weight);
    if (sums == nullptr) return;
    sums[0] += static_cast<float>(sum.loss * (static_cast<double>(batch) / sum.weight));
    sums[1] += static_cast<float>(sum.right);
  }
};

struct LossBackward {  // (probability * all factors - its class's factor) / weight of the batch
  RowTargets targets;
  const float *grad_loss, *weight;
  const RowScale* scale;
  const RowOutcome* outcome;
  struct Row {
    RowTargets targets;
    std::int64_t row;
    float gradient, factor;
    RowScale scale;
    TWIDDLE_HD float operator()(std::int64_t column, float logit) const {
      return gradient * (factor * expf(logit - scale.largest - scale.log_sum) - targets.factor(row, column));
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    return {targets, row, *grad_loss / *weight, outcome[row].factor, scale[row]};
  }
};

std::int64_t rows_of(const Tensor& logits, const char* what) {
  require(logits.shape().size() >= 2 && logits.size() > 0 && logits.size() == logits.dim(0) * logits.dim(1), what,
          " needs logits batch x classes, got ", to_string(logits.shape()));
  return logits.dim(0);
}

// On the CPU labels can be read at once; on a GPU a wrong one shows as a NaN loss instead of a wait.
void check_targets(const Tensor& logits, const Tensor& labels) {
  const std::int64_t batch = logits.dim(0), classes = logits.dim(1);
  if (labels.type() == DType::f32) {
    require(labels.shape() == Shape{batch, classes}, "softmax_loss: shares ", to_string(labels.shape()), " for logits ",
            to_string(logits.shape()));
    return;
  }
  require(labels.size() == batch, "softmax_loss: ", labels.size(), " labels for a batch of ", batch);
  if (labels.device().kind != Device::Kind::cpu) return;
  const std::int32_t* const label = labels.read<std::int32_t>();
  for (std::int64_t i = 0; i < batch; ++i)
    if (label[i] < 0 || label[i] >= classes)
      throw Error(ErrorKind::data,
                  join("label ", label[i], " at index ", i, " of the batch: the model has ", classes, " classes, 0 to ",
                       classes - 1, "; give its last layer as many outputs as the data has classes"));
}

struct RowScales {  // one per row, in a tensor [batch, 3]
  Tensor tensor;
  RowScales(Stream& stream, const Tensor& logits) : tensor(stream, {logits.dim(0), 3}) {
    auto* const to = reinterpret_cast<RowScale*>(tensor.write());
    const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
    if (on_gpu(stream))
      fold_rows(stream, rows, classes, JoinRowScale{classes, logits.read(), to});
    else
      for_each_index(stream, rows, FindRowScale{classes, logits.read(), to}, classes * exp_cost);
  }
  const RowScale* read() const { return reinterpret_cast<const RowScale*>(tensor.read()); }
};

// In the format of RowOutcome; undefined where a row's weight is 1, or no other rank has rows.
Tensor weights_of_all(Context& ctx, std::int64_t batch, const RowOutcome* outcome, bool weighted) {
  if (!weighted || ctx.ranks == nullptr || !ctx.training) return {};
  Tensor sums(*ctx.stream, {2});
  reduce_rows(*ctx.stream, 1, batch, SumOfWeights{batch, outcome, sums.write()});
  ctx.ranks->all_reduce(*ctx.stream, sums.write(), sums.size());
  return sums;
}

}  // namespace

void softmax_loss_without_rows(Context& ctx) {
  Tensor sums = Tensor::filled(*ctx.stream, {2}, 0);
  ctx.ranks->all_reduce(*ctx.stream, sums.write(), sums.size());
}

Variable softmax_loss(Context& ctx, const Variable& logits, const Tensor& targets, float label_smoothing, Tensor* sums,
                      const Tensor& class_weights) {
  Stream& stream = *ctx.stream;
  const Tensor value = logits.value();
  const std::int64_t batch = rows_of(value, "softmax_loss"), classes = value.dim(1);
  check_targets(value, targets);
  require(sums == nullptr || sums->shape() == Shape{2}, "softmax_loss: sums must be two numbers");
  require(!class_weights.defined() || class_weights.shape() == Shape{classes}, "softmax_loss: class weights must be ",
          classes, " numbers");

  const bool labels = targets.type() == DType::i32;
  const RowTargets rows{classes, label_smoothing, labels ? targets.read<std::int32_t>() : nullptr,
                        labels ? nullptr : targets.read(), class_weights.defined() ? class_weights.read() : nullptr};
  const RowScales scales(stream, value);
  Tensor outcomes(stream, {batch, 4}), loss(stream, {1}), weight(stream, {1});
  auto* const outcome = reinterpret_cast<RowOutcome*>(outcomes.write());
  fold_rows(stream, batch, classes, RowLoss{rows, value.read(), scales.read(), outcome});
  const Tensor of_all = weights_of_all(ctx, batch, outcome, class_weights.defined());
  fold_rows(stream, 1, batch,
            JoinOutcomes{batch, outcome, of_all.defined() ? of_all.read() : nullptr, loss.write(), weight.write(),
                         sums == nullptr ? nullptr : sums->write()});
  return ctx.tape.record("loss", loss, {logits},
                         // The targets and the class weights are held for as long as `rows` points into them.
                         [logits, value, targets, class_weights, rows, scales, outcomes, weight, batch, classes](
                             Context& backward_ctx, const Tensor& grad_loss) {
                           Tensor grad_logits(*backward_ctx.stream, value.shape());
                           const LossBackward backward{rows, grad_loss.read(), weight.read(), scales.read(),
                                                       reinterpret_cast<const RowOutcome*>(outcomes.read())};
                           map_rows(*backward_ctx.stream, batch, classes, backward, exp_cost, grad_logits.write(),
                                    value.read());
                           logits.add_grad(backward_ctx, grad_logits);
                         });
}

Tensor softmax(Stream& stream, const Tensor& logits) {
  const std::int64_t batch = rows_of(logits, "softmax"), classes = logits.dim(1);
  const RowScales scales(stream, logits);
  Tensor probability(stream, logits.shape());
  map_rows(stream, batch, classes, Probability{scales.read()}, exp_cost, probability.write(), logits.read());
  return probability;
}

}  // namespace twiddle
