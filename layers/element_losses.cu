#include "layers/element_losses.h"

#include "framework/error.h"
#include "framework/for_each.h"
#include "layers/elementwise.h"

namespace twiddle {

namespace {

// A loss gives the value and the slope of one element, by its column.
struct BinaryCrossEntropy {
  const float* positive_weights;  // null: all are 1

  // For target t, returns the factor of -log sigmoid(x) in the loss; that of -log sigmoid(-x) is 1 - t.
  TWIDDLE_HD float of_positive(std::int64_t column, float target) const {
    return positive_weights == nullptr ? target : positive_weights[column] * target;
  }
  // -log sigmoid(x) = log(1 + exp(-x)), and -log sigmoid(-x) is x more; exp of -|x| cannot overflow.
  TWIDDLE_HD float value(std::int64_t column, float x, float target) const {
    const float small = log1pf(expf(-fabsf(x))), positive = of_positive(column, target);
    return positive * (small + fmaxf(-x, 0)) + (1 - target) * (small + fmaxf(x, 0));
  }
  TWIDDLE_HD float slope(std::int64_t column, float x, float target) const {
    const float positive = of_positive(column, target), s = 1 / (1 + expf(-x));
    return (1 - target) * s - positive * (1 - s);
  }
};

struct SquaredError {
  TWIDDLE_HD float value(std::int64_t, float output, float target) const {
    return (output - target) * (output - target);
  }
  TWIDDLE_HD float slope(std::int64_t, float output, float target) const { return 2 * (output - target); }
};

template <class Loss>
struct SumOfRow {
  Loss loss;
  std::int64_t columns;
  const float *output, *targets;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * columns + column;
    return loss.value(column, output[i], targets[i]);
  }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

struct JoinRows {
  double batch, elements;
  const float* rows;
  float *mean, *sums;
  TWIDDLE_HD float term(std::int64_t, std::int64_t row) const { return rows[row]; }
  TWIDDLE_HD void store(std::int64_t, double sum) const {
    *mean = static_cast<float>(sum / elements);
    if (sums != nullptr) sums[0] += static_cast<float>(sum / elements * batch);
  }
};

template <class Loss>
struct Slope {
  Loss loss;
  float elements;
  const float* grad_loss;
  struct Row {
    Loss loss;
    float factor;
    TWIDDLE_HD float operator()(std::int64_t column, float output, float target) const {
      return factor * loss.slope(column, output, target);
    }
  };
  TWIDDLE_HD Row row(std::int64_t) const { return {loss, *grad_loss / elements}; }
};

// `kept` is what the loss points into.
template <class Loss>
Variable mean_of(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums, const Loss& loss,
                 const Tensor& kept) {
  const Tensor value = output.value();
  require(value.size() > 0 && targets.size() == value.size() && targets.type() == DType::f32, "a loss of outputs ",
          to_string(value.shape()), " needs as many targets, got ", to_string(targets.shape()));
  require(sums == nullptr || sums->shape() == Shape{2}, "a loss's sums must be two numbers");
  Stream& stream = *ctx.stream;
  const std::int64_t batch = value.dim(0), columns = value.size() / batch;
  Tensor rows(stream, {batch}), mean(stream, {1});
  reduce_rows(stream, batch, columns, SumOfRow<Loss>{loss, columns, value.read(), targets.read(), rows.write()});
  reduce_rows(stream, 1, batch,
              JoinRows{static_cast<double>(batch), static_cast<double>(value.size()), rows.read(), mean.write(),
                       sums == nullptr ? nullptr : sums->write()});
  return ctx.tape.record(
      "loss", mean, {output},
      [output, value, targets, loss, kept, batch, columns](Context& backward_ctx, const Tensor& grad_loss) {
        Tensor grad(*backward_ctx.stream, value.shape());
        map_rows(*backward_ctx.stream, batch, columns,
                 Slope<Loss>{loss, static_cast<float>(value.size()), grad_loss.read()}, exp_cost, grad.write(),
                 value.read(), targets.read());
        output.add_grad(backward_ctx, grad);
      });
}

}  // namespace

Variable binary_cross_entropy(Context& ctx, const Variable& logits, const Tensor& targets, Tensor* sums,
                              const Tensor& positive_weights) {
  const Tensor value = logits.value();
  require(!positive_weights.defined() || positive_weights.size() * value.dim(0) == value.size(),
          "binary_cross_entropy: ", positive_weights.size(), " weights for logits ", to_string(value.shape()));
  const BinaryCrossEntropy loss{positive_weights.defined() ? positive_weights.read() : nullptr};
  return mean_of(ctx, logits, targets, sums, loss, positive_weights);
}

Variable mean_squared_error(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums) {
  return mean_of(ctx, output, targets, sums, SquaredError{}, {});
}

}  // namespace twiddle
