#include "layers/cuda/norm_stretches.h"

namespace twiddle {

bool normalize_in_stretches(Stream&, const Lrn&, const Tensor&, Tensor&) {
  return false;
}

bool normalize_backward_in_stretches(Stream&, const Lrn&, const Tensor&, const Tensor&, Tensor&) {
  return false;
}

}  // namespace twiddle
