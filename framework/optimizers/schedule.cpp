#include "framework/optimizers/schedule.h"

#include <algorithm>
#include <cmath>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

double Schedule::factor(double epoch, double total_epochs) const {
  if (epoch < warmup) return warmup_start + (1 - warmup_start) * epoch / warmup;
  // poly and cosine run from the end of the warm-up to the end of training.
  const double progress = std::clamp((epoch - warmup) / std::max(total_epochs - warmup, 1e-9), 0.0, 1.0);
  switch (kind) {
    case Kind::constant:
      return 1;
    case Kind::step:
      return std::pow(gamma, std::floor(epoch / every));
    case Kind::multistep:
      return std::pow(gamma, static_cast<double>(std::count_if(milestones.begin(), milestones.end(),
                                                               [&](double m) { return epoch >= m; })));
    case Kind::poly:
      return floor + (1 - floor) * std::pow(1 - progress, power);
    case Kind::exponential:
      return std::pow(gamma, epoch - warmup);
    case Kind::cosine:
      return floor + (1 - floor) * 0.5 * (1 + std::cos(3.141592653589793 * progress));
  }
  return 1;
}

std::string Schedule::describe() const {
  std::string text;
  switch (kind) {
    case Kind::constant:
      text = "constant";
      break;
    case Kind::step:
      text = join("x", format_number(gamma), " every ", every == 1 ? "epoch" : format_number(every) + " epochs");
      break;
    case Kind::multistep: {
      text = join("x", format_number(gamma), " at epochs");
      for (const double milestone : milestones) text += " " + format_number(milestone);
      break;
    }
    case Kind::poly:
      text = "poly, power " + format_number(power);
      break;
    case Kind::exponential:
      text = join("x", format_number(gamma), " an epoch");
      break;
    case Kind::cosine:
      text = "cosine";
      break;
  }
  return warmup > 0 ? join(text, ", warm-up ", format_number(warmup), warmup == 1 ? " epoch" : " epochs") : text;
}

Schedule read_schedule(Params& params, const char* key) {
  auto [name, options] = params.named(key, "constant");
  Schedule schedule;
  schedule.warmup = options.number("warmup", 0.0, 0, 1e6);
  schedule.warmup_start = options.number("warmup_start", schedule.warmup_start, 0, 1);
  if (name == "constant") {
    schedule.kind = Schedule::Kind::constant;
  } else if (name == "step") {
    schedule.kind = Schedule::Kind::step;
    schedule.every = options.number("every", std::nullopt, 1e-6, 1e6);
    schedule.gamma = options.number("gamma", 0.1, 0, 1);
  } else if (name == "multistep") {
    schedule.kind = Schedule::Kind::multistep;
    schedule.milestones = options.numbers("milestones", {});
    schedule.gamma = options.number("gamma", 0.1, 0, 1);
    if (schedule.milestones.empty()) options.error("milestones", "multistep needs 'milestones', a list of epochs");
    if (!std::is_sorted(schedule.milestones.begin(), schedule.milestones.end()))
      options.error("milestones", "'milestones' are epochs in the order in which they come");
  } else if (name == "poly") {
    schedule.kind = Schedule::Kind::poly;
    schedule.power = options.number("power", 1.0, 0.01, 100);
    schedule.floor = options.number("floor", 0.0, 0, 1);
  } else if (name == "exponential") {
    schedule.kind = Schedule::Kind::exponential;
    schedule.gamma = options.number("gamma", 0.95, 0, 1);
  } else if (name == "cosine") {
    schedule.kind = Schedule::Kind::cosine;
    schedule.floor = options.number("floor", 0.0, 0, 1);
  } else {
    params.error(key,
                 unknown_name("schedule", name, {"constant", "step", "multistep", "poly", "exponential", "cosine"}));
    return schedule;
  }
  options.finish();
  return schedule;
}

}  // namespace twiddle
