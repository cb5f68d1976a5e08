#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"
#include "models/config/experiment.h"

namespace twiddle {

class Interrupt;
struct NetworkClasses;
struct WeightsInfo;

// Opens the experiment of a verb's first argument, a YAML file or a run folder. The flags override its config. Messages
// without a callback in `options` go to standard error, unless --quiet.
Experiment open_experiment(const std::string& path, const Flags& flags, ExperimentOptions options);

// Starts the experiment's threads; on a CPU, binds each to a core. Call before computing. Throws if they cannot be
// started.
void use_threads_of(const Experiment& experiment);

// Reports the progress of a search for images, first after two seconds and then every ten. Throws Interrupted if `stop`
// returns true.
SearchProgress search_reporter(std::function<void(const std::string&)> report, std::function<bool()> stop = {});

// Returns options with which a request to stop ends image search and autotuning by Interrupted. Messages go to standard
// error, unless --quiet.
ExperimentOptions stopped_by(const Interrupt& interrupt, const Flags& flags);

// Returns the device of --device, by default auto; use_threads_of() uses --threads. For verbs without a config.
Device open_device(const Flags& flags);
void use_threads_of(const Flags& flags);

// Throws if the device is not present. For verbs that plan for a device but run nothing.
void require_device(const Device& device);

// Opens the arguments of eval and predict: RUN, or WEIGHTS with or without MODEL.yaml. Weights in a run folder use that
// folder's config. Starts its threads.
struct Trained {
  Experiment experiment;
  std::string weights;  // the file
};
Trained open_trained(const std::string& path, const std::string& model_file, const Flags& flags,
                     const ExperimentOptions& options);

// Returns the class names stored with the weights, else those of the config's option `classes`, else none.
NetworkClasses network_classes(const Experiment& experiment, const std::string& weights_file,
                               const WeightsInfo& weights);

// Prints each warning to standard error.
void warn(const std::vector<std::string>& warnings);

// Throws a config error if the flag or argument `name` would overwrite an input file with results. No output: "" or
// "-".
void refuse_to_overwrite(const std::string& name, const std::string& output, const std::vector<std::string>& inputs);

// Creates missing folders of the path, then writes the file.
void write_results_file(const std::string& path, const std::string& text);

// Writes results to FILE of --json; "-" is standard output. Does nothing without the flag.
void write_json(const Flags& flags, const nlohmann::json& results);
void write_json(const Flags& flags, const nlohmann::ordered_json& results);

}  // namespace twiddle
