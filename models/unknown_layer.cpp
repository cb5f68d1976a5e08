#include "models/unknown_layer.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "framework/text.h"

namespace twiddle {

namespace {

using namespace std::string_literals;

// Names as other programs have them, without what tells cases and spellings apart: "LayerNorm" is "layernorm".
const std::map<std::string, std::string>& advice() {
  static const std::string join =
      "paths are joined by 'residual: {layers: [...]}' or 'parallel: {join: concat, paths: [...]}'";
  static const std::string loss = "leave it out: softmax comes by itself, with the loss";
  static const std::map<std::string, std::string> known{
      {"softmax", loss},
      {"logsoftmax", loss},
      {"crossentropy", loss},
      {"crossentropyloss", loss},
      {"softmaxloss", loss},
      {"add", join},
      {"concat", join},
      {"skip", join},
      {"shortcut", join},
      {"branch", join},
      {"branches", join},
      {"inception", join},
      {"conv", "it is called 'conv2d'"},
      {"convolution", "it is called 'conv2d'"},
      {"deconv", "it is called 'conv_transpose2d'"},
      {"deconvolution", "it is called 'conv_transpose2d'"},
      {"transposedconv", "it is called 'conv_transpose2d'"},
      {"dense", "it is called 'linear'"},
      {"fc", "it is called 'linear'"},
      {"fullyconnected", "it is called 'linear'"},
      {"innerproduct", "it is called 'linear'"},
      {"lrn", "it is called 'local_response_norm'"},
      {"bn", "it is called 'batch_norm'"},
      {"batchnorm2d", "it is called 'batch_norm'"},
      {"ln", "it is called 'layer_norm'"},
      {"layernorm2d", "it is called 'layer_norm'"},
      {"gn", "it is called 'group_norm'"},
      {"swish", "it is called 'silu'"},
      {"layerscale", "it is called 'scale'"},
      {"stochasticdepth", "it is called 'drop_path'"},
      {"zeropad2d", "it is called 'pad'"},
      {"reflectionpad2d", "it is called 'pad', with 'mode: mirror'"},
      {"interpolate", "it is called 'upsample'"},
      {"pool", "it is called 'max_pool' or 'avg_pool'"},
  };
  return known;
}

// Of these there is none, and what sounds like them is another.
bool is_missing(const std::string& name) {
  static const std::vector<std::string> names{"elu",       "selu",        "celu",         "mish",
                                              "relu6",     "hardsigmoid", "instancenorm", "rmsnorm",
                                              "attention", "embedding",   "lstm",         "gru"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string plain(const std::string& kind) {
  std::string name;
  for (const char letter : kind)
    if (letter != '_' && letter != '-') name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

}  // namespace

std::string unknown_layer(const std::string& kind, const std::vector<std::string>& known) {
  const auto advised = advice().find(plain(kind));
  if (advised != advice().end()) return "there is no layer '" + kind + "': " + advised->second;
  for (const std::string& name : known)
    if (plain(kind) == plain(name)) return "there is no layer '" + kind + "': it is called '" + name + "'";
  if (is_missing(plain(kind))) return "there is no layer '" + kind + "' yet; known are: " + join_names(known);
  return unknown_name("layer", kind, known);
}

}  // namespace twiddle
