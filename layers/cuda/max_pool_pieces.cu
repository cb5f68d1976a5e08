#include "layers/covering_windows.h"
#include "layers/cuda/plane_pieces.h"
#include "layers/cuda/pool_pieces.h"

namespace twiddle {

namespace {

// Kernel and Stride above 0 are the window's own, told to the compiler, where no window hangs over the plane's edge; 0
// stands for any.
template <int Kernel, int Stride>
__global__ void __launch_bounds__(piece_threads)
    max_pool_kernel(PoolWindow window, PlanePieces pieces, Divisor out_width, Divisor out_height, const float* x,
                    float* y, std::int32_t* index) {
  extern __shared__ Four staged[];
  const int width = static_cast<int>(window.width), height = static_cast<int>(window.height);
  const int kernel_h = Kernel > 0 ? Kernel : static_cast<int>(window.kernel_h);
  const int kernel_w = Kernel > 0 ? Kernel : static_cast<int>(window.kernel_w);
  const int stride_h = Stride > 0 ? Stride : static_cast<int>(window.stride_h);
  const int stride_w = Stride > 0 ? Stride : static_cast<int>(window.stride_w);
  const int pad_h = Kernel > 0 ? 0 : static_cast<int>(window.pad_h);
  const int pad_w = Kernel > 0 ? 0 : static_cast<int>(window.pad_w);
  const int row_size = static_cast<int>(window.out_width), rows = static_cast<int>(window.out_height);

  const PlanePieces::Piece piece = pieces.at(static_cast<int>(blockIdx.x));  // of output rows
  const int in_begin = max(piece.begin * stride_h - pad_h, 0);
  const int in_end = min((piece.end - 1) * stride_h - pad_h + kernel_h, height);
  const int plane_size = height * width;
  const int lead =
      load_piece(x, std::int64_t(pieces.planes) * plane_size, std::int64_t(piece.plane) * plane_size + in_begin * width,
                 (piece.planes - 1) * plane_size + (in_end - in_begin) * width, staged);

  const int count = piece.planes * (piece.end - piece.begin) * row_size;
  const std::int64_t out = (std::int64_t(piece.plane) * rows + piece.begin) * row_size;
  float* const to = y + out;
  std::int32_t* const to_index = index == nullptr ? nullptr : index + out;
  for (int i = threadIdx.x; i < count; i += piece_threads) {
    const int row = static_cast<int>(out_width.quotient(i)), plane = static_cast<int>(out_height.quotient(row));
    const int top = (piece.begin + row - plane * rows) * stride_h - pad_h;
    const int left = (i - row * row_size) * stride_w - pad_w;
    const float* const in = reinterpret_cast<const float*>(staged) + lead + plane * plane_size - in_begin * width;
    float best = 0;
    int best_at = 0;
#pragma unroll
    for (int dy = 0; dy < kernel_h; ++dy)
#pragma unroll
      for (int dx = 0; dx < kernel_w; ++dx) {
        // Over the edge the edge is met again, which changes no maximum.
        const int h = Kernel > 0 ? top + dy : min(max(top + dy, 0), height - 1);
        const int w = Kernel > 0 ? left + dx : min(max(left + dx, 0), width - 1);
        const int at = h * width + w;
        const float value = in[at];
        const bool larger = (dy == 0 && dx == 0) || (!(value <= best) && best == best);  // the first NaN stays
        best = larger ? value : best;
        best_at = larger ? at : best_at;
      }
    to[i] = best;
    if (to_index != nullptr) to_index[i] = best_at;
  }
}

// Whether no window hangs over the plane's edge.
bool all_inside(const PoolWindow& window) {
  return window.pad_h == 0 && window.pad_w == 0 &&
         (window.out_height - 1) * window.stride_h + window.kernel_h <= window.height &&
         (window.out_width - 1) * window.stride_w + window.kernel_w <= window.width;
}

// A piece of the gradient is gathered in shared memory: each thread holds some outputs and adds them where their maxima
// were. Windows that may share an input take turns, so that the order of its sum is fixed.
constexpr int held = 4, most_turns = 16;

__global__ void __launch_bounds__(piece_threads)
    max_pool_backward_kernel(PoolWindow window, PlanePieces pieces, CoveringWindows down, Divisor out_width,
                             Divisor out_height, int turns_h, int turns_w, const float* grad_y,
                             const std::int32_t* index, float* grad_x) {
  extern __shared__ Four staged[];
  float* const tile = reinterpret_cast<float*>(staged);
  const int width = static_cast<int>(window.width), plane_size = static_cast<int>(window.height) * width;
  const int row_size = static_cast<int>(window.out_width), rows = static_cast<int>(window.out_height);

  const PlanePieces::Piece piece = pieces.at(static_cast<int>(blockIdx.x));  // of input rows
  const int in_begin = piece.begin * width, in_plane = (piece.end - piece.begin) * width;
  const int in_count = (piece.planes - 1) * plane_size + in_plane;
  const std::int64_t in = std::int64_t(piece.plane) * plane_size + in_begin;
  const int lead = static_cast<int>(in & 3);
#pragma unroll 1
  for (int i = threadIdx.x; i < (lead + in_count + 3) / 4; i += piece_threads) staged[i] = {};

  const bool whole = pieces.strips == 1;
  const int out_begin = whole ? 0 : static_cast<int>(down.at(piece.begin).begin);
  const int out_end = whole ? rows : static_cast<int>(down.at(piece.end - 1).end);
  const int count = piece.planes * (out_end - out_begin) * row_size;
  const std::int64_t out = (std::int64_t(piece.plane) * rows + out_begin) * row_size;
  const float* const from = grad_y + out;
  const std::int32_t* const from_index = index + out;
#pragma unroll 1
  for (int first = 0; first < count; first += held * piece_threads) {
    float grads[held];
    int places[held], turn_of[held];
#pragma unroll
    for (int k = 0; k < held; ++k) {  // without a condition, so that all loads are under way at once
      const int i = min(first + k * piece_threads + static_cast<int>(threadIdx.x), count - 1);
      grads[k] = from[i];
      places[k] = from_index[i];
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const int i = first + k * piece_threads + static_cast<int>(threadIdx.x);
      const int row = static_cast<int>(out_width.quotient(i)), plane = static_cast<int>(out_height.quotient(row));
      const int turn_h = (out_begin + row - plane * rows) & (turns_h - 1),
                turn_w = (i - row * row_size) & (turns_w - 1);
      const int place = places[k] - in_begin;
      turn_of[k] = i < count && place >= 0 && place < in_plane ? turn_h * turns_w + turn_w : -1;
      places[k] = place + lead + plane * plane_size;
    }
#pragma unroll 1
    for (int turn = 0; turn < turns_h * turns_w; ++turn) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < held; ++k)
        if (turn_of[k] == turn) tile[places[k]] += grads[k];
    }
  }
  __syncthreads();
  store_piece(grad_x, in, in_count, staged);
}

