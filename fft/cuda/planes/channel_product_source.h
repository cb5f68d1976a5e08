#pragma once
#include "fft/cuda/planes/plane_inverse.h"

// The Source of a depthwise convolution's inverse: the bins of a plane are those of another spectrum times those of the
// plane's channel, so that the product is never stored. Its blocks are consecutive planes, as in a stored spectrum: a
// warp reads contiguous memory, and the kernels' spectra, one per channel, stay in the caches.
namespace twiddle::small_fft {

struct ChannelProductArguments : InverseArguments {
  const Complex* kernels;      // [bin][column]
  std::int64_t kernels_pitch;  // from bin to bin
  float sign;                  // -1: times their conjugates
};

template <int P>
class ChannelProductSource : public StoredSource<P> {
  using Stored = StoredSource<P>;

 public:
  using Arguments = ChannelProductArguments;
  using Stored::Stored;

  struct Cursor {
    typename Stored::Cursor plane, kernel;
    float sign;
    TWIDDLE_HD Complex next() {
      const Complex a = plane.next(), b = kernel.next();
      const float im = sign * b.im;
      return {a.re * b.re - a.im * im, a.re * im + a.im * b.re};
    }
  };
  TWIDDLE_HD Cursor from(const Arguments& arguments, int bin) const {
    const std::int64_t column = arguments.tiles.column(this->index());
    return {Stored::from(arguments, bin),
            {arguments.kernels + column + bin * arguments.kernels_pitch, arguments.kernels_pitch},
            arguments.sign};
  }
};

}  // namespace twiddle::small_fft
