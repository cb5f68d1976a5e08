#pragma once
#include "framework/for_each.h"

namespace twiddle {

// Winograd's minimal filtering F(outputs, 3) in one dimension: y = A' [(G w) (B' x)], `outputs` correlations of three
// taps by `points` products instead of 3 * outputs (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks,
// 2016; the matrices are those of Toom and Cook for the points named, with one more at infinity). In two dimensions it
// is nested: columns, then rows. The transposed matrices give the gradients from the same products:
//   x's gradient = B [(G w) (A dy)],  w's gradient = G' [(B' x) (A dy)].
template <int outputs>
struct WinogradForm;

// Points 0, 1, -1.
template <>
struct WinogradForm<2> {
  static constexpr int outputs = 2, points = 4;

  template <class V>
  TWIDDLE_HD static void input(const V (&x)[4], V (&bins)[4]) {  // B'
    bins[0] = x[0] - x[2], bins[1] = x[1] + x[2], bins[2] = x[2] - x[1], bins[3] = x[3] - x[1];
  }
  template <class V>
  TWIDDLE_HD static void input_transposed(const V (&bins)[4], V (&x)[4]) {  // B
    x[0] = bins[0], x[1] = bins[1] - bins[2] - bins[3], x[2] = bins[1] + bins[2] - bins[0], x[3] = bins[3];
  }
  template <class V>
  TWIDDLE_HD static void filter(const V (&w)[3], V (&bins)[4]) {  // G
    const V even = 0.5f * (w[0] + w[2]), odd = 0.5f * w[1];
    bins[0] = w[0], bins[1] = even + odd, bins[2] = even - odd, bins[3] = w[2];
  }
  template <class V>
  TWIDDLE_HD static void filter_transposed(const V (&bins)[4], V (&w)[3]) {  // G'
    const V sum = 0.5f * (bins[1] + bins[2]);
    w[0] = bins[0] + sum, w[1] = 0.5f * (bins[1] - bins[2]), w[2] = sum + bins[3];
  }
  template <class V>
  TWIDDLE_HD static void output(const V (&bins)[4], V (&y)[2]) {  // A'
    y[0] = bins[0] + bins[1] + bins[2], y[1] = bins[1] - bins[2] + bins[3];
  }
  template <class V>
  TWIDDLE_HD static void output_transposed(const V (&y)[2], V (&bins)[4]) {  // A
    bins[0] = y[0], bins[1] = y[0] + y[1], bins[2] = y[0] - y[1], bins[3] = y[1];
  }
  // Returns the sum of all y from the bins of output_transposed().
  template <class V>
  TWIDDLE_HD static V sum(const V (&bins)[4]) {
    return bins[1];
  }
};

// Points 0, 5/8, -5/8, 3/2, -3/2. Among all +-a, +-b in sixteenths, these have nearly the smallest error: 3.3e-7 from
// the transforms alone, and the product's error is multiplied by 4.8. The paper's 0, +-1, +-2 have 7.0e-7 and multiply
// it by 10.8 (docs/spectral.md).
template <>
struct WinogradForm<4> {
  static constexpr int outputs = 4, points = 6;
  static constexpr float a = 0.625f, b = 1.5f, aa = a * a, bb = b * b;  // all of these are exact
  // One over the product of a point's distances to the others.
  static constexpr double of_0 = 1 / (double(aa) * bb), of_a = 0.5 / (double(aa) * (double(aa) - bb)),
                          of_b = 0.5 / (double(bb) * (double(bb) - aa));

