#pragma once
#include <array>
#include <string>
#include <utility>

#include "data/augmentation/augment.h"
#include "framework/config/params.h"

namespace twiddle {

// One entry of `augment:`: what it does and how it is called in a summary. Mistakes go to the diagnostics; then the
// step does nothing.
struct AugmentStep {
  Augment::Step apply;  // empty where the step is a late one
  std::string name;
  ConfigNode used = {};  // the entry with every option as it is used
  Augment::LateStep apply_late = {};
  Augment::Changes changes = Augment::Changes::places;
};
AugmentStep read_augment_step(const ConfigNode& entry, std::array<int, 2> model_size, Diagnostics& diagnostics);

}  // namespace twiddle
