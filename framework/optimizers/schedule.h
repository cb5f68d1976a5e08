#pragma once
#include <string>
#include <vector>

namespace twiddle {

class Params;

// The learning rate over time, as a factor of the base rate. Times are in epochs and may be fractions.
struct Schedule {
  enum class Kind { constant, step, multistep, poly, exponential, cosine } kind = Kind::constant;
  double gamma = 0.1;  // step, multistep, exponential: factor per step, milestone, epoch
  double every = 30;   // step: epochs between two drops
  std::vector<double> milestones;
  double power = 1;            // poly: (1 - t / T)^power
  double floor = 0;            // poly, cosine: factor at the end
  double warmup = 0;           // epochs of linear rise before the schedule proper
  double warmup_start = 0.01;  // factor of the first step; with 0 that step would change nothing

  double factor(double epoch, double total_epochs) const;
  std::string describe() const;  // "cosine, warm-up 5 epochs"
};

// Reads `schedule: constant | cosine | {step: {every: 30, gamma: 0.1, warmup: 5}} ...`; constant where the key is
// absent.
Schedule read_schedule(Params& params, const char* key);

}  // namespace twiddle
