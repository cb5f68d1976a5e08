#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/config.h"

namespace twiddle {

// The steps from files and command line to one tree, before anything is read from it.

// The tree of a config with its `base:` merged in, and theirs; bases are relative to the file that names them.
// A null node where a file cannot be read as YAML.
ConfigNode load_tree(const std::string& file, Diagnostics& diagnostics);
ConfigNode load_tree_text(const std::string& text, const std::string& name, Diagnostics& diagnostics);

// This tree's keys win; mappings merge, all else is replaced. What says `one of these` (an optimizer's name, a format)
// is replaced completely if the choice differs.
ConfigNode merge_trees(ConfigNode base, const ConfigNode& over);

// Whether a key of `train` has one of several names below it, with that one's options: `optimizer: {sgd: {...}}`.
bool is_choice(std::string_view key);

// Null: the mapping has no such key.
ConfigNode::Entry* find_entry(ConfigNode& mapping, std::string_view key);

// Puts the values where their keys point, creating missing sections. Layers are addressed by name or number.
void apply_overrides(ConfigNode& tree, const std::vector<Override>& overrides, Diagnostics& diagnostics);

}  // namespace twiddle
