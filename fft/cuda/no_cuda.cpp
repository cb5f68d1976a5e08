#include "fft/spectral_engine.h"

namespace twiddle {

SpectralBackend cufft() {
  return {"cufft", "", {}, {}};
}

}  // namespace twiddle