  template <class V>
  TWIDDLE_HD static void input(const V (&x)[6], V (&bins)[6]) {  // B'
    const V even_a = x[4] - bb * x[2], odd_a = a * (x[3] - bb * x[1]);
    const V even_b = x[4] - aa * x[2], odd_b = b * (x[3] - aa * x[1]);
    bins[0] = even_a - aa * (x[2] - bb * x[0]);
    bins[1] = even_a + odd_a, bins[2] = even_a - odd_a;
    bins[3] = even_b + odd_b, bins[4] = even_b - odd_b;
    bins[5] = x[5] - (aa + bb) * x[3] + (aa * bb) * x[1];
  }
  template <class V>
  TWIDDLE_HD static void input_transposed(const V (&bins)[6], V (&x)[6]) {  // B
    const V sum_a = bins[1] + bins[2], odd_a = a * (bins[1] - bins[2]);
    const V sum_b = bins[3] + bins[4], odd_b = b * (bins[3] - bins[4]);
    x[0] = (aa * bb) * bins[0];
    x[1] = (aa * bb) * bins[5] - bb * odd_a - aa * odd_b;
    x[2] = -bb * sum_a - aa * sum_b - (aa + bb) * bins[0];
    x[3] = odd_a + odd_b - (aa + bb) * bins[5];
    x[4] = bins[0] + sum_a + sum_b;
    x[5] = bins[5];
  }
  template <class V>
  TWIDDLE_HD static void filter(const V (&w)[3], V (&bins)[6]) {  // G
    const V even_a = float(of_a) * (w[0] + aa * w[2]), odd_a = float(of_a * a) * w[1];
    const V even_b = float(of_b) * (w[0] + bb * w[2]), odd_b = float(of_b * b) * w[1];
    bins[0] = float(of_0) * w[0];
    bins[1] = even_a + odd_a, bins[2] = even_a - odd_a;
    bins[3] = even_b + odd_b, bins[4] = even_b - odd_b;
    bins[5] = w[2];
  }
  template <class V>
  TWIDDLE_HD static void filter_transposed(const V (&bins)[6], V (&w)[3]) {  // G'
    const V sum_a = float(of_a) * (bins[1] + bins[2]), sum_b = float(of_b) * (bins[3] + bins[4]);
    w[0] = float(of_0) * bins[0] + sum_a + sum_b;
    w[1] = float(of_a * a) * (bins[1] - bins[2]) + float(of_b * b) * (bins[3] - bins[4]);
    w[2] = aa * sum_a + bb * sum_b + bins[5];
  }
  template <class V>
  TWIDDLE_HD static void output(const V (&bins)[6], V (&y)[4]) {  // A'
    const V sum_a = bins[1] + bins[2], odd_a = a * (bins[1] - bins[2]);
    const V sum_b = bins[3] + bins[4], odd_b = b * (bins[3] - bins[4]);
    y[0] = bins[0] + sum_a + sum_b;
    y[1] = odd_a + odd_b;
    y[2] = aa * sum_a + bb * sum_b;
    y[3] = aa * odd_a + bb * odd_b + bins[5];
  }
  template <class V>
  TWIDDLE_HD static void output_transposed(const V (&y)[4], V (&bins)[6]) {  // A
    const V even_a = y[0] + aa * y[2], odd_a = a * (y[1] + aa * y[3]);
    const V even_b = y[0] + bb * y[2], odd_b = b * (y[1] + bb * y[3]);
    bins[0] = y[0];
    bins[1] = even_a + odd_a, bins[2] = even_a - odd_a;
    bins[3] = even_b + odd_b, bins[4] = even_b - odd_b;
    bins[5] = y[3];
  }
  // Returns the sum of all y from the bins of output_transposed().
  template <class V>
  TWIDDLE_HD static V sum(const V (&bins)[6]) {
    const V even = (bins[3] + bins[4]) * 0.5f - bins[0], odd = (bins[3] - bins[4]) * (0.5f / b);  // bb y2, y1 + bb y3
    return bins[0] + even * (1 / bb) + odd + (1 - bb) * bins[5];
  }
};

// Applies `line` along both dimensions of a tile: to = L from L'.
template <auto line, class V, int in, int out>
TWIDDLE_HD void nest(const V (&from)[in][in], V (&to)[out][out]) {
  V half[in][out];  // after the columns: half[j] is column j
#pragma unroll
  for (int j = 0; j < in; ++j) {
    V column[in];
#pragma unroll
    for (int i = 0; i < in; ++i) column[i] = from[i][j];
    line(column, half[j]);
  }
#pragma unroll
  for (int i = 0; i < out; ++i) {
    V row[in];
#pragma unroll
    for (int j = 0; j < in; ++j) row[j] = half[j][i];
    line(row, to[i]);
  }
}

}  // namespace twiddle
