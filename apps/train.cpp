#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/layer_profile.h"
#include "apps/metrics.h"
#include "apps/network_facts.h"
#include "apps/open.h"
#include "apps/progress.h"
#include "apps/report.h"
#include "apps/run_folder.h"
#include "apps/verb_options.h"
#include "apps/verbs.h"
#include "apps/version.h"
#include "framework/error.h"
#include "framework/text.h"
#include "models/atomic_file.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

struct TrainArguments {
  std::string config, resume, weights;
  std::int64_t limit_batches = 0;
  bool overfit_batch = false, print_config = false, no_graph = false, profile = false;
};

// A folder that this run has just made goes again where the run could not start: no empty folders pile up.
class NewFolder {
 public:
  explicit NewFolder(std::string path) : path_(std::move(path)) {}
  ~NewFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

void show_header(Console& console, const Config& config, Trainer& trainer, const std::string& run_folder) {
  console.highlight(fmt::format("twiddle {}  train {}   run: {}", version(), config.file, run_folder));
  for (const auto& [title, text] : run_facts(config, trainer)) console.line(fmt::format("{:<9}{}", title, text));
  const Model& model = trainer.model();
  const MemoryPlan plan = plan_memory(model, config.train.batch_size, trainer.optimizer().state_tensors());
  console.detail(memory_line(plan, config.train.batch_size));
  console.line("");
}

// Keeps report.html up to date: once an epoch, and where the run ends.
class ReportWriter : public TrainObserver {
 public:
  ReportWriter(const Config& config, Trainer& trainer, std::string run_folder)
      : config_(config), trainer_(trainer), run_folder_(std::move(run_folder)) {}
  bool wants_step(std::int64_t /*step*/) override { return false; }
  void on_epoch(const EpochReport& /*report*/) override { write(); }

  void write() {
    const Report report = make_report(config_, trainer_, read_history(run_folder_), trainer_.last_validation());
    write_file_atomically((fs::path(run_folder_) / "report.html").string(), report_html(report));
  }

 private:
  const Config& config_;
  Trainer& trainer_;
  std::string run_folder_;
};

// Tells once, when the first step has chosen them, which engines the convolutions got, and why: on the terminal where
// something was measured for it, else in the log file.
class EngineTeller : public TrainObserver {
 public:
  EngineTeller(Console& console, const Model& model, std::int64_t batch)
      : console_(console), model_(model), batch_(batch) {}
  bool wants_step(std::int64_t /*step*/) override {
    if (!std::exchange(told_, true)) tell();
    return false;
  }

 private:
  void tell() {
    const std::vector<EngineChoice> choices = engine_choices(model_, batch_);
    if (choices.empty()) return;
    const bool measured = std::any_of(choices.begin(), choices.end(),
                                      [](const EngineChoice& choice) { return choice.reason.starts_with("measured"); });
    if (measured)
      console_.line(engine_table(choices));
    else
      console_.detail(engine_table(choices));
  }

