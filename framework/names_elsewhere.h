#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace twiddle {

// What a config may call by a name of PyTorch, torchvision, Keras, Caffe or the literature.
struct NameElsewhere {
  std::vector<std::string> here;  // names of this program, the most likely first; empty: none, not even a similar one
  std::string advice = {};        // what to do instead, if none of these names fits; may be empty
  std::string addition = {};      // what follows such a name, as "with 'mode: mirror'"; may be empty
};

// Null if the name is not a known one. Upper case, '_', '-', blanks and a module ("nn.ReLU") make no difference.
const NameElsewhere* name_elsewhere(std::string_view typed);

// A name without what makes no difference: "nn.LayerNorm" and "layer_norm" are "layernorm".
std::string plain_name(std::string_view name);

}  // namespace twiddle
