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

// While it lives, the context calls that in front of each layer.
class BeforeUse {
 public:
  BeforeUse(Context& ctx, std::function<void(const Parameter&)> call) : ctx_(ctx) { ctx.before_use = std::move(call); }
  ~BeforeUse() { ctx_.before_use = {}; }
  BeforeUse(const BeforeUse&) = delete;
  BeforeUse& operator=(const BeforeUse&) = delete;

 private:
  Context& ctx_;
};

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
      inputs_(*ctx.stream, sums_) {
  if (options_.ranks != nullptr)
    share_weights();
  else
    optimizer_.prepare(*ctx.stream, parameters_);
  if (options_.accumulate == 1) return;
  mean_loss_ = Tensor::filled(*ctx.stream, {1}, 0);
  if (shared_)
    mean_gradients_ = shared_->gradients();
  else
    for (const Parameter* parameter : parameters_)
      if (parameter->trainable) mean_gradients_.push_back(Tensor::filled(*ctx.stream, parameter->shape, 0));
}

void TrainStep::share_weights() {
  ctx_.ranks = options_.ranks;
  shared_.emplace(*options_.ranks, *ctx_.stream, parameters_, optimizer_);
  means_.emplace(*options_.ranks, *ctx_.stream);
  own_sums_ = Tensor::filled(*ctx_.stream, {2}, 0);
  if (options_.accumulate > 1) return;  // then the mean over batches lies where a batch's gradient would
  auto place = shared_->gradients().begin();
  for (const Parameter* parameter : parameters_)
    if (parameter->trainable) parameter->variable.set_grad_place(*place++);
}

Tensor TrainStep::run(const Batch& batch, double rate) {
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
                             .average_share = options_.average ? options_.average->next_share() : 1});
  const Tensor loss = run_once(batch);
  if (!batch.rows.on_every_rank) agree_on_position();
  if (options_.accumulate == 1) {
    end_update();
    return loss;
  }
  return batches_ == options_.accumulate ? update_now() : mean_loss_;
}

Tensor TrainStep::run_once(const Batch& batch) {
  if (captured_rows_ > 0 && batch.rows_of_all() != captured_rows_) {  // the last batch of an epoch
    drop_graphs();
    return step(batch);
  }
  if (!batch.images.defined()) return step(batch);
  // A graph holds the order in which ranks sum that all have rows.
  if (batch.rows.on_every_rank) {
    if (captured_on(batch) == nullptr && is_time_to_capture(batch)) try_to_capture(batch);
    if (const Captured* captured = captured_on(batch)) return replay(*captured);
  }
  return step(batch);
}

void TrainStep::end_update() {
  batches_ = images_ = images_here_ = 0;
  if (options_.average) options_.average->count();
}

