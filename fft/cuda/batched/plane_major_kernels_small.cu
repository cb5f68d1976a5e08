#include "fft/cuda/batched/plane_major_templates.h"

namespace twiddle::small_fft {

void add_small_natural_planes(std::vector<BatchKernels>& all) {
  add_few_planes<2, 2, 32>(all, 16384);
  add_planes<2, 2, 128, 8>(all);
  add_few_planes<4, 4, 16>(all, 16384);
  add_planes<4, 4, 64, 8>(all);
  add_few_planes<8, 8, 4>(all, 2048);
  add_planes<8, 8, 8, 16>(all);
  add_few_planes<10, 10, 8>(all, 2048);
  add_planes<10, 10, 32, 8>(all);
  add_planes<12, 12, 16, 10>(all);
  add_planes<14, 14, 16, 8>(all);
  add_few_planes<16, 16, 1>(all, 256);
  add_planes<16, 16, 4, 16>(all);
}

}  // namespace twiddle::small_fft
