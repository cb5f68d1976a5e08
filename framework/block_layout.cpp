#include "framework/block_layout.h"

#include <algorithm>
#include <numeric>

namespace twiddle {

namespace {

template <class Weight>
std::vector<std::size_t> heaviest_first(const std::vector<BlockUse>& uses, const Weight& weight) {
  std::vector<std::size_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weight(uses[a]) > weight(uses[b]); });
  return order;
}

// One after the other, each at the lowest place that is free while it is in use.
BlockLayout place(const std::vector<BlockUse>& uses, const std::vector<std::size_t>& order) {
  BlockLayout layout{std::vector<std::size_t>(uses.size()), 0};
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
    const auto position = std::upper_bound(placed.begin(), placed.end(), block, [&](std::size_t a, std::size_t b) {
      return layout.offsets[a] < layout.offsets[b];
    });
    placed.insert(position, block);
  }
  return layout;
}

}  // namespace

BlockLayout lay_out(const std::vector<BlockUse>& uses) {
  const auto bytes_and_time = [](const BlockUse& use) {
    return static_cast<double>(use.bytes) * (use.returned - use.taken);
  };
  const auto bytes = [](const BlockUse& use) { return use.bytes; };
  BlockLayout by_both = place(uses, heaviest_first(uses, bytes_and_time));
  BlockLayout by_bytes = place(uses, heaviest_first(uses, bytes));
  return by_bytes.bytes < by_both.bytes ? by_bytes : by_both;
}

}  // namespace twiddle
