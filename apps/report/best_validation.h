#pragma once
#include <memory>
#include <optional>
#include <string>

#include "models/evaluation/evaluation_json.h"
#include "models/training/trainer.h"

namespace twiddle {

// Evaluation of the weights at the end of an epoch.
struct ValidatedEpoch {
  std::int64_t epoch = 0;
  std::shared_ptr<const EvalResult> result;
};

// The validation of a run's best epoch, whose weights are best.safetensors; of the last one if the best is not
// available. It is kept as best.json in the run folder, so that a resumed run has it.
class BestValidation {
 public:
  // The validation data of a run. The fingerprint distinguishes data of the same size; empty: unknown.
  struct Data {
    EvaluatedSet set;
    std::string fingerprint = {};
  };

  // `metric`: name of the metric that selects the best epoch.
  BestValidation(const std::string& run_folder, std::int64_t best_epoch, std::string metric, Data data);
  void take(const EpochReport& report, std::shared_ptr<const EvalResult> result, std::int64_t best_epoch);
  const ValidatedEpoch* get() const { return validated_ ? &*validated_ : nullptr; }
  // why best.json is not used; empty: it is used or missing
  const std::string& discarded() const { return discarded_; }

 private:
  std::string file_, metric_;
  Data data_;
  std::optional<ValidatedEpoch> validated_;
  std::string discarded_;
};

}  // namespace twiddle
