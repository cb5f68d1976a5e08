#pragma once
#include "fft/cuda/planes/plane_inverse.h"
#include "fft/frequency_product.h"

// The Source of a fused inverse: each bin of Y = X conj(W)' is a sum over K channels, up to four, that the thread
// computes at the moment when the inverse reads the bin. For a first layer the spectrum of Y is many times larger than
// those of X and W, so that storing and loading it would take most of the time.
namespace twiddle::small_fft {

struct ProductArguments : PlaneTarget {
  const Complex *a, *b;  // [bin][rows][K], [bin][columns][K]
  std::int64_t rows, a_pitch, b_pitch;
  int columns;
  Divisor blocks_across;
};

// A block takes Down rows by Across columns of the matrix of planes: its threads read the same few numbers of X and of
// W, from the cache.
template <int K, int Down, int Across>
class FusedProductSource {
 public:
  static constexpr int planes = Down * Across;
  using Arguments = ProductArguments;

  static Arguments arguments(const PlaneTarget& target, const FrequencyGemm& gemm, const void* a, const void* b) {
    Arguments arguments{
        target,     static_cast<const Complex*>(a), static_cast<const Complex*>(b),         gemm.m, gemm.m * K,
        gemm.n * K, static_cast<int>(gemm.n),       Divisor((gemm.n + Across - 1) / Across)};
    arguments.gather = false;  // a block's planes are not contiguous
    return arguments;
  }
  static std::int64_t blocks(const Arguments& arguments) {
    return (arguments.rows + Down - 1) / Down * arguments.blocks_across.value();
  }

  TWIDDLE_HD FusedProductSource(const Arguments& arguments, std::int64_t block, int plane)
      : row_(arguments.blocks_across.quotient(block) * Down + plane / Across),
        column_(static_cast<int>(arguments.blocks_across.remainder(block)) * Across + plane % Across),
        columns_(arguments.columns),
        there_(plane < planes && row_ < arguments.rows && column_ < columns_) {}
  TWIDDLE_HD bool there() const { return there_; }
  TWIDDLE_HD std::int64_t index() const { return row_ * columns_ + column_; }

  struct Cursor {
    const Complex *a, *b;
    std::int64_t a_pitch, b_pitch;
    TWIDDLE_HD Complex next() {
      Complex sum{0, 0};
      unrolled<K>([&](auto k) {
        const Complex left = a[k], right = b[k];
        sum.re += left.re * right.re, sum.im += left.im * right.re;
        sum.re += left.im * right.im, sum.im -= left.re * right.im;
      });
      a += a_pitch, b += b_pitch;
      return sum;
    }
  };
  TWIDDLE_HD Cursor from(const Arguments& arguments, int bin) const {
    return {arguments.a + row_ * K + bin * arguments.a_pitch, arguments.b + column_ * K + bin * arguments.b_pitch,
            arguments.a_pitch, arguments.b_pitch};
  }

 private:
  std::int64_t row_;
  int column_, columns_;
  bool there_;
};

}  // namespace twiddle::small_fft
