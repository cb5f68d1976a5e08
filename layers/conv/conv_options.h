#pragma once
#include <array>
#include <optional>
#include <string>

#include "framework/convolution.h"
#include "layers/layer.h"

namespace twiddle {

// The options of the layers conv2d and conv_transpose2d; linear has some of them. Pairs are height and width.
struct ConvLayerOptions {
  int filters, dilation, groups;
  std::array<int, 2> kernel, stride, pad, output_pad;
  bool with_bias;
  std::string engine;
  Initializer weight_start, bias_start;
  float weight_rate, bias_rate;

  void read_parameters(Params& params);              // init, bias_init, lr and bias_lr
  void put_window_into(ConvProblem& problem) const;  // kernel, stride, pad, dilation and groups
  Parameter weight(const Shape& shape, std::int64_t fan_in, std::int64_t fan_out) const;
  Parameter bias(std::int64_t fan_in, std::int64_t fan_out) const;
};

// Nothing where an option was not understood: then sizes fit nothing. `output_pad` is an option of a transposed one.
std::optional<ConvLayerOptions> read_conv_options(const Site& site, Params& params, bool transposed);

// Channels, height and width of the input; throws where it has none, or is too large.
std::array<int, 3> input_sizes(const Site& site, const Params& params);

// As validate(problem), in words that begin with the layer's kind.
void validate_for(const std::string& kind, const ConvProblem& problem);

std::string describe_window(const ConvProblem& problem);  // "11x11, stride 4, pad 2"

}  // namespace twiddle
