#include "layers/cuda/max_pool_gradient.h"

#include <algorithm>
#include <cstdint>

#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr int piece_threads = 256;
// A piece of 12.8 kB holds a plane of 56 x 56, and a multiprocessor eight blocks of them: while some wait for memory,
// others compute. Rows too long for that get all that a block may have without asking.
constexpr std::int64_t piece_floats = 3200, most_piece_floats = 12280;

// How planes are split into pieces, one per block: some whole planes, or where one is too large a strip of its rows.
// All that a block computes with is an int, which costs it half of what a 64-bit number does.
struct PlanePieces {
  int planes, rows;             // of them all, and of each
  int planes_each = 1;          // planes of one piece
  int strips = 1, rows_each;    // pieces of one plane, and its rows that belong to one
  std::int64_t floats, blocks;  // what the largest piece stages, and how many there are

  PlanePieces(std::int64_t all_planes, int plane_rows, int row_floats)
      : planes(static_cast<int>(all_planes)), rows(plane_rows), rows_each(rows) {
    const std::int64_t plane_floats = std::int64_t(rows) * row_floats;
    if (plane_floats <= piece_floats) {
      planes_each = static_cast<int>(piece_floats / plane_floats);
      floats = planes_each * plane_floats;
    } else {
      const int fitting = static_cast<int>(std::max<std::int64_t>(piece_floats / row_floats, 1));
      rows_each = (rows + (rows + fitting - 1) / fitting - 1) / ((rows + fitting - 1) / fitting);
      strips = (rows + rows_each - 1) / rows_each;
      floats = std::int64_t(rows_each) * row_floats;
    }
    blocks = (all_planes + planes_each - 1) / planes_each * strips;
  }

  bool fit() const { return floats <= most_piece_floats && blocks > 0 && blocks < (std::int64_t(1) << 31); }
  // A piece begins at a float that 16 bytes need not divide: up to three before it and after it are staged with it.
  TWIDDLE_HD std::size_t shared_bytes() const { return static_cast<std::size_t>(floats / 4 + 2) * sizeof(Four); }

  struct Piece {
    int plane, planes, begin, end;  // the first plane, and rows begin to end of each
  };
  __device__ Piece at(int block) const {
    if (strips == 1) return {block * planes_each, min(planes_each, planes - block * planes_each), 0, rows};
    const int plane = block / strips, begin = (block - plane * strips) * rows_each;
    return {plane, 1, begin, min(begin + rows_each, rows)};
  }
};

// The piece of x that begins at float `begin`, from shared memory, where it begins at begin % 4. The fours at its ends,
// which it may share with its neighbours, go float by float.
template <class T>
__device__ void store_piece(T* x, std::int64_t begin, int count, const Four* staged) {
  const int lead = static_cast<int>(begin & 3), end = lead + count, thread = static_cast<int>(threadIdx.x);
  const int first = lead > 0 ? 1 : 0, past = max(end / 4, first);  // fours that are its own
  T* const to = x + begin - lead;
#pragma unroll 1
  for (int i = first + thread; i < past; i += piece_threads) detail::store_four(to, i, staged[i]);
  if (thread >= 4) return;
  const float* const from = reinterpret_cast<const float*>(staged);
  const int before = lead + thread, after = 4 * past + thread;
  if (before < min(4 * first, end)) to[before] = from_float<T>(from[before]);
  if (after < end) to[after] = from_float<T>(from[after]);
}

// A piece of the gradient is summed in shared memory: each thread holds some outputs and adds them where their maxima
// were. Windows that may share an input alternate, so that the order of its sum is fixed.
constexpr int held = 4, most_turns = 16;

template <class T>
__global__ void __launch_bounds__(piece_threads)
    max_pool_backward_kernel(PoolWindow window, PlanePieces pieces, Divisor out_width, Divisor out_height, int turns_h,
                             int turns_w, const T* grad_y, const std::int32_t* index, T* grad_x) {
  extern __shared__ Four staged[];
  float* const tile = reinterpret_cast<float*>(staged);
  const int width = window.width, plane_size = window.height * width;
  const int row_size = window.out_width, rows = window.out_height;

  const PlanePieces::Piece piece = pieces.at(static_cast<int>(blockIdx.x));  // of input rows
  const int in_begin = piece.begin * width, in_plane = (piece.end - piece.begin) * width;
  const int in_count = (piece.planes - 1) * plane_size + in_plane;
  const std::int64_t in = std::int64_t(piece.plane) * plane_size + in_begin;
  const int lead = static_cast<int>(in & 3);
#pragma unroll 1
  for (int i = threadIdx.x; i < (lead + in_count + 3) / 4; i += piece_threads) staged[i] = {};

  const bool whole = pieces.strips == 1;
  const int out_begin = whole ? 0 : window.over_row(piece.begin).begin;
  const int out_end = whole ? rows : window.over_row(piece.end - 1).end;
  const int count = piece.planes * (out_end - out_begin) * row_size;
  const std::int64_t out = (std::int64_t(piece.plane) * rows + out_begin) * row_size;
  const T* const from = grad_y + out;
  const std::int32_t* const from_index = index + out;
#pragma unroll 1
  for (int first = 0; first < count; first += held * piece_threads) {
    float grads[held];
    int places[held], turn_of[held];
#pragma unroll
    for (int k = 0; k < held; ++k) {  // without a condition, so that all loads are under way at once
      const int i = min(first + k * piece_threads + static_cast<int>(threadIdx.x), count - 1);
      grads[k] = to_float(from[i]);
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

// Windows at this distance share no input: a power of two, for the sake of cheap remainders.
int turns_of(int kernel, int stride) {
  int turns = 1;
  while (turns * stride < kernel) turns *= 2;
  return turns;
}

}  // namespace

bool max_pool_gradient_in_shared_memory(Stream& stream, const PoolWindow& window, const Tensor& grad_y,
                                        const Tensor& index, Tensor& grad_x) {
  const std::int64_t plane_size = std::int64_t(window.height) * window.width;
  const PlanePieces pieces(grad_x.size() / plane_size, window.height, window.width);
  const int turns_h = turns_of(window.kernel_h, window.stride_h), turns_w = turns_of(window.kernel_w, window.stride_w);
  if (!pieces.fit() || turns_h * turns_w > most_turns) return false;
  with_type(grad_y.type(), [&](auto t) {
    using T = decltype(t);
    max_pool_backward_kernel<T>
        <<<static_cast<unsigned>(pieces.blocks), piece_threads, pieces.shared_bytes(), detail::native(stream)>>>(
            window, pieces, Divisor(window.out_width), Divisor(window.out_height), turns_h, turns_w, grad_y.read<T>(),
            index.read<std::int32_t>(), grad_x.write<T>());
  });
  detail::check_launch();
  return true;
}

}  // namespace twiddle
