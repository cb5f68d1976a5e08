#pragma once
#include <string>

#include "models/config/experiment.h"

namespace twiddle {

// A network whose layers are lines of a config.
inline Model model_of(const std::string& input, const std::string& layers, const Device& device = {},
                      const std::string& engine = "auto") {
  return load_experiment_text("version: 1\nmodel:\n  input: " + input + "\n  layers:\n" + layers, "net.yaml",
                              {{"device", to_string(device), "--device"}, {"convolution.engine", engine, "--engine"}})
      .model;
}

}  // namespace twiddle
