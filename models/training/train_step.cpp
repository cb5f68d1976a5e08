#include "models/training/train_step.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "framework/running_mean.h"
#include "framework/tensor_ops.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"

namespace twiddle {

namespace {

// The first steps of a shape choose convolution engines and fill the pool.
constexpr int steps_before_capture = 2;

// What layers keep of the batches that they see: batch norm's running averages, where it is not frozen.
std::vector<Parameter*> running_state(const Sequential& net) {
  std::vector<Parameter*> running;
  for (const Sequential::Item* item : net.all_items()) {
    std::deque<Parameter>& parameters = item->layer->parameters();
    if (std::none_of(parameters.begin(), parameters.end(), [](const Parameter& each) { return each.trainable; }))
      continue;
    for (Parameter& parameter : parameters)
      if (!parameter.trainable) running.push_back(&parameter);
  }
  return running;
}

// Where a loader puts its batches in turn; a caller's batch at a third place is not captured.
constexpr std::size_t places_of_batches = 2;

}  // namespace

TrainStep::TrainStep(Context& ctx, const Sequential& net, const Loss& loss, Optimizer& optimizer,
                     const StepOptions& options)
    : ctx_(ctx),
      net_(net),
      loss_(loss),
      optimizer_(optimizer),
      options_(options),
      parameters_(net.parameters()),
      running_(running_state(net)),
      sums_(Tensor::filled(*ctx.stream, {2}, 0)),
      own_sums_(Tensor::filled(*ctx.stream, {2}, 0)),
      scale_(options.loss_scale || options.clip_norm > 0
                 ? std::optional<GradientScale>(std::in_place, *ctx.stream, options.clip_norm,
                                                options.loss_scale.value_or(LossScale()))
                 : std::nullopt),
      inputs_(*ctx.stream, sums_, scales_loss() ? scale_->loss_scale() : Tensor()) {
  if (options_.ranks != nullptr)
    share_update();
  else
    optimizer_.prepare(*ctx.stream, parameters_);
  if (options_.accumulate == 1) return;
  mean_loss_ = Tensor::filled(*ctx.stream, {1}, 0);
  if (sharded_)
    mean_gradients_ = sharded_->gradients();
  else
    for (const Parameter* parameter : parameters_)
      if (parameter->trainable) mean_gradients_.push_back(Tensor::filled(*ctx.stream, parameter->shape, 0));
}

Tensor TrainStep::run(const Batch& batch, double rate) {
  set_inputs(batch, rate);
  const Tensor loss = replay_or_step(batch);
  if (!batch.rows.on_every_rank) agree_on_position();
  if (options_.accumulate == 1) {
    end_update();
    return loss;
  }
  return batches_ == options_.accumulate ? update_now() : mean_loss_;
}

// One step, run eagerly or while it is captured. With several ranks, loss and gradients are those of its rows
// times their fraction of the batch, so that sums over ranks are means over the batch.
Tensor TrainStep::step(const Batch& batch) {
  record_event(events_.start);
  if (sharded_) sharded_->begin_step(batch.rows.on_every_rank && options_.accumulate == 1);

  Tensor& sums = sharded_ || skips_steps() ? own_sums_ : sums_;
  const Variable loss = batch.images.defined() ? loss_of(batch, &sums) : loss_without_rows();
  record_event(events_.forward);

  ctx_.tape.backward(ctx_, loss, sharded_ || scales_loss() ? inputs_.loss_factor() : Tensor());
  const Tensor part = sharded_ ? part_of_rank(loss.value()) : loss.value();
  record_event(events_.backward);

  if (options_.accumulate == 1)
    update(part);
  else
    add_to_means(part);
  record_event(events_.update);
  return part;
}

// The network's output is freed before the backward pass.
Variable TrainStep::loss_of(const Batch& batch, Tensor* sums) {
  return loss_(ctx_, net_.forward(ctx_, Variable(batch.images)), batch.targets, sums);
}

void TrainStep::update(Tensor loss) {
  if (sharded_) reduce_over_ranks(loss);
  if (sharded_ && !skips_steps()) add_own_sums();
  std::vector<Parameter*>& updated = sharded_ ? sharded_->shard() : parameters_;
  StepNumbers numbers = inputs_.for_update(), of_average = inputs_.for_average();
  if (scale_) {
    const Tensor norm = gradient_norm(*ctx_.stream, updated, options_.ranks);
    LossSums losses{own_sums_, sums_, inputs_.images()};
    numbers = scale_->begin_update(*ctx_.stream, norm, numbers, skips_steps() ? &losses : nullptr);
    if (options_.average && options_.average->begun()) of_average.guard = numbers.guard;  // it begins even if skipped
  }
  optimizer_.step(ctx_, updated, numbers);
  if (sharded_) {
    options_.ranks->all_reduce(*ctx_.stream, Tensor(numbers.found_bad).write(), 1);  // NaN if it is on one rank
    sharded_->end_update();
  }
  if (options_.average) options_.average->update(*ctx_.stream, of_average);
  for (Parameter* parameter : parameters_) parameter->variable.clear_grad();
}

// Means over the images of all batches so far: each moves by the new batch's share of these images. What is not finite
// is for the update to find.
void TrainStep::add_to_means(const Tensor& loss) {
  std::vector<Tensor> values, means = mean_gradients_;
  for (Parameter* parameter : parameters_) {
    if (parameter->trainable) values.push_back(parameter->variable.grad());
    parameter->variable.clear_grad();
  }
  values.push_back(loss), means.push_back(mean_loss_);
  move_means(*ctx_.stream, values, means, {inputs_.gradient_share(), {}});
}

Tensor TrainStep::update_now() {
  auto mean = mean_gradients_.begin();
  for (Parameter* parameter : parameters_)
    if (parameter->trainable) parameter->variable.grad() = *mean++;
  update(mean_loss_);
  end_update();
  return mean_loss_;
}

void TrainStep::end_update() {
  batches_ = images_ = images_here_ = 0;
  if (options_.average) options_.average->count();
}

void TrainStep::set_inputs(const Batch& batch, double rate) {
  ++batches_, images_ += batch.rows_of_all(), images_here_ += batch.rows_here();
  const auto share = [](std::int64_t part, std::int64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  ctx_.random.share_rows(batch.rows.first, batch.rows.all);
  inputs_.set(*ctx_.stream, {.rate = rate,
                             .random_position = ctx_.random.position(),
                             .gradient_share = share(batch.rows_of_all(), images_),
                             .rank_share = share(batch.rows_here(), batch.rows_of_all()),
                             .update_share = share(images_here_, images_),
                             .average_share = options_.average ? options_.average->next_share() : 1,
                             .images = static_cast<double>(images_)});
}

Tensor& TrainStep::sums() {
  inputs_.close_update(*ctx_.stream);
  return sums_;
}

void TrainStep::share_update() {
  ctx_.ranks = options_.ranks;
  sharded_.emplace(*options_.ranks, ctx_, parameters_, optimizer_,
                   options_.accumulate == 1 && options_.average == nullptr);
  means_.emplace(*options_.ranks, *ctx_.stream);
  if (options_.accumulate > 1) return;  // then the mean over batches is in the memory of a batch's gradient
  auto gradient = sharded_->gradients().begin();
  for (const Parameter* parameter : parameters_)
    if (parameter->trainable) parameter->variable.set_grad_buffer(*gradient++);
}

// On a rank without a row of the batch: a batch of 0 rows, for the collectives of layers on all ranks.
Variable TrainStep::loss_without_rows() {
  const Shape shape = with_batch(0, net_.input_shape());
  const Variable output = net_.forward(ctx_, Variable(Tensor(*ctx_.stream, shape)));
  loss_.without_rows(ctx_);
  return ctx_.tape.record(
      "loss", Tensor::filled(*ctx_.stream, {1}, 0), {output},
      [output, nothing = output.value()](Context& back, const Tensor&) { output.add_grad(back, nothing); });
}

// Returns the loss times this rank's fraction of the batch. Missing gradients become zeros.
Tensor TrainStep::part_of_rank(const Tensor& loss) {
  Stream& stream = *ctx_.stream;
  for (const Parameter* parameter : parameters_)
    if (parameter->trainable && !parameter->variable.grad().defined())
      parameter->variable.add_grad(ctx_, Tensor::filled(stream, parameter->shape, 0));
  std::vector<Tensor> part{Tensor::filled(stream, {1}, 0)};
  move_means(stream, {loss}, part, {inputs_.rank_share(), {}});  // from 0 by the share: their product
  return part[0];
}

// Each rank gets the gradients of its shard of the weights. Running averages become the means over all rows, the loss
// that of the entire batch, and own_sums_ the sums over all ranks.
void TrainStep::reduce_over_ranks(Tensor& loss) {
  Stream& stream = *ctx_.stream;
  sharded_->reduce_gradients();
  std::vector<Tensor> running;
  for (const Parameter* parameter : running_) running.push_back(parameter->variable.value());
  means_->take(stream, inputs_.update_share(), running, {loss, own_sums_});
}

void TrainStep::add_own_sums() {
  Stream& stream = *ctx_.stream;
  add(stream, sums_, own_sums_, sums_);
  stream.fill(own_sums_.write(), own_sums_.size(), 0);
}

// A rank without a row has drawn no random numbers: it continues at the position of the others.
void TrainStep::agree_on_position() {
  std::uint64_t position = ctx_.random.position();
  for (const std::string& text : options_.ranks->gather(pack(position)))
    position = std::max(position, unpack<std::uint64_t>(text));
  ctx_.random.restore(ctx_.random.seed(), position);
}

void TrainStep::all_gather_weights() {
  if (sharded_) sharded_->all_gather_weights();
}

Tensor TrainStep::replay_or_step(const Batch& batch) {
  if (captured_rows_ > 0 && batch.rows_of_all() != captured_rows_) {  // the last batch of an epoch
    drop_graphs();
    return step(batch);
  }
  if (!batch.images.defined()) return step(batch);
  // A graph holds the order of the collectives of ranks that all have rows.
  if (batch.rows.on_every_rank) {
    if (captured_on(batch) == nullptr && is_time_to_capture(batch)) try_to_capture(batch);
    if (const Captured* captured = captured_on(batch)) return replay(*captured);
  }
  return step(batch);
}

const TrainStep::Captured* TrainStep::captured_on(const Batch& batch) const {
  const auto reads_it = [&batch](const Captured& captured) {
    return captured.batch.images.shape() == batch.images.shape() &&
           captured.batch.images.read() == batch.images.read() &&
           captured.batch.targets.version().storage == batch.targets.version().storage;
  };
  const auto found = std::find_if(captured_.begin(), captured_.end(), reads_it);
  return found == captured_.end() ? nullptr : &*found;
}

bool TrainStep::is_time_to_capture(const Batch& batch) {
  if (!options_.capture || !why_not_captured_.empty() || captured_.size() == places_of_batches) return false;
  if (captured_rows_ > 0) return true;
  const Shape& shape = batch.images.shape();
  steps_of_shape_ = shape == latest_shape_ ? steps_of_shape_ + 1 : 1;
  latest_shape_ = shape;
  return steps_of_shape_ > steps_before_capture;
}

void TrainStep::try_to_capture(const Batch& batch) {
  try {
    capture(batch);
  } catch (const RanksFailed&) {
    throw;
  } catch (const Error& error) {  // a layer that waits for the device, or too little memory: the run continues without
    give_up_capture(error.what());
  }
}

void TrainStep::drop_graphs() {
  captured_.clear();
}

void TrainStep::give_up_capture(const std::string& why) {
  why_not_captured_ = why;
  drop_graphs();
  ctx_.tape.clear();
  for (Parameter* parameter : parameters_) parameter->variable.clear_grad();
  ctx_.stream->release_unused();
}

void TrainStep::capture(const Batch& batch) {
  Stream& stream = *ctx_.stream;
  const auto forget_spectra = [this] {
    for (const TunedConvolution* convolution : net_.convolutions()) convolution->tuner().forget();
  };
  // Earlier steps left spectra and blocks of many sizes. A graph keeps its memory for long, so it must not split those.
  if (captured_.empty()) {
    forget_spectra();
    stream.release_unused();
  }
  Random& random = ctx_.random;
  const std::uint64_t position = random.position();
  const auto as_before = [&random, position] {
    random.count_from(nullptr);
    random.restore(random.seed(), position);
  };
  Captured captured{{batch.images, batch.targets, {}}, nullptr, {}, {}};
  const auto work = [&] {
    random.restore(random.seed(), position);
    captured.loss = step(captured.batch);
    forget_spectra();  // no later step can use them, and the graph would keep their memory
  };
  random.count_from(inputs_.random_position());
  try {
    captured.graph = captured_.empty() ? stream.capture(work) : stream.capture_again(work);
  } catch (...) {
    as_before();
    throw;
  }
  captured_draws_ = random.position() - position;
  as_before();
  if (!captured.graph) return give_up_capture("the device captures no graphs");
  captured.events = events_;
  captured_rows_ = batch.rows_of_all();
  captured_.push_back(std::move(captured));
}

Tensor TrainStep::replay(const Captured& captured) {
  captured.graph->replay();
  if (sharded_) sharded_->replayed();
  events_ = captured.events;
  ctx_.random.skip(captured_draws_);
  for (Parameter* parameter : parameters_)
    parameter->variable.value().write();  // holders of an old version see a new one
  return captured.loss;
}

std::vector<std::pair<std::string, Tensor>> TrainStep::optimizer_state() {
  return sharded_ ? sharded_->whole_state() : optimizer_.state();
}

std::string TrainStep::first_bad_gradient(const Batch& batch) {
  if (!batch.images.defined()) return "";
  ctx_.tape.backward(ctx_, loss_of(batch, nullptr), scales_loss() ? inputs_.loss_factor() : Tensor());
  std::string name;
  for (Parameter* parameter : parameters_) {  // in layer order: the backward pass comes to the last first
    const Tensor& gradient = parameter->variable.grad();
    if (gradient.defined() && !all_finite(*ctx_.stream, gradient)) name = parameter->name;
    parameter->variable.clear_grad();
  }
  return name;
}

void TrainStep::record_event(std::shared_ptr<Event>& event) {
  if (options_.events) event = ctx_.stream->record_event();
}

}  // namespace twiddle
