#include "framework/block_layout.h"

#include <algorithm>
#include <numeric>

namespace twiddle {

BlockLayout lay_out(const std::vector<BlockUse>& uses) {
  BlockLayout layout{std::vector<std::size_t>(uses.size()), 0};
  std::vector<std::size_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  const auto weight = [&](std::size_t block) {
    return static_cast<double>(uses[block].bytes) * (uses[block].returned - uses[block].taken);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });

  std::vector<std::size_t> placed;  // by their offsets
  for (const std::size_t block : order) {
    std::size_t at = 0;
    for (const std::size_t other : placed) {
      if (!uses[block].meets(uses[other])) continue;
      if (layout.offsets[other] >= at + uses[block].bytes) break;  // it fits before that one
      at = std::max(at, layout.offsets[other] + uses[other].bytes);
    }
    layout.offsets[block] = at;
    layout.bytes = std::max(layout.bytes, at + uses[block].bytes);
    const auto behind = std::upper_bound(placed.begin(), placed.end(), block, [&](std::size_t a, std::size_t b) {
      return layout.offsets[a] < layout.offsets[b];
    });
    placed.insert(behind, block);
  }
  return layout;
}

}  // namespace twiddle
