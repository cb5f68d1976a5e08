#pragma once
#include "fft/cuda/planes/plane_launch.h"
#include "fft/cuda/planes/product_inverse_kernels.h"

namespace twiddle::small_fft {

template <int N, int Channels, int Down, int Across, int BlocksAtOnce>
ProductInverse product_inverse() {
  using Bins = ProductBins<Channels, Down, Across>;
  return {N, N, Channels,
          [](Stream& stream, const PlaneTarget& target, const FrequencyGemm& gemm, const void* a, const void* b) {
            launch_inverse<N, N, Bins, BlocksAtOnce>(stream, Bins::arguments(target, gemm, a, b));
          }};
}

template <int Channels>
void add_product_inverses(std::vector<ProductInverse>& all) {
  all.insert(all.end(), {product_inverse<8, Channels, 4, 8, 8>(), product_inverse<10, Channels, 4, 8, 8>(),
                         product_inverse<12, Channels, 4, 8, 5>(), product_inverse<14, Channels, 4, 8, 4>(),
                         product_inverse<16, Channels, 4, 8, 3>(), product_inverse<18, Channels, 4, 8, 3>(),
                         product_inverse<20, Channels, 4, 8, 2>(), product_inverse<24, Channels, 4, 4, 3>(),
                         product_inverse<28, Channels, 4, 4, 2>(), product_inverse<30, Channels, 4, 4, 2>(),
                         product_inverse<32, Channels, 2, 4, 4>(), product_inverse<36, Channels, 2, 4, 3>(),
                         product_inverse<40, Channels, 2, 4, 2>(), product_inverse<48, Channels, 2, 4, 1>()});
}

}  // namespace twiddle::small_fft
