#include "models/training/resume.h"

#include "framework/error.h"
#include "models/checkpoints/checkpoint.h"
#include "models/config/config.h"

namespace twiddle {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::config, "--resume: " + why);
}

void keep_limits(RunState& state, Trainer::Options& options) {
  if (options.limit_batches > 0 && options.limit_batches != state.limit_batches)
    refuse(
        join("the run was begun ",
             state.limit_batches > 0 ? join("with --limit-batches ", state.limit_batches) : "without --limit-batches",
             " and continues that way; omit the flag, or start a new run"));
  if (options.overfit_batch && !state.overfit_batch)
    refuse("the run was begun without --overfit-batch and continues that way; omit the flag, or start a new run");
  options.limit_batches = state.limit_batches;
  options.overfit_batch = state.overfit_batch != 0;
}

}  // namespace

std::string resume(RunState& state, const Config& config, Trainer::Options& options) {
  keep_limits(state, options);
  // Checkpoints of older programs count batches alone.
  if (state.position < 0) state.position = state.batch * config.train.batch_size;
  // The order of an epoch's images is a function of the seed: with another one, some would come twice, some never.
  if (config.seed != state.random_seed && state.position > 0)
    refuse(join("cannot change the seed from ", state.random_seed, " to ", config.seed,
                " within an epoch: it fixes the image order; resume a checkpoint of an epoch's end, or keep the seed"));
  const std::string_view precision = to_string(config.convolution.precision);
  if (state.precision.empty() || state.precision == precision) return "";
  return join("resumed in ", precision, "; the checkpoint was saved in ", state.precision);
}

}  // namespace twiddle
