#include "apps/verbs/open.h"
#include "apps/command_line/console.h"
#include "apps/interrupt.h"
#include "layers/conv/tuner/measuring.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/training/open_data.h"

#include <fmt/core.h>
#include <omp.h>

#include <chrono>
#include <filesystem>
#include <latch>
#include <thread>

#include "apps/command_line/verb_options.h"
#include "apps/ranks/ranks.h"
#include "apps/run_folder/run_folder.h"
#include "apps/version.h"
#include "framework/atomic_file.h"
#include "framework/cpu/bind_threads.h"
#include "framework/error.h"
#include "framework/gpu_check.h"
#include "framework/interrupted.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "models/config/json_text.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Returns the run folder that contains a weights file or checkpoint folder, or that is the path; empty if there is
// none.
std::string run_folder_of(const std::string& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  for (int up = 0; up < 4 && !folder.empty(); ++up, folder = folder.parent_path())
    if (fs::is_directory(folder) && is_run_folder(folder.string())) return folder.string();
  return {};
}

// Collects every file that a config may come from or refer to. Relative paths start at its folder or the working
// directory.
void collect_files(const ConfigNode& node, const fs::path& folder, std::vector<std::string>& files) {
  if (node.place.source) files.push_back(node.place.source->name);
  if (node.kind == ConfigNode::Kind::scalar) files.insert(files.end(), {node.text, (folder / node.text).string()});
  for (const ConfigNode& item : node.items) collect_files(item, folder, files);
  for (const ConfigNode::Entry& entry : node.entries) collect_files(entry.value, folder, files);
}

void refuse_to_overwrite_inputs(const Flags& flags, const Config& config) {
  if (flags.json.empty()) return;
  std::vector<std::string> files;
  collect_files(config.tree, fs::path(config.file).parent_path(), files);
  refuse_to_overwrite("--json", flags.json, files);
}

// Warns if device auto does not use the GPU. The run continues.
void warn_where_passed_over(const std::string& device, const Flags& flags) {
  if (flags.verbosity < 0 || device != "auto" || parse_device(device).kind != Device::Kind::cpu) return;
  const std::string why = why_passed_over(look_at_gpu(0));
  if (!why.empty()) write_stderr(fmt::format("warning: device auto selects the CPU: {}\n", why));
}

void set_default_reporters(ExperimentOptions& options) {
  if (!options.warn)
    options.warn = [](const std::string& text) { write_stderr(fmt::format("warning: {}\n", printable(text))); };
  if (!options.measuring)
    options.measuring =
        std::make_shared<Measuring>([](const std::string& text) { write_stderr(printable(text) + "\n"); });
  if (!options.search_progress)
    options.search_progress = search_reporter([](const std::string& text) { write_stderr(text + "\n"); });
}

void prove_threads(int count) {
  std::vector<std::thread> threads;
  std::latch all_there(1);
  const auto end_them = [&] {
    all_there.count_down();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    while (static_cast<int>(threads.size()) + 1 < count) threads.emplace_back([&] { all_there.wait(); });
  } catch (const std::exception& error) {
    end_them();
    throw Error(ErrorKind::device, fmt::format("cannot start {} threads for computing, only {}: {}; use fewer: "
                                               "threads, or --threads",
                                               count, threads.size() + 1, error.what()));
  }
  end_them();
}

// Sets the number of OpenMP threads; 0: OpenMP's default. Throws an Error of kind device if this process cannot start
// them. Otherwise the OpenMP library would abort it in the first computation.
void use_threads(int count) {
  if (count > 0) omp_set_num_threads(count);
  prove_threads(omp_get_max_threads());
}

void put_json(const std::string& file, const std::string& text) {
  if (file == "-")
    fmt::print("{}\n", text);
  else
    write_results_file(file, text + "\n");
}

}  // namespace

Experiment open_experiment(const std::string& path, const Flags& flags, ExperimentOptions options) {
  const bool run_folder = fs::is_directory(path) && is_run_folder(path);
  if (fs::is_directory(path) && !run_folder)
    throw Error(ErrorKind::config,
                "'" + printable(path) + "' is a folder without a config.yaml; a YAML file or a run folder is needed");
  options.build = version() + (commit().empty() ? "" : " " + commit()) + " " + compiler();
  options.gpu = gpu_of_rank();
  if (flags.verbosity >= 0) set_default_reporters(options);
  Experiment experiment =
      run_folder ? load_run(path, flags.overrides, options) : load_experiment(path, flags.overrides, options);
  const Config& config = experiment.config;
  // the memory plan depends on it, even if nothing is computed
  if (config.threads > 0) omp_set_num_threads(config.threads);
  if (flags.verbosity >= 0 && config.threads > omp_get_num_procs())
    write_stderr(fmt::format("warning: {} share {}, and will wait for each other\n",
                             format_count(config.threads, "thread"), format_count(omp_get_num_procs(), "core")));
  refuse_to_overwrite_inputs(flags, config);
  warn_where_passed_over(config.device, flags);
  return experiment;
}

