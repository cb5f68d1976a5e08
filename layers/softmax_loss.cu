#include "layers/softmax_loss.h"

#include <cmath>
#include <limits>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr std::int64_t exp_cost = 20;  // simple operations that one exponential is worth

// What turns a row's logits into logarithms of probabilities: log p = logit - largest - log_sum. The two are kept
// apart, since their sum would round away the small one.
struct RowScale {
  float largest, log_sum;
};

struct FindRowScale {
  std::int64_t classes;
  const float* logits;
  RowScale* scale;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float* const from = logits + row * classes;
    float largest = from[0];
    for (std::int64_t i = 1; i < classes; ++i) largest = from[i] > largest ? from[i] : largest;
    float sum = 0;
    for (std::int64_t i = 0; i < classes; ++i) sum += expf(from[i] - largest);
    scale[row] = {largest, logf(sum)};
  }
};

struct Probability {
  std::int64_t classes;
  const float* logits;
  const RowScale* scale;
  float* probability;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const RowScale own = scale[row];
    for (std::int64_t i = row * classes; i < (row + 1) * classes; ++i)
      probability[i] = expf(logits[i] - own.largest - own.log_sum);
  }
};

// The loss of a row against (1 - smoothing) at its label plus smoothing spread over all classes. A label that is no
// class makes the loss NaN.
struct RowLoss {
  std::int64_t classes;
  float smoothing;
  const float* logits;
  const RowScale* scale;
  const std::int32_t* labels;
  float* loss;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float* const from = logits + row * classes;
    const float largest = scale[row].largest;
    const std::int32_t label = labels[row];
    float mean = 0;
    if (smoothing > 0)
      for (std::int64_t i = 0; i < classes; ++i) mean += (from[i] - largest) / static_cast<float>(classes);
    const bool known = label >= 0 && label < classes;
    loss[row] = known ? scale[row].log_sum - (1 - smoothing) * (from[label] - largest) - smoothing * mean : NAN;
  }
};

struct MeanOfRow {
  std::int64_t columns;
  const float* x;
  float* mean;
  TWIDDLE_HD float term(std::int64_t, std::int64_t column) const { return x[column]; }
  TWIDDLE_HD void store(std::int64_t, double sum) const {
    *mean = static_cast<float>(sum / static_cast<double>(columns));
  }
};

struct LossBackward {  // (probability - target) / batch, one call a row
  std::int64_t batch, classes;
  float smoothing;
  const float *logits, *grad_loss;
  const RowScale* scale;
  const std::int32_t* labels;
  float* grad_logits;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float factor = *grad_loss / static_cast<float>(batch), floor = smoothing / static_cast<float>(classes);
    const RowScale own = scale[row];
    for (std::int64_t i = 0; i < classes; ++i) {
      const float target = floor + (i == labels[row] ? 1 - smoothing : 0);
      grad_logits[row * classes + i] = factor * (expf(logits[row * classes + i] - own.largest - own.log_sum) - target);
    }
  }
};

// How many classes come before the label in order of falling score; of equal scores the lower class comes first, and a
// NaN comes before all, so that a broken network is never right.
struct LabelRank {
  std::int64_t classes;
  const float* logits;
  const std::int32_t* labels;
  std::int32_t* rank;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float* const from = logits + row * classes;
    const std::int32_t label = labels[row];
    std::int32_t before = 0;
    if (label < 0 || label >= classes)
      before = static_cast<std::int32_t>(classes);
    else
      for (std::int64_t i = 0; i < classes; ++i)
        before += i < label ? !(from[i] < from[label]) : i > label && !(from[i] <= from[label]);
    rank[row] = before;
  }
};

std::int64_t rows_of(const Tensor& logits, const char* what) {
  require(logits.shape().size() >= 2 && logits.size() > 0 && logits.size() == logits.dim(0) * logits.dim(1), what,
          " needs logits batch x classes, got ", to_string(logits.shape()));
  return logits.dim(0);
}

// On the CPU the labels can be read at once; on a GPU a wrong one shows as a NaN loss instead of a wait.
void check_labels(const Tensor& logits, const Tensor& labels) {
  const std::int64_t batch = logits.dim(0), classes = logits.dim(1);
  require(labels.size() == batch, "softmax_loss: ", labels.size(), " labels for a batch of ", batch);
  if (labels.device().kind != Device::Kind::cpu) return;
  const std::int32_t* const label = labels.read<std::int32_t>();
  for (std::int64_t i = 0; i < batch; ++i)
    if (label[i] < 0 || label[i] >= classes)
      throw Error(ErrorKind::data, join("label ", label[i], " at place ", i, " of the batch: the model tells ", classes,
                                        " classes apart, 0 to ", classes - 1,
                                        "; give its last layer as many outputs as the data has classes"));
}

struct RowScales {  // one a row, in a tensor [batch, 2]
  Tensor tensor;
  RowScales(Stream& stream, const Tensor& logits) : tensor(stream, {logits.dim(0), 2}) {
    auto* const to = reinterpret_cast<RowScale*>(tensor.write());
    for_each_index(stream, logits.dim(0), FindRowScale{logits.dim(1), logits.read(), to}, logits.dim(1) * exp_cost);
  }
  const RowScale* read() const { return reinterpret_cast<const RowScale*>(tensor.read()); }
};

}  // namespace

Variable softmax_loss(Context& ctx, const Variable& logits, const Tensor& labels, float label_smoothing) {
  Stream& stream = *ctx.stream;
  const Tensor value = logits.value();
  const std::int64_t batch = rows_of(value, "softmax_loss"), classes = value.dim(1);
  check_labels(value, labels);

  const RowScales scales(stream, value);
  Tensor row_loss(stream, {batch}), loss(stream, {1});
  for_each_index(
      stream, batch,
      RowLoss{classes, label_smoothing, value.read(), scales.read(), labels.read<std::int32_t>(), row_loss.write()});
  reduce_rows(stream, 1, batch, MeanOfRow{batch, row_loss.read(), loss.write()});
  return ctx.tape.record(
      "loss", loss, {logits},
      [logits, value, labels, scales, batch, classes, label_smoothing](Context& backward_ctx, const Tensor& grad_loss) {
        Tensor grad_logits(*backward_ctx.stream, value.shape());
        for_each_index(*backward_ctx.stream, batch,
                       LossBackward{batch, classes, label_smoothing, value.read(), grad_loss.read(), scales.read(),
                                    labels.read<std::int32_t>(), grad_logits.write()},
                       classes * exp_cost);
        logits.add_grad(backward_ctx, grad_logits);
      });
}

Tensor softmax(Stream& stream, const Tensor& logits) {
  const std::int64_t batch = rows_of(logits, "softmax"), classes = logits.dim(1);
  const RowScales scales(stream, logits);
  Tensor probability(stream, logits.shape());
  for_each_index(stream, batch, Probability{classes, logits.read(), scales.read(), probability.write()},
                 classes * exp_cost);
  return probability;
}

Tensor label_ranks(Stream& stream, const Tensor& logits, const Tensor& labels) {
  const std::int64_t batch = rows_of(logits, "label_ranks"), classes = logits.dim(1);
  require(labels.size() == batch, "label_ranks: ", labels.size(), " labels for a batch of ", batch);
  Tensor ranks(stream, {batch}, DType::i32);
  for_each_index(stream, batch,
                 LabelRank{classes, logits.read(), labels.read<std::int32_t>(), ranks.write<std::int32_t>()}, classes);
  return ranks;
}

}  // namespace twiddle