// Windows so many apart have nothing in common: a power of two, for the sake of cheap remainders.
int turns_of(std::int64_t kernel, std::int64_t stride) {
  int turns = 1;
  while (turns * stride < kernel) turns *= 2;
  return turns;
}

template <int Kernel, int Stride>
void launch(Stream& stream, const PoolWindow& window, const PlanePieces& pieces, const Tensor& x, Tensor& y,
            Tensor& index) {
  max_pool_kernel<Kernel, Stride>
      <<<static_cast<unsigned>(pieces.blocks), piece_threads, pieces.shared_bytes(), detail::native(stream)>>>(
          window, pieces, Divisor(window.out_width), Divisor(window.out_height), x.read(), y.write(),
          index.defined() ? index.write<std::int32_t>() : nullptr);
  detail::check_launch();
}

}  // namespace

bool max_pool_in_pieces(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index) {
  const std::int64_t plane_size = window.height * window.width;
  const PlanePieces pieces(x.size() / plane_size, window.out_height, plane_size, window.stride_h * window.width,
                           std::max<std::int64_t>(window.kernel_h - window.stride_h, 0) * window.width);
  if (!pieces.fit()) return false;
  if (all_inside(window) && window.is_square(2, 2))
    launch<2, 2>(stream, window, pieces, x, y, index);
  else if (all_inside(window) && window.is_square(3, 2))
    launch<3, 2>(stream, window, pieces, x, y, index);
  else
    launch<0, 0>(stream, window, pieces, x, y, index);
  return true;
}

bool max_pool_backward_in_pieces(Stream& stream, const PoolWindow& window, const Tensor& grad_y, const Tensor& index,
                                 Tensor& grad_x) {
  const std::int64_t plane_size = window.height * window.width;
  const PlanePieces pieces(grad_x.size() / plane_size, window.height, plane_size, window.width, 0);
  const int turns_h = turns_of(window.kernel_h, window.stride_h), turns_w = turns_of(window.kernel_w, window.stride_w);
  if (!pieces.fit() || turns_h * turns_w > most_turns) return false;
  max_pool_backward_kernel<<<static_cast<unsigned>(pieces.blocks), piece_threads, pieces.shared_bytes(),
                             detail::native(stream)>>>(
      window, pieces, {window.kernel_h, window.pad_h, window.out_height, Divisor(window.stride_h)},
      Divisor(window.out_width), Divisor(window.out_height), turns_h, turns_w, grad_y.read(),
      index.read<std::int32_t>(), grad_x.write());
  detail::check_launch();
  return true;
}

}  // namespace twiddle
