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

// The experiment that a verb's first argument stands for, a YAML file or a run folder, with the flags laid over its
// config. What the options leave open is told on standard error, unless --quiet.
Experiment open_experiment(const std::string& path, const Flags& flags, ExperimentOptions options);

// For a verb that computes, before it does: the experiment's threads, and on a CPU each bound to a core. Throws where
// they cannot be had.
void use_threads_of(const Experiment& experiment);

// Tells how far the search for a dataset's images is where it takes longer than two seconds, and then every ten; throws
// Interrupted once `stop` is true.
SearchProgress tell_of_search(std::function<void(const std::string&)> tell, std::function<bool()> stop = {});

// For a verb that has an Interrupt: with these options a search for images and measuring end with Interrupted once it
// is asked for. What they tell goes to standard error, unless --quiet.
ExperimentOptions stopped_by(const Interrupt& interrupt, const Flags& flags);

// For a verb without a config: the device of --device, by default auto, and the threads of --threads.
Device open_device(const Flags& flags);
void use_threads_of(const Flags& flags);

// For a verb that plans for a device without running: throws where it is not there.
void require_device(const Device& device);

// What eval and predict are given: RUN, or WEIGHTS with or without MODEL.yaml. Weights inside a run folder know their
// config. Its threads are in use.
struct Trained {
  Experiment experiment;
  std::string weights;  // the file
};
Trained open_trained(const std::string& path, const std::string& model_file, const Flags& flags,
                     const ExperimentOptions& options);

// What the outputs of trained weights mean: the names kept with them, else those of the config's option `classes`; no
// names if neither has some.
NetworkClasses network_classes(const Experiment& experiment, const std::string& weights_file,
                               const WeightsInfo& weights);

// Prints each on standard error.
void warn(const std::vector<std::string>& warnings);

// Throws a config error where a flag or argument, called `name`, would have a file of results take the place of one
// that is read. No output: "" or "-".
void refuse_to_overwrite(const std::string& name, const std::string& output, const std::vector<std::string>& inputs);

// Makes the folders that the path names, as they may be missing still.
void write_results_file(const std::string& path, const std::string& text);

// Writes results to FILE of --json; "-" is standard output. Does nothing where the flag was not given.
void write_json(const Flags& flags, const nlohmann::json& results);
void write_json(const Flags& flags, const nlohmann::ordered_json& results);

}  // namespace twiddle
