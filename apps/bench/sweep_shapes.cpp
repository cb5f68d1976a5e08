#include "apps/bench/sweep_shapes.h"

#include <algorithm>

#include "apps/bench/bench_layers.h"
#include "framework/random.h"

namespace twiddle {

ConvProblem SweepShape::problem() const {
  return square_problem(batch, channels, filters, output + kernel - 1, kernel);
}

const std::vector<int>& sweep_kernels() {
  static const std::vector<int> kernels{3, 5, 7, 9, 11, 13};
  return kernels;
}

const std::vector<int>& sweep_outputs() {
  static const std::vector<int> outputs{1, 2, 4, 8, 16, 32, 64};
  return outputs;
}

std::vector<SweepShape> sweep_shapes() {
  constexpr int batches[] = {1, 16, 64, 128}, planes[] = {1, 4, 16, 64, 96, 128, 256};
  std::vector<SweepShape> shapes;
  for (const int kernel : sweep_kernels())
    for (const int output : sweep_outputs())
      for (const int batch : batches)
        for (const int channels : planes)
          for (const int filters : planes) shapes.push_back({batch, channels, filters, kernel, output});
  return shapes;
}

std::vector<SweepShape> sweep_sample(int count, std::uint64_t seed) {
  std::vector<SweepShape> shapes = sweep_shapes();
  const auto all = static_cast<std::int64_t>(shapes.size()), wanted = std::min<std::int64_t>(count, all);
  const RandomSequence random{seed};
  for (std::int64_t i = 0; i < wanted; ++i)
    std::swap(shapes[static_cast<std::size_t>(i)], shapes[static_cast<std::size_t>(i + random.below(i, all - i))]);
  shapes.resize(static_cast<std::size_t>(wanted));
  return shapes;
}

std::vector<SweepShape> shard_of(const std::vector<SweepShape>& shapes, const Shard& shard) {
  std::vector<SweepShape> taken;
  for (auto i = static_cast<std::size_t>(shard.index - 1); i < shapes.size();
       i += static_cast<std::size_t>(shard.count))
    taken.push_back(shapes[i]);
  return taken;
}

}  // namespace twiddle
