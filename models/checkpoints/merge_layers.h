#pragma once
#include <map>
#include <string>

#include "models/checkpoints/safetensors.h"
#include "models/config/config.h"

namespace twiddle {

// The same network for evaluation alone, with fewer layers: each batch norm, by its running averages, goes into the
// convolution before it, and parallel convolutions whose outputs are added become one, the smaller kernels centered in
// the largest (Ding et al. 2021, "RepVGG"; 2022, RepLKNet).
//
// `layers` are a list that is written out (models/config/layer_list.h) and has every option as it is used, and
// `weights` are called after them. A convolution that a sum became has the sum's name.
struct MergedLayers {
  ConfigNode layers;
  std::map<std::string, HostArray> weights;
  int norms = 0, sums = 0;  // that were merged
};
MergedLayers merge_layers(ConfigNode layers, std::map<std::string, HostArray> weights);

// The tree of a config with other layers, and without the patterns under `train`, which may name merged layers.
ConfigNode with_layers(ConfigNode tree, const ConfigNode& layers);

}  // namespace twiddle
