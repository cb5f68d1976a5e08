#pragma once
#include "fft/cuda/complex_pairs/pair_block.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle::complex_pairs {

// Sets the tiles of a product.
template <class Tile>
void set_tiling(const FrequencyGemm& gemm, PairArguments& arguments) {
  const auto pieces = [](std::int64_t count, std::int64_t each) { return Divisor((count + each - 1) / each); };
  arguments.tiles_down = pieces(gemm.m, Tile::rows), arguments.tiles_across = pieces(gemm.n, Tile::columns);
  const std::int64_t tiles =
      gemm.bins * gemm.groups * arguments.parts.value() * arguments.tiles_down.value() * arguments.tiles_across.value();
  require(tiles < std::int64_t(1) << 30, tiles, " tiles are more than one launch can count");
  arguments.tiles = static_cast<int>(tiles);
}

// As many blocks as the GPU holds at a time, each of which computes one tile after the other.
template <class Kernel>
void launch_persistent(Kernel* kernel, Stream& stream, const PairArguments& arguments, int threads, int bytes,
                       int blocks_a_multiprocessor) {
  const int most = blocks_a_multiprocessor * multiprocessors(stream.device());
  const int blocks = arguments.tiles < most ? arguments.tiles : most;
  if (blocks == 0) return;
  const cudaStream_t native = twiddle::detail::native(stream);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), native>>>(
      arguments);
  twiddle::detail::check_launch();
}

}  // namespace twiddle::complex_pairs
