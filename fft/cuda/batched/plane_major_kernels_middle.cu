#include "fft/cuda/batched/plane_major_templates.h"

namespace twiddle::small_fft {

void add_middle_natural_planes(std::vector<BatchKernels>& all) {
  add_planes<18, 18, 16, 6>(all);
  add_planes<20, 20, 16, 6>(all);
  add_planes<24, 24, 8, 8>(all);
  add_planes<28, 28, 8, 5>(all);
  add_planes<30, 30, 8, 5>(all);
}

}  // namespace twiddle::small_fft
