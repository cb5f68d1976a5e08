#include "models/run_setup.h"

#include <algorithm>
#include <utility>

#include "framework/error.h"
#include "models/memory_plan.h"

namespace twiddle {

StepOptions step_options(const Config& config, WeightAverage* average, bool capture, Communicator& ranks) {
  StepOptions options;
  options.clip_norm = config.train.clip_norm;
  options.accumulate = config.train.accumulate;
  options.average = average;
  options.capture = capture;
  options.ranks = ranks.size() > 1 ? &ranks : nullptr;
  return options;
}

std::shared_ptr<Communicator> given_or_one(std::shared_ptr<Communicator> ranks) {
  return ranks ? std::move(ranks) : make_one_rank();
}

std::int64_t share_of_batch(const Experiment& experiment, const Communicator& ranks) {
  const std::int64_t batch = experiment.config.train.batch_size, size = ranks.size();
  if (size == 1) return batch;
  if (batch % size != 0)
    throw Error(
        ErrorKind::config,
        join("train.batch_size is the batch of all ranks together, and ", batch, " images cannot be shared evenly by ",
             size, ": take ", std::max(batch / size, std::int64_t(1)) * size, " or ", (batch / size + 1) * size));
  return batch / size;
}

TrainingData open_where_there_is_room(const Experiment& experiment, const Context& ctx, Communicator& ranks) {
  const Config::Train& train = experiment.config.train;
  require_memory(experiment.model, share_of_batch(experiment, ranks),
                 kept_tensors(train, *experiment.optimizer, ranks.size()), ctx.stream->memory());
  return TrainingData(experiment, ranks);
}

}  // namespace twiddle
