#include "layers/conv/tuned_convolution.h"

#include <limits>

#include "framework/error.h"
#include "layers/conv/conv_options.h"
#include "layers/conv/tuner/tuner.h"

namespace twiddle {

TunedConvolution::TunedConvolution(const Site& site, std::string kind, Direction direction)
    : layer_(site.name),
      kind_(std::move(kind)),
      direction_(direction),
      input_gradient_(site.input_gradient),
      tuner_(site.convolutions) {}

void TunedConvolution::define(const ConvProblem& problem, std::string engine, const Parameter& weight) {
  problem_ = problem;
  problem_.precision = tuner_.policy().precision;
  problem_.input_gradient = transposed() || input_gradient_;
  engine_ = std::move(engine);
  weight_ = &weight;
}

ConvProblem TunedConvolution::problem(std::int64_t batch) const {
  if (batch < 1 || batch > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config, join(kind_, ": a batch of ", batch, " images is impossible"));
  ConvProblem problem = problem_;
  problem.batch = static_cast<int>(batch);
  problem.weight_gradient = weight_->trainable;
  validate_for(kind_, problem);
  return problem;
}

ConvPass TunedConvolution::pass_for(ConvPass of_layer) const {
  if (!transposed() || of_layer == ConvPass::backward_weight) return of_layer;
  return of_layer == ConvPass::forward ? ConvPass::backward_input : ConvPass::forward;
}

bool TunedConvolution::in_training(ConvPass of_layer) const {
  return (input_gradient_ || of_layer != ConvPass::backward_input) &&
         (weight_->trainable || of_layer != ConvPass::backward_weight);
}

const ConvPlan& TunedConvolution::plan(Context& ctx, const ConvProblem& here, ConvPass of_layer) {
  tuner_.forget_gone();
  Plan& plan = plans_[{here.batch, ctx.training}][static_cast<std::size_t>(of_layer)];
  if (plan == nullptr) plan = tuner_.choose(ctx, here, pass_for(of_layer), engine_).plan;
  return *plan;
}

}  // namespace twiddle
