#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/command_line/console.h"
#include "apps/command_line/flags.h"
#include "apps/command_line/text_table.h"
#include "apps/command_line/verb_options.h"
#include "apps/ranks/rank_processes.h"
#include "apps/report/metrics.h"
#include "apps/report/report_writer.h"
#include "apps/run_folder/run_lock.h"
#include "apps/run_folder/run_warnings.h"
#include "apps/verbs/layer_profile.h"
#include "apps/verbs/network_facts.h"
#include "apps/verbs/open.h"
#include "apps/verbs/progress.h"
#include "apps/verbs/train_run.h"
#include "apps/verbs/verbs.h"
#include "apps/version.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/sequential.h"
#include "models/builder.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/memory_plan.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Shows the table only if the file was made for another network.
void show_weights(Console& console, const TakenWeights& weights, const std::string& file) {
  console.line(fmt::format("weights  {}: {} of {} loaded", printable(file),
                           format_count(static_cast<std::int64_t>(weights.taken())),
                           format_count(std::ssize(weights.layers), "layer")));
  if (weights.taken() < weights.layers.size() || !weights.left.empty()) console.line(weights_table(weights));
}

void show_header(Console& console, const Config& config, Trainer& trainer, const std::string& run_folder,
                 const std::string& weights_file, const std::string& hosts) {
  console.highlight(
      fmt::format("twiddle {}  train {}   run: {}", version(), printable(config.file), printable(run_folder)));
  for (const auto& [name, parts] : run_facts(config, trainer))
    console.line(fmt::format("{:<9}{}", name, join_names(parts, "   ")));
  if (!hosts.empty()) console.line(fmt::format("{:<9}{}", "ranks", hosts));
  console.detail(memory_line(trainer.memory_plan(), trainer.images_here()));
  if (const TakenWeights* weights = trainer.taken_weights()) show_weights(console, *weights, weights_file);
  for (const std::string& warning :
       run_warnings(config, trainer.loss(), trainer.val_augment(), config.train.epochs * trainer.steps_per_epoch()))
    console.line("warning: " + warning);
  console.line("");
}

// After the first step has selected them, reports once which engines the convolutions use, and why. Prints to the
// terminal if any was benchmarked, else to the log file only.
class EngineReporter : public TrainObserver {
 public:
  EngineReporter(Console& console, const Model& model, std::int64_t batch)
      : console_(console), model_(model), batch_(batch) {}
  bool wants_step(std::int64_t /*step*/) override {
    if (!std::exchange(reported_, true)) report();
    return false;
  }

 private:
  void report() {
    TextTable table({"layer", "pass", "engine", "plan", "chosen because"});
    bool chosen = false, measured = false;
    for (const TunedConvolution* convolution : model_.net->convolutions())
      for (const ConvPass pass : every_pass) {
        const auto* const choice =
            model_.convolutions->find(convolution->problem(batch_), convolution->pass_for(pass), convolution->engine());
        if (choice == nullptr) continue;
        const ConvPlan::Facts& plan = choice->plan->facts();
        table.add({convolution->layer(), std::string(to_string(pass)), plan.engine, plan.name.empty() ? "-" : plan.name,
                   choice->reason});
        chosen = true, measured = measured || choice->reason.starts_with("measured");
      }
    if (measured)
      console_.line(table.text());
    else if (chosen)
      console_.detail(table.text());
  }

  Console& console_;
  const Model& model_;
  std::int64_t batch_;
  bool reported_ = false;
};

// Keeps the run folder from the first step on, and stops the run after an epoch if the folder is missing.
class FolderKeeper : public TrainObserver {
 public:
  FolderKeeper(NewFolder& folder, const RunLock& lock) : folder_(folder), lock_(lock) {}
  bool wants_step(std::int64_t /*step*/) override {
    folder_.keep();
    return false;
  }
  void on_epoch(const EpochReport& /*report*/) override { lock_.check_folder(); }

