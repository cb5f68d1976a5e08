#include "layers/conv/conv_options.h"

#include <limits>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/planes.h"
#include "layers/pool_window.h"

namespace twiddle {

namespace {

constexpr int largest_option = 1 << 20;

}  // namespace

void ConvLayerOptions::read_parameters(Params& params) {
  weight_start = read_initializer(params, "init", {Initializer::Kind::he, 0});
  bias_start = read_initializer(params, "bias_init", {Initializer::Kind::constant, 0});
  weight_rate = static_cast<float>(params.number("lr", 1, 0, 1e6));
  bias_rate = static_cast<float>(params.number("bias_lr", 1, 0, 1e6));
}

void ConvLayerOptions::put_window_into(ConvProblem& problem) const {
  problem.kernel_h = kernel[0], problem.kernel_w = kernel[1];
  problem.stride_h = stride[0], problem.stride_w = stride[1];
  problem.pad_h = pad[0], problem.pad_w = pad[1];
  problem.dilation = dilation;
  problem.groups = groups;
}

Parameter ConvLayerOptions::weight(const Shape& shape, std::int64_t fan_in, std::int64_t fan_out) const {
  return {.name = "weight",
          .shape = shape,
          .initializer = weight_start,
          .fan_in = fan_in,
          .fan_out = fan_out,
          .learning_rate = weight_rate};
}

Parameter ConvLayerOptions::bias(std::int64_t fan_in, std::int64_t fan_out) const {
  return {.name = "bias",
          .shape = {filters},
          .initializer = bias_start,
          .fan_in = fan_in,
          .fan_out = fan_out,
          .weight_decay = false,
          .learning_rate = bias_rate};
}

std::optional<ConvLayerOptions> read_conv_options(const Site& site, Params& params, bool transposed) {
  const std::size_t errors = params.diagnostics().size();
  ConvLayerOptions options{};
  options.filters = static_cast<int>(params.integer("filters", {}, 1, largest_option));
  options.kernel = params.pair("kernel", {}, 1, largest_option);
  options.stride = params.pair("stride", {{1, 1}}, 1, largest_option);
  options.pad = read_pad(params, options.kernel, largest_option);
  if (transposed) options.output_pad = params.pair("output_pad", {{0, 0}}, 0, largest_option);
  options.dilation = static_cast<int>(params.integer("dilation", 1, 1, largest_option));
  options.groups = static_cast<int>(params.integer("groups", 1, 1, largest_option));
  options.with_bias = params.flag("bias", true);
  options.engine = params.text("engine", "");
  options.read_parameters(params);
  try {
    if (!options.engine.empty()) site.convolutions.check_name(options.engine);
  } catch (const Error& error) {
    params.error("engine", error.what());
  }
  return params.diagnostics().size() > errors ? std::nullopt : std::optional(options);
}

std::array<int, 3> input_sizes(const Site& site, const Params& params) {
  require_planes(site, params);
  std::array<int, 3> sizes{};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (site.input[axis] > std::numeric_limits<int>::max())
      throw Error(ErrorKind::config, params.owner() + ": the input " + to_string(site.input) + " is too large");
    sizes[axis] = static_cast<int>(site.input[axis]);
  }
  return sizes;
}

void validate_for(const std::string& kind, const ConvProblem& problem) {
  try {
    validate(problem);
  } catch (const Error& error) {
    throw Error(error.kind(), kind + ": " + error.what());
  }
}

std::string describe_window(const ConvProblem& p) {
  std::string text = join(p.kernel_h, "x", p.kernel_w);
  if (p.stride_h > 1 || p.stride_w > 1) text += ", stride " + format_sides(p.stride_h, p.stride_w);
  if (p.pad_h > 0 || p.pad_w > 0) text += ", pad " + format_sides(p.pad_h, p.pad_w);
  if (p.dilation > 1) text += join(", dilation ", p.dilation);
  if (p.groups > 1) text += join(", groups ", p.groups);
  return text;
}

}  // namespace twiddle
