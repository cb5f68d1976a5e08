#pragma once
#include <cstdint>

#include "framework/for_each.h"

namespace twiddle {

// Adds the blocks' sums of weight gradients, stored consecutively, in order, by reduce_columns.
struct SumOfParts {
  const float* parts;
  std::int64_t count;
  float* result;
  TWIDDLE_HD float term(std::int64_t part, std::int64_t i) const { return parts[part * count + i]; }
  TWIDDLE_HD void store(std::int64_t i, double sum) const { result[i] = static_cast<float>(sum); }
};

}  // namespace twiddle
