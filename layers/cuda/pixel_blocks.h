#pragma once
#include "layers/planes.h"

namespace twiddle {

// What the passes read and write, as [batch, channels, inner]; mean and inverse, which is 1 / deviation, are [batch,
// inner], scale and bias [channels].
template <class T>
struct PixelForward {
  BatchShape planes;
  float epsilon;
  const T* x;
  const float *scale, *bias;
  float *mean, *inverse;
  T* y;
};

template <class T>
struct PixelBackward {
  BatchShape planes;
  const float *mean, *inverse, *scale;
  const T *x, *grad_y;
  T* grad_x;
};

// Layer norm over channels on a GPU, a block for 32 neighbouring pixels: what it reads a second and third time is then
// in its cache, so that memory is read and written once. Both return false, having done nothing, where there is no GPU
// or a number does not fit.
template <class T>
bool normalize_pixels_in_blocks(Stream& stream, const PixelForward<T>& pass);
template <class T>
bool normalize_pixels_backward_in_blocks(Stream& stream, const PixelBackward<T>& pass);

}  // namespace twiddle
