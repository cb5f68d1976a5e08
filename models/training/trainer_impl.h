#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "data/formats/relabeled.h"
#include "framework/error.h"
#include "framework/interrupted.h"
#include "framework/memory_for.h"
#include "framework/printable.h"
#include "models/checkpoints/fingerprint.h"
#include "models/checkpoints/weights.h"
#include "models/memory_plan.h"
#include "models/training/divergence.h"
#include "models/training/early_stopping.h"
#include "models/training/epoch_span.h"
#include "models/training/resume.h"
#include "models/training/run_saver.h"
#include "models/training/run_setup.h"
#include "models/training/shared_plans.h"
#include "models/training/step_reporter.h"
#include "models/training/trainer.h"

namespace twiddle {

// The run itself: the loop over epochs and steps, and its state.
struct Trainer::Impl {
  Experiment experiment;
  const Config& config = experiment.config;
  const Sequential& net = *experiment.model.net;
  const Loss& loss_function = *experiment.loss;
  Optimizer& optimizer = *experiment.optimizer;
  Options options;
  const std::shared_ptr<Communicator> ranks = given_or_one(options.ranks);
  const std::int64_t images_here = share_of_batch(experiment, *ranks);
  Context ctx;
  MemoryPlan plan;
  TrainingData data;
  const std::vector<Metric> metrics = metrics_of(loss_function.target());
  const EarlyStopping early_stopping{metrics, config.train};
  RunSaver saver;
  StepReporter reporter;
  std::unique_ptr<WeightAverage> average;  // null: none is kept
  std::optional<TrainStep> train_step;     // from start() on
  RunState state;
  double step_rate = 0;    // of the step under way
  bool first_step = true;  // of this process
  bool not_captured_reported = false;
  std::optional<TakenWeights> taken_weights;
  std::vector<std::string> warnings;
  std::shared_ptr<const EvalResult> last_validation;  // shared: among many classes its counts are large

  Impl(Experiment given, Options run_options)
      : experiment(std::move(given)),
        options(std::move(run_options)),
        ctx(experiment.device, config.seed),
        data(open_if_memory_suffices(experiment, ctx, *ranks, plan)),
        saver(options.run_folder, config.train, saved_bytes(net, optimizer, config.train.ema_decay > 0)),
        reporter(*ctx.stream, config.train) {
    plan.evaluation = evaluation_in_plan(experiment, data.data().val.get());
  }

  void start() {
    if (config.train.ema_decay > 0)
      average = std::make_unique<WeightAverage>(*ctx.stream, net, config.train.ema_decay, config.train.ema_warmup);
    net.initialize(ctx);
    std::string other_precision;
    NetworkClasses classes;
    if (!options.weights.empty()) {
      taken_weights = take_weights(options.weights, ctx, net);
      if (taken_weights->has_last_layer())
        classes = {taken_weights->classes, printable(options.weights),
                   "to train the last layer for other classes, give it another name: it is initialized then"};
    }
    if (!options.resume.empty())
      classes = {checkpoint_classes(options.resume), printable(options.resume),
                 "a run keeps its classes; start a new one, if need be with --weights"};
    map_classes(classes);
    if (!options.resume.empty()) {
      state = restore_checkpoint(options.resume, ctx, net, optimizer, average.get());
      other_precision = resume(state, config, options);
      ctx.random.restore(config.seed, ctx.random.position());
      saver.resume(options.resume);
    }
    train_step.emplace(ctx, net, loss_function, optimizer,
                       step_options(config, state, average.get(), options.capture, *ranks));
    if (average) average->count_from(state.step);
    warnings = data.data().warnings;
    const std::string of_best = early_stopping.resume(state, data.val() ? fingerprint(data.val()->dataset()) : "");
    for (const std::string& warning : {of_best, other_precision})
      if (!warning.empty()) warnings.push_back(warning);
    state.precision = to_string(config.convolution.precision);
    state.limit_batches = options.limit_batches;
    state.overfit_batch = options.overfit_batch ? 1 : 0;
    state.batch = span().batches(state.position);
    set_sums(state.loss_sum, state.right);
  }

  // The data gets the classes that the outputs of the weights mean, if they are named.
  void map_classes(const NetworkClasses& classes) {
    const std::vector<std::string> of_data = data.data().train->classes();
    data.map_classes(experiment, classes);
    if (data.data().train->classes() != of_data)
      experiment.loss->order_classes(class_places(of_data, data.data().train->classes()));
  }

