#include "models/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "framework/error.h"
#include "framework/tensor_ops.h"
#include "framework/text.h"
#include "models/make_optimizer.h"
#include "models/open_data.h"
#include "models/train_step.h"

namespace twiddle {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

LoaderOptions loader_options(const Config& config) {
  LoaderOptions options;
  options.batch_size = config.train.batch_size;
  options.workers = config.data.workers;
  options.skip_bad = config.data.skip_bad;
  options.seed = config.seed;
  return options;
}

StepOptions step_options(const Config& config, bool record) {
  StepOptions options;
  options.clip_norm = config.train.clip_norm;
  options.label_smoothing = config.train.label_smoothing;
  options.record = record;
  return options;
}

}  // namespace

struct Trainer::Impl {
  // A step that somebody wants to hear of.
  struct SeenStep {
    StepReport report;
    std::vector<TrainObserver*> listeners;
    std::shared_ptr<Mark> arrived;  // its numbers, on the host
  };

  Config config;
  Options options;
  Context ctx;
  Model model;
  std::unique_ptr<Optimizer> optimizer;
  std::optional<TrainStep> train_step;  // from start() on
  OpenData data;
  std::unique_ptr<Loader> train_loader, val_loader;
  std::unique_ptr<CheckpointStore> store;
  RunState state;
  std::int64_t loading_epoch = -1;  // whose batches the workers make
  Clock::time_point epoch_start;
  std::int64_t first_batch = 0;   // of the epoch, in this process
  std::optional<SeenStep> seen;   // not told yet
  std::shared_ptr<void> numbers;  // of that step, on the host: its loss, and the sum
  bool told_unrecorded = false;
  std::string last_checkpoint;
  std::optional<EvalResult> last_validation;

  Impl(const Config& run_config, Options run_options)
      : config(run_config),
        options(std::move(run_options)),
        ctx(parse_device(config.device), config.seed),
        model(build_model(config, ctx.stream->device())),
        optimizer(make_optimizer(config)),
        data(open_data(config, model.net->output_shape().at(0))),
        numbers(ctx.stream->allocate_host(2 * sizeof(float))) {
    if (data.train == nullptr) throw Error(ErrorKind::config, config.file + ": training needs data.train");
    LoaderOptions loading = loader_options(config);
    if (data.val) val_loader = std::make_unique<Loader>(*data.val, *data.val_augment, loading);
    loading.shuffle = true;
    train_loader = std::make_unique<Loader>(*data.train, *data.train_augment, loading);
    if (!options.run_folder.empty()) {
      store = std::make_unique<CheckpointStore>(options.run_folder, config.train.keep);
      const MemoryPlan plan = plan_memory(model, config.train.batch_size, optimizer->state_tensors());
      store->prove_writable(2 * plan.weights + plan.optimizer);
    }
  }

  void start() {
    train_step.emplace(ctx, *model.net, *optimizer, step_options(config, options.record));
    model.net->initialize(ctx);
    if (!options.weights.empty()) load_weights(options.weights, ctx, *model.net);
    if (!options.resume.empty()) {
      state = restore_checkpoint(options.resume, ctx, *model.net, *optimizer);
      last_checkpoint = options.resume;
    }
    set_sums(state.loss_sum, state.right);
  }

