#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// A point of the fbfft paper's table 2: S, f, f', k and the side of the output.
struct SweepShape {
  int batch = 1, channels = 1, filters = 1, kernel = 1, output = 1;

  ConvProblem problem() const;
  double problem_size() const { return 1.0 * batch * channels * filters; }  // S f f', the paper's y-axis
  auto operator<=>(const SweepShape&) const = default;
};

const std::vector<int>& sweep_kernels();  // 3, 5 .. 13
const std::vector<int>& sweep_outputs();  // 1, 2, 4 .. 64

std::vector<SweepShape> sweep_shapes();  // all 8,232
// Returns `count` random shapes; a larger sample of the same seed starts with the smaller one.
std::vector<SweepShape> sweep_sample(int count, std::uint64_t seed);

// Every `count`th shape, from the `index`th on, counted from 1: one shard per device.
struct Shard {
  int index = 1, count = 1;
};
std::vector<SweepShape> shard_of(const std::vector<SweepShape>& shapes, const Shard& shard);

}  // namespace twiddle
