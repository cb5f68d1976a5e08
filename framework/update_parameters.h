#pragma once
#include <algorithm>
#include <vector>

#include "framework/for_each.h"
#include "framework/optimizer.h"

namespace twiddle {

// One parameter's turn in an optimizer's step. Rule: at(rate) makes the rule of this step, a function (grad, weight&,
// state[]) of one element; Rule::states counts its state tensors, two at most.
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

  template <class Pack, class Now>
  TWIDDLE_HD void apply(std::int64_t i, const Now& now) const {  // to the i-th pack of neighbours
    constexpr int width = sizeof(Pack) / sizeof(float);
    const Pack g = reinterpret_cast<const Pack*>(grad)[i];
    Pack w = reinterpret_cast<Pack*>(weight)[i], kept[2];
    for (int s = 0; s < Rule::states; ++s) kept[s] = reinterpret_cast<Pack*>(state[s])[i];
    for (int k = 0; k < width; ++k) {
      float own[2] = {};
      for (int s = 0; s < Rule::states; ++s) own[s] = kept[s].at[k];
      now(g.at[k], w.at[k], own);
      for (int s = 0; s < Rule::states; ++s) kept[s].at[k] = own[s];
    }
    for (int s = 0; s < Rule::states; ++s) reinterpret_cast<Pack*>(state[s])[i] = kept[s];
    reinterpret_cast<Pack*>(weight)[i] = w;
  }
};

// StepNumbers as a kernel takes them.
struct StepPointers {
  const float *rate, *guard;
  explicit StepPointers(const StepNumbers& numbers)
      : rate(numbers.rate.read()), guard(numbers.guard.defined() ? numbers.guard.read() : nullptr) {}
  TWIDDLE_HD bool passes() const { return guard == nullptr || *guard - *guard == 0; }  // infinity and NaN: NaN
};

// The rule of the step, made before the loop over the elements: no store into a weight can change it.
template <class Rule>
struct UpdateOne {
  Update<Rule> update;
  Rule now;
  TWIDDLE_HD void operator()(std::int64_t i) const { update.template apply<typename Update<Rule>::One>(i, now); }
};

// Many parameters as one functor over all their fours, small enough for a kernel's arguments.
template <class Rule>
struct UpdateTable {
  static constexpr int most = 40;
  StepPointers numbers;
  Update<Rule> updates[most];
  std::int64_t first[most + 1] = {};  // the first four of each, and their sum
  int used = 0;

  explicit UpdateTable(const StepPointers& step_numbers) : numbers(step_numbers) {}
  void add(const Update<Rule>& update) {
    updates[used] = update;
    first[used + 1] = first[used] + (update.count + 3) / 4;
    ++used;
  }
  TWIDDLE_HD void operator()(std::int64_t four) const {
    if (!numbers.passes()) return;
    int low = 0, high = used;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first[middle] <= four)
        low = middle;
      else
        high = middle;
    }
    const Update<Rule>& update = updates[low];
    const Rule now = update.rule.at(*numbers.rate);
    const std::int64_t i = four - first[low];
    if (4 * i + 4 <= update.count)
      update.template apply<Four>(i, now);
    else
      for (std::int64_t k = 4 * i; k < update.count; ++k) update.template apply<typename Update<Rule>::One>(k, now);
  }
};

// All parameters of a step: on a GPU in as few launches as tables, on the CPU one after the other.
template <class Rule>
void update_parameters(Stream& stream, const std::vector<Update<Rule>>& updates, const StepNumbers& step_numbers) {
  static_assert(sizeof(UpdateTable<Rule>) <= 4000, "a kernel takes 4096 bytes of arguments");
  const StepPointers numbers(step_numbers);
  if (!on_gpu(stream)) {
    if (!numbers.passes()) return;
    for (const Update<Rule>& update : updates)
      for_each_index(stream, update.count, UpdateOne<Rule>{update, update.rule.at(*numbers.rate)});
    return;
  }
  for (std::size_t begin = 0; begin < updates.size(); begin += UpdateTable<Rule>::most) {
    UpdateTable<Rule> table(numbers);
    const std::size_t end = std::min(updates.size(), begin + UpdateTable<Rule>::most);
    for (std::size_t i = begin; i < end; ++i) table.add(updates[i]);
    for_each_index(stream, table.first[table.used], table);
  }
}

}  // namespace twiddle
