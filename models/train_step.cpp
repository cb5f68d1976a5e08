#include "models/train_step.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/tensor_ops.h"
#include "layers/softmax_loss.h"

namespace twiddle {

namespace {

// The first steps of a shape choose convolution engines and fill the pool.
constexpr int steps_before_recording = 2;

// Where a loader puts its batches in turn; a caller's batch at a third place is not recorded.
constexpr std::size_t places_of_batches = 2;

}  // namespace

TrainStep::TrainStep(Context& ctx, const Sequential& net, Optimizer& optimizer, const StepOptions& options)
    : ctx_(ctx),
      net_(net),
      optimizer_(optimizer),
      options_(options),
      parameters_(net.parameters()),
      inputs_(*ctx.stream),
      sums_(Tensor::filled(*ctx.stream, {2}, 0)) {
  optimizer_.prepare(*ctx.stream, parameters_);
}

Tensor TrainStep::run(const Batch& batch, double rate) {
  inputs_.set(*ctx_.stream, rate, ctx_.random.position());
  if (recorded_on(batch) == nullptr && is_time_to_record(batch)) try_to_record(batch);
  if (const Recorded* recorded = recorded_on(batch)) return play(*recorded);
  return recorded_.empty() ? step(batch) : step_beside_recordings(batch);
}

const TrainStep::Recorded* TrainStep::recorded_on(const Batch& batch) const {
  const auto reads_it = [&batch](const Recorded& recorded) {
    return recorded.batch.images.shape() == batch.images.shape() &&
           recorded.batch.images.read() == batch.images.read() &&
           recorded.batch.labels.read<std::int32_t>() == batch.labels.read<std::int32_t>();
  };
  const auto found = std::find_if(recorded_.begin(), recorded_.end(), reads_it);
  return found == recorded_.end() ? nullptr : &*found;
}

bool TrainStep::is_time_to_record(const Batch& batch) {
  if (!options_.record || !unrecorded_.empty() || recorded_.size() == places_of_batches) return false;
  const Shape& shape = batch.images.shape();
  if (!recorded_.empty()) return shape == recorded_.front().batch.images.shape();
  steps_of_shape_ = shape == latest_shape_ ? steps_of_shape_ + 1 : 1;
  latest_shape_ = shape;
  return steps_of_shape_ > steps_before_recording;
}

Tensor TrainStep::step(const Batch& batch) {
  set_mark(marks_.start);
  const Variable loss = loss_of(batch, &sums_);
  set_mark(marks_.forward);
  ctx_.tape.backward(ctx_, loss);
  set_mark(marks_.backward);
  if (options_.clip_norm > 0) clip_gradients(ctx_, parameters_, options_.clip_norm);
  optimizer_.step(ctx_, parameters_, {inputs_.rate(), sums_});
  for (Parameter* parameter : parameters_) parameter->variable.clear_grad();
  set_mark(marks_.update);
  return loss.value();
}

// The network's output is dropped before the backward pass.
Variable TrainStep::loss_of(const Batch& batch, Tensor* sums) {
  return softmax_loss(ctx_, net_.forward(ctx_, Variable(batch.images)), batch.labels,
                      static_cast<float>(options_.label_smoothing), sums);
}

// A batch of another shape, or at another place, beside recordings, which keep their memory for themselves: where that
// leaves too little, the run goes on without them.
Tensor TrainStep::step_beside_recordings(const Batch& batch) {
  Stream& stream = *ctx_.stream;
  Tensor sums_before(stream, sums_.shape());
  stream.copy(sums_before.write(), sums_.read(), sums_.bytes());
  const std::uint64_t position = ctx_.random.position();
  try {
    return step(batch);
  } catch (const OutOfMemory& error) {
    stream.synchronize();  // a recording may still be at work
    give_up_recording(error.what());
  }
  ctx_.random.restore(ctx_.random.seed(), position);
  stream.copy(sums_.write(), sums_before.read(), sums_.bytes());
  return step(batch);
}

void TrainStep::try_to_record(const Batch& batch) {
  try {
    record(batch);
  } catch (const Error& error) {  // a layer that waits for the device, or too little memory: the run goes on without
    give_up_recording(error.what());
  }
}

void TrainStep::give_up_recording(const std::string& why) {
  unrecorded_ = why;
  recorded_.clear();
  ctx_.tape.clear();
  for (Parameter* parameter : parameters_) parameter->variable.clear_grad();
  ctx_.stream->release_unused();
}

void TrainStep::record(const Batch& batch) {
  Stream& stream = *ctx_.stream;
  // The first steps left blocks of many sizes behind, of trying out convolutions too: what a recording takes for as
  // long as it lives is to be cut from none of them.
  if (recorded_.empty()) stream.release_unused();
  Random& random = ctx_.random;
  const std::uint64_t position = random.position();
  const auto as_before = [&random, position] {
    random.count_from(nullptr);
    random.restore(random.seed(), position);
  };
  Recorded recorded{{batch.images, batch.labels, {}}, nullptr, {}, {}};
  const auto work = [&] {
    random.restore(random.seed(), position);
    recorded.loss = step(recorded.batch);
  };
  random.count_from(inputs_.random_position());
  try {
    recorded.recording = recorded_.empty() ? stream.record(work) : stream.record_again(work);
  } catch (...) {
    as_before();
    throw;
  }
  recorded_draws_ = random.position() - position;
  as_before();
  if (!recorded.recording) return give_up_recording("the device records nothing");
  recorded.marks = marks_;
  recorded_.push_back(std::move(recorded));
}

Tensor TrainStep::play(const Recorded& recorded) {
  recorded.recording->play();
  marks_ = recorded.marks;
  ctx_.random.skip(recorded_draws_);
  for (Parameter* parameter : parameters_)
    parameter->variable.value().write();  // whoever kept a version sees a new one
  return recorded.loss;
}

std::string TrainStep::first_bad_gradient(const Batch& batch) {
  ctx_.tape.backward(ctx_, loss_of(batch, nullptr));
  std::string name;
  for (Parameter* parameter : parameters_) {  // in layer order: the backward pass comes to the last first
    const Tensor& gradient = parameter->variable.grad();
    if (gradient.defined() && !all_finite(*ctx_.stream, gradient)) name = parameter->name;
    parameter->variable.clear_grad();
  }
  return name;
}

void TrainStep::set_mark(std::shared_ptr<Mark>& mark) {
  if (options_.marks) mark = ctx_.stream->mark();
}

}  // namespace twiddle
