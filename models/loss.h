#pragma once
#include <memory>

#include "data/target.h"
#include "framework/autograd.h"

namespace twiddle {

class Diagnostics;
class Params;
struct Context;
struct ConfigNode;

// What training makes small, as `train.loss` names it: how far a network's outputs are from a batch's targets.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual TargetKind target() const = 0;

  // Adds an error to the diagnostics, at the last layer, if outputs of this shape cannot be compared with the targets.
  virtual void expect_output(const Shape& output, const Shape& input, const ConfigNode& last,
                             Diagnostics& diagnostics) const = 0;

  // The batch's mean, one element. Targets are as the loader makes them for target(): labels i32 [batch] or shares of
  // the classes f32 [batch, outputs], or images of the output's shape. `sums` as in layers/softmax_loss.h. In
  // evaluation mode, nothing is smoothed or weighted, so that validation losses are comparable between training
  // settings.
  virtual Variable operator()(Context& ctx, const Variable& output, const Tensor& targets,
                              Tensor* sums = nullptr) const = 0;

  // On a rank that has no row of a batch: what it would do together with the ranks that have some.
  virtual void without_rows(Context& /*ctx*/) const {}

  // In training, a batch's mean is divided by the weights of its targets, so that means of batches of one size do not
  // add up to the mean of all.
  virtual bool has_weighted_mean() const { return false; }

  // Numbers that are listed by class are in the data's order; the network has its classes in another: class i of the
  // data is its class places[i]. Before the first batch.
  virtual void order_classes(const std::vector<std::int64_t>& /*places*/) {}

  // The standard deviation of the noise that is added to what the network sees, and not to the target.
  virtual double noise() const { return 0; }
};

// The loss that the section `train` of a config names. Null where there is none of that name, which is then in the
// diagnostics.
std::unique_ptr<Loss> read_loss(Params& train);

}  // namespace twiddle
