#pragma once
#include <cstdint>
#include <string>

namespace twiddle {

struct MemoryUse;
struct Model;

// The memory that training needs in addition to its model.
struct TrainingSize {
  std::int64_t batch = 1;        // images on this rank
  double optimizer_tensors = 0;  // copies of the trained parameters, without weights and gradients: see kept_tensors()
  std::int64_t batches = 1;      // of images and targets in the model's memory, those made ahead included
  std::size_t program = 0;       // what the process takes before: code, stacks and heap; on a GPU cuBLAS's workspace
};

// Bytes that training takes, by kind.
struct MemoryPlan {
  std::size_t weights = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0, spectra = 0, data = 0;
  std::size_t program = 0;
  std::size_t evaluation = 0;   // in host memory, on a CPU: as evaluation_bytes() of the validation set
  std::string workspace_layer;  // where it and the activations together are most
  std::size_t to_allocate() const {
    return weights + gradients + optimizer + activations + workspace + spectra + data + evaluation;
  }
  std::size_t total() const { return to_allocate() + program; }
};
MemoryPlan plan_memory(const Model& model, const TrainingSize& size);

// What to do where training ran out of memory: the largest batch whose plan fits what the device has, if any does.
std::string memory_advice(const Model& model, const TrainingSize& size, const MemoryUse& memory);

// Returns the plan, or throws OutOfMemory with that advice if it is more than the device has: before any data is read.
MemoryPlan require_memory(const Model& model, const TrainingSize& size, const MemoryUse& memory);

}  // namespace twiddle
