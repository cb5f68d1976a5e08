#pragma once
#include <map>
#include <string>

#include "models/checkpoints/safetensors.h"
#include "models/config/config.h"

namespace twiddle {

// The same network for evaluation alone, with fewer layers: each batch norm, by its running averages, goes into the
// convolution before it, and convolutions side by side whose sum is taken become one, the smaller kernels at the middle
// of the largest (Ding et al. 2021, "RepVGG"; 2022, RepLKNet).
//
// `layers` are a list that is written out (models/config/layer_list.h) and has every option as it is used, and
// `weights` are called after them. A convolution that a sum became has the sum's name.
struct MergedLayers {
  ConfigNode layers;
  std::map<std::string, HostArray> weights;
  int norms = 0, sums = 0;  // that are gone
};
MergedLayers merge_layers(ConfigNode layers, std::map<std::string, HostArray> weights);

// The tree of a config with other layers, and without the patterns under `train`, which may be of layers that are gone.
ConfigNode with_layers(ConfigNode tree, const ConfigNode& layers);

}  // namespace twiddle
