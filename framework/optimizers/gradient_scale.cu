#include "framework/optimizers/gradient_scale.h"

#include <cmath>

#include "framework/for_each.h"

namespace twiddle {

namespace {

struct BeginUpdate {
  float clip_norm;
  bool adapts;
  const float *norm, *run_guard;
  float *state, *guard, *factor, *found_bad;

  TWIDDLE_HD void operator()(std::int64_t) const {
    float &scale = state[0], &good_steps = state[1], &skipped_steps = state[2];
    const bool finite = *norm - *norm == 0, bad_before = *run_guard - *run_guard != 0;
    const float true_norm = *norm / scale;
    *guard = finite ? *run_guard : NAN;
    *factor = (clip_norm > 0 && true_norm > clip_norm ? clip_norm / true_norm : 1) / scale;
    if (bad_before) return;
    if (finite) {
      good_steps += 1;
      if (adapts && good_steps == LossScale::period) good_steps = 0, scale = fminf(2 * scale, LossScale::largest);
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
      state_(Tensor::from<float>(stream, {3},
                                 {static_cast<float>(loss_scale.value), static_cast<float>(loss_scale.good_steps),
                                  static_cast<float>(loss_scale.skipped_steps)})),
      scale_(state_.part(0, {1})),
      guard_(stream, {1}),
      factor_(stream, {1}) {}

StepNumbers GradientScale::begin_update(Stream& stream, const Tensor& norm, StepNumbers numbers) {
  for_each_index(stream, 1,
                 BeginUpdate{clip_norm_, adapts_, norm.read(), numbers.guard.read(), state_.write(), guard_.write(),
                             factor_.write(), numbers.found_bad.write()});
  numbers.guard = guard_, numbers.factor = factor_;
  return numbers;
}

LossScale GradientScale::read(Stream& stream) const {
  const std::vector<float> state = state_.to_vector(stream);
  return {state.at(0), adapts_, static_cast<std::int64_t>(state.at(1)), static_cast<std::int64_t>(state.at(2))};
}

}  // namespace twiddle