void use_threads_of(const Experiment& experiment) {
  use_threads(experiment.config.threads);
  if (experiment.device.kind == Device::Kind::cpu) bind_threads();
}

void use_threads_of(const Flags& flags) {
  const std::string threads = flags.value("threads", "0");
  const std::string wrong = whole_number_between(0, 1024)(threads);
  if (!wrong.empty()) throw Error(ErrorKind::config, "--threads: " + wrong);
  use_threads(std::stoi(threads));
}

SearchProgress search_reporter(std::function<void(const std::string&)> report, std::function<bool()> stop) {
  return [report = std::move(report), stop = std::move(stop),
          next = std::chrono::steady_clock::now() + std::chrono::seconds(2)](const std::string& folder,
                                                                             std::int64_t images) mutable {
    if (stop && stop()) throw Interrupted();
    if (std::chrono::steady_clock::now() < next) return;
    next = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    report("searching " + printable(folder) + ": " + format_count(images, "image") + " so far");
  };
}

ExperimentOptions stopped_by(const Interrupt& interrupt, const Flags& flags) {
  const auto stop = [&interrupt] { return interrupt.stop().load(); };
  const auto report_unless_quiet = [quiet = flags.verbosity < 0](const std::string& text) {
    if (!quiet) write_stderr(printable(text) + "\n");
  };
  ExperimentOptions options;
  options.measuring = std::make_shared<Measuring>(report_unless_quiet, stop);
  options.search_progress = search_reporter(report_unless_quiet, stop);
  return options;
}

Device open_device(const Flags& flags) {
  const std::string device = flags.value("device", "auto");
  const std::optional<int> gpu = gpu_of_rank();
  if (gpu && (device == "auto" || device == "cuda")) return {Device::Kind::cuda, *gpu};
  warn_where_passed_over(device, flags);
  return parse_device(device);
}

void require_device(const Device& device) {
  static_cast<void>(describe(device));
}

Trained open_trained(const std::string& path, const std::string& model_file, const Flags& flags,
                     const ExperimentOptions& options) {
  if (!fs::exists(path))
    throw Error(ErrorKind::data, "there is no '" + printable(path) + "': a run folder or a weights file is needed");
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".yaml" || extension == ".yml")
    throw Error(ErrorKind::config,
                "'" + printable(path) +
                    "' is a config; the first argument is a run folder or a weights file, the config comes second");
  const std::string run_folder = run_folder_of(path);
  if (model_file.empty() && run_folder.empty())
    throw Error(ErrorKind::config, "'" + printable(path) +
                                       "' lies in no run folder, so its network is unknown: name the YAML file, too "
                                       "('eval WEIGHTS CONFIG', 'predict --model CONFIG')");
  const std::string weights = find_weights(path);
  refuse_to_overwrite("--json", flags.json, {weights});
  Trained trained{open_experiment(model_file.empty() ? run_folder : model_file, flags, options), weights};
  use_threads_of(trained.experiment);
  return trained;
}

NetworkClasses network_classes(const Experiment& experiment, const std::string& weights_file,
                               const WeightsInfo& weights) {
  if (!weights.classes.empty()) return {weights.classes, printable(weights_file)};
  return {experiment.data.class_names(), "'classes' of the config"};
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) write_stderr(fmt::format("warning: {}\n", printable(warning)));
}

void refuse_to_overwrite(const std::string& name, const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code not_there;
  if (output.empty() || output == "-" || !fs::is_regular_file(output, not_there)) return;
  for (const std::string& input : inputs)
    if (fs::equivalent(output, input, not_there))
      throw Error(ErrorKind::config, name + ": '" + printable(output) + "' is an input; write results to another file");
}

void write_results_file(const std::string& path, const std::string& text) {
  std::error_code reported_by_the_write;
  fs::create_directories(fs::absolute(path).parent_path(), reported_by_the_write);
  write_file_atomically(path, text);
}

void write_json(const Flags& flags, const nlohmann::json& results) {
  if (!flags.json.empty()) put_json(flags.json, json_text(results, 2));
}

void write_json(const Flags& flags, const nlohmann::ordered_json& results) {
  if (!flags.json.empty()) put_json(flags.json, json_text(results, 2));
}

}  // namespace twiddle
