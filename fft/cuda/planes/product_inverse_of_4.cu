#include "fft/cuda/planes/product_inverse_templates.h"

namespace twiddle::small_fft {

void add_product_inverses_of_4(std::vector<ProductInverse>& all) {
  add_product_inverses<4>(all);
}

}  // namespace twiddle::small_fft
