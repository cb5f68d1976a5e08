#pragma once
#include <string>

#include "layers/planes.h"

namespace twiddle {

// Which numbers of an image are normalized together: `channels_each` neighboring channels. `own_factors`: each number
// has a separate scale and bias, instead of those of its channel.
struct NormGroups {
  BatchShape planes;
  std::int64_t channels_each;
  bool own_factors;
  float epsilon;
  TWIDDLE_HD std::int64_t groups() const { return planes.rows() / channels_each; }  // of the whole batch
  TWIDDLE_HD std::int64_t values() const { return channels_each * planes.inner; }   // of each
};

// Each group shifted and scaled to mean 0 and variance 1, then by `scale` and `bias`.
Variable normalize_groups(Context& ctx, const std::string& name, const Variable& x, const NormGroups& groups,
                          const Variable& scale, const Variable& bias);

}  // namespace twiddle
