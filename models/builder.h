#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/config/params.h"
#include "framework/device.h"
#include "framework/tensor.h"

namespace twiddle {

class ConvTuner;
class Sequential;
struct Config;
struct ConvPolicy;

// A network and what it was built with. Nothing is allocated yet: initialize() or a checkpoint gives the parameters
// their values.
struct Model {
  Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  Device device;  // that it was built for; it may be absent
  std::unique_ptr<ConvTuner> convolutions;
  std::unique_ptr<Sequential> net;
};

// A model, and the list of its layers with every option as it is used.
struct BuiltModel {
  Model model;
  ConfigNode layers;
  Shape output;  // empty: not known, since something before it is wrong
};

// Builds every layer of the config in order, for the engines of the device, of which none is run; a device that is not
// there has none. What is wrong with engine names, layers and shapes goes to the diagnostics. What the config freezes
// is not trained. Shapes are followed from the config's input, and not at all where it has none. The engine that
// `policy` leaves open is that of the device.
BuiltModel build_model(Params& root, const Config& config, Device device, ConvPolicy policy);

// Takes over the engines that an earlier run measured, for a plan of what will run. Returns the layers that have passes
// without a measurement: for these the heuristic selects the engine.
std::vector<std::string> recall_choices(const Model& model, const Device& device, std::int64_t batch);

}  // namespace twiddle