 private:
  NewFolder& folder_;
  const RunLock& lock_;
};

// Shows the images that `on_error: skip` skipped: the count, and the first few names.
void show_skipped(Console& console, const Trainer& trainer) {
  if (trainer.skipped() == 0) return;
  constexpr std::size_t shown = 3;
  const std::vector<std::string> messages = trainer.skipped_messages();
  std::string text = skipped_line(trainer.skipped()) + ":";
  for (std::size_t i = 0; i < std::min(shown, messages.size()); ++i) text += "\n  " + messages[i];
  if (messages.size() > shown) text += "\n  ...";
  console.line(text);
}

void write_results(const Flags& flags, Trainer& trainer, const std::string& run_folder, const History& history,
                   double seconds, bool interrupted) {
  const RunState& state = trainer.state();
  nlohmann::json epochs = nlohmann::json::array();
  for (const EpochReport& report : history.epochs) epochs.push_back(to_json(report));
  nlohmann::json results = {{"run", run_folder},
                            {"interrupted", interrupted},
                            {"stopped_early", trainer.stopped_early()},
                            {"epochs", state.epoch},
                            {"steps", state.step},
                            {"seconds", seconds},
                            {"skipped_images", trainer.skipped()},
                            {"planned_memory_bytes", trainer.memory_plan().total()},
                            {"peak_pool_bytes", trainer.context().stream->memory().peak},
                            {"peak_memory_bytes", peak_memory_bytes()},
                            {"history", epochs}};
  if (state.best_epoch > 0)
    results.update(
        {{std::string("best_") + trainer.watched().name, state.best_score}, {"best_epoch", state.best_epoch}});
  write_json(flags, results);
}

std::string stopped_early_line(const Trainer& trainer) {
  const RunState& state = trainer.state();
  return fmt::format("stopped early after epoch {}: val-{} was best at epoch {}", state.epoch, trainer.watched().name,
                     state.best_epoch);
}

// Shows the results of a run on standard output and in the log file.
void show_results(Console& console, const Trainer& trainer, const std::string& run_folder) {
  const RunState& state = trainer.state();
  const fs::path best = fs::path(run_folder) / "best.safetensors";
  std::string text;
  if (state.best_epoch > 0)
    text += fmt::format("{:<15}{} at epoch {}\n", std::string("best val-") + trainer.watched().name,
                        trainer.watched().text(state.best_score), state.best_epoch);
  text += fmt::format("run            {}\nweights        {}\nreport         {}", printable(run_folder),
                      printable(fs::exists(best) ? best.string() : trainer.last_checkpoint() + "/model.safetensors"),
                      printable((fs::path(run_folder) / "report.html").string()));
  console.log(text);
  fmt::print("{}\n", text);
}

// Returns commands for this run.
std::string next_line(const Flags& flags, const Trainer& trainer, const std::string& run_folder) {
  const std::string program = shell_word(flags.program), run = shell_word(run_folder);
  const std::string predict = fmt::format("{} predict {} PICTURE", program, run);
  return "next           " +
         (trainer.has_validation() ? fmt::format("{} eval {}   |   {}", program, run, predict) : predict);
}

int end_run(const Flags& flags, Console& console, Trainer& trainer, const std::string& run_folder, double seconds,
            bool interrupted) {
  console.detail(fmt::format("peak memory: {} of tensors and scratch, {} of the whole process",
                             format_bytes(trainer.context().stream->memory().peak), format_bytes(peak_memory_bytes())));
  show_skipped(console, trainer);
  if (interrupted) {
    const std::string saved = printable(fmt::format("saved step {}. Resume: {} train --resume {}", trainer.state().step,
                                                    shell_word(flags.program), shell_word(run_folder)));
    console.line(saved);
    if (flags.verbosity < 0) write_stderr(saved + "\n");  // printed even with --quiet: it answers the user's Ctrl-C
    return Interrupt::exit_code;
  }
  if (trainer.stopped_early()) console.line(stopped_early_line(trainer));
  console.line(fmt::format("done in {}", format_duration(seconds)));
  if (flags.json == "-") return 0;  // standard output is JSON only
  show_results(console, trainer, run_folder);
  console.line(printable(next_line(flags, trainer, run_folder)));
  return 0;
}

