#include "layers/linear.h"

#include "framework/config/params.h"
#include "framework/error.h"
#include "layers/conv/tuner/tuner.h"

namespace twiddle {

Linear::Linear(const Site& site, Params& params) : Conv2d(site, params.owner(), TunedConvolution::Direction::plain) {
  ConvLayerOptions options{};
  const std::int64_t inputs = count_of(site.input), outputs = params.integer("outputs", std::nullopt, 1, 1 << 24);
  options.filters = static_cast<int>(outputs);
  options.with_bias = params.flag("bias", true);
  options.read_parameters(params);
  // `convolution.engine: cudnn` compares convolutions; only `measured` includes linear layers.
  options.engine = site.convolutions.policy().engine == "measured" ? "measured" : "rule";
  const std::int64_t expected = params.has("inputs") ? params.integer("inputs", {}, 1, std::int64_t(1) << 40) : inputs;
  if (expected != inputs)
    throw Error(ErrorKind::config,
                join("linear expects ", expected, " inputs, gets ", inputs, " (", to_string(site.input),
                     "); change the shapes before it, or drop 'inputs' to let it be inferred"));
  if (inputs > 1 << 24)
    throw Error(ErrorKind::config,
                join("linear has ", inputs, " inputs (", to_string(site.input), "), at most ", 1 << 24));

  ConvProblem problem;
  problem.channels = static_cast<int>(inputs), problem.filters = options.filters;
  problem.bias = options.with_bias;
  validate_for(params.owner(), problem);
  set_output_shape({outputs});
  define(problem, options, {outputs, inputs}, inputs, outputs);
}

std::string Linear::describe() const {
  const ConvProblem problem = convolutions().front()->of_one_image();
  return join(problem.channels, " to ", problem.filters, problem.bias ? "" : ", no bias");
}

}  // namespace twiddle
