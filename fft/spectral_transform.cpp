#include "fft/spectral_transform.h"

#include "framework/error.h"

namespace twiddle {

void SpectralTransform::sum_columns(Context&, const Planes&, const void*, bool, float*) {
  throw Error(join(name(), " sums no columns"));
}

}  // namespace twiddle
