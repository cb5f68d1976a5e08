#pragma once
#include "layers/layer.h"

namespace twiddle {

// Each channel shifted and scaled to mean 0 and variance 1 over batch and plane, then by two trained numbers; in
// evaluation by running averages. If the two numbers are frozen, training uses the running averages, too, and
// does not change them. Options: momentum (weight of the newest batch), epsilon, sync.
//
// If ranks share a batch, each uses the mean and variance of its rows. With `sync` it uses those of the entire
// batch: the ranks all-gather the moments of their rows, and all-reduce sums over them in the backward pass. A rank
// without rows takes part with a batch of 0 rows.
//
// The ReLU that follows, and the sum of a residual whose path it ends, are done in the pass that writes its result. A
// GPU whose blocks hold a channel of all images in shared memory (layers/cuda/channel_blocks.h) needs one pass each
// way. In tensors of x's size that are read and written in training, forward + backward:
//                                        separate layers           here    in one pass
//   batch_norm                                   3 + 5              3 + 5     2 + 3
//   batch_norm, relu                             5 + 8              3 + 5     2 + 3
//   batch_norm, a residual's sum, relu           6 + 8              4 + 7     3 + 5
class BatchNorm : public Layer {
 public:
  BatchNorm(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override { return normalize(ctx, x, nullptr); }
  Variable forward_with_sum(Context& ctx, const Variable& x, const Variable& other) override {
    return normalize(ctx, x, &other);
  }
  bool runs_without_rows() const override { return sync_; }
  bool take_over_relu() override { return relu_ = true; }
  bool take_over_sum() override { return true; }
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return !frozen(); }
  bool keeps_output() const override { return relu_ && frozen(); }
  bool sync() const { return sync_; }

 private:
  bool frozen() const { return scale_->frozen && bias_->frozen; }
  bool syncs_with_ranks(const Context& ctx) const;
  Variable normalize(Context& ctx, const Variable& x, const Variable* other);
  Variable normalize_by_batch(Context& ctx, const Variable& x, const Variable* other);
  Variable normalize_by_averages(Context& ctx, const Variable& x, const Variable* other);

  float momentum_, epsilon_;
  bool sync_, relu_ = false;
  Parameter *scale_, *bias_, *running_mean_, *running_var_;
};

}  // namespace twiddle