  Console& console_;
  const Model& model_;
  std::int64_t batch_;
  bool told_ = false;
};

// What `on_error: skip` left out: how many, and the first few by name.
void show_skipped(Console& console, const Trainer& trainer) {
  if (trainer.skipped() == 0) return;
  constexpr std::size_t shown = 3;
  const std::vector<std::string> messages = trainer.skipped_messages();
  std::string text = skipped_line(trainer.skipped()) + ":";
  for (std::size_t i = 0; i < std::min(shown, messages.size()); ++i) text += "\n  " + messages[i];
  if (messages.size() > shown) text += "\n  ...";
  console.line(text);
}

void write_results(const Flags& flags, Trainer& trainer, const std::string& run_folder, double seconds,
                   bool interrupted) {
  const RunState& state = trainer.state();
  nlohmann::json results = {{"run", run_folder},
                            {"interrupted", interrupted},
                            {"epochs", state.epoch},
                            {"steps", state.step},
                            {"seconds", seconds},
                            {"skipped_images", trainer.skipped()},
                            {"peak_pool_bytes", trainer.context().stream->memory().peak},
                            {"peak_memory_bytes", peak_memory_bytes()}};
  if (state.best_epoch > 0) results.update({{"best_top1", state.best_top1}, {"best_epoch", state.best_epoch}});
  write_json(flags, results);
}

int train(const Flags& flags, const TrainArguments& arguments) {
  ResumePoint resume;
  if (!arguments.resume.empty()) resume = find_resume_point(arguments.resume);
  const bool resumed = !resume.checkpoint.empty();
  Config config = open_config(resumed ? resume.run_folder : arguments.config, flags);
  if (arguments.print_config) {
    fmt::print("{}", to_yaml(config.tree));
    return 0;
  }

  Console console(flags.verbosity);
  const Interrupt interrupt;
  config.convolution.measuring = std::make_shared<Measuring>([&](const std::string& text) { console.line(text); },
                                                             [&] { return interrupt.stop().load(); });
  const std::string run_folder = resumed ? resume.run_folder : make_run_folder(config.train.out, config.name);
  NewFolder new_folder(resumed ? "" : run_folder);
  Trainer trainer(config, {run_folder, resume.checkpoint, arguments.weights, arguments.limit_batches,
                           arguments.overfit_batch, !arguments.no_graph && !arguments.profile});
  console.log_to((fs::path(run_folder) / "train.log").string());
  if (resumed) {
    for (const std::string& change : config_changes(load_run_config(run_folder, {}).tree, config.tree))
      console.line("changed since the run began: " + change);
  }
  if (trainer.state().epoch >= config.train.epochs) {
    console.line(
        fmt::format("{} epochs are trained already, {} are asked for: nothing to do. To train on: twiddle "
                    "train --resume {} --epochs {}",
                    trainer.state().epoch, config.train.epochs, run_folder, trainer.state().epoch + 10));
    write_results(flags, trainer, run_folder, 0, false);
    return 0;
  }
  write_run_facts(run_folder, config, describe(trainer.context().stream->device()));
  new_folder.keep();
  show_header(console, config, trainer, run_folder);
  static_cast<void>(recall_choices(trainer.model(), trainer.context().stream->device(), config.train.batch_size));
  if (resumed) console.line(fmt::format("resumed from {} at step {}", resume.checkpoint, trainer.state().step));

  Metrics metrics(run_folder, trainer.steps_per_epoch(), trainer.state());
  Progress progress(console, config.train.epochs, trainer.has_validation());
  ReportWriter report(config, trainer, run_folder);
  EngineTeller engines(console, trainer.model(), config.train.batch_size);
  std::vector<TrainObserver*> observers{&engines, &progress, &metrics, &report};
  std::optional<LayerProfile> profile;
  if (arguments.profile) observers.push_back(&profile.emplace(trainer));
  const auto start = std::chrono::steady_clock::now();
  Trainer::End end;
  try {
    end = trainer.run(observers, interrupt.stop());
  } catch (const Error& error) {
    console.log(join("error: ", error.what()));
    throw;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool interrupted = end == Trainer::End::interrupted;
  if (interrupted) report.write();
  write_results(flags, trainer, run_folder, seconds, interrupted);
  const RunState& state = trainer.state();
  console.detail(fmt::format("peak memory: {} of tensors and scratch, {} of the whole process",
                             format_bytes(trainer.context().stream->memory().peak), format_bytes(peak_memory_bytes())));
  show_skipped(console, trainer);
  if (profile) console.line(profile->table());
  if (interrupted) {
    console.line(fmt::format("saved step {}. Resume: twiddle train --resume {}", state.step, run_folder));
    return Interrupt::exit_code;
  }
  console.line(fmt::format("done in {}", format_duration(seconds)));
  if (flags.json == "-") return 0;  // the JSON is all that goes to stdout
  if (state.best_epoch > 0) fmt::print("best val-top1  {:.2f}% at epoch {}\n", 100 * state.best_top1, state.best_epoch);
  fmt::print("run            {}\n", run_folder);
  const fs::path best = fs::path(run_folder) / "best.safetensors";
  fmt::print("weights        {}\n",
             fs::exists(best) ? best.string() : trainer.last_checkpoint() + "/model.safetensors");
  fmt::print("report         {}\n", (fs::path(run_folder) / "report.html").string());
  console.line(fmt::format("next           twiddle eval {0}   |   twiddle predict {0} PICTURE", run_folder));
  return 0;
}

}  // namespace

Action add_train(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<TrainArguments>();
  const VerbOption config = verb.add_option("CONFIG", arguments->config, "The YAML file of the experiment");
  VerbOption resume =
      verb.add_option("--resume", arguments->resume, "Go on with a run: its folder, or one of its checkpoints");
  resume.type_name("RUN").excludes(config);
  verb.add_option("--weights", arguments->weights, "Start from these weights: a file or a run folder")
      .type_name("FILE")
      .excludes(resume);
  verb.add_option("--limit-batches", arguments->limit_batches, "Batches of an epoch; 0: all")
      .type_name("N")
      .check(whole_number_between(0, 1000000000));
  verb.add_flag("--overfit-batch", arguments->overfit_batch,
                "Train on the first batch alone, again and again: its loss must fall");
  verb.add_flag("--no-graph", arguments->no_graph, "On a GPU, do not play steps from a CUDA graph");
  verb.add_flag("--profile", arguments->profile,
                "Name layers to NVTX tools and print their times at the end; implies --no-graph");
  verb.add_flag("--print-config", arguments->print_config, "Print every key as it would be used, and stop");
  return [&flags, arguments] {
    if (arguments->config.empty() && arguments->resume.empty())
      throw Error(ErrorKind::config, "train needs a YAML file, such as models/digits.yaml, or --resume RUN");
    if (!arguments->weights.empty()) arguments->weights = find_weights(arguments->weights);
    return train(flags, *arguments);
  };
}

}  // namespace twiddle
