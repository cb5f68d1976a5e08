#include "framework/optimizers/gradient_scale.h"

#include <cmath>

#include "framework/for_each.h"

namespace twiddle {

namespace {

// Adds the update's losses to the epoch's. Returns false for a loss that is not finite, which is left out.
struct TakeLosses {
  float *of_update, *of_epoch;  // null: the losses are in the epoch's sums already
  const float* images;
  TWIDDLE_HD bool operator()(float& left_out) const {
    if (of_update == nullptr) return true;
    const float loss = of_update[0];
    const bool finite = loss - loss == 0;
    if (finite)
      of_epoch[0] += loss;
    else
      left_out += *images;
    of_epoch[1] += of_update[1];
    of_update[0] = of_update[1] = 0;
    return finite;
  }
};

struct BeginUpdate {
  float clip_norm;
  bool adapts;
  const float *norm, *run_guard;
  float *state, *guard, *factor, *found_bad;
  TakeLosses take_losses;

  TWIDDLE_HD void operator()(std::int64_t) const {
    float &scale = state[0], &good_steps = state[1], &skipped_steps = state[2];
    const float before = *run_guard, true_norm = *norm / scale;
    const bool finite = take_losses(state[3]) && *norm - *norm == 0;
    *guard = finite ? before : NAN;
    *factor = (clip_norm > 0 && true_norm > clip_norm ? clip_norm / true_norm : 1) / scale;
    if (before - before != 0) return;
    if (finite) {
      if (adapts) good_steps += 1;
      if (good_steps >= LossScale::period) good_steps = 0, scale = fminf(2 * scale, LossScale::largest);
    } else if (adapts && scale > 1) {
      good_steps = 0, skipped_steps += 1, scale = fmaxf(scale / 2, 1);
    } else {
      *found_bad = NAN;
    }
  }
};

}  // namespace

GradientScale::GradientScale(Stream& stream, double clip_norm, const LossScale& loss_scale)
    : clip_norm_(static_cast<float>(clip_norm)),
      adapts_(loss_scale.adapts),
      state_(
          Tensor::from<float>(stream, {4},
                              {static_cast<float>(loss_scale.value), static_cast<float>(loss_scale.good_steps),
                               static_cast<float>(loss_scale.skipped_steps), static_cast<float>(loss_scale.left_out)})),
      scale_(state_.part(0, {1})),
      guard_(stream, {1}),
      factor_(stream, {1}) {}

StepNumbers GradientScale::begin_update(Stream& stream, const Tensor& norm, StepNumbers numbers, LossSums* losses) {
  TakeLosses take{};
  if (losses != nullptr) take = {losses->of_update.write(), losses->of_epoch.write(), losses->images.read()};
  for_each_index(stream, 1,
                 BeginUpdate{clip_norm_, adapts_, norm.read(), numbers.guard.read(), state_.write(), guard_.write(),
                             factor_.write(), numbers.found_bad.write(), take});
  numbers.guard = guard_, numbers.factor = factor_;
  return numbers;
}

LossScale GradientScale::read(Stream& stream) const {
  const std::vector<float> state = state_.to_vector(stream);
  const auto whole = [&state](std::size_t i) { return static_cast<std::int64_t>(state.at(i)); };
  return {state.at(0), adapts_, whole(1), whole(2), whole(3)};
}

void GradientScale::begin_epoch(Stream& stream) {
  stream.fill(state_.write() + 3, 1, 0);
}

}  // namespace twiddle
