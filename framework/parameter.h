#pragma once
#include <cstdint>
#include <string>

#include "framework/autograd.h"
#include "framework/init.h"

namespace twiddle {

// A tensor that a layer owns and a checkpoint keeps. initialize() allocates its memory, not the layer's constructor, so
// that `check` and `summary` allocate nothing.
struct Parameter {
  std::string name;  // "conv1.weight"
  Shape shape;
  Initializer initializer;
  std::int64_t fan_in = 1, fan_out = 1;
  bool trainable = true;     // false: no optimizer touches it: frozen, or state such as batch norm's running mean
  bool frozen = false;       // by the config; where its layer would train it
  bool weight_decay = true;  // false for biases and batch norm
  float learning_rate = 1;   // multiplies the schedule's rate
  Variable variable{Tensor{}, true};

  Tensor copy = {};            // of 16 bits, made by working()
  Version copied = {};         // of the value, when the copy was made
  std::int64_t copied_in = 0;  // Stream::capture_changes() at that time
  // Returns the value in the type that a layer computes with: the value itself in f32, else a rounded copy, which is
  // made again after the value has changed. Gradients and updates are those of the value.
  Tensor working(Stream& stream, DType type);

  void keep_from_training() { trainable = false, variable = Variable(Tensor{}, false); }  // before it has a value
};

// Allocates the value and fills it by its initializer; the numbers depend on the seed and the name alone.
void initialize(Stream& stream, Parameter& parameter, std::uint64_t seed);

}  // namespace twiddle
