#pragma once
#include <string>
#include <vector>

#include "models/config.h"

namespace twiddle {

// The list under `model.layers`.

// Writes every `repeat:` out and gives every layer its name, so that the list is flat and each item is
// {kind: {name: ..., options}}. A layer without a name is called after its kind and counted: conv1, pool1, fc1, relu1;
// inside a repeat a given name gets _1, _2, ... A flat list comes back as it is.
ConfigNode expand_layers(const ConfigNode& list, Diagnostics& diagnostics);

// Names in an expanded list, in order; empty where an item has none.
std::vector<std::string> layer_names(const ConfigNode& list);

// Converts an expanded list to what the builder takes, and back.
std::vector<LayerConfig> read_layers(const ConfigNode& list);
ConfigNode write_layers(const std::vector<LayerConfig>& layers);

}  // namespace twiddle
