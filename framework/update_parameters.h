#pragma once
#include <algorithm>
#include <vector>

#include "framework/for_each.h"

namespace twiddle {

// One parameter's turn in an optimizer's step. Rule: a function (grad, weight&, state[]) of one element, with the
// parameter's own rates inside; Rule::states counts its state tensors, two at most.
template <class Rule>
struct Update {
  Rule rule;
  std::int64_t count;
  const float* grad;
  float* weight;
  float* state[2];

  struct One {
    float at[1];
  };
  TWIDDLE_HD void operator()(std::int64_t i) const { apply<One>(i); }

  template <class Pack>
  TWIDDLE_HD void apply(std::int64_t i) const {  // to the i-th pack of neighbours
    constexpr int width = sizeof(Pack) / sizeof(float);
    const Pack g = reinterpret_cast<const Pack*>(grad)[i];
    Pack w = reinterpret_cast<Pack*>(weight)[i], kept[2];
    for (int s = 0; s < Rule::states; ++s) kept[s] = reinterpret_cast<Pack*>(state[s])[i];
    for (int k = 0; k < width; ++k) {
      float own[2] = {};
      for (int s = 0; s < Rule::states; ++s) own[s] = kept[s].at[k];
      rule(g.at[k], w.at[k], own);
      for (int s = 0; s < Rule::states; ++s) kept[s].at[k] = own[s];
    }
    for (int s = 0; s < Rule::states; ++s) reinterpret_cast<Pack*>(state[s])[i] = kept[s];
    reinterpret_cast<Pack*>(weight)[i] = w;
  }
};

// Many parameters as one functor over all their fours, small enough for a kernel's arguments.
template <class Rule>
struct UpdateTable {
  static constexpr int most = 40;
  Update<Rule> updates[most];
  std::int64_t first[most + 1] = {};  // the first four of each, and their sum
  int used = 0;

  void add(const Update<Rule>& update) {
    updates[used] = update;
    first[used + 1] = first[used] + (update.count + 3) / 4;
    ++used;
  }
  TWIDDLE_HD void operator()(std::int64_t four) const {
    int low = 0, high = used;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first[middle] <= four)
        low = middle;
      else
        high = middle;
    }
    const Update<Rule>& update = updates[low];
    const std::int64_t i = four - first[low];
    if (4 * i + 4 <= update.count)
      update.template apply<Four>(i);
    else
      for (std::int64_t k = 4 * i; k < update.count; ++k) update(k);
  }
};

// All parameters of a step: on a GPU in as few launches as tables, on the CPU one after the other.
template <class Rule>
void update_parameters(Stream& stream, const std::vector<Update<Rule>>& updates) {
  static_assert(sizeof(UpdateTable<Rule>) <= 4000, "a kernel takes 4096 bytes of arguments");
  if (!on_gpu(stream)) {
    for (const Update<Rule>& update : updates) for_each_index(stream, update.count, update);
    return;
  }
  for (std::size_t begin = 0; begin < updates.size(); begin += UpdateTable<Rule>::most) {
    UpdateTable<Rule> table{};
    const std::size_t end = std::min(updates.size(), begin + UpdateTable<Rule>::most);
    for (std::size_t i = begin; i < end; ++i) table.add(updates[i]);
    for_each_index(stream, table.first[table.used], table);
  }
}

}  // namespace twiddle