Tensor TrainStep::update_now() {
  auto mean = mean_gradients_.begin();
  for (Parameter* parameter : parameters_)
    if (parameter->trainable) parameter->variable.grad() = *mean++;
  update(mean_loss_);
  end_update();
  return mean_loss_;
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

Tensor TrainStep::step(const Batch& batch) {
  record_event(events_.start);
  const Tensor loss = learn_from(batch);
  record_event(events_.backward);
  if (options_.accumulate == 1)
    update(loss);
  else
    add_to_means(loss);
  record_event(events_.update);
  return loss;
}

// Forward and backward pass. The loss.
Tensor TrainStep::learn_from(const Batch& batch) {
  if (shared_) return learn_from_rows(batch);
  const Variable loss = loss_of(batch, &sums_);
  record_event(events_.forward);
  ctx_.tape.backward(ctx_, loss);
  return loss.value();
}

// The same on one of several ranks: loss and gradients are those of its rows times their share of the batch, so that
// ranks only have to add them up. Where all ranks have rows, they do so beside the backward pass: all come through the
// same layers in the same order.
Tensor TrainStep::learn_from_rows(const Batch& batch) {
  std::vector<Tensor> part{Tensor::filled(*ctx_.stream, {1}, 0)};
  shared_->forget_begun();
  if (hands_out_late()) shared_->begin_hand_out(*ctx_.stream);
  const Variable loss = forward_on_handed_out(batch);
  record_event(events_.forward);
  const bool beside = batch.rows.on_every_rank && options_.accumulate == 1;
  ctx_.tape.backward(ctx_, loss, inputs_.rank_share(),
                     beside ? [this] { shared_->begin_sums(*ctx_.stream); } : std::function<void()>());
  move_means(*ctx_.stream, {loss.value()}, part, {inputs_.rank_share(), {}});  // from 0 by the share: their product
  fill_missing_gradients();
  return part[0];
}

Variable TrainStep::forward_on_handed_out(const Batch& batch) {
  const BeforeUse waits(ctx_, [this](const Parameter& parameter) { shared_->wait_for(*ctx_.stream, parameter); });
  const Variable loss = batch.images.defined() ? loss_of(batch, &own_sums_) : loss_without_rows();
  shared_->wait_for_all(*ctx_.stream);
  return loss;
}

// On a rank without a row of the batch: a batch of 0 rows, for the collectives of layers on all ranks.
Variable TrainStep::loss_without_rows() {
  Shape shape = net_.input_shape();
  shape.insert(shape.begin(), 0);
  const Variable output = net_.forward(ctx_, Variable(Tensor(*ctx_.stream, shape)));
  loss_.without_rows(ctx_);
  return ctx_.tape.record(
      "loss", Tensor::filled(*ctx_.stream, {1}, 0), {output},
      [output, nothing = output.value()](Context& back, const Tensor&) { output.add_grad(back, nothing); });
}

// An average of the weights needs them at once, and with several batches an update not every batch begins with new
// ones.
bool TrainStep::hands_out_late() const {
  return shared_ && options_.accumulate == 1 && options_.average == nullptr;
}

void TrainStep::hand_out_weights() {
  if (!std::exchange(has_to_hand_out_, false)) return;
  shared_->hand_out(*ctx_.stream);
}

// With zeros: all of them, where this rank has no row of the batch.
void TrainStep::fill_missing_gradients() {
  for (const Parameter* parameter : parameters_)
    if (parameter->trainable && !parameter->variable.grad().defined())
      parameter->variable.add_grad(ctx_, Tensor::filled(*ctx_.stream, parameter->shape, 0));
}

// Each rank gets the gradients of its share of the weights. Running averages become the means over all rows, the loss
// that of the whole batch, and the sums grow by those of all ranks.
void TrainStep::join_ranks(Tensor& loss) {
  Stream& stream = *ctx_.stream;
  shared_->sum_gradients(stream);
  std::vector<Tensor> running;
  for (const Parameter* parameter : running_) running.push_back(parameter->variable.value());
  means_->take(stream, inputs_.update_share(), running, {loss, own_sums_});
  add(stream, sums_, own_sums_, sums_);
  stream.fill(own_sums_.write(), own_sums_.size(), 0);
}

Tensor& TrainStep::sums() {
  inputs_.close_update(*ctx_.stream);
  return sums_;
}

// A rank without a row has drawn no random numbers: it goes on where the others are.
void TrainStep::agree_on_position() {
  std::uint64_t position = ctx_.random.position();
  for (const std::string& text : options_.ranks->gather(pack(position)))
    position = std::max(position, unpack<std::uint64_t>(text));
  ctx_.random.restore(ctx_.random.seed(), position);
}

void TrainStep::update(Tensor loss) {
  if (shared_) join_ranks(loss);
  std::vector<Parameter*>& updated = shared_ ? shared_->share() : parameters_;
  if (options_.clip_norm > 0) clip_gradients(ctx_, updated, options_.clip_norm, options_.ranks);
  const StepNumbers numbers = inputs_.for_update();
  optimizer_.step(ctx_, updated, numbers);
  if (shared_) {
    options_.ranks->all_reduce(*ctx_.stream, Tensor(numbers.found_bad).write(), 1);  // NaN if it is on one rank
    has_to_hand_out_ = true;
    if (!hands_out_late()) hand_out_weights();
  }
  if (options_.average) options_.average->update(*ctx_.stream, inputs_.for_average());
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

// The network's output is dropped before the backward pass.
Variable TrainStep::loss_of(const Batch& batch, Tensor* sums) {
  return loss_(ctx_, net_.forward(ctx_, Variable(batch.images)), batch.targets, sums);
}

void TrainStep::try_to_capture(const Batch& batch) {
  try {
    capture(batch);
  } catch (const RanksFailed&) {
    throw;
  } catch (const Error& error) {  // a layer that waits for the device, or too little memory: the run goes on without
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
  has_to_hand_out_ = hands_out_late();
  events_ = captured.events;
  ctx_.random.skip(captured_draws_);
  for (Parameter* parameter : parameters_)
    parameter->variable.value().write();  // whoever kept a version sees a new one
  return captured.loss;
}

std::vector<std::pair<std::string, Tensor>> TrainStep::optimizer_state() {
  return shared_ ? shared_->whole_state(*ctx_.stream, optimizer_) : optimizer_.state();
}

std::string TrainStep::first_bad_gradient(const Batch& batch) {
  if (!batch.images.defined()) return "";
  ctx_.tape.backward(ctx_, loss_of(batch, nullptr));
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
