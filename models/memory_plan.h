#pragma once
#include <cstdint>
#include <string>

#include "models/builder.h"

namespace twiddle {

// Bytes that training at a batch size takes, by kind. `optimizer_tensors`: how often as much as is trained is kept
// beside weights and gradients, as kept_tensors() counts.
struct MemoryPlan {
  std::size_t weights = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0, spectra = 0, data = 0;
  std::size_t evaluation = 0;   // in host memory, on a CPU: as evaluation_bytes() of the validation set
  std::string workspace_layer;  // where it and the activations together are most
  std::size_t total() const {
    return weights + gradients + optimizer + activations + workspace + spectra + data + evaluation;
  }
};
MemoryPlan plan_memory(const Model& model, std::int64_t batch, double optimizer_tensors);

// What to do where training ran out of memory: the largest batch whose plan fits what the device has, if any does.
std::string memory_advice(const Model& model, std::int64_t batch, double optimizer_tensors, const MemoryUse& memory);

// Throws OutOfMemory with that advice where the plan alone is more than the device has: before any data is made.
void require_memory(const Model& model, std::int64_t batch, double optimizer_tensors, const MemoryUse& memory);

}  // namespace twiddle