// Trains on a rank other than 0, without output.
int follow(Run& run, Trainer& trainer) {
  const Trainer::End end = trainer.run({}, run.interrupt.stop());
  return end == Trainer::End::interrupted ? Interrupt::exit_code : 0;
}

int lead(Run& run, Trainer& trainer, const std::string& hosts) {
  auto& [flags, arguments, ranks, console, interrupt, place, new_folder, lock] = run;
  const std::string& run_folder = place.run_folder;
  const bool resumed = !place.checkpoint.empty();
  const Config& config = trainer.config();
  console.log_to((fs::path(run_folder) / "train.log").string());
  if (!lock->missing().empty())
    console.line("the file system cannot lock '" + printable(run_folder) + "' (" + lock->missing() +
                 "): no other process may train in it");
  if (resumed) {
    for (const std::string& change : config_changes(config.tree_of_file, config.tree))
      console.line("changed since the run began: " + change);
  }
  if (trainer.stopped_early()) {
    console.line(stopped_early_line(trainer) + ": nothing to do. To continue: --set train.early_stop=null");
    write_results(flags, trainer, run_folder, read_history(run_folder), 0, false);
    return 0;
  }
  if (trainer.state().epoch >= config.train.epochs) {
    console.line(printable(
        fmt::format("already trained: {}, requested: {}: nothing to do. To continue: {} train --resume {} --epochs {}",
                    format_count(trainer.state().epoch, "epoch"), format_count(config.train.epochs, "epoch"),
                    shell_word(flags.program), shell_word(run_folder), trainer.state().epoch + 10)));
    write_results(flags, trainer, run_folder, read_history(run_folder), 0, false);
    return 0;
  }
  write_run_facts(run_folder, config, describe(trainer.context().stream->device()));
  show_header(console, config, trainer, run_folder, arguments.weights, hosts);
  for (const std::string& warning : trainer.warnings()) console.line("warning: " + printable(warning));
  static_cast<void>(recall_choices(trainer.model(), trainer.context().stream->device(), trainer.images_here()));
  if (resumed)
    console.line(fmt::format("resumed from {} at step {}", printable(place.checkpoint), trainer.state().step));

  FolderKeeper keeper(new_folder, *lock);
  Metrics metrics(run_folder, trainer.metrics(), trainer.steps_per_epoch(), trainer.state());
  Progress progress(console, config.train.epochs, trainer.has_validation() ? trainer.metrics() : std::vector<Metric>());
  ReportWriter report(config, trainer, metrics, console, run_folder, flags.command);
  EngineReporter engines(console, trainer.model(), trainer.images_here());
  std::vector<TrainObserver*> observers{&keeper, &engines, &progress, &metrics, &report};
  std::optional<LayerProfile> profile;
  if (arguments.profile) observers.push_back(&profile.emplace(trainer));
  const auto start = std::chrono::steady_clock::now();
  Trainer::End end;
  try {
    end = trainer.run(observers, interrupt.stop());
  } catch (const Error& error) {
    console.log(join("error: ", error.what()));
    report.write();
    lock->check_folder();  // a missing folder is the cause of the error
    throw;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool interrupted = end == Trainer::End::interrupted;
  new_folder.keep();  // also saves a run that was stopped before its first step
  report.write();
  write_results(flags, trainer, run_folder, metrics.history(), seconds, interrupted);
  if (profile) console.line(profile->table());
  return end_run(flags, console, trainer, run_folder, seconds, interrupted);
}

int train(Run& run, Experiment experiment) {
  const std::unique_ptr<Trainer> trainer = make_trainer(run, std::move(experiment));
  const std::string hosts = run.ranks->size() > 1 ? hosts_of(*run.ranks) : "";
  if (!run.leads()) return follow(run, *trainer);
  const WaitReporter reporter(run, *trainer);
  return lead(run, *trainer, hosts);
}

int print_config(const Flags& flags, const TrainArguments& arguments) {
  const bool resumed = !arguments.resume.empty();
  const Experiment experiment =
      open_experiment(resumed ? find_resume_point(arguments.resume).run_folder : arguments.config, flags, {});
  fmt::print("{}", to_yaml(experiment.config.tree));
  return 0;
}

int start_run(Run& run) {
  Experiment experiment = open_on_ranks(run.arguments.config, run);
  const std::vector<std::string> folders = gather_or_fail(*run.ranks, [&] {
    if (!run.leads()) return std::string();
    run.new_folder.make(experiment.config.train.out, experiment.config.name);
    run.lock.emplace(run.new_folder.path());
    return run.new_folder.path();
  });
  run.place.run_folder = folders.front();
  return train(run, std::move(experiment));
}

// Locks the folder before reading it: a process that is about to exit may still save a checkpoint.
int resume_run(Run& run) {
  gather_or_fail(*run.ranks, [&] {
    const std::string run_folder = run_folder_to_resume(run.arguments.resume);
    if (run.leads() && !run_folder.empty()) run.lock.emplace(run_folder);
    return "";
  });
  gather_or_fail(*run.ranks, [&] {
    run.place = find_resume_point(run.arguments.resume);
    return "";
  });
  Experiment experiment = open_on_ranks(run.place.run_folder, run);
  return train(run, std::move(experiment));
}

int train_on(const std::shared_ptr<Communicator>& ranks, const Flags& flags, const TrainArguments& arguments) {
  if (arguments.print_config) return ranks->rank() == 0 ? print_config(flags, arguments) : 0;
  Console console(ranks->rank() == 0 ? flags.verbosity : -1);
  const Interrupt interrupt;
  Run run{flags, arguments, ranks, console, interrupt};
  return arguments.resume.empty() ? start_run(run) : resume_run(run);
}

}  // namespace

