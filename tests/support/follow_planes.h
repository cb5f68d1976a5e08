#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "fft/cuda/planes/plane_inverse.h"

// Runs the blocks of the plane transforms one after the other, all threads of one step before the next.
namespace twiddle::small_fft {

inline std::int64_t blocks_of(const TileMap& tiles, int planes_a_block) {
  return (tiles.count() + planes_a_block - 1) / planes_a_block;
}

// Memory that is filled with stale values before a block runs.
template <class Block>
std::unique_ptr<typename Block::Shared> dirty() {
  auto shared = std::make_unique<typename Block::Shared>();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(std::begin(shared->numbers), std::end(shared->numbers), Complex{nan, nan});
  if constexpr (requires { shared->biases; }) std::fill(std::begin(shared->biases), std::end(shared->biases), nan);
  return shared;
}

template <int H, int W, int P>
void follow_forward(const ForwardArguments& arguments) {
  using Block = ForwardBlock<H, W, P>;
  for (std::int64_t block = 0; block < blocks_of(arguments.tiles, P); ++block) {
    const auto shared = dirty<Block>();
    for (int thread = 0; thread < Block::threads; ++thread) Block::columns(arguments, block, thread, *shared);
    for (int thread = 0; thread < Block::threads; ++thread) Block::rows(arguments, block, thread, *shared);
  }
}

template <int H, int W, class Source>
void follow_inverse(const typename Source::Arguments& arguments) {
  using Block = InverseBlock<H, W, Source>;
  struct Registers {
    Complex v[H];
  };
  for (std::int64_t block = 0; block < Source::blocks(arguments); ++block) {
    const auto shared = dirty<Block>();
    std::vector<Registers> registers(Block::threads);
    const auto each = [&](const auto& step) {
      for (int thread = 0; thread < Block::threads; ++thread)
        step(thread, registers[static_cast<std::size_t>(thread)].v);
    };
    each([&](int thread, auto&) { Block::rows(arguments, block, thread, *shared); });
    each([&](int thread, auto& v) { Block::columns(arguments, block, thread, *shared, v); });
    if (!arguments.gather) {
      each([&](int thread, auto& v) { Block::store_columns(arguments, block, thread, *shared, v); });
      continue;
    }
    each([&](int thread, auto& v) { Block::gather(arguments, block, thread, *shared, v); });
    each([&](int thread, auto&) { Block::store_gathered(arguments, block, thread, *shared); });
  }
}

}  // namespace twiddle::small_fft
