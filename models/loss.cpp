#include "models/loss.h"

#include <algorithm>

#include "framework/config/params.h"
#include "framework/config/registry.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/element_losses.h"
#include "layers/softmax_loss.h"
#include "models/config/layer_list.h"

namespace twiddle {

namespace {

// A factor for each class, as a config lists them; on the device from their first use on. Empty: none.
class ClassFactors {
 public:
  // Reads a list, or one number for all classes.
  ClassFactors(Params& options, const char* key) {
    for (const double factor : options.numbers(key, {})) factors_.push_back(static_cast<float>(factor));
    if (!std::all_of(factors_.begin(), factors_.end(), [](float factor) { return factor > 0; }))
      options.error(key, join("'", key, "' must be above 0"));
    if (const ConfigNode* node = options.node(key)) place_ = node->place;
    key_ = key;
  }

  void expect_classes(std::int64_t classes, Diagnostics& diagnostics) const {
    const auto count = static_cast<std::int64_t>(factors_.size());
    if (count <= 1 || count == classes) return;
    diagnostics.add(place_, join("'", key_, "' has ", count, " numbers, the network gives ", classes, " scores"));
  }

  bool empty() const { return factors_.empty(); }

  void order(const std::vector<std::int64_t>& places) {
    if (factors_.size() != places.size()) return;  // one for all; or the data has not all classes of the network
    const std::vector<float> before = factors_;
    for (std::size_t i = 0; i < places.size(); ++i) factors_[static_cast<std::size_t>(places[i])] = before[i];
  }

  // Undefined if there are none. Runs in the first steps, which are not captured, so it is not in a graph.
  Tensor on(Stream& stream, std::int64_t classes) const {
    if (factors_.empty()) return {};
    std::vector<float> values = factors_;
    if (values.size() == 1) values.resize(static_cast<std::size_t>(classes), values.front());
    if (!tensor_.defined()) tensor_ = Tensor::from(stream, {classes}, values);
    return tensor_;
  }

 private:
  std::string key_;
  Place place_;
  std::vector<float> factors_;
  mutable Tensor tensor_;
};

bool is_row(const Shape& output) {
  return count_of(output) == output.front();
}

// {cross_entropy: {class_weights, label_smoothing}}: one class an image.
class CrossEntropy : public Loss {
 public:
  CrossEntropy(Params& options, Params& train) : class_weights_(options, "class_weights") {
    Params& holder = train.has("label_smoothing") ? train : options;
    smoothing_ = static_cast<float>(holder.number("label_smoothing", 0.0, 0, 0.999));
    if (&holder == &train && options.has("label_smoothing"))
      options.error("label_smoothing", "'label_smoothing' is set in 'train' and in its 'loss'",
                    "set it in one of the two");
  }
  TargetKind target() const override { return TargetKind::label; }
  bool has_weighted_mean() const override { return !class_weights_.empty(); }
  void order_classes(const std::vector<std::int64_t>& places) override { class_weights_.order(places); }
  void without_rows(Context& ctx) const override {
    if (!class_weights_.empty()) softmax_loss_without_rows(ctx);
  }

  void expect_output(const Shape& output, const Shape&, const ConfigNode& last,
                     Diagnostics& diagnostics) const override {
    if (is_row(output)) return class_weights_.expect_classes(output.front(), diagnostics);
    diagnostics.add(last.place,
                    join("the network must end in a row of scores, one per class, but '", layer_name(last), "' gives ",
                         to_string(output)),
                    "end with '- linear: {outputs: CLASSES}'; the loss includes softmax");
  }

  Variable operator()(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums) const override {
    if (!ctx.training) return softmax_loss(ctx, output, targets, 0, sums);
    return softmax_loss(ctx, output, targets, smoothing_, sums, class_weights_.on(*ctx.stream, output.value().dim(1)));
  }

 private:
  ClassFactors class_weights_;
  float smoothing_ = 0;
};

// {binary_cross_entropy: {positive_weight}}: any number of classes an image.
class BinaryCrossEntropyLoss : public Loss {
 public:
  BinaryCrossEntropyLoss(Params& options, Params&) : positive_weight_(options, "positive_weight") {}
  TargetKind target() const override { return TargetKind::labels; }
  void order_classes(const std::vector<std::int64_t>& places) override { positive_weight_.order(places); }

  void expect_output(const Shape& output, const Shape&, const ConfigNode& last,
                     Diagnostics& diagnostics) const override {
    if (is_row(output)) return positive_weight_.expect_classes(output.front(), diagnostics);
    diagnostics.add(last.place,
                    join("with binary_cross_entropy the network must end in a row of scores, one per class, but '",
                         layer_name(last), "' gives ", to_string(output)),
                    "end with '- linear: {outputs: CLASSES}'; the loss includes the sigmoid");
  }

  Variable operator()(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums) const override {
    if (!ctx.training) return binary_cross_entropy(ctx, output, targets, sums);
    return binary_cross_entropy(ctx, output, targets, sums, positive_weight_.on(*ctx.stream, output.value().dim(1)));
  }

 private:
  ClassFactors positive_weight_;
};

// {mean_squared_error: {target: input | image, denoise}}: an image for an image.
class MeanSquaredError : public Loss {
 public:
  MeanSquaredError(Params& options, Params&)
      : target_(options.choice("target", "input", {"input", "image"}) == "image" ? TargetKind::image
                                                                                 : TargetKind::input),
        noise_(options.number("denoise", 0.0, 0, 1000)) {}
  TargetKind target() const override { return target_; }
  double noise() const override { return noise_; }

  void expect_output(const Shape& output, const Shape& input, const ConfigNode& last,
                     Diagnostics& diagnostics) const override {
    if (output == input) return;
    diagnostics.add(last.place,
                    join("with mean_squared_error the network must give an image like its input, ", to_string(input),
                         ", but '", layer_name(last), "' gives ", to_string(output)),
                    "convolutions with 'pad' keep the size; 'upsample' and 'conv_transpose2d' undo strides and pools");
  }

  Variable operator()(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums) const override {
    return mean_squared_error(ctx, output, targets, sums);
  }

 private:
  TargetKind target_;
  double noise_;
};

}  // namespace

std::unique_ptr<Loss> read_loss(Params& train) {
  Registry<Loss, Params&, Params&> losses("loss");
  losses.add<CrossEntropy>("cross_entropy");
  losses.add<BinaryCrossEntropyLoss>("binary_cross_entropy");
  losses.add<MeanSquaredError>("mean_squared_error");
  auto [name, options] = train.named("loss", "cross_entropy");
  if (!losses.has(name)) {
    train.error("loss", losses.unknown(name));
    return nullptr;
  }
  std::unique_ptr<Loss> loss = losses.make(name, options, train);
  options.finish();
  return loss;
}

}  // namespace twiddle
