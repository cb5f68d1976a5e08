#pragma once
#include <memory>
#include <string>

#include "models/evaluation/evaluate.h"

namespace twiddle {

class Augment;
struct Batch;

// Compares a network's outputs with their targets, batch by batch: one class for each kind of target. Ranks that share
// a batch each evaluate their own rows, and each counts the rows of all ranks.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual std::string evaluate(const Batch& batch,
                               const Tensor& output) const = 0;  // by pack() (framework/ranks/pack.h)
  virtual void count(const std::string& evaluated) = 0;          // in the order of the rows in the batch
  virtual void finish(EvalResult& result) = 0;                   // sets all but the loss and the number of images
  void add(const Batch& batch, const Tensor& output) { count(evaluate(batch, output)); }
};
std::unique_ptr<Evaluator> label_evaluator(Stream& stream, std::int64_t classes, std::int64_t outputs);
std::unique_ptr<Evaluator> several_labels_evaluator(Stream& stream, std::int64_t classes, std::int64_t outputs);
std::unique_ptr<Evaluator> image_evaluator(Stream& stream,
                                           const Augment& augment);  // which says what a value is in bytes

// Area under precision over recall as scikit-learn's average_precision_score has it: the sum over falling thresholds t
// of (R(t) - R(before)) P(t), where a threshold takes all images of its score at once, P is the share of the images
// taken that have the label, and R the share taken of those that have it. `has` are of the images in order of `scores`.
double average_precision(const std::vector<float>& scores, const std::vector<bool>& has);

}  // namespace twiddle
