#pragma once
#include <vector>

#include "fft/cuda/planes/fused_product_source.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// A product of few `channels` and its inverse transform in one kernel, for one size of planes.
struct ProductInverse {
  int height = 0, width = 0, channels = 0;
  void (*run)(Stream& stream, const PlaneTarget& target, const FrequencyGemm& gemm, const void* a,
              const void* b) = nullptr;
};

// All sizes, in groups that are compiled side by side.
void add_product_inverses_of_1(std::vector<ProductInverse>& all);
void add_product_inverses_of_2(std::vector<ProductInverse>& all);
void add_product_inverses_of_3(std::vector<ProductInverse>& all);
void add_product_inverses_of_4(std::vector<ProductInverse>& all);

}  // namespace twiddle::small_fft
