#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "framework/for_each.h"
#include "framework/optimizers/optimizer.h"

namespace twiddle {

// What a rule has if it declares nothing else. A rule is a function (grad, weight&, state[]) of one element.
struct UpdateRule {
  static constexpr std::array<const char*, 0> states{};  // names of the tensors kept for each parameter, two at most
  // The last states that can become infinite or NaN in an element whose new weight is finite.
  static constexpr int checked_states = 0;
  float rate = 1;   // the parameter's, and from begin() on that of the step
  float decay = 0;  // of the weight; 0 for a parameter that is not decayed

  TWIDDLE_HD void begin(float step_rate) { rate = step_rate * rate; }
};

// One parameter's turn in an optimizer's step.
template <class Rule>
struct Update {
  static constexpr int states = static_cast<int>(std::tuple_size_v<decltype(Rule::states)>);
  Rule rule;
  std::int64_t count;
  const float* grad;
  float* weight;
  float* state[2];

  struct One {
    float at[1];
  };

  // To the i-th pack of neighbours, whose gradients are multiplied by `factor`. If `guarded`, an element whose new
  // values are not finite keeps its old ones, which needs no separate pass. Returns 0 if all new values are finite,
  // else NaN.
  template <class Pack>
  TWIDDLE_HD float apply(std::int64_t i, const Rule& now, float factor, bool guarded) const {
    constexpr int width = sizeof(Pack) / sizeof(float);
    const Pack g = reinterpret_cast<const Pack*>(grad)[i];
    Pack w = reinterpret_cast<Pack*>(weight)[i], kept[2];
    for (int s = 0; s < states; ++s) kept[s] = reinterpret_cast<Pack*>(state[s])[i];
    float difference = 0;
    for (int k = 0; k < width; ++k) {
      float own[2] = {}, new_weight = w.at[k];
      for (int s = 0; s < states; ++s) own[s] = kept[s].at[k];
      now(g.at[k] * factor, new_weight, own);
      const float here = difference_of(new_weight, own);
      difference += here;
      const bool written = !guarded || here == 0;
      w.at[k] = written ? new_weight : w.at[k];
      for (int s = 0; s < states; ++s) kept[s].at[k] = written ? own[s] : kept[s].at[k];
    }
    for (int s = 0; s < states; ++s) reinterpret_cast<Pack*>(state[s])[i] = kept[s];
    reinterpret_cast<Pack*>(weight)[i] = w;
    return difference;
  }

  // x - x is NaN if x is not finite. A state that is not finite makes the weight so, too, except for checked_states.
  static TWIDDLE_HD float difference_of(float new_weight, const float* own) {
    float sum = new_weight - new_weight;
    for (int s = states - Rule::checked_states; s < states; ++s) sum += own[s] - own[s];
    return sum;
  }
};

// StepNumbers as a kernel takes them.
struct StepPointers {
  const float *rate, *guard, *factor;
  float* found_bad;
  explicit StepPointers(const StepNumbers& numbers)
      : rate(numbers.rate.read()),
        guard(numbers.guard.defined() ? numbers.guard.read() : nullptr),
        factor(numbers.factor.defined() ? numbers.factor.read() : nullptr),
        found_bad(guard != nullptr ? Tensor(numbers.found_bad).write() : nullptr) {}
  TWIDDLE_HD bool passes() const { return guard == nullptr || *guard - *guard == 0; }  // infinity and NaN: NaN
  TWIDDLE_HD float gradient_factor() const { return factor == nullptr ? 1 : *factor; }
};

// Many threads may store at once, all of them the same value.
TWIDDLE_HD inline void store_bad(float* found_bad) {
#pragma omp atomic write
  *found_bad = NAN;
}

// A parameter on the CPU, block by block: a loop that becomes vector code.
template <class Rule>
struct UpdateBlock {
  static constexpr std::int64_t most = 4096;
  Update<Rule> update;
  Rule now;
  float factor;
  float* found_bad;  // null: no element is guarded

  TWIDDLE_HD void operator()(std::int64_t block) const {
    const Update<Rule> here = update;
    const Rule rule = now;  // of this call's own: no store into a weight can change it
    const float scale = factor;
    const bool guarded = found_bad != nullptr;
    const std::int64_t begin = most * block, end = begin + most < here.count ? begin + most : here.count;
    float difference = 0;
#pragma omp simd reduction(+ : difference)
    for (std::int64_t i = begin; i < end; ++i)
      difference += here.template apply<typename Update<Rule>::One>(i, rule, scale, guarded);
    if (guarded && difference != 0) store_bad(found_bad);
  }
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
    Rule now = update.rule;
    now.begin(*numbers.rate);
    const std::int64_t i = four - first[low];
    const bool guarded = numbers.found_bad != nullptr;
    const float factor = numbers.gradient_factor();
    float difference = 0;
    if (4 * i + 4 <= update.count)
      difference = update.template apply<Four>(i, now, factor, guarded);
    else
      for (std::int64_t k = 4 * i; k < update.count; ++k)
        difference += update.template apply<typename Update<Rule>::One>(k, now, factor, guarded);
    if (guarded && difference != 0) store_bad(numbers.found_bad);
  }
};

// All parameters of a step: on a GPU in as few launches as tables, on the CPU one after the other.
template <class Rule>
void update_parameters(Stream& stream, const std::vector<Update<Rule>>& updates, const StepNumbers& step_numbers) {
  static_assert(sizeof(UpdateTable<Rule>) <= 4000, "a kernel takes 4096 bytes of arguments");
  const StepPointers numbers(step_numbers);
  if (!on_gpu(stream)) {
    if (!numbers.passes()) return;
    using Block = UpdateBlock<Rule>;
    for (const Update<Rule>& update : updates) {
      Rule now = update.rule;
      now.begin(*numbers.rate);
      for_each_index(stream, (update.count + Block::most - 1) / Block::most,
                     Block{update, now, numbers.gradient_factor(), numbers.found_bad}, Block::most);
    }
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
