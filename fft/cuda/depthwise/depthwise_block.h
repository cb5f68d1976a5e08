#pragma once
#include <cstdint>

#include "fft/cuda/depthwise/split_line.h"

// A depthwise convolution of small planes, from the planes of x to those of y, wholly on chip: transform, product with
// the spectrum of the channel's kernel, and inverse transform, none of which reads a spectrum of x or y from memory.
// README.md has the picture. The phases are functions of a thread's number, so that a test can run them on a CPU.
namespace twiddle::small_fft {

// A plane inside the N x N points of its transform: element (i, j) is point (top + i, left + j), all others are zero.
struct PlaneWindow {
  int height = 0, width = 0, top = 0, left = 0;

  // Columns are transformed two at a time, as real and imaginary part; these pairs hold an element of the plane.
  TWIDDLE_HD int first_pair() const { return left / 2; }
  TWIDDLE_HD int pairs() const { return (left + width - 1) / 2 - left / 2 + 1; }
  TWIDDLE_HD bool has_row(int row) const { return row >= top && row < top + height; }
  TWIDDLE_HD bool has_column(int column) const { return column >= left && column < left + width; }
};

template <int N, int S, int P>
struct DepthwiseBlock {
  static_assert(N % 2 == 0);
  using Line = SplitLine<N, S>;
  static constexpr int planes = P, split = S, points = Line::points;
  static constexpr int pairs = N / 2;  // of columns, and also of rows: rows 0 and N/2, both real before their
                                       // transform, go as the real and the imaginary part of row 0
  static constexpr int lines = P * pairs, threads = S * lines;
  // In the phase "rows" adjacent threads have the same row of adjacent planes, then the next row: so few warps have a
  // row 0, which takes longer, and planes of one channel read the same numbers of the kernel's spectrum. Eight threads
  // that access 16 bytes each are served at once where these lie in different banks: so rows are an odd number of 16
  // bytes apart, and planes an odd multiple of 8 / P of them.
  static constexpr int row_units = pairs | 1, apart = P >= 8 ? 1 : 8 / P;
  static constexpr int pitch = 2 * row_units;
  static constexpr int plane_pitch = 2 * apart * (((pairs * row_units + apart - 1) / apart) | 1);
  static constexpr int shared_numbers = P * plane_pitch;
  // Spectra in memory are [m][part][row], so that adjacent threads access adjacent numbers.
  static constexpr int spectrum_numbers = N * pairs;

  using Registers = Complex[points];

  // All threads of a warp have the same part, as far as P * N / 2 is a multiple of 32.
  TWIDDLE_HD static int part_of(int thread) { return S == 1 ? 0 : thread / lines; }
  TWIDDLE_HD static int line_of(int thread) { return S == 1 ? thread : thread % lines; }
  TWIDDLE_HD static int plane_of(int thread) { return line_of(thread) % P; }
  TWIDDLE_HD static int row_of(int thread) { return line_of(thread) / P; }
  TWIDDLE_HD static int spectrum_place(int thread, int m) { return (m * S + part_of(thread)) * pairs + row_of(thread); }

  // Which pair of columns a thread has, of which plane. The pairs that hold elements go to the first threads, so that
  // whole warps have none.
  struct ColumnPair {
    int plane, pair;
    bool holds;
    TWIDDLE_HD ColumnPair(const PlaneWindow& window, int thread) {
      const int line = line_of(thread), holding = window.pairs();
      holds = line < P * holding;
      const int index = holds ? line : line - P * holding, across = holds ? holding : pairs - holding;
      plane = index / across;
      pair = window.first_pair() + index % across + (holds ? 0 : holding);
      if (pair >= pairs) pair -= pairs;
    }
  };

  // Phase "columns": the plane's elements to rows of half-transformed numbers in shared memory. `source` is null where
  // the block has no such plane.
  template <class SourceOf>
  TWIDDLE_HD static void columns(const PlaneWindow& window, const SourceOf& source_of, int thread, Complex* shared) {
    const ColumnPair at(window, thread);
    const float* const source = source_of(at.plane);
    if (source == nullptr) return;
    auto* const numbers = reinterpret_cast<ComplexPair*>(shared + at.plane * plane_pitch) + at.pair;
    const int part = part_of(thread);
    if (!at.holds) {
      for (int row = part; row < pairs; row += S) numbers[row * (pitch / 2)] = {{0, 0}, {0, 0}};
      return;
    }
    Registers v;
    load_columns(v, window, source, 2 * at.pair, part);
    transform<forwards>(v);
    if (part == 0)
      split_columns<0>(v, numbers);
    else
      split_columns<S - 1>(v, numbers);
  }

