#include "layers/conv/tuner/pieces.h"

#include <algorithm>

namespace twiddle {

namespace {

// Neighboring outputs along one axis, and the inputs that they read after `before` zeros of padding.
struct Span {
  int out, outs, in, ins, before;
};

struct PieceAxis {
  int size, outs, kernel, stride, pad, dilation;
};

int divide_up(int number, int by) {
  return (number + by - 1) / by;
}

// Spans of nearly equal length.
std::vector<Span> spans_of(const PieceAxis& axis, int most) {
  const int reach = axis.dilation * (axis.kernel - 1) + 1;
  const int length = divide_up(axis.outs, divide_up(axis.outs, most));
  std::vector<Span> spans;
  for (int out = 0; out < axis.outs; out += length) {
    const int outs = std::min(length, axis.outs - out);
    const int from = out * axis.stride - axis.pad, to = (out + outs - 1) * axis.stride - axis.pad + reach;
    const int in = std::max(from, 0), ins = std::min(to, axis.size) - in;
    if (ins > 0) spans.push_back({out, outs, in, ins, in - from});
  }
  return spans;
}

std::vector<PlacedPiece> groups_of_images(const ConvProblem& problem, int most) {
  const int equal = divide_up(problem.batch, divide_up(problem.batch, most));
  const int images = std::min(most, equal + equal % 2);  // even, so that threads get equal numbers of images
  const std::int64_t input = std::int64_t(problem.channels) * problem.height * problem.width;
  const std::int64_t output = std::int64_t(problem.filters) * problem.out_height() * problem.out_width();
  std::vector<PlacedPiece> pieces;
  for (int image = 0; image < problem.batch; image += images) {
    Piece piece = whole(problem);
    piece.problem.batch = std::min(images, problem.batch - image);
    pieces.push_back({piece, image * input, image * output});
  }
  return pieces;
}

std::vector<PlacedPiece> rectangles(const ConvProblem& p, int most_rows, int most_columns) {
  const int out_height = p.out_height(), out_width = p.out_width();
  const auto bands = spans_of({p.height, out_height, p.kernel_h, p.stride_h, p.pad_h, p.dilation}, most_rows);
  const auto strips = spans_of({p.width, out_width, p.kernel_w, p.stride_w, p.pad_w, p.dilation}, most_columns);
  std::vector<PlacedPiece> pieces;
  for (std::int64_t image = 0; image < p.batch; ++image)
    for (const Span& rows : bands)
      for (const Span& columns : strips) {
        Piece piece{p, rows.outs, columns.outs};
        piece.problem.batch = 1;
        piece.problem.height = rows.ins, piece.problem.width = columns.ins;
        piece.problem.pad_h = rows.before, piece.problem.pad_w = columns.before;
        pieces.push_back({piece, (image * p.channels * p.height + rows.in) * p.width + columns.in,
                          (image * p.filters * out_height + rows.out) * out_width + columns.out});
      }
  return pieces;
}

}  // namespace

Piece whole(const ConvProblem& problem) {
  return {problem, problem.out_height(), problem.out_width()};
}

std::vector<PlacedPiece> parts_of_sum(const ConvProblem& problem, ConvPass pass, std::int64_t longest_sum) {
  constexpr int block = 16;  // channels or filters that a processor's vector takes
  const bool forward = pass == ConvPass::forward;
  const int planes = forward ? problem.channels : problem.filters;
  const std::int64_t taps = std::int64_t(problem.kernel_h) * problem.kernel_w;
  if (problem.groups > 1 || planes * taps <= longest_sum) return {{whole(problem)}};
  const int fit = static_cast<int>(std::max<std::int64_t>(1, longest_sum / taps));
  const int most = fit < block ? fit : fit / block * block;
  std::vector<PlacedPiece> parts;
  for (int first = 0; first < planes; first += most) {
    Piece piece = whole(problem);
    (forward ? piece.problem.channels : piece.problem.filters) = std::min(most, planes - first);
    if (forward)
      parts.push_back({piece, std::int64_t(first) * problem.height * problem.width, 0, first * taps});
    else
      parts.push_back(
          {piece, 0, std::int64_t(first) * piece.out_height * piece.out_width, first * problem.channels * taps});
  }
  return parts;
}

std::vector<PlacedPiece> pieces_of(const ConvProblem& problem, std::int64_t longest_sum) {
  const std::int64_t width = problem.out_width(), plane = problem.out_height() * width;
  if (problem.batch * plane <= longest_sum) return {{whole(problem)}};
  if (plane <= longest_sum) return groups_of_images(problem, static_cast<int>(longest_sum / plane));
  return rectangles(problem, static_cast<int>(std::max<std::int64_t>(1, longest_sum / width)),
                    static_cast<int>(std::min(width, longest_sum)));
}

}  // namespace twiddle
