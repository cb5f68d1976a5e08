#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/config/experiment.h"
#include "models/config/layer_list.h"

namespace twiddle {

inline const std::string smallest_config =
    "version: 1\nmodel:\n  input: [1, 8, 8]\n  layers:\n    - flatten\n    - linear: {outputs: 10}\n";

inline Config config_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  return load_experiment_text(text, "a.yaml", overrides).config;
}

// Returns the error message for a config; empty if it is accepted.
inline std::string complaint_about(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    config_of(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::vector<std::string> names_of_layers(const Config& config) {
  return layer_names(config.layers);
}

// The kind of a layer in a list, its position and its options.
inline const ConfigNode::Entry& layer_at(const ConfigNode& list, std::size_t i) {
  return list.items.at(i).entries.front();
}

}  // namespace twiddle