Action add_train(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<TrainArguments>();
  verb.add_option("CONFIG", arguments->config, "The YAML file of the experiment");
  verb.add_option("--resume", arguments->resume, "Resume a run: its folder, or one of its checkpoints",
                  {.value = "RUN", .excludes = "CONFIG"});
  verb.add_option("--weights", arguments->weights,
                  "Start from these weights, as far as layers fit by name and shape: a file or a run folder",
                  {.value = "FILE", .excludes = "--resume"});
  add_gpus_option(verb, arguments->gpus);
  verb.add_option("--limit-batches", arguments->limit_batches, "Batches of an epoch; 0: all",
                  {.value = "N", .check = whole_number_between(0, 1000000000)});
  verb.add_flag("--overfit-batch", arguments->overfit_batch,
                "Train on the first batch only, repeatedly: its loss must fall");
  verb.add_flag("--no-graph", arguments->no_graph, "On a GPU, do not play steps from a CUDA graph");
  verb.add_flag("--profile", arguments->profile,
                "Name layers to NVTX tools and print their times at the end; implies --no-graph");
  verb.add_flag("--print-config", arguments->print_config, "Print every key as it would be used, and stop");
  return [&flags, arguments] {
    if (arguments->config.empty() && arguments->resume.empty())
      throw Error(ErrorKind::config, "train needs a YAML file, such as models/digits.yaml, or --resume RUN");
    if (!arguments->weights.empty()) arguments->weights = find_weights(arguments->weights);
    refuse_to_overwrite("--json", flags.json, {arguments->weights});
    if (arguments->gpus > 0 && !arguments->print_config && !is_started_rank()) return run_on_gpus(arguments->gpus);
    const std::shared_ptr<Communicator> ranks = join_ranks(flags);
    return run_on_ranks(*ranks, flags, [&] { return train_on(ranks, flags, *arguments); });
  };
}

}  // namespace twiddle