  // Where the memory runs out in `work`, says what would fit.
  template <class Work>
  auto advising(const Work& work) try {
    return work();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(join(error.what(), "\n  ",
                           memory_advice(experiment.model, training_size(experiment, *ranks), ctx.stream->memory()),
                           saver.last_checkpoint().empty() ? "" : "\n  last checkpoint: " + saver.last_checkpoint()));
  }

  void set_sums(double loss, std::int64_t right) {
    float* const sums = train_step->sums().write();
    ctx.stream->fill(sums, 1, static_cast<float>(loss));
    ctx.stream->fill(sums + 1, 1, static_cast<float>(right));
  }

  // Copies the sums of the current epoch from the device, and waits for them.
  void read_sums() {
    const std::vector<float> sums = train_step->sums().to_vector(*ctx.stream);
    state.loss_sum = sums.at(0);
    state.right = static_cast<std::int64_t>(sums.at(1));
    const bool scales = train_step->scales_loss();
    const LossScale now = scales ? train_step->gradient_scale()->read(*ctx.stream) : LossScale();
    state.loss_scale = scales ? now.value : 0;
    state.good_steps = now.good_steps, state.skipped_steps = now.skipped_steps, state.left_out = now.left_out;
  }

  bool on_cpu() const { return ctx.stream->device().kind == Device::Kind::cpu; }

  std::int64_t batches_per_epoch() const {
    const std::int64_t all = data.train().batches_per_epoch();
    return options.limit_batches > 0 ? std::min(all, options.limit_batches) : all;
  }

  // Updates. The last one may be of fewer batches than the others.
  std::int64_t steps_per_epoch() const {
    return (batches_per_epoch() + config.train.accumulate - 1) / config.train.accumulate;
  }

  EpochSpan span() const {
    return {data.data().train->size(), config.train.batch_size, batches_per_epoch(), options.overfit_batch};
  }

  // The same in updates, each of them as one large batch.
  EpochSpan span_of_updates() const {
    return {data.data().train->size(), config.train.batch_size * config.train.accumulate, steps_per_epoch(),
            options.overfit_batch};
  }

  // A batch without a good image counts, though it makes no step.
  void move_to(std::int64_t position) {
    state.position = std::min(position, span().end());
    state.batch = span().batches(state.position);
  }

  double rate() const { return rate_at(state.position); }

  double rate_at(std::int64_t position) const {
    const double epoch = static_cast<double>(state.epoch) + span_of_updates().share(position);
    return config.train.learning_rate * config.train.schedule.factor(epoch, static_cast<double>(config.train.epochs));
  }

  // The position at which the epoch's latest update began, of a run that another process left after it.
  std::int64_t start_of_last_update() const {
    const std::int64_t images = span_of_updates().batch_size;
    return std::max<std::int64_t>(state.position - 1, 0) / images * images;
  }

  const std::vector<std::string>& classes() const { return data.data().train->classes(); }

  void save(const std::vector<TrainObserver*>& observers) {
    if (!saver.has_to_save()) return;
    read_sums();
    memory_for("saving a checkpoint", [&] {
      saver.save(ctx, net, {optimizer, train_step->optimizer_state()}, state, classes(), average.get());
    });
    if (!saver.writes()) return;
    for (TrainObserver* observer : observers) observer->on_checkpoint(saver.last_checkpoint());
  }

  // On a GPU the loss is checked only periodically; from the bad step on, weights stay unchanged.
  void stop_where_not_finite(const Batch& batch, double loss, double sum, double its_rate) {
    if (std::isfinite(sum)) return;
    train_step->all_gather_weights();
    report_divergence(ctx, net, *train_step, batch, *data.data().train,
                      {on_cpu() ? loss : sum, its_rate, state.epoch + 1, state.step, on_cpu(), saver.last_checkpoint()},
                      *ranks);
  }

  // Reported on GPUs only: a CPU never captures steps.
  void report_not_captured(const std::vector<TrainObserver*>& observers) {
    if (on_cpu() || train_step->why_not_captured().empty() || std::exchange(not_captured_reported, true)) return;
    for (TrainObserver* observer : observers) observer->on_not_captured(train_step->why_not_captured());
  }

