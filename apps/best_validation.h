#pragma once
#include <optional>
#include <string>

#include "models/trainer.h"

namespace twiddle {

// How well the weights did that an epoch ended with, and where they erred.
struct ValidatedEpoch {
  std::int64_t epoch = 0;
  EvalResult result;
};

// The validation of a run's best epoch, whose weights are best.safetensors; of the last one where the best is not at
// hand. It is kept as best.json in the run folder, so that a run that goes on still knows it.
class BestValidation {
 public:
  // `metric` is the name of the one by which it is the best.
  BestValidation(const std::string& run_folder, std::int64_t best_epoch, std::string metric);
  void take(const EpochReport& report, const EvalResult& result, std::int64_t best_epoch);
  const ValidatedEpoch* get() const { return validated_ ? &*validated_ : nullptr; }

 private:
  std::string file_, metric_;
  std::optional<ValidatedEpoch> validated_;
};

}  // namespace twiddle