  // Phase "rows": a row of the plane to its bins.
  TWIDDLE_HD static void rows(const Complex* shared, int thread, Registers& v) {
    const auto* const row = reinterpret_cast<const ComplexPair*>(row_at(shared, thread));
    if constexpr (S == 1) {
      load_numbers(v, row_at(shared, thread));
    } else {
      const float sign = Line::sign_of(part_of(thread));
      unrolled<points / 2>([&](auto i) {
        const ComplexPair near = row[i], far = row[i + points / 2];
        v[2 * i] = Line::fold(near.first, far.first, sign), v[2 * i + 1] = Line::fold(near.second, far.second, sign);
      });
      Line::turn_folded(v, part_of(thread));
    }
    transform<forwards>(v);
  }

  // Writes bins to the thread's elements of its row, to be read only by itself. With S == 2 no thread may still be
  // reading rows.
  TWIDDLE_HD static void put_bins(const Registers& v, int thread, Complex* shared) {
    Complex* const bins = shared + bins_at(thread);
    unrolled<points>([&](auto m) { bins[m] = v[m]; });
  }
  TWIDDLE_HD static const Complex* bins_of(const Complex* shared, int thread) { return shared + bins_at(thread); }

  // Bins back to a row in shared memory. With S == 2 no thread may still be reading rows.
  TWIDDLE_HD static void rows_back(Registers& v, int thread, Complex* shared) {
    transform<backwards>(v);
    if constexpr (S == 2) Line::turn_shares(v, part_of(thread));
    store_numbers(v, shared + bins_at(thread));
  }

  // Rows in shared memory to a thread's pair of columns in its registers. With S == 1 v[j] has both columns' elements
  // of row j, else a share of those of rows j and j + points.
  TWIDDLE_HD static void columns_back(const PlaneWindow& window, const Complex* shared, int thread, Registers& v) {
    const ColumnPair at(window, thread);
    if (!at.holds) return;
    const Complex* const plane = shared + at.plane * plane_pitch;
    if (part_of(thread) == 0)
      join_columns<0>(v, plane, at.pair);
    else
      join_columns<S - 1>(v, plane, at.pair);
    transform<backwards>(v);
    if constexpr (S == 2) Line::turn_shares(v, part_of(thread));
  }

  // With S == 2: a thread's shares to shared memory, [part][j][pair].
  TWIDDLE_HD static void put_shares(const PlaneWindow& window, const Registers& v, int thread, Complex* shared) {
    const ColumnPair at(window, thread);
    if (!at.holds) return;
    Complex* const shares = shared + at.plane * plane_pitch + part_of(thread) * points * pairs + at.pair;
    unrolled<points>([&](auto j) { shares[j * pairs] = v[j]; });
  }

  // Returns the plane of which a thread stores elements; P: none.
  TWIDDLE_HD static int stored_plane(const PlaneWindow& window, int thread) {
    if constexpr (S == 2) return thread / N;
    const ColumnPair at(window, thread);
    return at.holds ? at.plane : P;
  }

  // Calls function(row, column, two adjacent elements) for the elements of that plane that this thread stores. The
  // function must skip those outside of the window.
  template <class Function>
  TWIDDLE_HD static void for_each_element(const PlaneWindow& window, const Registers& v, const Complex* shared,
                                          int thread, const Function& function) {
    if constexpr (S == 1) {
      const int column = 2 * ColumnPair(window, thread).pair;
      unrolled<N>([&](auto row) { function(static_cast<int>(row), column, v[row]); });
    } else {
      // The N threads of a plane go through its rows, those that follow each other with pairs that follow each other.
      const int index = thread % N, across = window.pairs(), down = N / across;
      const int pair = window.first_pair() + index % across;
      if (index >= down * across) return;
      const Complex* const shares = shared + thread / N * plane_pitch + pair;
      for (int j = index / across; j < points; j += down) {
        const Complex even = shares[j * pairs], odd = shares[(points + j) * pairs];
        function(j, 2 * pair, even + odd);
        function(j + points, 2 * pair, even - odd);
      }
    }
  }

 private:
  TWIDDLE_HD static const Complex* row_at(const Complex* shared, int thread) {
    return shared + plane_of(thread) * plane_pitch + row_of(thread) * pitch;
  }
  TWIDDLE_HD static int bins_at(int thread) {
    return plane_of(thread) * plane_pitch + row_of(thread) * pitch + part_of(thread) * points;
  }

  // Two columns of the plane as one complex one, folded where two threads share it.
  TWIDDLE_HD static void load_columns(Registers& v, const PlaneWindow& window, const float* source, int column,
                                      int part) {
    const int rows_of_first = window.has_column(column) ? window.height : 0;
    const int rows_of_second = window.has_column(column + 1) ? window.height : 0;
    const float* const at = source - window.top * window.width - window.left + column;
    const auto element = [&](int row) {
      const auto of_plane = static_cast<unsigned>(row - window.top);
      return Complex{of_plane < static_cast<unsigned>(rows_of_first) ? at[row * window.width] : 0,
                     of_plane < static_cast<unsigned>(rows_of_second) ? at[row * window.width + 1] : 0};
    };
    if constexpr (S == 1) {
      unrolled<N>([&](auto row) { v[row] = element(row); });
    } else {
      const float sign = Line::sign_of(part);
      unrolled<points>([&](auto j) { v[j] = Line::fold(element(j), element(j + points), sign); });
      Line::turn_folded(v, part);
    }
  }