  // Where the memory runs out in `work`, says what would fit.
  template <class Work>
  auto advising(const Work& work) try {
    return work();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        join(error.what(), "\n  ",
             memory_advice(model, config.train.batch_size, optimizer->state_tensors(), ctx.stream->memory()),
             last_checkpoint.empty() ? "" : "\n  last checkpoint: " + last_checkpoint));
  }

  void set_sums(double loss, std::int64_t right) {
    float* const sums = train_step->sums().write();
    ctx.stream->fill(sums, 1, static_cast<float>(loss));
    ctx.stream->fill(sums + 1, 1, static_cast<float>(right));
  }

  // Of the epoch under way, from the device.
  void read_sums() {
    const std::vector<float> sums = train_step->sums().to_vector(*ctx.stream);
    state.loss_sum = sums.at(0);
    state.right = static_cast<std::int64_t>(sums.at(1));
  }

  bool on_cpu() const { return ctx.stream->device().kind == Device::Kind::cpu; }

  std::int64_t steps_per_epoch() const {
    const std::int64_t all = train_loader->batches_per_epoch();
    return options.limit_batches > 0 ? std::min(all, options.limit_batches) : all;
  }

  // Where the epoch stands: batches without a good image count, though they make no step.
  std::int64_t position() const {
    return options.overfit_batch ? state.batch + 1 : std::min(train_loader->position(), steps_per_epoch());
  }

  double rate() const {
    const double epoch =
        static_cast<double>(state.epoch) + static_cast<double>(state.batch) / static_cast<double>(steps_per_epoch());
    return config.train.learning_rate * config.train.schedule.factor(epoch, static_cast<double>(config.train.epochs));
  }

  void save() {
    if (!store) return;
    read_sums();
    last_checkpoint = store->save(ctx, *model.net, *optimizer, state, data.train->classes());
  }

  // On a GPU the loss is looked at only now and then; from the bad step on, weights are as they were before it.
  void stop_where_not_finite(const Batch& batch, double sum, double step_rate) {
    if (!std::isfinite(sum)) report_divergence(batch, sum, step_rate);
  }

  // The batch at hand, and the weights of before the bad step, which on a GPU may have been an earlier one.
  std::string first_bad_value(const Batch& batch) try {
    const std::string layer = model.net->first_bad_layer(ctx, Variable(batch.images));
    if (!layer.empty()) return "first bad value: output of '" + layer + "'";
    if (on_cpu()) return "every layer's output is finite: the labels or the loss itself";
    return join("the images of step ", state.step,
                " leave every layer's output finite: those of an earlier step, the labels or the loss itself");
  } catch (const Error& error) {  // that the loss was lost is the news, not that memory was too short to find out where
    return join("where it began cannot be told: ", error.what());
  }

  [[noreturn]] void report_divergence(const Batch& batch, double loss, double step_rate) {
    const std::string what = std::isnan(loss) ? "nan" : "infinite";
    const std::string lower = step_rate > 0 ? " (try " + format_number(step_rate / 10) + ")" : "";
    const std::string saved = last_checkpoint.empty() ? "" : "\n  last good checkpoint: " + last_checkpoint;
    throw Error(ErrorKind::diverged,
                join("loss became ", what, " at epoch ", state.epoch + 1, on_cpu() ? ", step " : ", at or before step ",
                     state.step, " (learning rate ", format_number(step_rate), "); ", first_bad_value(batch),
                     ".\n  Usual causes: a learning rate too high", lower, ", data not normalised.", saved));
  }

  // The CPU records nothing, and nobody expects it to.
  void tell_unrecorded(const std::vector<TrainObserver*>& observers) {
    if (on_cpu() || train_step->unrecorded().empty() || std::exchange(told_unrecorded, true)) return;
    for (TrainObserver* observer : observers) observer->on_unrecorded(train_step->unrecorded());
  }

  // One batch: the step, the counters, and the line for whoever wants it. A GPU does not stand still for that: a step
  // is told when the one after it is under way. The CPU has done a step when it returns, and is asked after each.
  void step(const Batch& batch, const std::vector<TrainObserver*>& observers) {
    const double step_rate = rate();
    const Tensor loss = train_step->run(batch, step_rate);
    tell_unrecorded(observers);
    ++state.step;
    state.batch = position();
    state.images += batch.images.dim(0);
    tell(batch);

    std::vector<TrainObserver*> listeners;
    std::copy_if(observers.begin(), observers.end(), std::back_inserter(listeners),
                 [&](TrainObserver* observer) { return observer->wants_step(state.step); });
    if (!listeners.empty() || on_cpu()) see(loss, step_rate, std::move(listeners));
    if (on_cpu()) tell(batch);
  }

  // The latest step's numbers go to the host behind it; nobody waits for them.
  void see(const Tensor& loss, double step_rate, std::vector<TrainObserver*> listeners) {
    StepReport report;
    report.epoch = state.epoch + 1;
    report.batch = state.batch;
    report.batches = steps_per_epoch();
    report.step = state.step;
    report.rate = step_rate;
    auto* const to = static_cast<float*>(numbers.get());
    ctx.stream->copy(to, loss.read(), sizeof(float));
    ctx.stream->copy(to + 1, train_step->sums().read(), sizeof(float));
    seen = {report, std::move(listeners), ctx.stream->mark()};
  }

  // Tells the step that was seen, if one was.
  void tell(const Batch& batch) {
    if (!seen) return;
    auto [report, listeners, arrived] = *std::exchange(seen, std::nullopt);
    arrived->wait();
    const auto* const arrived_numbers = static_cast<const float*>(numbers.get());
    report.loss = arrived_numbers[0];
    stop_where_not_finite(batch, arrived_numbers[1], report.rate);
    const double seconds = seconds_since(epoch_start);
    const auto done = static_cast<double>(report.batch - first_batch);
    report.images_per_second = done * static_cast<double>(config.train.batch_size) / seconds;
    report.wait_share = train_loader->wait_seconds() / seconds;
    const double left = static_cast<double>((config.train.epochs - state.epoch) * report.batches - report.batch);
    report.eta_seconds = seconds / done * left;
    report.skipped = skipped();
    for (TrainObserver* listener : listeners) listener->on_step(report);
  }

  // Tells what is to be told before anything is saved, and that the loss was a number all along.
  void catch_up(const Batch& batch) {
    tell(batch);
    read_sums();
    stop_where_not_finite(batch, state.loss_sum, rate());
  }

  std::int64_t skipped() const { return train_loader->skipped() + (val_loader ? val_loader->skipped() : 0); }

  // Unless its batches are being made already, since the end of the epoch before.
  void load_epoch() {
    const std::int64_t epoch = options.overfit_batch ? 0 : state.epoch;
    if (loading_epoch != epoch || first_batch > 0 || options.overfit_batch)
      train_loader->start_epoch(*ctx.stream, epoch, options.overfit_batch ? 0 : first_batch);
    loading_epoch = epoch;
  }

  // While the validation runs, the workers make the first batches of the next epoch.
  void load_ahead() {
    if (options.overfit_batch || state.epoch + 1 >= config.train.epochs) return;
    loading_epoch = state.epoch + 1;
    train_loader->start_epoch(*ctx.stream, loading_epoch);
  }

  // Returns false where it was stopped in the middle.
  bool run_epoch(const std::vector<TrainObserver*>& observers, const std::atomic<bool>& stop) {
    epoch_start = Clock::now();
    first_batch = state.batch;
    const std::int64_t batches = steps_per_epoch();
    std::int64_t images = 0;
    Batch batch;
    load_epoch();
    if (options.overfit_batch) require(train_loader->next(batch), "the training data is empty");
    while (state.batch < batches) {
      if (!options.overfit_batch && !train_loader->next(batch)) {
        state.batch = batches;
        break;
      }
      step(batch, observers);
      images += batch.images.dim(0);
      const std::int64_t every = config.train.checkpoint_every;
      const bool last = state.batch == batches;
      if (stop || (every > 0 && state.step % every == 0)) catch_up(batch);
      if (stop && !last) return false;
      if (every > 0 && state.step % every == 0 && !last) {
        save();
        for (TrainObserver* observer : observers) observer->on_checkpoint(last_checkpoint);
      }
    }
    ctx.stream->synchronize();
    catch_up(batch);
    return finish_epoch(seconds_since(epoch_start), images, observers, stop);
  }

  // Returns false where the validation was stopped: a resumed run begins with it.
  bool finish_epoch(double seconds, std::int64_t images, const std::vector<TrainObserver*>& observers,
                    const std::atomic<bool>& stop) {
    EpochReport report;
    report.epoch = state.epoch + 1;
    report.epochs = config.train.epochs;
    report.step = state.step;
    report.rate = rate();
    const auto trained = static_cast<double>(std::max<std::int64_t>(state.images, 1));
    report.train_loss = state.loss_sum / trained;  // as caught up with
    report.train_top1 = static_cast<double>(state.right) / trained;
    report.seconds = seconds;
    report.images_per_second = static_cast<double>(images) / seconds;
    report.wait_share = train_loader->wait_seconds() / seconds;
    load_ahead();
    if (val_loader) {
      const EvalResult result = evaluate(ctx, *model.net, *val_loader, 0, [&stop] { return stop.load(); });
      if (stop) return false;
      last_validation = result;
      report.has_validation = true;
      report.val_loss = result.loss;
      report.val_top1 = result.top1;
      report.val_top5 = result.top5;
      report.best = result.top1 > state.best_top1;
    }
    report.skipped = skipped();
    ++state.epoch;
    state.batch = state.images = 0;
    set_sums(0, 0);
    if (report.best) {
      state.best_top1 = report.val_top1;
      state.best_epoch = report.epoch;
      if (store) store->save_best(ctx, *model.net, data.train->classes(), state);
    }
    for (TrainObserver* observer : observers) observer->on_epoch(report);
    save();
    if (store) {
      for (TrainObserver* observer : observers) observer->on_checkpoint(last_checkpoint);
    }
    return true;
  }

  End run(const std::vector<TrainObserver*>& observers, const std::atomic<bool>& stop) {
    seen.reset();  // a run that failed may have left one, and its listeners may be gone
    while (state.epoch < config.train.epochs) {
      const bool whole = run_epoch(observers, stop);
      if (!whole) save();
      if (!whole || (stop && state.epoch < config.train.epochs)) return End::interrupted;
    }
    return End::finished;
  }
};

