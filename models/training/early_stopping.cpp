#include "models/training/early_stopping.h"

#include <algorithm>
#include <cmath>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// `auto` is the one that metrics_of() has second.
const Metric& find_metric(const std::vector<Metric>& metrics, const std::string& name) {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const Metric& metric) { return name == metric.name; });
  return found == metrics.end() ? metrics.at(1) : *found;
}

}  // namespace

EarlyStopping::EarlyStopping(const std::vector<Metric>& metrics, const Config::Train& train)
    : metric_(find_metric(metrics, train.watch)), patience_(train.patience), min_delta_(train.min_delta) {}

std::string EarlyStopping::resume(RunState& state, const std::string& validation_set) const {
  const auto changes = [](std::string& known, const std::string& now) {
    const bool differs = !known.empty() && !now.empty() && known != now;
    if (!now.empty()) known = now;
    return differs;
  };
  const std::int64_t best_epoch = state.best_epoch;
  const bool other_metric = changes(state.watched, metric_.name),
             other_set = changes(state.validation_set, validation_set);
  if (other_metric || other_set) state.best_epoch = state.improved_epoch = 0;
  if (!other_set || best_epoch == 0) return "";
  return join("data.val is not the validation set of the run so far: the best score, of epoch ", best_epoch,
              ", is not comparable and is discarded");
}

bool EarlyStopping::take(std::int64_t epoch, const Scores& scores, RunState& state) const {
  const double score = metric_.of(scores);
  if (!std::isfinite(score)) return false;
  const double bar = state.improved_score + (metric_.larger_is_better ? min_delta_ : -min_delta_);
  if (state.improved_epoch == 0 || metric_.better(score, bar)) {
    state.improved_epoch = epoch;
    state.improved_score = score;
  }
  if (state.best_epoch > 0 && !metric_.better(score, state.best_score)) return false;
  state.best_epoch = epoch;
  state.best_score = score;
  return true;
}

bool EarlyStopping::stops(const RunState& state) const {
  return patience_ > 0 && state.improved_epoch > 0 && state.epoch - state.improved_epoch >= patience_;
}

}  // namespace twiddle
