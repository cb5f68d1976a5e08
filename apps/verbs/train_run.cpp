#include "apps/verbs/train_run.h"
#include "models/checkpoints/checkpoint.h"

#include <functional>
#include <utility>

#include "apps/verbs/open.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/tuner/measuring.h"
#include "models/checkpoints/fingerprint.h"

namespace twiddle {

namespace {

// Opens the experiment; its messages go to the console and the log file. Ctrl-C stops the image search. It stops
// autotuning only with a single rank, because several ranks must stop together.
Experiment open_for_training(const std::string& path, const Run& run) {
  const auto report = [&console = run.console](const std::string& text) { console.line(text); };
  const auto stop = [&interrupt = run.interrupt] { return interrupt.stop().load(); };
  const bool alone = run.ranks->size() == 1;
  ExperimentOptions options;
  options.measuring = std::make_shared<Measuring>(report, alone ? Measuring::Stop(stop) : Measuring::Stop());
  options.search_progress = search_reporter(report, stop);
  Flags flags = run.flags;
  if (!run.leads()) flags.verbosity = -1;
  Experiment experiment = open_experiment(path, flags, options);
  use_threads_of(experiment);
  return experiment;
}

// Returns the last checkpoint on disk. Does not use the trainer, because another thread may be training.
std::string last_checkpoint_in(const std::string& run_folder) try {
  return find_resume_point(run_folder).checkpoint;
} catch (const Error&) {
  return "";  // no checkpoint yet
}

}  // namespace

Experiment open_on_ranks(const std::string& path, const Run& run) {
  std::optional<Experiment> experiment;
  gather_or_fail(*run.ranks, [&] {
    experiment = open_for_training(path, run);
    return "";
  });
  expect_same_config(*run.ranks, experiment->config);
  return *std::move(experiment);
}

std::unique_ptr<Trainer> make_trainer(const Run& run, Experiment experiment) {
  run.ranks->use(experiment.device);
  run.ranks->limit_device_waits(experiment.config.train.collective_timeout);
  run.ranks->when_lost(
      lost_rank_reporter(*run.ranks, [folder = run.place.run_folder] { return last_checkpoint_in(folder); }));
  Trainer::Options options{run.leads() ? run.place.run_folder : "",
                           run.place.checkpoint,
                           run.arguments.weights,
                           run.arguments.limit_batches,
                           run.arguments.overfit_batch,
                           !run.arguments.no_graph && !run.arguments.profile,
                           run.ranks};
  std::unique_ptr<Trainer> trainer;
  gather_or_fail(*run.ranks, [&] {
    trainer = std::make_unique<Trainer>(std::move(experiment), std::move(options));
    return "";
  });
  if (run.ranks->size() == 1) return trainer;
  const char* const same_files = "give all hosts the same files";
  expect_alike(*run.ranks, {{"training set", fingerprint(trainer->train_data()), same_files},
                            {"validation set", trainer->state().validation_set, same_files},
                            {"state of training", join("step ", trainer->state().step), "resume the same checkpoint"},
                            {"set of weights", fingerprint(trainer->context(), *trainer->model().net), same_files}});
  return trainer;
}

WaitReporter::WaitReporter(Run& run, const Trainer& trainer) : ranks_(*run.ranks) {
  ranks_.while_waiting([&run, &trainer, reported = false](double seconds) mutable {
    constexpr double patience = 0.2;
    if (seconds < patience || !run.interrupt.stop() || std::exchange(reported, true)) return;
    const std::string saved = trainer.last_checkpoint();
    run.console.line("stop requested; waiting for another rank, which is busy or has exited; last checkpoint: " +
                     (saved.empty() ? "none yet" : saved));
  });
}

}  // namespace twiddle
