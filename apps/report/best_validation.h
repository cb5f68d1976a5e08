#pragma once
#include <memory>
#include <optional>
#include <string>

#include "models/evaluation/evaluation_json.h"
#include "models/training/trainer.h"

namespace twiddle {

// How well the weights did that an epoch ended with, and where they erred.
struct ValidatedEpoch {
  std::int64_t epoch = 0;
  std::shared_ptr<const EvalResult> result;
};

// The validation of a run's best epoch, whose weights are best.safetensors; of the last one if the best is not
// available. It is kept as best.json in the run folder, so that a resumed run has it.
class BestValidation {
 public:
  // The data that a run is validated on. The fingerprint tells data apart whose sizes agree; empty: not known.
  struct Data {
    EvaluatedSet set;
    std::string fingerprint = {};
  };

  // `metric` is the name of the one by which it is the best.
  BestValidation(const std::string& run_folder, std::int64_t best_epoch, std::string metric, Data data);
  void take(const EpochReport& report, std::shared_ptr<const EvalResult> result, std::int64_t best_epoch);
  const ValidatedEpoch* get() const { return validated_ ? &*validated_ : nullptr; }
  const std::string& discarded() const { return discarded_; }  // why best.json is not used; empty: it is, or is missing

 private:
  std::string file_, metric_;
  Data data_;
  std::optional<ValidatedEpoch> validated_;
  std::string discarded_;
};

}  // namespace twiddle
