#include "models/training/open_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/formats/classes.h"
#include "data/formats/relabeled.h"
#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/memory_for.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/sequential.h"
#include "models/checkpoints/safetensors_header.h"
#include "models/config/experiment.h"
#include "models/config/json_text.h"
#include "models/loss.h"

namespace twiddle {

namespace {

// "4 of 20 classes have no image here (3, 7, ...)"; empty: all have one.
std::string without_images(const Dataset& data) {
  const std::vector<std::int64_t> empty = empty_classes(data);
  if (empty.empty()) return "";
  constexpr std::size_t most = 6;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, empty.size()); ++i)
    names.push_back(shown(data.classes()[static_cast<std::size_t>(empty[i])]));
  return join(format_count(std::ssize(empty)), " of ", format_count(std::ssize(data.classes()), "class"),
              empty.size() == 1 ? " has" : " have", " no image here (", join_names(names),
              empty.size() > most ? ", ..." : "", ")");
}

// Errors are reported at the last layer's line, which is the one to change.
void check_classes(const Experiment& experiment, const char* key, const Dataset& dataset, Diagnostics& diagnostics) {
  const auto classes = static_cast<std::int64_t>(dataset.classes().size());
  const std::int64_t outputs = experiment.model.net->output_shape().at(0);
  if (classes <= outputs) return;
  const std::string label = dataset.largest_label();
  const std::string empty = without_images(dataset);  // such as class 0 if labels begin with 1
  diagnostics.add(experiment.config.layers.items.back().place,
                  join("data.", key, " has ", classes, " classes", label.empty() ? "" : " (" + label + ")",
                       ", the last layer gives ", outputs, " outputs", empty.empty() ? "" : "; " + empty),
                  join("set its outputs to ", classes));
}

// Errors of both datasets are reported together.
void open_both(const DataSection& section, OpenData& opened) {
  std::string failures;
  const auto open = [&](const char* key, const DatasetChoice& choice, std::unique_ptr<Dataset>& dataset) {
    try {
      dataset = memory_for(join("the dataset data.", key), [&] { return choice.open(); });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      failures += (failures.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  open("train", section.train, opened.train);
  open("val", section.val, opened.val);
  if (!failures.empty()) throw Error(ErrorKind::data, failures);
}

// The first few names, so that two lists can be told apart in a message.
std::string shortened(const std::vector<std::string>& classes) {
  constexpr std::size_t most = 6;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(most, classes.size()); ++i) first.push_back(shown(classes[i]));
  return join(classes.size(), " (", join_names(first), classes.size() > most ? ", ..." : "", ")");
}

std::unique_ptr<Dataset> with_classes(std::unique_ptr<Dataset> data, const NetworkClasses& network, const char* key,
                                      const Place& place, OpenData& opened, Diagnostics& diagnostics) {
  if (!data || data->classes() == network.names) return data;
  const std::vector<std::string> unknown = unknown_names(data->classes(), network.names);
  if (unknown.empty()) return std::make_unique<Relabeled>(std::move(data), network.names);
  const std::int64_t count = std::ssize(network.names);
  const std::vector<std::string> numbers = numbered_classes(count);
  if (std::ssize(data->classes()) == count && (data->classes() == numbers || network.names == numbers)) {
    opened.warnings.push_back(join("data.", key, " and ", network.origin,
                                   " are compared by the order of their classes: one of them has no names"));
    return data;
  }
  diagnostics.add(place,
                  join("data.", key, " has ", format_count(std::ssize(unknown), "class"), " that ", network.origin,
                       " does not have: ", shortened(unknown), "; data.", key, ": ", shortened(data->classes()), "; ",
                       network.origin, ": ", shortened(network.names)),
                  network.hint);
  return data;
}

// A training set should have images of all classes. A validation set need not, unless it is a range of another
// set, which then is probably in the order of its classes.
void warn_of_empty_classes(const DataSection& section, OpenData& data) {
  const auto warn = [&](const char* key, const Dataset& set) {
    const std::string what = without_images(set);
    if (!what.empty()) data.warnings.push_back(join("data.", key, ": ", what));
  };
  if (data.train) warn("train", *data.train);
  if (data.val && section.val.is_range()) warn("val", *data.val);
}

// A file of weights holds the names in its header, whose length is limited. Without this check a run would end when it
// first saves.
void check_length(const std::vector<std::string>& classes, const Place& place, Diagnostics& diagnostics) {
  constexpr std::uint64_t of_tensors = 1 << 20, most = most_header_bytes - of_tensors;
  std::uint64_t bytes = 0;
  for (const std::string& name : classes) bytes += json_text(nlohmann::json(json_text(nlohmann::json(name)))).size();
  if (bytes > most)
    diagnostics.add(place,
                    join("the names of its ", format_count(std::ssize(classes), "class"), " take ", format_bytes(bytes),
                         " in a file of weights, whose limit for them is ", format_bytes(most), "; shorten them"));
}

}  // namespace

OpenData open_data(const Experiment& experiment) {
  OpenData opened{nullptr, nullptr, experiment.data.train_augment, experiment.data.val_augment};
  open_both(experiment.data, opened);
  if (is_image(experiment.loss->target())) return opened;
  Diagnostics diagnostics;
  if (opened.train) {
    check_classes(experiment, "train", *opened.train, diagnostics);
    check_length(opened.train->classes(), experiment.data.train.place(), diagnostics);
  } else if (opened.val) {
    check_classes(experiment, "val", *opened.val, diagnostics);
  }
  diagnostics.throw_if_any();
  warn_of_empty_classes(experiment.data, opened);
  return opened;
}

OpenData open_val_data(const Experiment& experiment, const NetworkClasses& network) {
  OpenData opened{nullptr, experiment.data.val.open(), nullptr, experiment.data.val_augment};
  if (!opened.val || is_image(experiment.loss->target())) return opened;
  map_classes(experiment, network, opened);
  Diagnostics diagnostics;
  check_classes(experiment, "val", *opened.val, diagnostics);
  diagnostics.throw_if_any();
  const std::int64_t classes = std::ssize(opened.val->classes());
  const std::int64_t outputs = experiment.model.net->output_shape().at(0);
  if (network.names.empty() && classes < outputs)
    opened.warnings.push_back(join("data.val has ", classes, " classes, the network ", outputs,
                                   " outputs without names: class N of the data is compared with output N"));
  return opened;
}

void map_classes(const Experiment& experiment, const NetworkClasses& named, OpenData& data) {
  if (is_image(experiment.loss->target()) || (named.names.empty() && !data.train)) return;
  const NetworkClasses of_train{data.train ? data.train->classes() : named.names, "data.train"};
  const NetworkClasses& network = named.names.empty() ? of_train : named;
  Diagnostics diagnostics;
  const DataSection& section = experiment.data;
  // Numbered classes that a training set has and the network names are compared by their order, in both sets alike.
  if (data.val && unknown_names(data.val->classes(), of_train.names).empty())
    data.val = with_classes(std::move(data.val), of_train, "val", section.val.place(), data, diagnostics);
  data.train = with_classes(std::move(data.train), network, "train", section.train.place(), data, diagnostics);
  data.val = with_classes(std::move(data.val), network, "val", section.val.place(), data, diagnostics);
  diagnostics.throw_if_any();
}

}  // namespace twiddle
