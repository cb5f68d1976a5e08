#include "models/training/run_setup.h"

#include <algorithm>
#include <utility>

#include "framework/cpu/free_memory.h"
#include "framework/cuda/cuda_stream.h"
#include "framework/error.h"
#include "models/checkpoints/checkpoint.h"

namespace twiddle {

namespace {

// Pages of this program and its libraries that a training loads after the plan is made (measured).
constexpr std::size_t code_used_later = std::size_t(9) << 20;

LossScale loss_scale_of(const Config& config, const RunState& state) {
  if (config.train.loss_scale > 0) return {.value = config.train.loss_scale, .skipped_steps = state.skipped_steps};
  if (state.loss_scale > 0) return {state.loss_scale, true, state.good_steps, state.skipped_steps, state.left_out};
  return {.value = LossScale::first, .adapts = true};
}

}  // namespace

StepOptions step_options(const Config& config, const RunState& state, WeightAverage* average, bool capture,
                         Communicator& ranks) {
  StepOptions options;
  if (config.convolution.precision == Precision::fp16) options.loss_scale = loss_scale_of(config, state);
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
        join("train.batch_size is the batch of all ranks together, and ", batch, " images cannot be split evenly over ",
             size, " ranks: use ", std::max(batch / size, std::int64_t(1)) * size, " or ", (batch / size + 1) * size));
  return batch / size;
}

TrainingSize training_size(const Experiment& experiment, const Communicator& ranks) {
  const Config::Train& train = experiment.config.train;
  TrainingSize size;
  size.batch = share_of_batch(experiment, ranks);
  size.optimizer_tensors = kept_tensors(train, *experiment.optimizer, ranks.size());
  if (experiment.device.kind != Device::Kind::cpu) {
    size.batches = 2;  // the next one is copied during the step
    size.program = cublas_workspace_bytes;
    return size;
  }
  // The loaders' batches are in the same memory. They make those of the next epoch during a validation.
  const int loaders = experiment.data.val.present() ? 2 : 1;
  size.batches = 1 + loaders * most_host_batches(loader_options(experiment));
  size.program = resident_memory() + code_used_later;
  return size;
}

TrainingData open_if_memory_suffices(const Experiment& experiment, const Context& ctx, Communicator& ranks,
                                     MemoryPlan& plan) {
  plan = require_memory(experiment.model, training_size(experiment, ranks), ctx.stream->memory());
  const std::size_t before = resident_memory();
  TrainingData data(experiment, ranks);
  const std::size_t after = resident_memory();
  if (experiment.device.kind == Device::Kind::cpu && after > before) plan.data += after - before;
  return data;
}

}  // namespace twiddle