  // One batch. The step that it belongs to may wait for others.
  void run_batch(const Batch& batch, const std::vector<TrainObserver*>& observers) {
    if (!train_step->waits_for_batches()) step_rate = rate();
    const Tensor loss = train_step->run(batch, step_rate);
    report_not_captured(observers);
    saver.changed();
    move_to(options.overfit_batch ? state.position + config.train.batch_size : data.train().position());
    state.images += batch.rows_of_all();
    if (std::exchange(first_step, false)) reporter.measure_pace_from(state.batch);
    if (!train_step->waits_for_batches())
      end_step(batch, loss, observers);
    else if (span().over(state.position))
      end_step(batch, train_step->update_now(), observers);
  }

  // Updates the counter and reports the step if an observer requests it. A CPU step is complete when the call returns,
  // so the CPU's loss is checked after each step.
  void end_step(const Batch& batch, const Tensor& loss, const std::vector<TrainObserver*>& observers) {
    ++state.step;
    report_sent(batch);

    std::vector<TrainObserver*> listeners;
    std::copy_if(observers.begin(), observers.end(), std::back_inserter(listeners),
                 [&](TrainObserver* observer) { return observer->wants_step(state.step); });
    // All ranks check every step, so that a non-finite loss stops them after the same step.
    if (!listeners.empty() || on_cpu() || ranks->size() > 1)
      reporter.send(report_of_step(), std::move(listeners), loss, train_step->sums(), scale_state());
    if (on_cpu()) report_sent(batch);
  }

  // Undefined if the loss is not scaled.
  Tensor scale_state() { return train_step->scales_loss() ? train_step->gradient_scale()->state() : Tensor(); }

  StepReport report_of_step() const {
    StepReport report;
    report.epoch = state.epoch + 1;
    report.batch = state.batch;
    report.batches = batches_per_epoch();
    report.step_of_epoch = (state.batch + config.train.accumulate - 1) / config.train.accumulate;
    report.steps_of_epoch = steps_per_epoch();
    report.step = state.step;
    report.rate = step_rate;
    return report;
  }

  // Reports the step that was sent, if any.
  void report_sent(const Batch& batch) {
    std::optional<StepReporter::Sent> sent = reporter.take();
    if (!sent) return;
    StepReport& report = sent->report;
    stop_where_not_finite(batch, report.loss, sent->loss_sum, report.rate);
    report.wait = data.wait_within(reporter.epoch_seconds());
    report.skipped = data.skipped();
    for (TrainObserver* listener : sent->listeners) listener->on_step(report);
  }

  // Reports pending steps before anything is saved, and checks that all losses so far were finite. Ranks come here in
  // the same step and have the same weights from here on.
  void catch_up(const Batch& batch) {
    train_step->all_gather_weights();
    report_sent(batch);
    read_sums();
    stop_where_not_finite(batch, state.loss_sum, state.loss_sum, rate());
  }

  void load_epoch() {
    if (options.overfit_batch)
      data.start_epoch(*ctx.stream, 0, 0);
    else
      data.start_epoch(*ctx.stream, state.epoch, state.position);
  }

  // While the validation runs, the workers make the first batches of the next epoch.
  void load_ahead() {
    if (options.overfit_batch || state.epoch + 1 >= config.train.epochs) return;
    data.start_epoch(*ctx.stream, state.epoch + 1, 0);
  }

  // The next batch that makes a step; false: the epoch has no more. An image that cannot be read ends the run, but not
  // what it has learnt: the steps up to there are saved.
  bool next_batch(Batch& batch, const std::vector<TrainObserver*>& observers) try {
    return (options.overfit_batch && batch.rows_of_all() > 0) || data.next(batch);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || !saved_before_ending(batch, observers)) throw;
    throw Error(ErrorKind::data, join(error.what(), "\n  step ", state.step, " is saved: ", saver.last_checkpoint()));
  }

