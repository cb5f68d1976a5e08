#pragma once
#include <memory>

#include "models/evaluation/evaluate.h"

namespace twiddle {

class Augment;
struct Batch;

// Holds a net's outputs to their targets, batch by batch, and tells what that comes to: one of these for each kind of
// target.
class Judge {
 public:
  virtual ~Judge() = default;
  virtual void add(const Batch& batch, const Tensor& output) = 0;
  virtual void finish(EvalResult& result) = 0;  // fills in all but the loss and the number of images
};
std::unique_ptr<Judge> judge_labels(Stream& stream, std::int64_t classes, std::int64_t outputs);
std::unique_ptr<Judge> judge_several_labels(Stream& stream, std::int64_t classes, std::int64_t outputs);

// For images that are made of images. Has what add() does in steps, so that ranks can take them together.
class ImageJudge : public Judge {
 public:
  // Returns each row's signal-to-noise ratio in dB; NaN: its outputs are not finite.
  virtual std::vector<double> judge(const Batch& batch, const Tensor& output) const = 0;
  virtual std::vector<std::size_t> count(const std::vector<double>& ratios) = 0;  // returns the rows to be shown
  virtual std::vector<EvalResult::Restored> pictures(const Batch& batch, const Tensor& output,
                                                     const std::vector<std::size_t>& rows,
                                                     const std::vector<double>& ratios) const = 0;
  virtual void show(std::vector<EvalResult::Restored> restored) = 0;
};
std::unique_ptr<ImageJudge> judge_images(Stream& stream,
                                         const Augment& augment);  // which says what a value is in bytes

// Area under precision over recall as scikit-learn's average_precision_score has it: the sum over falling thresholds t
// of (R(t) - R(before)) P(t), where a threshold takes all images of its score at once, P is the share of the images
// taken that have the label, and R the share taken of those that have it. `has` are of the images in order of `scores`.
double average_precision(const std::vector<float>& scores, const std::vector<bool>& has);

}  // namespace twiddle
