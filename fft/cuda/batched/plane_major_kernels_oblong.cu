#include "fft/cuda/batched/plane_major_templates.h"

namespace twiddle::small_fft {

void add_oblong_natural_planes(std::vector<BatchKernels>& all) {
  add_planes<8, 16, 16, 8>(all);
  add_planes<16, 8, 16, 8>(all);
  add_planes<8, 32, 8, 6>(all);
  add_planes<32, 8, 8, 6>(all);
  add_planes<10, 20, 16, 6>(all);
  add_planes<20, 10, 16, 6>(all);
  add_planes<12, 24, 8, 8>(all);
  add_planes<24, 12, 8, 8>(all);
  add_planes<14, 28, 8, 5>(all);
  add_planes<28, 14, 8, 5>(all);
  add_planes<16, 32, 8, 6>(all);
  add_planes<32, 16, 8, 6>(all);
  add_planes<16, 64, 4, 3>(all);
  add_planes<64, 16, 4, 3>(all);
  add_planes<18, 36, 8, 4>(all);
  add_planes<36, 18, 8, 4>(all);
  add_planes<20, 40, 8, 3>(all);
  add_planes<40, 20, 8, 3>(all);
  add_planes<24, 48, 4, 4>(all);
  add_planes<48, 24, 4, 4>(all);
  add_planes<32, 64, 4, 3>(all);
  add_planes<64, 32, 4, 3>(all);
}

}  // namespace twiddle::small_fft
