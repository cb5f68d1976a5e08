#pragma once
#include "layers/planes.h"

namespace twiddle {

// What the passes read and write, as [batch, channels, inner]; mean and inverse, which is 1 / deviation, are [batch,
// inner], scale and bias [channels].
struct PixelForward {
  BatchShape planes;
  float epsilon;
  const float *x, *scale, *bias;
  float *mean, *inverse, *y;
};

struct PixelBackward {
  BatchShape planes;
  const float *x, *mean, *inverse, *scale, *grad_y;
  float* grad_x;
};

// Layer norm over channels on a GPU, a block for 32 neighbouring pixels: what it reads a second and third time is then
// in its cache, so that memory is read and written once. Both return false, having done nothing, where there is no GPU
// or a number does not fit.
bool normalize_pixels_in_blocks(Stream& stream, const PixelForward& pass);
bool normalize_pixels_backward_in_blocks(Stream& stream, const PixelBackward& pass);

}  // namespace twiddle
