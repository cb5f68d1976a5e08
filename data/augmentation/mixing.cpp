#include "data/augmentation/mixing.h"

#include <algorithm>
#include <cmath>

#include "framework/random.h"

namespace twiddle {

namespace {

// Marsaglia, Tsang, A Simple Method for Generating Gamma Variables, 2000; a shape below 1 by way of the one above.
double gamma(double shape, RandomSequence random) {
  if (shape < 1) return gamma(shape + 1, random.split(0)) * std::pow(random.split(1).uniform_double(0), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  const RandomSequence normals = random.split(0), uniforms = random.split(1);
  for (std::int64_t attempt = 0;; ++attempt) {
    const double x = normals.normal(attempt), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(uniforms.uniform_double(attempt)) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

struct Box {
  std::int64_t top, bottom, left, right;
  std::int64_t area() const { return (bottom - top) * (right - left); }
};

// The center is anywhere in the image, and the box is clipped at the border, as in torchvision, whose sides are even.
Box random_box(double lambda, std::int64_t height, std::int64_t width, RandomSequence random) {
  const double half = std::sqrt(1 - lambda) / 2;
  const std::int64_t y = random.below(0, height), x = random.below(1, width);
  const auto h = static_cast<std::int64_t>(half * static_cast<double>(height));
  const auto w = static_cast<std::int64_t>(half * static_cast<double>(width));
  return {std::max<std::int64_t>(y - h, 0), std::min(y + h, height), std::max<std::int64_t>(x - w, 0),
          std::min(x + w, width)};
}

// Each of two rows becomes lambda of itself and the rest of the other.
void blend(float lambda, std::int64_t values, float* a, float* b) {
  for (std::int64_t i = 0; i < values; ++i) {
    const float first = a[i], second = b[i];
    a[i] = lambda * first + (1 - lambda) * second;
    b[i] = lambda * second + (1 - lambda) * first;
  }
}

// Two images exchange what lies in the box.
void exchange(const Box& box, const std::vector<std::int64_t>& shape, float* a, float* b) {
  for (std::int64_t c = 0; c < shape[0]; ++c)
    for (std::int64_t y = box.top; y < box.bottom; ++y) {
      const std::int64_t row = (c * shape[1] + y) * shape[2];
      std::swap_ranges(a + row + box.left, a + row + box.right, b + row + box.left);
    }
}

}  // namespace

double beta(double alpha, RandomSequence random) {
  const double a = gamma(alpha, random.split(0)), b = gamma(alpha, random.split(1));
  return a + b > 0 ? a / (a + b) : 0.5;  // a tiny alpha may leave nothing of both
}

void mix(const Mixing& mixing, RandomSequence random, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
         const std::vector<std::int64_t>& shape, float* images, std::int64_t values, float* shares) {
  const bool cut = mixing.cutmix > 0 && (mixing.mixup == 0 || random.split(0).uniform(0) < 0.5f);
  double lambda = beta(cut ? mixing.cutmix : mixing.mixup, random.split(1));
  Box box{0, 0, 0, 0};
  if (cut) {  // the share that is left of the image is that of its target
    box = random_box(lambda, shape[1], shape[2], random.split(2));
    lambda = 1 - static_cast<double>(box.area()) / static_cast<double>(shape[1] * shape[2]);
  }
  const std::int64_t size = shape[0] * shape[1] * shape[2];
  for (const auto& [i, j] : pairs) {
    if (cut)
      exchange(box, shape, images + i * size, images + j * size);
    else
      blend(static_cast<float>(lambda), size, images + i * size, images + j * size);
    blend(static_cast<float>(lambda), values, shares + i * values, shares + j * values);
  }
}

}  // namespace twiddle