  // False where there is nothing to save, or where saving fails as well: then only the first error is reported.
  bool saved_before_ending(const Batch& batch, const std::vector<TrainObserver*>& observers) try {
    if (state.step == 0) return false;
    catch_up(batch);  // on all ranks, of which one has something to save
    if (!saver.has_to_save()) return false;
    save(observers);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::diverged) throw;
    return false;
  }

  // Returns false where it was stopped in the middle.
  bool run_epoch(const std::vector<TrainObserver*>& observers, const std::atomic<bool>& stop) {
    reporter.begin_epoch(state.batch);
    const std::int64_t images_before = state.images;
    Batch batch;
    load_epoch();
    while (!span().over(state.position)) {
      if (!next_batch(batch, observers)) {
        move_to(span().end());
        if (train_step->waits_for_batches()) end_step(batch, train_step->update_now(), observers);
        break;
      }
      run_batch(batch, observers);
      if (train_step->waits_for_batches()) continue;  // what it has summed up is in no checkpoint
      const std::int64_t every = config.train.checkpoint_every;
      const bool last = span().over(state.position), due = every > 0 && state.step % every == 0;
      // Read once: a signal between two looks must not save what was not caught up with.
      const bool stops = any(*ranks, stop);
      if (stops || due) catch_up(batch);
      if (stops && !last) return false;
      if (due && !last) save(observers);
    }
    ctx.stream->synchronize();
    catch_up(batch);
    return finish_epoch(reporter.epoch_seconds(), state.images - images_before, observers, stop);
  }

  // Saves, validates and reports. Returns false where the validation was stopped: a resumed run begins with it, as it
  // does after one that failed.
  bool finish_epoch(double seconds, std::int64_t images, const std::vector<TrainObserver*>& observers,
                    const std::atomic<bool>& stop) {
    EpochReport report;
    report.epoch = state.epoch + 1;
    report.epochs = config.train.epochs;
    report.step = state.step;
    report.rate = first_step ? rate_at(start_of_last_update()) : step_rate;
    const auto trained = static_cast<double>(std::max<std::int64_t>(state.images, 1));
    // As caught up with. Steps that the loss scale skipped may leave no loss at all.
    const auto with_loss = trained - static_cast<double>(state.left_out);
    report.train_loss = with_loss > 0 ? state.loss_sum / with_loss : std::nan("");
    if (loss_function.target() == TargetKind::label) report.train_top1 = static_cast<double>(state.right) / trained;
    report.seconds = seconds;
    report.loss_scale = state.loss_scale, report.skipped_steps = state.skipped_steps;
    report.images_per_second = static_cast<double>(images) / seconds;
    report.wait = data.wait_within(seconds);
    if (data.val()) save(observers);
    load_ahead();
    if (data.val() && !validate(report, stop)) return false;
    data.ask_ranks_for_skipped();
    report.skipped = data.skipped();
    saver.changed();
    ++state.epoch;
    state.batch = state.position = state.images = 0;
    set_sums(0, 0);
    if (train_step->scales_loss()) train_step->gradient_scale()->begin_epoch(*ctx.stream);
    if (report.has_validation) report.best = early_stopping.take(report.epoch, report.val, state);
    if (report.best) {
      const AveragedWeights averaged(average.get());
      saver.save_best(ctx, net, state, classes());
    }
    for (TrainObserver* observer : observers) observer->on_epoch(report);
    // With a validation the next save is the one before the next: a run killed before that resumes here and loses no
    // step.
    if (!data.val()) save(observers);
    return true;
  }

  // False: stopped.
  bool validate(EpochReport& report, const std::atomic<bool>& stop) {
    const AveragedWeights averaged(average.get());
    train_step->drop_graphs();
    EvalResult result = memory_for("the validation", [&] {
      return evaluate(
          ctx, net, loss_function, *data.val(), 0, [&stop] { return stop.load(); },
          ranks->size() > 1 ? ranks.get() : nullptr);
    });
    if (any(*ranks, stop)) return false;
    expect_finite(result, [&] {
      const std::string& saved = saver.last_checkpoint();
      return join("validation after epoch ", report.epoch, saved.empty() ? "" : "; its weights are " + saved);
    });
    last_validation = std::make_shared<const EvalResult>(std::move(result));
    report.has_validation = true;
    report.val = last_validation->scores;
    return true;
  }

  // What ranks settle once: who saves, and which plans all use. False: stopped while these were measured.
  bool prepare(const std::atomic<bool>& stop) try {
    saver.agree(*ranks);
    share_plans(ctx, experiment.model, images_here, *ranks, [&stop] { return stop.load(); });
    return true;
  } catch (const Interrupted&) {
    return false;
  }

  bool is_over() const { return state.epoch >= config.train.epochs || early_stopping.stops(state); }

  End run(const std::vector<TrainObserver*>& observers, const std::atomic<bool>& stop) {
    reporter.forget();  // a run that failed may have left one, and its listeners may be destroyed
    End end = is_over() || prepare(stop) ? End::finished : End::interrupted;
    while (end == End::finished && !is_over()) {
      bool whole = false;
      try {
        whole = run_epoch(observers, stop);
      } catch (const Interrupted&) {  // before the step that needed the engines; a resumed run measures again
      }
      if (!whole || (!is_over() && any(*ranks, stop))) end = End::interrupted;
    }
    save(observers);
    return end;
  }
};

}  // namespace twiddle
