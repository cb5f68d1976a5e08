#include "fft/cuda/batched/plane_major_templates.h"

namespace twiddle::small_fft {

void add_large_natural_planes(std::vector<BatchKernels>& all) {
  add_planes<36, 36, 8, 3>(all);
  add_planes<40, 40, 8, 3>(all);
  add_planes<48, 48, 4, 5>(all);
}

}  // namespace twiddle::small_fft
