#include "layers/conv/conv_transpose2d.h"

#include <algorithm>
#include <limits>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/conv_options.h"

namespace twiddle {

namespace {

// How large an axis becomes; checked, since options may be as large as a million.
int grown(int size, int axis, const ConvLayerOptions& options) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t reach = std::int64_t(options.dilation) * (options.kernel[i] - 1);
  const std::int64_t out = (std::int64_t(size) - 1) * options.stride[i] - 2 * std::int64_t(options.pad[i]) + reach +
                           options.output_pad[i] + 1;
  return static_cast<int>(std::clamp<std::int64_t>(out, 0, std::numeric_limits<int>::max()));
}

// The convolution whose input gradient the layer computes: from the layer's output to its input.
ConvProblem the_other_way(const Site& site, const Params& params, const ConvLayerOptions& options) {
  const auto [channels, height, width] = input_sizes(site, params);
  const auto refuse = [&](const std::string& why) { throw Error(ErrorKind::config, params.owner() + ": " + why); };
  for (const auto& [what, count] : {std::pair("channels", channels), std::pair("filters", options.filters)})
    if (count % options.groups != 0)
      refuse(join(count, " ", what, " cannot be split into ", options.groups, " equal groups"));
  for (std::size_t i = 0; i < 2; ++i)
    if (options.output_pad[i] >= std::max(options.stride[i], options.dilation))
      refuse(join("'output_pad' ", format_sides(options.output_pad[0], options.output_pad[1]),
                  " must be smaller than the stride ", format_sides(options.stride[0], options.stride[1]),
                  " or the dilation ", options.dilation));
  ConvProblem problem;
  options.put_window_into(problem);
  problem.filters = channels, problem.channels = options.filters;
  problem.height = grown(height, 0, options), problem.width = grown(width, 1, options);
  if (problem.height < 1 || problem.width < 1)
    refuse(join("nothing is left of the input ", height, "x", width, " with kernel ", describe_window(problem)));
  validate_for(params.owner(), problem);
  return problem;
}

}  // namespace

ConvTranspose2d::ConvTranspose2d(const Site& site, Params& params)
    : Conv2d(site, params.owner(), TunedConvolution::Direction::transposed) {
  const std::optional<ConvLayerOptions> options = read_conv_options(site, params, true);
  if (!options) return;
  const ConvProblem problem = the_other_way(site, params, *options);
  output_pad_ = options->output_pad;
  // With `output_pad` >= stride, the convolution would have more outputs than the layer has inputs.
  extend_input({output_pad_[0] / options->stride[0], output_pad_[1] / options->stride[1]});
  set_output_shape({problem.channels, problem.height, problem.width});
  // One of stride_h * stride_w taps contributes to an output.
  const std::int64_t taps = std::int64_t(problem.kernel_h) * problem.kernel_w;
  const std::int64_t strides = std::int64_t(problem.stride_h) * problem.stride_w;
  define(problem, *options, problem.weight_shape(),
         problem.filters / problem.groups * std::max<std::int64_t>(taps / strides, 1),
         problem.channels / problem.groups * taps);
}

std::string ConvTranspose2d::describe() const {
  const auto [height, width] = output_pad_;
  return Conv2d::describe() + (height > 0 || width > 0 ? ", output pad " + format_sides(height, width) : "");
}

}  // namespace twiddle
