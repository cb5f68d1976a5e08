#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace twiddle {

struct RandomSequence;

// Images of a batch mixed in pairs, the first with the last and so on, and with them their targets; 0: not at all.
// mixup (Zhang, Cisse, Dauphin, Lopez-Paz, mixup: Beyond Empirical Risk Minimization, 2018) takes lambda of the image
// and 1 - lambda of the other; cutmix (Yun et al., CutMix, 2019) puts a box of the other into the image, whose area is
// about 1 - lambda. Either draws lambda from Beta(alpha, alpha) once a batch; of both, a batch takes one at random.
struct Mixing {
  double mixup = 0, cutmix = 0;  // alpha
  bool any() const { return mixup > 0 || cutmix > 0; }
};

// Each image is in one pair at most. `images` have `shape` (channels, height, width) each, and `shares` have `values`
// values each, f32.
void mix(const Mixing& mixing, RandomSequence random, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
         const std::vector<std::int64_t>& shape, float* images, std::int64_t values, float* shares);

// A number from Beta(alpha, alpha).
double beta(double alpha, RandomSequence random);

}  // namespace twiddle