  // With V the transform of x + iy, those of the real columns x and y are X[k] = (V[k] + conj V[N-k]) / 2 and Y[k] =
  // (V[k] - conj V[N-k]) / 2i. Row 0 gets X[0] + i X[N/2] and Y[0] + i Y[N/2].
  template <int Part>
  TWIDDLE_HD static void split_columns(const Registers& v, ComplexPair* numbers) {
    if constexpr (Part == 0) numbers[0] = {{v[0].re, v[points / 2].re}, {v[0].im, v[points / 2].im}};
    unrolled<points>([&](auto each) {
      constexpr int m = decltype(each)::value, row = S * m + Part;
      if constexpr (row > 0 && row < N / 2) {
        const Complex a = v[m], b = v[Line::opposite(m, Part)];
        numbers[row * (pitch / 2)] = {{0.5f * (a.re + b.re), 0.5f * (a.im - b.im)},
                                      {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)}};
      }
    });
  }

  // Returns two adjacent points of a row from rows_back(), from the parts of two threads if S == 2.
  TWIDDLE_HD static ComplexPair row_pair(const Complex* row, int pair) {
    const auto* const at = reinterpret_cast<const ComplexPair*>(row);
    if constexpr (S == 1) {
      return at[pair];
    } else {
      const bool far = pair >= points / 2;
      const ComplexPair even = at[far ? pair - points / 2 : pair], odd = at[far ? pair : pair + points / 2];
      if (far) return {even.first - odd.first, even.second - odd.second};
      return {even.first + odd.first, even.second + odd.second};
    }
  }

  // The inverse of split_columns(): V[k] = X[k] + i Y[k] and V[N-k] = conj X[k] + i conj Y[k].
  template <int Part>
  TWIDDLE_HD static void join_columns(Registers& v, const Complex* plane, int pair) {
    if constexpr (Part == 0) {
      const ComplexPair both = row_pair(plane, pair);
      v[0] = {both.first.re, both.second.re}, v[points / 2] = {both.first.im, both.second.im};
    }
    unrolled<points>([&](auto each) {
      constexpr int m = decltype(each)::value, row = S * m + Part;
      if constexpr (row > 0 && row < N / 2) {
        const ComplexPair both = row_pair(plane + row * pitch, pair);
        const Complex a = both.first, b = both.second;
        v[m] = {a.re - b.im, a.im + b.re};
        v[Line::opposite(m, Part)] = {a.re + b.im, b.re - a.im};
      }
    });
  }
};

TWIDDLE_HD constexpr Complex conjugate(Complex a) {
  return {a.re, -a.im};
}
TWIDDLE_HD constexpr Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
TWIDDLE_HD constexpr Complex times_i(Complex a) {
  return {-a.im, a.re};
}
TWIDDLE_HD constexpr Complex times(float factor, Complex a) {
  return {factor * a.re, factor * a.im};
}

// Row 0 is A + iB, with A and B the spectra of the real rows 0 and N/2. Its bin and the one of the opposite frequency,
// which is conj A + i conj B, tell the two apart.
struct RealRows {
  Complex a, b;
  TWIDDLE_HD static RealRows of(Complex bin, Complex opposite) {
    return {times(0.5f, bin + conjugate(opposite)), times(-0.5f, times_i(bin - conjugate(opposite)))};
  }
  TWIDDLE_HD Complex bin() const { return a + times_i(b); }
  TWIDDLE_HD Complex opposite() const { return conjugate(a) + times_i(conjugate(b)); }
};
TWIDDLE_HD constexpr RealRows operator+(RealRows p, RealRows q) {
  return {p.a + q.a, p.b + q.b};
}

// product(x, y) of all bins of a row, v[m] with other(m), into v; of row 0 of those of A and of B, each by itself.
template <class Block, class Other, class Product>
TWIDDLE_HD void multiply_bins(Complex (&v)[Block::points], int thread, const Other& other, const Product& product) {
  if (Block::row_of(thread) > 0) {
    unrolled<Block::points>([&](auto m) { v[m] = product(v[m], other(m)); });
    return;
  }
  const auto of_part = [&](auto part) {
    unrolled<Block::points>([&](auto each) {
      constexpr int m = decltype(each)::value, opposite = Block::Line::opposite(m, decltype(part)::value);
      if constexpr (m <= opposite) {
        const RealRows left = RealRows::of(v[m], v[opposite]);
        const RealRows right = RealRows::of(other(Index<m>{}), other(Index<opposite>{}));
        const RealRows both{product(left.a, right.a), product(left.b, right.b)};
        v[m] = both.bin();
        if constexpr (m < opposite) v[opposite] = both.opposite();
      }
    });
  };
  if (Block::part_of(thread) == 0)
    of_part(Index<0>{});
  else
    of_part(Index < Block::threads == Block::lines ? 0 : 1 > {});
}

}  // namespace twiddle::small_fft
