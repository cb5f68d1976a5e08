#include "layers/covering_windows.h"
#include "layers/cuda/plane_pieces.h"
#include "layers/cuda/pool_pieces.h"

namespace twiddle {

namespace {

__device__ bool within(int i, int count) {
  return static_cast<unsigned>(i) < static_cast<unsigned>(count);
}

// Half of max pooling's: there is less to compute than to prepare.
constexpr int threads = 128;

// Kernel and Stride above 0 are the window's own, told to the compiler, where no window hangs over the plane's edge; 0
// stands for any.
template <int Kernel, int Stride>
__global__ void __launch_bounds__(threads) avg_pool_kernel(MeanWindows mean, PlanePieces pieces, Divisor out_width,
                                                           Divisor out_height, const float* x, float* y) {
  extern __shared__ Four staged[];
  const PoolWindow& window = mean.window;
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
  const int lead = load_piece<threads>(x, std::int64_t(pieces.planes) * plane_size,
                                       std::int64_t(piece.plane) * plane_size + in_begin * width,
                                       (piece.planes - 1) * plane_size + (in_end - in_begin) * width, staged);

  const int count = piece.planes * (piece.end - piece.begin) * row_size;
  float* const to = y + (std::int64_t(piece.plane) * rows + piece.begin) * row_size;
  for (int i = threadIdx.x; i < count; i += threads) {
    const int row = static_cast<int>(out_width.quotient(i)), plane = static_cast<int>(out_height.quotient(row));
    const int out_h = piece.begin + row - plane * rows, out_w = i - row * row_size;
    const int top = out_h * stride_h - pad_h, left = out_w * stride_w - pad_w;
    const float* const in = reinterpret_cast<const float*>(staged) + lead + plane * plane_size - in_begin * width;
    float sum = 0;
#pragma unroll
    for (int dy = 0; dy < kernel_h; ++dy)
#pragma unroll
      for (int dx = 0; dx < kernel_w; ++dx) {
        const bool inside = Kernel > 0 || (within(top + dy, height) && within(left + dx, width));
        sum += inside ? in[(top + dy) * width + left + dx] : 0;
      }
    to[i] = sum * (Kernel > 0 ? mean.common : mean.share(out_h, out_w));
  }
}

// A piece of the gradient is gathered from the windows' shares in shared memory, a cell at a time: the Stride x Stride
// inputs that are the first of a window, and of no later one. Each sums up the few windows that reach into the cell. A
// thread does a run of cells, one below the other, and takes along what it has loaded.
constexpr int run = 4;

template <int Kernel, int Stride>
__global__ void __launch_bounds__(threads)
    avg_pool_backward_kernel(MeanWindows mean, PlanePieces pieces, CoveringWindows down, Divisor runs, Divisor columns,
                             Divisor out_width, Divisor out_height, const float* grad_y, float* grad_x) {
  extern __shared__ Four staged[];
  const PoolWindow& window = mean.window;
  const int width = static_cast<int>(window.width), plane_size = static_cast<int>(window.height) * width;
  const int pad_h = static_cast<int>(window.pad_h), pad_w = static_cast<int>(window.pad_w);
  const int row_size = static_cast<int>(window.out_width), rows = static_cast<int>(window.out_height);

  const PlanePieces::Piece piece = pieces.at(static_cast<int>(blockIdx.x));  // of input rows
  const bool whole = pieces.strips == 1;
  const int out_begin = whole ? 0 : static_cast<int>(down.at(piece.begin).begin);
  const int out_rows = (whole ? rows : static_cast<int>(down.at(piece.end - 1).end)) - out_begin;
  const int out_plane = rows * row_size, out_count = (piece.planes - 1) * out_plane + out_rows * row_size;
  Four* const staged_shares = staged + pieces.shared_bytes() / sizeof(Four);
  const int out_lead =
      load_piece<threads>(grad_y, std::int64_t(pieces.planes) * out_plane,
                          std::int64_t(piece.plane) * out_plane + out_begin * row_size, out_count, staged_shares);
  float* const shares = reinterpret_cast<float*>(staged_shares) + out_lead;
  if (mean.common == 0) {
#pragma unroll 1
    for (int i = threadIdx.x; i < out_count; i += threads) {
      const int row = static_cast<int>(out_width.quotient(i)), plane = static_cast<int>(out_height.quotient(row));
      shares[i] *= mean.share(out_begin + row - plane * rows, i - row * row_size);
    }
    __syncthreads();
  }
  const float scale = mean.common > 0 ? mean.common : 1;

  const int piece_rows = piece.end - piece.begin, in_count = (piece.planes - 1) * plane_size + piece_rows * width;
  const std::int64_t in = std::int64_t(piece.plane) * plane_size + piece.begin * width;
  const int lead = static_cast<int>(in & 3);
  const int first_row = (piece.begin + pad_h) / Stride, past_row = (piece.end - 1 + pad_h) / Stride + 1;
  const int runs_each = (past_row - first_row + run - 1) / run, row_cells = static_cast<int>(columns.value());
  const int all = piece.planes * runs_each * row_cells;
#pragma unroll 1
  for (int i = threadIdx.x; i < all; i += threads) {
    const int at = static_cast<int>(columns.quotient(i)), plane = static_cast<int>(runs.quotient(at));
    const int cell_h = first_row + (at - plane * runs_each) * run, cell_w = pad_w / Stride + i - at * row_cells;

    constexpr int reach = (Kernel - 1) / Stride;  // windows before the cell's own that reach into it
    const int out_h = cell_h - reach - out_begin, out_w = cell_w - reach;
    const int top = cell_h * Stride - pad_h - piece.begin, left = cell_w * Stride - pad_w;
    float held[reach + run][reach + 1];
#pragma unroll
    for (int a = 0; a < reach + run; ++a) {
      const float* const from = shares + plane * out_plane + (out_h + a) * row_size + out_w;
#pragma unroll
      for (int b = 0; b <= reach; ++b)
        held[a][b] = within(out_h + a, out_rows) && within(out_w + b, row_size) ? from[b] * scale : 0;
    }
#pragma unroll
    for (int y = 0; y < run * Stride; ++y) {
      float* const to = reinterpret_cast<float*>(staged) + lead + plane * plane_size + (top + y) * width + left;
#pragma unroll
      for (int x = 0; x < Stride; ++x) {
        float sum = -0.0f;  // to which one adds without an addition
#pragma unroll
        for (int a = reach - (Kernel - 1 - y % Stride) / Stride; a <= reach; ++a)
#pragma unroll
          for (int b = reach - (Kernel - 1 - x) / Stride; b <= reach; ++b) sum += held[y / Stride + a][b];
        if (within(top + y, piece_rows) && within(left + x, width)) to[x] = sum;
      }
    }
  }
  __syncthreads();
  store_piece<threads>(grad_x, in, in_count, staged);
}

template <int Kernel, int Stride>
void launch(Stream& stream, const MeanWindows& mean, const PlanePieces& pieces, const Tensor& x, Tensor& y) {
  avg_pool_kernel<Kernel, Stride>
      <<<static_cast<unsigned>(pieces.blocks), threads, pieces.shared_bytes(), detail::native(stream)>>>(
          mean, pieces, Divisor(mean.window.out_width), Divisor(mean.window.out_height), x.read(), y.write());
  detail::check_launch();
}

// The cells that the inputs of an axis lie in.
std::int64_t cells_of(std::int64_t size, std::int64_t pad, std::int64_t stride) {
  return (size - 1 + pad) / stride - pad / stride + 1;
}

template <int Kernel, int Stride>
bool launch_backward(Stream& stream, const MeanWindows& mean, const Tensor& grad_y, Tensor& grad_x) {
  const PoolWindow& window = mean.window;
  const std::int64_t plane_size = window.height * window.width, out_plane = window.out_height * window.out_width;
  const PlanePieces pieces(grad_x.size() / plane_size, window.height, plane_size, window.width, 0);
  // Windows that begin in n + Kernel - 1 rows may reach a strip of n.
  const std::int64_t strip_rows = (pieces.rows_each + Kernel - 2) / Stride + 1;
  const std::int64_t shares =
      pieces.strips == 1 ? pieces.planes_each * out_plane : std::min(strip_rows, window.out_height) * window.out_width;
  const std::size_t shared_bytes = pieces.shared_bytes() + static_cast<std::size_t>(shares / 4 + 2) * sizeof(Four);
  if (!pieces.fit() || pieces.floats + shares + 8 > most_piece_floats) return false;

  avg_pool_backward_kernel<Kernel, Stride>
      <<<static_cast<unsigned>(pieces.blocks), threads, shared_bytes, detail::native(stream)>>>(
          mean, pieces, {window.kernel_h, window.pad_h, window.out_height, Divisor(window.stride_h)},
          Divisor((cells_of(window.height, window.pad_h, Stride) + run - 1) / run),
          Divisor(cells_of(window.width, window.pad_w, Stride)), Divisor(window.out_width), Divisor(window.out_height),
          grad_y.read(), grad_x.write());
  detail::check_launch();
  return true;
}

}  // namespace

bool avg_pool_in_pieces(Stream& stream, const MeanWindows& mean, const Tensor& x, Tensor& y) {
  const PoolWindow& window = mean.window;
  const std::int64_t plane_size = window.height * window.width;
  const PlanePieces pieces(x.size() / plane_size, window.out_height, plane_size, window.stride_h * window.width,
                           std::max<std::int64_t>(window.kernel_h - window.stride_h, 0) * window.width);
  if (!pieces.fit()) return false;
  const bool all_inside = mean.common > 0 && window.pad_h == 0 && window.pad_w == 0;
  if (all_inside && window.is_square(2, 2))
    launch<2, 2>(stream, mean, pieces, x, y);
  else if (all_inside && window.is_square(3, 2))
    launch<3, 2>(stream, mean, pieces, x, y);
  else
    launch<0, 0>(stream, mean, pieces, x, y);
  return true;
}

bool avg_pool_backward_in_pieces(Stream& stream, const MeanWindows& mean, const Tensor& grad_y, Tensor& grad_x) {
  if (mean.window.is_square(2, 2)) return launch_backward<2, 2>(stream, mean, grad_y, grad_x);
  if (mean.window.is_square(3, 2)) return launch_backward<3, 2>(stream, mean, grad_y, grad_x);
  if (mean.window.is_square(3, 1)) return launch_backward<3, 1>(stream, mean, grad_y, grad_x);
  return false;
}

}  // namespace twiddle