Trainer::Trainer(const Config& config, Options options) : impl_(std::make_unique<Impl>(config, std::move(options))) {
  impl_->advising([&] { impl_->start(); });
}
Trainer::~Trainer() = default;

Trainer::End Trainer::run(const std::vector<TrainObserver*>& observers, const std::atomic<bool>& stop) {
  return impl_->advising([&] { return impl_->run(observers, stop); });
}

bool Trainer::has_validation() const {
  return impl_->val_loader != nullptr;
}
const EvalResult* Trainer::last_validation() const {
  return impl_->last_validation ? &*impl_->last_validation : nullptr;
}
Context& Trainer::context() {
  return impl_->ctx;
}
const Model& Trainer::model() const {
  return impl_->model;
}
const Optimizer& Trainer::optimizer() const {
  return *impl_->optimizer;
}
const RunState& Trainer::state() const {
  return impl_->state;
}
const Dataset& Trainer::train_data() const {
  return *impl_->data.train;
}
const Dataset* Trainer::val_data() const {
  return impl_->data.val.get();
}
const Augment& Trainer::val_augment() const {
  return *impl_->data.val_augment;
}
std::int64_t Trainer::steps_per_epoch() const {
  return impl_->steps_per_epoch();
}
std::string Trainer::last_checkpoint() const {
  return impl_->last_checkpoint;
}
std::int64_t Trainer::skipped() const {
  return impl_->skipped();
}
std::vector<std::string> Trainer::skipped_messages() const {
  std::vector<std::string> messages = impl_->train_loader->skipped_messages();
  if (impl_->val_loader)
    for (std::string& message : impl_->val_loader->skipped_messages()) messages.push_back(std::move(message));
  return messages;
}

}  // namespace twiddle
