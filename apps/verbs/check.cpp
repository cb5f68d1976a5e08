#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/console.h"
#include "apps/command_line/verb_options.h"
#include "apps/run_folder/run_warnings.h"
#include "apps/verbs/counted_work.h"
#include "apps/verbs/network_facts.h"
#include "apps/verbs/open.h"
#include "apps/verbs/pixel_statistics.h"
#include "apps/verbs/verbs.h"
#include "framework/error.h"
#include "framework/interrupted.h"
#include "framework/printable.h"
#include "framework/quotient_up.h"
#include "framework/text.h"
#include "models/training/run_setup.h"
#include "models/training/training_data.h"

namespace twiddle {
namespace {

// Returns the learning rate over the epochs as a row of characters; '#' is the maximum.
std::string plot_schedule(const Config& config) {
  constexpr std::string_view heights = "_.-=+*#";
  constexpr int width = 48;
  const auto epochs = static_cast<double>(config.train.epochs);
  std::vector<double> factors;
  for (int i = 0; i < width; ++i) factors.push_back(config.train.schedule.factor((i + 0.5) / width * epochs, epochs));
  const double highest = std::max(1e-30, *std::max_element(factors.begin(), factors.end()));
  std::string plot;
  for (const double factor : factors) {
    const double share = std::clamp(factor / highest, 0.0, 1.0);
    plot += heights[static_cast<std::size_t>(share * static_cast<double>(heights.size() - 1) + 0.5)];
  }
  return plot;
}

// Reads every image once through the loader, so that it reports the same errors as training.
void read_all(const Dataset& data, const Augment& augment, const Experiment& experiment, bool print, CountedWork work) {
  LoaderOptions options = loader_options(experiment);
  options.batch_size = 64;
  options.skip_bad = true;  // counts all unreadable images instead of stopping at the first
  Loader loader(data, augment, options);
  const std::unique_ptr<Stream> stream = make_stream({});
  loader.start_epoch(*stream, 0);
  for (Batch batch; loader.next(batch);) work.at(loader.position());
  if (loader.skipped() == 0) return;
  const std::string first = loader.skipped_messages().front();
  const std::string count =
      fmt::format("{} of {} images cannot be used", format_count(loader.skipped()), format_count(data.size()));
  if (!experiment.config.data.skip_bad)
    throw Error(ErrorKind::data, first + "\n  " + count + "; 'data.on_error: skip' skips them");
  if (print) fmt::print("  {}; they will be skipped. The first: {}\n", count, first);
}

// Reads one image, which shows whether data, network and loss are compatible.
void read_first(const Dataset& data, const Augment& augment, const Experiment& experiment) {
  LoaderOptions options = loader_options(experiment);
  options.batch_size = 1, options.workers = 0;
  const std::unique_ptr<Stream> stream = make_stream({});
  Loader loader(data, augment, options);
  Batch batch;
  loader.start_epoch(*stream, 0);
  loader.next(batch);
}

// Returns the number of updates of the whole run; 0 without training images.
std::int64_t updates_of(const Experiment& experiment, const Dataset* data) {
  if (data == nullptr) return 0;
  const Config::Train& train = experiment.config.train;
  const bool drops_last = training_options(experiment, data->size()).drop_last;
  const std::int64_t batches =
      drops_last ? data->size() / train.batch_size : quotient_up(data->size(), train.batch_size);
  return train.epochs * quotient_up(batches, train.accumulate);
}

nlohmann::json check_one(const std::string& file, const Flags& flags, bool all_images, const Interrupt& interrupt) {
  const Experiment experiment = open_experiment(file, flags, stopped_by(interrupt, flags));
  require_device(experiment.device);
  const Config& config = experiment.config;
  const Model& model = experiment.model;
  const Optimizer& optimizer = *experiment.optimizer;
  MemoryPlan plan =
      require_memory(model, training_size(experiment, *make_one_rank()), make_stream(experiment.device)->memory());
  std::string data = "no data section";
  nlohmann::json result = {{"file", file}};
  std::vector<std::string> warnings;
  std::string pixels;  // distribution of the pixel values; empty: unknown
  if (config.data.present) {
    OpenData opened = open_data(experiment);
    map_classes(experiment, {}, opened);
    if (opened.train) data = opened.train->describe();
    plan.evaluation = evaluation_in_plan(experiment, opened.val.get());
    warnings = run_warnings(config, *experiment.loss, *opened.val_augment, updates_of(experiment, opened.train.get()));
    warnings.insert(warnings.begin(), opened.warnings.begin(), opened.warnings.end());
    for (const auto& [set, augment] : {std::pair{opened.train.get(), opened.train_augment.get()},
                                       std::pair{opened.val.get(), opened.val_augment.get()}}) {
      if (set == nullptr || set->size() == 0) continue;
      if (all_images) {
        const PixelStatistics statistics(*set);
        read_all(statistics, *augment, experiment, flags.json != "-",
                 {"reading images", set->size(), flags.verbosity >= 0, interrupt});
        if (set != opened.train.get() || statistics.mean().empty()) continue;
        const std::vector<double> mean = statistics.mean(), deviation = statistics.deviation();
        pixels = fmt::format("mean [{:.4f}], std [{:.4f}]", fmt::join(mean, ", "), fmt::join(deviation, ", "));
        result["mean"] = mean, result["std"] = deviation;
      } else if (!config.data.skip_bad) {
        read_first(*set, *augment, experiment);
      }
    }
  }
  if (flags.verbosity >= 0)
    for (const std::string& warning : warnings) write_stderr(join("warning: ", printable(file), ": ", warning, "\n"));
  if (flags.json != "-") {
    fmt::print("ok  {}: {}, {}, {}/image, memory {} at batch {}\n", printable(file), layers_text(*model.net),
               parameters_text(*model.net), format_flops(flops_per_image(*model.net)), format_bytes(plan.total()),
               format_count(config.train.batch_size));
    if (flags.verbosity >= 0) {
      fmt::print("    data      {}\n    solver    {}, {}\n", data, optimizer.describe(), rates_text(config.train));
      fmt::print("    schedule  {} {}\n", plot_schedule(config), format_count(config.train.epochs, "epoch"));
      if (!pixels.empty()) fmt::print("    pixels    {} of the training images, for 'normalize'\n", pixels);
    }
  }
  result.update({{"parameters", parameter_count(*model.net)},
                 {"memory_bytes", plan.total()},
                 {"data", data},
                 {"warnings", warnings}});
  return result;
}

// Checks all files, even after a failure. The exit code is that of the first file that failed.
int check(const Flags& flags, const std::vector<std::string>& files, bool all_images) {
  refuse_to_overwrite("--json", flags.json, files);
  const Interrupt interrupt;
  int code = 0;
  nlohmann::json results = nlohmann::json::array();
  for (const std::string& file : files) {
    try {
      results.push_back(check_one(file, flags, all_images, interrupt));
    } catch (const Error& error) {
      results.push_back({{"file", file}, {"error", error.what()}});
      if (files.size() == 1) write_json(flags, results);
      if (files.size() == 1) throw;
      write_stderr(printable_lines(error.what()) + "\n");
      if (flags.json != "-") fmt::print("bad {}\n", printable(file));
      if (code == 0) code = static_cast<int>(error.kind());
    }
    if (interrupt.stop())
      throw Interrupted(fmt::format("stopped: {} of {} were checked", format_count(std::ssize(results)),
                                    format_count(std::ssize(files), "file")));
  }
  write_json(flags, results);
  return code;
}

}  // namespace

Action add_check(VerbOptions& verb, const Flags& flags) {
  const auto files = std::make_shared<std::vector<std::string>>();
  const auto all_images = std::make_shared<bool>(false);
  verb.add_option("CONFIG", *files, "YAML files", {.required = true});
  verb.add_flag("--images", *all_images, "Read every image, not only the first");
  return [&flags, files, all_images] { return check(flags, *files, *all_images); };
}

}  // namespace twiddle
