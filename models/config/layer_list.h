#pragma once
#include <string>
#include <vector>

#include "models/config/config.h"

namespace twiddle {

// The list under `model.layers`.

// Writes every `repeat:` out and gives every layer its name, so that the list is flat and each item is
// {kind: {name: ..., options}}. A layer without a name is called after its kind and counted: conv1, pool1, fc1, relu1;
// inside a repeat a given name is counted: block1, block2, or layer1.1, layer1.2 where it ends in a digit. The lists of
// a layer that joins paths are expanded, too; names inside are unique among the paths of one such layer. An expanded
// list is returned unchanged.
ConfigNode expand_layers(const ConfigNode& list, Diagnostics& diagnostics);

// The name of an item in an expanded list, or of all; empty where it has none. Inside a layer that joins paths, a layer
// of the network has that one's name before its own: "block1.conv1".
std::string layer_name(const ConfigNode& item);
std::vector<std::string> layer_names(const ConfigNode& list);

// The lists of layers among the options of a `residual` (layers, shortcut) or a `parallel` (paths), in that order; none
// for other kinds. An option that should be a list and is not is left out.
std::vector<ConfigNode*> path_lists(const std::string& kind, ConfigNode& options);

}  // namespace twiddle
