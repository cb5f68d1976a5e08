#pragma once
#include "fft/cuda/pair_products/split_kernel.h"
#include "fft/pair_product.h"
#include "framework/cuda/check.h"

// Launches of split_kernel.h's kernels.
namespace twiddle::pairs {

inline Factor factor(const StridedMatrix<const float>& matrix, std::int64_t rows, std::int64_t step) {
  return {matrix.values, matrix.stride, matrix.piece_stride, Divisor(matrix.period), rows, step};
}

// Returns whether Count adjacent elements may be copied at once.
template <int Count, class Number>
bool is_aligned(const StridedMatrix<Number>& matrix, std::int64_t step) {
  return reinterpret_cast<std::uintptr_t>(matrix.values) % (Count * sizeof(float)) == 0 && matrix.stride % Count == 0 &&
         matrix.period % Count == 0 && matrix.piece_stride % Count == 0 && step % Count == 0;
}

template <Order order, bool AlongK, int Width>
void launch_split(Stream& stream, SplitArguments arguments, std::int64_t batch) {
  arguments.sample = sample_of<AlongK>(arguments.a);
  const dim3 grid(static_cast<unsigned>(arguments.steps) * static_cast<unsigned>(arguments.tiles),
                  static_cast<unsigned>(batch));
  split_kernel<order, AlongK, Width><<<grid, threads, 0, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

template <Order order>
void split_a(Stream& stream, const PairProduct& p, std::int64_t steps, std::int64_t tiles, SplitPart<rows_of_a>* parts,
             float* scales) {
  const Factor a = factor(p.a, p.m, p.a_step);
  const SplitArguments arguments{.a = a,
                                 .sample = a,
                                 .k = static_cast<int>(p.k),
                                 .steps = static_cast<int>(steps),
                                 .tiles = static_cast<int>(tiles),
                                 .balance = p.balance,
                                 .parts = parts,
                                 .scales = scales};
  const bool by_fours = is_aligned<4>(p.a, p.a_step);
  const auto launch = p.a_along_k ? (by_fours ? launch_split<order, true, 4> : launch_split<order, true, 1>)
                                  : (by_fours ? launch_split<order, false, 4> : launch_split<order, false, 1>);
  launch(stream, arguments, p.batch);
}

template <bool AlongK, int Width>
void launch_split_of_b(Stream& stream, const SplitArgumentsOfB& arguments, std::int64_t batch) {
  const dim3 grid(static_cast<unsigned>(arguments.steps) * static_cast<unsigned>(arguments.tiles),
                  static_cast<unsigned>(batch));
  split_kernel_of_b<AlongK, Width><<<grid, threads, 0, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

inline void split_b(Stream& stream, const PairProduct& p, std::int64_t steps, std::int64_t tiles, const float* scales,
                    SplitPart<rows_of_b>* parts) {
  const SplitArgumentsOfB arguments{.b = factor(p.b, p.n, p.b_step),
                                    .k = static_cast<int>(p.k),
                                    .steps = static_cast<int>(steps),
                                    .tiles = static_cast<int>(tiles),
                                    .scales = scales,
                                    .parts = parts};
  const bool by_fours = is_aligned<4>(p.b, p.b_step);
  const auto launch = p.b_along_k ? (by_fours ? launch_split_of_b<true, 4> : launch_split_of_b<true, 1>)
                                  : (by_fours ? launch_split_of_b<false, 4> : launch_split_of_b<false, 1>);
  launch(stream, arguments, p.batch);
}

}  // namespace twiddle::pairs
