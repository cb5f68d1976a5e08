#include "models/train_step.h"

#include "framework/error.h"
#include "layers/softmax_loss.h"

namespace twiddle {

namespace {

// The first steps of a shape choose convolution engines and fill the pool.
constexpr int steps_before_recording = 2;

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
  const Shape& shape = batch.images.shape();
  if (recording_ && shape == recorded_batch_.images.shape()) return play(batch);

  steps_of_shape_ = shape == latest_shape_ ? steps_of_shape_ + 1 : 1;
  latest_shape_ = shape;
  const bool record_now =
      options_.record && !recording_ && unrecorded_.empty() && steps_of_shape_ > steps_before_recording;
  if (record_now) {
    // The first steps left blocks of many sizes behind, of trying out convolutions too: what a recording takes for as
    // long as it lives is to be cut from none of them.
    ctx_.stream->release_unused();
    recorded_batch_ = {Tensor(*ctx_.stream, shape), Tensor(*ctx_.stream, batch.labels.shape(), DType::i32), {}};
    record();
    if (recording_) return play(batch);
  }
  return step(batch);
}

Tensor TrainStep::step(const Batch& batch) {
  set_mark(marks_.start);
  // The network's output is dropped before the backward pass.
  const Variable loss = softmax_loss(ctx_, net_.forward(ctx_, Variable(batch.images)), batch.labels,
                                     static_cast<float>(options_.label_smoothing), &sums_);
  set_mark(marks_.forward);
  ctx_.tape.backward(ctx_, loss);
  set_mark(marks_.backward);
  if (options_.clip_norm > 0) clip_gradients(ctx_, parameters_, options_.clip_norm);
  optimizer_.step(ctx_, parameters_, {inputs_.rate(), sums_});
  for (Parameter* parameter : parameters_) parameter->variable.clear_grad();
  set_mark(marks_.update);
  return loss.value();
}

void TrainStep::record() {
  Random& random = ctx_.random;
  const std::uint64_t position = random.position();
  random.count_from(inputs_.random_position());
  try {
    recording_ = ctx_.stream->record([&] {
      random.restore(random.seed(), position);
      recorded_loss_ = step(recorded_batch_);
    });
    if (!recording_) unrecorded_ = "the device records nothing";
  } catch (const Error& error) {  // a layer that waits for the device, say: the run goes on without
    unrecorded_ = error.what();
    ctx_.tape.clear();
    for (Parameter* parameter : parameters_) parameter->variable.clear_grad();
  }
  recorded_draws_ = random.position() - position;
  random.count_from(nullptr);
  random.restore(random.seed(), position);
  if (!recording_) recorded_batch_ = {}, recorded_loss_ = {};
}

Tensor TrainStep::play(const Batch& batch) {
  ctx_.stream->copy(recorded_batch_.images.write(), batch.images.read(), batch.images.bytes());
  ctx_.stream->copy(recorded_batch_.labels.write<std::int32_t>(), batch.labels.read<std::int32_t>(),
                    batch.labels.bytes());
  recording_->play();
  ctx_.random.skip(recorded_draws_);
  for (Parameter* parameter : parameters_)
    parameter->variable.value().write();  // whoever kept a version sees a new one
  return recorded_loss_;
}

void TrainStep::set_mark(std::shared_ptr<Mark>& mark) {
  if (options_.marks) mark = ctx_.stream->mark();
}

}  // namespace twiddle
